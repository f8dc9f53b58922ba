"""A trimmed mean or a median without known bounds on the data, by propose-test-release (after Dwork, Lei 2009)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from numpy.typing import ArrayLike

from dpselect.errors import AdjacencyError, number
from dpselect.mechanisms.instability import (
    Units,
    changes_until,
    declared_rows,
    read_granularity,
    sensitivity_of_middle,
    sorted_units,
)
from dpselect.mechanisms.mechanism import Mechanism, real
from dpselect.mechanisms.propose_test_release import ProposeTestRelease
from dpselect.privacy import Adjacency, OutputGuarantee
from dpselect.privacy.output.amounts import noise_epsilon
from dpselect.randomness import RandomSource
from dpselect.randomness.integers import discrete_laplace

__all__ = ["TrimmedMean"]

_MOST_STEPS = 2.0**30


@dataclass(frozen=True, kw_only=True)
class TrimmedMean(Mechanism):
    """The mean without the fraction `trim` of rows at either end, if its sensitivity passes a private test.

    With n rows k = floor(trim n) are left out at either end (at most so many that one or two rows remain: trim = 0.5 is
    the median). One row moves the sum of the n - 2k rows in the middle by

            max(x(n-k+1) - x(k+1), x(n-k) - x(k))                   (x(1) <= ... <= x(n))

    at most, which must not exceed the proposal `width`. The distance of the data to a violation is computed exactly,
    and tested. An answer is (sum + noise) / (n - 2k), with discrete Laplace noise of scale width/epsilon_answer on the
    grid. If the test is not passed, the value is None.

    `guarantee`: by `answered`, see `ProposeTestRelease`. Distances, sums and noise are integers, so nothing rounds
    after the rows are rounded to the grid.

    Dwork and Lei discretise the line and count the changes until the statistic leaves its bin. Testing the local
    sensitivity itself needs no bins.

    Args:
        width: the proposal, in the unit of the data, above 0 and at most 2**30 granularities. It is rounded up to the
            grid. A sensible width is the data's interquartile range (a private one, `InterquantileRange`) times a few
            margins/n for the median, or times a constant that spans the middle for a trimmed mean. Without a public
            width there is nothing to run and nothing to pay.
        granularity: a power of two in [2**-300, 2**300], in the unit of the data. The rows are rounded to its
            multiples.
        epsilon_test: the price of the test, in [2**-20, 2**10].
        epsilon_answer: the price of the noise in an answer, in [2**-20, 2**10].
        delta: the probability, at most, that data of a larger sensitivity pass the test, in [1e-300, 0.5].
        trim: the fraction of rows to leave out at either end, in [0, 0.5]. The default is 0.5, the median.
        adjacency: replace_one, the default and the only one that is proved: n is public.

    Raises:
        ArgumentError: for a parameter out of range.
        AdjacencyError: for add_or_remove_one.

    >>> from dpselect.randomness import keyed_source
    >>> median = TrimmedMean(width=2.0, granularity=0.5, epsilon_test=0.5, epsilon_answer=0.5, delta=1e-6)
    >>> ages = [20.0 + i % 50 for i in range(2000)]
    >>> abs(median(ages, random=keyed_source(1)).value - 44.5) < 30
    True
    """

    width: float
    granularity: float = field(metadata={"parse": read_granularity})
    epsilon_test: float
    epsilon_answer: float
    delta: float
    trim: float = field(default=0.5, metadata=real(at_least=0.0, at_most=0.5))
    adjacency: Adjacency | str = Adjacency.REPLACE_ONE

    def __post_init__(self) -> None:
        super().__post_init__()
        self._parsed(width=number("width", self.width, above=0.0, at_most=_MOST_STEPS * self.granularity))
        if self.adjacency is not Adjacency.REPLACE_ONE:
            raise AdjacencyError("the trimmed mean is proved for replace_one: the number of rows is public")
        _ = self.test  # checks the rest

    @property
    def test(self) -> ProposeTestRelease:
        """The test and the price of the answer."""
        return ProposeTestRelease(
            epsilon_test=self.epsilon_test,
            epsilon_answer=self.epsilon_answer,
            delta=self.delta,
            adjacency=self.adjacency,
        )

    @property
    def guarantee(self) -> OutputGuarantee:
        """The price of "none" and of an answer, and delta."""
        return self.test.guarantee

    @property
    def steps(self) -> int:
        """The width in multiples of the granularity, rounded up."""
        return math.ceil(Fraction(self.width) / Fraction(self.granularity))

    def trimmed(self, count: int) -> int:
        """How many of `count` rows are left away at either end."""
        return min(math.floor(Fraction(self.trim) * count), (count - 1) // 2)

    def distance(self, rows: Units) -> int:
        """The number of rows that must change until the width is inadmissible, which is secret. `rows`: see
        `sorted_units`.
        """
        trimmed = self.trimmed(len(rows))
        return changes_until(lambda t: sensitivity_of_middle(rows, trimmed, t) > self.steps, trimmed)

    def prepared(self, values: ArrayLike) -> Callable[[RandomSource], float | None]:
        """The noisy mean of the middle, or None when the test is not passed.

        Raises `ArgumentError` unless `values` are one-dimensional, real and not empty.
        """
        given = declared_rows(values)
        return lambda random: self._mean(sorted_units(given, self.granularity), random)

    def _mean(self, rows: Units, random: RandomSource) -> float | None:
        trimmed = self.trimmed(len(rows))
        kept = rows[trimmed : len(rows) - trimmed].tolist()
        scale = self.steps / noise_epsilon(self.test.epsilon_answer)

        def answer(source: RandomSource) -> float:
            total = Fraction(sum(kept) + discrete_laplace(scale, source), len(kept))
            return float(total * Fraction(self.granularity))

        return self.test.prepared(self.distance(rows), answer)(random)
