"""A law of K given by a table of probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpselect.errors import ArgumentError, number
from dpselect.repetitions.distribution import FloatArray, repetition_law
from dpselect.repetitions.exact_walk import bits_for, power_of_two_fraction
from dpselect.repetitions.finite import LARGEST_TABLE, WeightedLaw

__all__ = ["Tabulated"]


@repetition_law("tabulated")
@dataclass(frozen=True, kw_only=True)
class Tabulated(WeightedLaw):
    """The distribution of K in a table: P(K = k) = probabilities[k], k = 0, 1, ...

    A sum that is off by at most 1e-9 is divided out. The distribution is then the table over its exact sum.

    Args:
        probabilities: at most 2**20 + 1 numbers in [0, 1], which sum to one.

    Raises:
        ArgumentError: if the sum is further off, a probability is out of range, no run is possible, or there are too
            many.
        TypeError: if a probability is not a number.

    >>> law = Tabulated(probabilities=[0.25, 0.5, 0.25])
    >>> law.mean, law.zero_probability, law.limit
    (1.0, 0.25, 2)
    """

    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        parsed = tuple(
            number(f"probabilities[{k}]", p, at_least=0.0, at_most=1.0 + 1e-9) for k, p in enumerate(self.probabilities)
        )
        if len(parsed) > LARGEST_TABLE + 1:
            raise ArgumentError(f"probabilities must have at most {LARGEST_TABLE + 1} entries, got {len(parsed)}")
        if abs(math.fsum(parsed) - 1.0) > 1e-9:
            raise ArgumentError(f"probabilities must sum to 1, got {math.fsum(parsed)!r}")
        if not any(parsed[1:]):
            raise ArgumentError("probabilities must allow at least one run")
        object.__setattr__(self, "probabilities", parsed)

    @cached_property
    def limit(self) -> int:
        """The largest k with a positive probability."""
        return max(k for k, p in enumerate(self.probabilities) if p > 0.0)

    @cached_property
    def minimum(self) -> int:
        """The smallest k with a positive probability."""
        return min(k for k, p in enumerate(self.probabilities) if p > 0.0)

    def _log_weights(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(np.asarray(self.probabilities[: self.limit + 1]))

    def _exact_weights(self) -> tuple[int, list[int]]:
        # doubles are exact fractions with a power of two below: the table is taken as it stands
        fractions = [power_of_two_fraction(p) for p in self.probabilities[: self.limit + 1]]
        scale = max(shift for _, shift in fractions)
        bits = bits_for(math.log(min(p for p in self.probabilities if p > 0.0)))
        return bits, [numerator << (scale - shift) for numerator, shift in fractions]

    def describe(self) -> dict[str, Any]:
        """As for every law. The probabilities are a list."""
        return {"law": self.law_name, "probabilities": list(self.probabilities)}
