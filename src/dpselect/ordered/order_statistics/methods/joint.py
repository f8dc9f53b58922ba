"""One exponential mechanism over all increasing sequences (Gillenwater, Joseph, Kulesza 2021)."""

from __future__ import annotations

from dpselect.mechanisms import bounded_range
from dpselect.ordered.order_statistics.intervals import PrefetchedColumn
from dpselect.ordered.order_statistics.joint import (
    joint_bits,
    joint_codes,
    joint_error,
    joint_rate,
    joint_spans,
    joint_width,
)
from dpselect.ordered.order_statistics.methods.method import (
    METHODS,
    DrawnCodes,
    MethodPlan,
    ProvedMethod,
)
from dpselect.ordered.order_statistics.scattered import ScatteredColumn
from dpselect.ordered.round_values import measure_of, points_at_most
from dpselect.ordered.sources.declared import Column
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource

__all__: list[str] = []

_MOST_QUANTILES = 30
_WORK = 1e4
"""Time and memory grow with the square of the number of quantiles over epsilon; beyond this it takes seconds."""


@METHODS.register("joint")
class Joint(ProvedMethod):
    """Drawn exactly from the ranks around the quantiles."""

    weights = False

    @property
    def quick(self) -> bool:
        """Few quantiles, and not too small an epsilon."""
        count = len(self.asked.qs)
        return count <= _MOST_QUANTILES and count**2 <= _WORK * self.asked.row_epsilon

    def plan(self) -> MethodPlan:
        """One draw, one rate."""
        rate = joint_rate(self.asked.qs, epsilon_used(self.asked.epsilon), self.asked.adjacency) / self.asked.rows
        return MethodPlan((rate,), bounded_range(epsilon=self.asked.epsilon, adjacency=self.asked.adjacency))

    def rank_errors(self, size: int, failure: float) -> list[float]:
        """The same for all quantiles."""
        count, points = len(self.asked.qs), points_at_most(size)
        return [joint_error(count, points << joint_bits(size), self.planned.rates[0], failure)] * count

    def draw(self, column: Column, random: RandomSource) -> DrawnCodes:
        """One sequence."""
        ranked, measure = column.ranked(), measure_of(column.domain)
        points, (rate,) = measure.points, self.planned.rates
        bits = joint_bits(column.domain.size)
        width = joint_width(len(self.asked.qs), points << bits, rate)
        if isinstance(ranked, PrefetchedColumn):
            ranked.prefetch(joint_spans(ranked.total, self.asked.qs, width + 1))
        # rows with their places may have more than 64 bits
        fine = ScatteredColumn(ranked, bits, random, measure, wide=bits + (points - 1).bit_length() > 64)
        codes = joint_codes(fine, self.asked.qs, size=points << bits, rate=rate, random=random)
        return DrawnCodes([measure.code_at(code >> bits) for code in codes])
