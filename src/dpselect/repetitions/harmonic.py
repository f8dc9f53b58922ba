"""The harmonic law of K: the logarithmic law's shape with a hard limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect.errors import integer
from dpselect.repetitions.distribution import Family, FloatArray, repetition_law
from dpselect.repetitions.exact_walk import Ratio, Walked
from dpselect.repetitions.finite import LARGEST_TABLE, FiniteLaw

__all__ = ["Harmonic"]


@repetition_law("harmonic")
@dataclass(frozen=True, kw_only=True)
class Harmonic(Walked, FiniteLaw):
    """The harmonic distribution: P(K = k) is proportional to 1 / k on 1, ..., limit.

    Args:
        limit: the largest K, from 1 to 2**20.

    Raises:
        ArgumentError: if `limit` is out of range or not an integer.
        TypeError: if `limit` is not a number.

    >>> [round(11 * Harmonic(limit=3).pmf(k), 12) for k in (0, 1, 2, 3)]
    [0.0, 6.0, 3.0, 2.0]
    """

    limit: int

    minimum = 1
    """At least one run."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", integer("limit", self.limit, at_least=1, at_most=LARGEST_TABLE))

    @classmethod
    def families(cls) -> Sequence[Family]:
        """By the limit."""
        return (Family("harmonic", lambda limit: cls(limit=int(limit)), whole=True, representative=True),)

    def _log_weights(self) -> FloatArray:
        return np.append(-np.inf, -np.log(np.arange(1.0, self.limit + 1.0)))

    def _exact_first(self, context: Any) -> Any:
        return 1 / context.harmonic(self.limit)

    def _exact_ratio(self) -> Ratio:
        return lambda k: (k, k + 1)
