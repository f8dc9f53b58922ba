"""The printed closed form of a zCDP base, for a number of runs with a given mean."""

from __future__ import annotations

from dataclasses import dataclass

from dpselect.repetitions import TruncatedNegativeBinomial
from dpselect.repetitions.negative_binomial_theorems import corollary_4

RHO = 0.1


def negative_binomial(eta: float, mean: float = 10.0) -> TruncatedNegativeBinomial:
    return TruncatedNegativeBinomial.with_mean(eta=eta, mean=mean)


@dataclass
class PrintedTheorem2:
    """Corollary 4's own choice of the second order: what the paper plots."""

    law: TruncatedNegativeBinomial
    rho: float = RHO

    def __call__(self, orders):
        return corollary_4(law=self.law, order=orders, rho=self.rho)
