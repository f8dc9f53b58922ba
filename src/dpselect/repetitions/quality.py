"""How good a winner a number of runs gives: what stands beside every price of a search."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpselect.numerics.digits import rounded
from dpselect.repetitions.distribution import Repetitions

__all__ = ["Quality", "quality_of"]


@dataclass(frozen=True)
class Quality:
    """How good the winner is under a law of the number of runs, if the scores of runs are independent and alike.

    Attributes:
        expected_quantile: of the winner among all runs that one could make.
        one_run: the probability that the search is a single run.
        fixed_runs: the fixed number of runs of the same expected quantile, which need not be whole.
    """

    expected_quantile: float
    one_run: float
    fixed_runs: float

    def words(self) -> str:
        """One line."""
        fixed, one = (rounded(value, digits=3) for value in (self.fixed_runs, self.one_run))
        return (
            f"expected quantile {rounded(self.expected_quantile)}, like {fixed} fixed runs; "
            f"a single run with probability {one}"
        )

    def describe(self) -> dict[str, Any]:
        """As JSON: None where no fixed number is as good."""
        fixed = self.fixed_runs if math.isfinite(self.fixed_runs) else None
        return {"expected_quantile": self.expected_quantile, "one_run_probability": self.one_run, "fixed_runs": fixed}


def quality_of(law: Repetitions) -> Quality:
    """The quality of a law. The best of n independent runs has the expected quantile n / (n + 1).

    >>> from dpselect.repetitions import Logarithmic
    >>> quality_of(Logarithmic.with_mean(mean=10)).words()
    'expected quantile 0.751, like 3.02 fixed runs; a single run with probability 0.269'
    """
    quantile = law.expected_quantile()
    return Quality(quantile, float(law.pmf(1)), quantile / (1.0 - quantile) if quantile < 1.0 else math.inf)
