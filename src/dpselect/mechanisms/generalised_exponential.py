"""Candidates of different sensitivity: the generalised exponential mechanism (Raskhodnikova, Smith 2016)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dpselect.errors import ArgumentError, number
from dpselect.mechanisms.bounded_range_price import bounded_range
from dpselect.mechanisms.exponential import draw_exponential
from dpselect.mechanisms.mechanism import Mechanism, real
from dpselect.mechanisms.scores import declared_scores, read_scores
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency, Guarantee
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource

__all__ = ["GeneralisedExponentialMechanism"]

_FLOOR = 2.0**20
"""Normalised scores are clipped here below the best; that moves no two of them apart."""
_SENSITIVITY = 1.0 + 2.0**-24
"""One, and what rounding can add to a normalised score's sensitivity: less than 2**-25."""


@dataclass(frozen=True, kw_only=True)
class GeneralisedExponentialMechanism(Mechanism):
    """A small error for a good candidate of small sensitivity, however sensitive the others are.

    Let t = 2 log(count / failure_probability) / epsilon, and let the penalised scores be m_i = q_i - t d_i, d_i the
    sensitivity of candidate i. The normalised score s_i = min over j of (m_i - m_j) / (d_i + d_j) has sensitivity one.
    The exponential mechanism runs on it. With probability at least 1 - failure_probability the chosen score is at least
    q_j - 2 t d_j for every j. Source: Raskhodnikova, Smith 2016, Theorem 3.1 (stated there for minimisation).

    It can lose to report-noisy-max if sensitivities are nearly equal. Range epsilon, as for the exponential mechanism.
    Rounding is covered: the normalised score counts as having sensitivity 1 + 2**-24.

    Args:
        sensitivities: one bound for each candidate, fixed without looking at the data.
        epsilon: the price, at most 2**40 and at least 2**-10.
        failure_probability: what the accuracy statement allows; it tunes the penalty and costs nothing.

    >>> mechanism = GeneralisedExponentialMechanism(sensitivities=[0.1, 1e6], epsilon=1.0, failure_probability=1e-12)
    >>> mechanism([90.0, 95.0]).value
    0
    """

    sensitivities: Sequence[float]
    epsilon: float = field(metadata=real(at_least=2.0**-10, at_most=2.0**40, rounding="down"))
    failure_probability: float = field(default=0.05, metadata=real(at_least=1e-12, below=1.0))
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE

    def __post_init__(self) -> None:
        super().__post_init__()
        bounds = tuple(
            number("sensitivities", d, at_least=2.0**-300, at_most=2.0**300, rounding="up") for d in self.sensitivities
        )
        if not bounds:
            raise ArgumentError("sensitivities must not be empty")
        self._parsed(sensitivities=bounds)

    @property
    def guarantee(self) -> Guarantee:
        """Range epsilon."""
        terms = {"mechanism": "generalised-exponential", "epsilon": self.epsilon, "count": len(self.sensitivities)}
        return replace(bounded_range(epsilon=self.epsilon, adjacency=self.adjacency), terms=terms)

    @property
    def penalty(self) -> float:
        """t, in units of the sensitivity."""
        return 2.0 * math.log(len(self.sensitivities) / self.failure_probability) / self.epsilon

    def normalised(self, scores: ArrayLike) -> Array:
        """The scores that the exponential mechanism sees: 0 for the best, down to -2**20. Secret, like `scores`."""
        return self._normalised(declared_scores(scores, self._check_count)().vector())

    def _check_count(self, count: int) -> None:
        if count != len(self.sensitivities):
            raise ArgumentError("scores must be as many as sensitivities")

    def _normalised(self, q: Array) -> Array:
        d = np.array(self.sensitivities)
        # among candidates of one sensitivity only the best can attain the minimum
        known, group = np.unique(d, return_inverse=True)
        rivals = np.full(len(known), -np.inf)
        np.maximum.at(rivals, group, q)
        result = np.zeros(len(q))
        with np.errstate(over="ignore", invalid="ignore"):
            for rival, bound in zip(rivals, known, strict=True):
                width = d + bound
                lead = (q - rival) / width - self.penalty * ((d - bound) / width)
                result = np.minimum(result, np.where(np.isnan(lead), 0.0, lead))  # two of -inf: no lead either way
        result = np.maximum(result, -_FLOOR)
        result[q == -np.inf] = -np.inf
        return result

    def prepared(self, scores: ArrayLike) -> Callable[[RandomSource], int]:
        """The choice among candidates with these scores, one for each sensitivity, held in memory. The draw is exact.

        Time: the number of candidates times the number of different sensitivities.
        """
        read = declared_scores(scores, self._check_count)
        rate = epsilon_used(self.epsilon) / (2 * Fraction(_SENSITIVITY))
        return lambda random: draw_exponential(read_scores(self._normalised(read().vector())), rate, random)
