"""Exponentially tilted finite laws."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpselect.errors import ArgumentError, expect, number
from dpselect.repetitions.exact_walk import power_of_two_fraction
from dpselect.repetitions.finite import LARGEST_TABLE, FiniteLaw
from dpselect.repetitions.law import FloatArray, Repetitions, repetition_law

__all__ = ["Tilted"]


@repetition_law("tilted")
@dataclass(frozen=True, kw_only=True)
class Tilted(FiniteLaw):
    """P(K = k) proportional to factor**k P(law = k), for a finite law: what `law.tilted(factor)` gives.

    Papernot and Steinke (2022), Lemma 20. Raises `ArgumentError` for a law without a limit or above 2**20.
    """

    law: Repetitions
    factor: float

    def __post_init__(self) -> None:
        expect("law", self.law, Repetitions)
        if self.law.limit is None or self.law.limit > LARGEST_TABLE:
            raise ArgumentError(f"law must have a limit of at most {LARGEST_TABLE}")
        object.__setattr__(self, "factor", number("factor", self.factor, above=0.0, at_most=1.0))

    @property
    def limit(self) -> int:
        """The limit of the law that was tilted."""
        assert self.law.limit is not None
        return self.law.limit

    @property
    def minimum(self) -> int:
        """As for the law that was tilted."""
        return self.law.minimum

    def _log_weights(self) -> FloatArray:
        k = np.arange(self.limit + 1.0)
        return self.law._log_pmf(k) + k * math.log(self.factor)

    def _tilted(self, s: float) -> Tilted:
        return Tilted(law=self.law, factor=self.factor * s)

    @cached_property
    def _exact_weights(self) -> tuple[int, list[int]]:
        bits, weights = self.law._exact_pmf()
        numerator, shift = power_of_two_fraction(self.factor)
        # room for factor**minimum, the largest power that matters
        bits += math.ceil(-self.law.minimum * math.log2(self.factor))
        power, tilted = 1 << bits, []
        for weight in weights:
            tilted.append(weight * power)
            power = power * numerator >> shift
        total = sum(tilted)
        return bits, [(weight << bits) // total for weight in tilted]

    def _exact_pmf(self) -> tuple[int, Iterator[int]]:
        bits, weights = self._exact_weights
        return bits, iter(weights)
