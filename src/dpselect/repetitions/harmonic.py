"""The harmonic law of K: the logarithmic law's shape with a hard limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpselect.errors import integer
from dpselect.repetitions.exact_walk import bits_for, fixed_point, walk
from dpselect.repetitions.finite import LARGEST_TABLE, FiniteLaw
from dpselect.repetitions.law import Family, FloatArray, repetition_law

__all__ = ["Harmonic"]


@repetition_law("harmonic")
@dataclass(frozen=True, kw_only=True)
class Harmonic(FiniteLaw):
    """P(K = k) proportional to 1 / k on 1, ..., limit; limit in [1, 2**20].

    Raises `ArgumentError` or `TypeError` for another limit.

    >>> [round(11 * Harmonic(limit=3).pmf(k), 12) for k in (0, 1, 2, 3)]
    [0.0, 6.0, 3.0, 2.0]
    """

    limit: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", integer("limit", self.limit, at_least=1, at_most=LARGEST_TABLE))

    @property
    def minimum(self) -> int:
        """At least one run."""
        return 1

    @classmethod
    def families(cls) -> Sequence[Family]:
        """By the limit."""
        return (Family("harmonic", lambda limit: cls(limit=int(limit)), whole=True, representative=True),)

    def _log_weights(self) -> FloatArray:
        return np.append(-np.inf, -np.log(np.arange(1.0, self.limit + 1.0)))

    @cached_property
    def _first_weight(self) -> tuple[int, int]:
        bits = bits_for(float(np.log(self._table[1])))
        return bits, fixed_point(bits, lambda context: 1 / context.harmonic(self.limit))

    def _exact_pmf(self) -> tuple[int, Iterator[int]]:
        bits, first = self._first_weight
        return bits, walk(minimum=1, first=first, ratio=lambda k: (k, k + 1), limit=self.limit)
