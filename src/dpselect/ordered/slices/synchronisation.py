"""The synchronisation maps of Reorder-Slice-Compute (Cohen et al. 2022, Lemma 2.4), with exact rates.

Let t_i = max(0, exp(-i e) + exp(-(i+1) e) - 1), G geometric from 0 and b the bit that tells the data sets apart. For
b = 0, (i, 0) has probability (1 - exp(-e)) t_i and (i, 1) the rest of P(G = i). For b = 1, (i, 0) has exp(e) times that
and (i - 1, 1) the rest. The second entry 1 means "synchronised". Only three log-ratios ln P1/P0 occur among the
synchronised outcomes. With gamma = min{i: t_i = 0} they are e up to i = gamma - 2, one in between at gamma - 1, and -e
from gamma on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpselect.numerics.search import Array

__all__ = ["Synchronisation", "synchronisation"]


@dataclass(frozen=True)
class Synchronisation:
    """The law of one query's (fail or synchronise, index), for both bits. Source: Cohen et al. 2022, Lemma 2.4.

    Attributes:
        epsilon: the slice noise's parameter.
        fail_lower: P(fail) for b = 0; exp(epsilon) times it for b = 1, outcome by outcome.
        lower: masses of the three synchronised outcomes for b = 0.
        upper: the same for b = 1.
    """

    epsilon: float
    fail_lower: float
    lower: tuple[float, float, float]
    upper: tuple[float, float, float]

    @property
    def fail_upper(self) -> float:
        """P(fail) for b = 1, the larger one."""
        return math.exp(self.epsilon) * self.fail_lower

    @property
    def success_least(self) -> float:
        """P(synchronise) for b = 1, the smaller one: about log 2 for small epsilon and exp(-epsilon) from 0.4812 on."""
        return math.fsum(self.upper)

    def moment(self, order: Array) -> Array:
        """The sum over synchronised outcomes of P1^order P0^(1 - order)."""
        terms = [p * np.exp(order * math.log(u / p)) for p, u in zip(self.lower, self.upper, strict=True) if p > 0.0]
        return np.asarray(np.sum(terms, axis=0))


def failure_weights(epsilon: float) -> list[float]:
    """t_0, ..., t_(gamma - 1): the positive ones.

    >>> [round(t, 6) for t in failure_weights(0.25)]
    [0.778801, 0.385331, 0.078897]
    """
    found, i = [], 0
    while (t := math.exp(-i * epsilon) + math.expm1(-(i + 1) * epsilon)) > 0.0:
        found.append(t)
        i += 1
    return found


@lru_cache(maxsize=64)
def synchronisation(epsilon: float) -> Synchronisation:
    """The rates for slice noise with this parameter.

    >>> round(synchronisation(0.1).fail_lower, 9), round(synchronisation(0.1).fail_upper, 9)
    (0.292785076, 0.323577552)
    """
    step = -math.expm1(-epsilon)
    weights = failure_weights(epsilon)
    gamma = len(weights)
    # P0(i, 1) = step min(exp(-i e), 1 - exp(-(i+1) e)), P1(i, 1) = step min(exp(-(i+1) e), exp(e) - exp(-i e))
    head = step * math.fsum(-math.expm1(-i * epsilon) for i in range(1, gamma))
    last = step * -math.expm1(-gamma * epsilon)
    last_upper = step * min(math.exp(-gamma * epsilon), math.exp(epsilon) * -math.expm1(-gamma * epsilon))
    tail = math.exp(-gamma * epsilon)
    return Synchronisation(
        epsilon=epsilon,
        fail_lower=step * math.fsum(weights),
        lower=(head, last, tail),
        upper=(head * math.exp(epsilon), last_upper, tail * math.exp(-epsilon)),
    )
