"""The spread of data of unknown scale, by propose-test-release on a logarithmic scale (Dwork, Lei 2009)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.errors import AdjacencyError, ArgumentError, number
from dpselect.mechanisms.instability import (
    Units,
    changes_until,
    declared_rows,
    largest_gap,
    read_granularity,
    smallest_gap,
    sorted_units,
)
from dpselect.mechanisms.mechanism import Mechanism, real, whole
from dpselect.mechanisms.propose_test_release import Cascade, ProposeTestRelease
from dpselect.privacy import Adjacency, OutputGuarantee
from dpselect.privacy.output.amounts import noise_epsilon
from dpselect.randomness import RandomSource
from dpselect.randomness.integers import discrete_laplace

__all__ = ["InterquantileRange"]

_LARGEST_WIDTH = 2.0**53


@dataclass(frozen=True, kw_only=True)
class InterquantileRange(Mechanism):
    """The distance between two quantiles, within a factor, or None when the data do not pin it down.

    It is x(q') - x(q) with q the smaller of floor(tail n) + 1 and floor(n/2), and q' = n + 1 - q. With tail = 0.25 it
    is the interquartile range. Positive widths are binned by powers of b = `ratio`, and width 0 is a bin of its own.
    Stage one takes the bins [b^j, b^(j+1)), stage two shifts them by half a bin, or the other way round: a public coin
    decides. The distance of a stage is how many rows must change until the width leaves its bin, less one. Then every
    neighbour is in the same bin, and the answer is b^(level + noise) with the level in `steps` to a bin. The noise is
    discrete Laplace of scale (steps - 1)/epsilon_answer steps, slightly less than (1 bin)/epsilon_answer. An answer in
    bin 0 is 0.

    Outputs are (stage, width) or None, and the stage is part of the output. `guarantee` is that of a `Cascade` of two
    stages with delta/2 each. Stage one answers at epsilon_test + epsilon_answer and stage two at one epsilon_test more.
    None costs 2 epsilon_test, and delta is 1 - (1 - delta/2)^2.

    Exact on the grid: widths, bins and distances are integers, and a level is a function of the width whose rounding
    cannot leave its bin.

    Args:
        granularity: a power of two in [2**-300, 2**300], in the unit of the data. The rows are rounded to its
            multiples.
        epsilon_test: the price of one test, in [2**-20, 2**10].
        epsilon_answer: the price of the noise in an answer, in [2**-20, 2**10].
        delta: both stages together, at least 1e-299 and below 1.
        tail: the fraction of rows outside either quantile, above 0 and below 0.5. The default is 0.25.
        ratio: b, the width of a bin as a factor, in [1.001, 1e6]. None, the default, is 1 + 1/log n, as Dwork and Lei
            have it.
        steps: levels in a bin, an integer in [2, 65536]. The default is 64.
        adjacency: replace_one, the default and the only one that is proved: n is public.

    Raises:
        ArgumentError: for a parameter out of range.
        AdjacencyError: for add_or_remove_one.

    >>> from dpselect.randomness import keyed_source
    >>> spread = InterquantileRange(granularity=2.0**-10, epsilon_test=0.5, epsilon_answer=0.5, delta=1e-6)
    >>> stage, width = spread([i / 1000.0 for i in range(20_000)], random=keyed_source(1)).value
    >>> stage in (1, 2) and 5.0 < width < 20.0
    True
    """

    granularity: float = field(metadata={"parse": read_granularity})
    epsilon_test: float
    epsilon_answer: float
    delta: float
    tail: float = field(default=0.25, metadata=real(above=0.0, below=0.5))
    ratio: float | None = None
    steps: int = field(default=64, metadata=whole(at_least=2, at_most=1 << 16))
    adjacency: Adjacency | str = Adjacency.REPLACE_ONE

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ratio is not None:
            self._parsed(ratio=number("ratio", self.ratio, at_least=1.001, at_most=1e6))
        if self.adjacency is not Adjacency.REPLACE_ONE:
            raise AdjacencyError("the interquantile range is proved for replace_one: the number of rows is public")
        _ = self.cascade  # checks the rest

    @property
    def cascade(self) -> Cascade:
        """The two stages."""
        stage = ProposeTestRelease(
            epsilon_test=self.epsilon_test,
            epsilon_answer=self.epsilon_answer,
            delta=number("delta", self.delta, at_least=1e-299, below=1.0, rounding="down") / 2.0,
            adjacency=self.adjacency,
        )
        return Cascade([stage, stage])

    @property
    def guarantee(self) -> OutputGuarantee:
        """Prices by the stage that answered, 0 for None, and delta."""
        return self.cascade.guarantee

    def ranks(self, count: int) -> tuple[int, int]:
        """The two order statistics of `count` rows, from 1 on. Raises `ArgumentError` for fewer than two rows."""
        if count < 2:
            raise ArgumentError("values must have at least two rows")
        low = math.floor(Fraction(self.tail) * count) + 1
        return min(low, count // 2), count + 1 - min(low, count // 2)

    def examined(self, rows: Units, *, shifted: bool) -> tuple[int, int | None]:
        """(distance, level) with one of the two sets of bins. The level is None for width 0. Secret.

        `rows`: see `sorted_units`.
        """
        low, high = self.ranks(len(rows))
        width = int(rows[high - 1] - rows[low - 1])
        edges = self._edges(len(rows), shifted)
        place = int(np.searchsorted(edges, width, side="right")) - 1  # -1 for width 0
        floor, ceiling = (int(edges[place]) if place >= 0 else 0), int(edges[place + 1])

        def leaves(changes: int) -> bool:
            wide = largest_gap(rows, low, high, changes) >= ceiling
            return wide or smallest_gap(rows, low, high, changes) < floor

        # with `low` rows changed the width has no bound
        distance = changes_until(lambda changes: leaves(changes + 1), low)
        if place < 0:
            return distance, None
        first = place * self.steps - (self.steps // 2 if shifted else 0)
        level = math.floor(math.log(width) / math.log(self._ratio(len(rows))) * self.steps)
        return distance, min(max(level, first), first + self.steps - 1)

    def prepared(self, values: ArrayLike) -> Callable[[RandomSource], tuple[int, float] | None]:
        """(stage, width), or None when no stage answers.

        Raises `ArgumentError` unless `values` are one-dimensional, real and at least two.
        """
        given = declared_rows(values)
        self.ranks(len(given))  # at least two
        return lambda random: self._found(sorted_units(given, self.granularity), random)

    def _found(self, rows: Units, random: RandomSource) -> tuple[int, float] | None:
        logarithm = math.log(self._ratio(len(rows)))
        scale = (self.steps - 1) / noise_epsilon(self.cascade.stages[0].epsilon_answer)

        def attempt(*, shifted: bool) -> tuple[int, Callable[[RandomSource], float]]:
            distance, level = self.examined(rows, shifted=shifted)
            if level is None:
                return distance, lambda _: 0.0
            return distance, lambda source: self._width(level + discrete_laplace(scale, source), logarithm)

        coin = bool(random.bits(1))
        return self.cascade.prepared([attempt(shifted=coin), attempt(shifted=not coin)])(random)

    def _width(self, level: int, logarithm: float) -> float:
        """The middle of a step, as a finite number."""
        exponent = (level + 0.5) / self.steps * logarithm + math.log(self.granularity)
        return math.exp(min(max(exponent, -700.0), 700.0))

    def _ratio(self, count: int) -> float:
        # of fewer than two values there is no range to look for; any ratio does
        return 1.0 + 1.0 / math.log(max(count, 2)) if self.ratio is None else self.ratio

    def _edges(self, count: int, shifted: bool) -> NDArray[np.int64]:
        """The first whole width of every bin, and one that no width reaches."""
        logarithm = math.log(self._ratio(count))
        bins = math.ceil(math.log(_LARGEST_WIDTH) / logarithm)
        powers = np.exp(np.minimum((np.arange(bins + 1) - (0.5 if shifted else 0.0)) * logarithm, 40.0))
        # a power that is an integer but for rounding begins its bin; any increasing edges would be sound
        edges = np.maximum.accumulate(np.ceil(powers * (1.0 - 1e-12)).astype(np.int64))
        return np.append(edges, np.int64(1) << 60)
