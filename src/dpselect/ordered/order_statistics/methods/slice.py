"""A quantile in each slice of Reorder-Slice-Compute (Cohen, Lyu, Nelson, Sarlos, Stemmer 2022)."""

from __future__ import annotations

from dpselect.ordered.order_statistics.by_slices import plan_slices, slice_codes
from dpselect.ordered.order_statistics.methods.method import (
    METHODS,
    DrawnCodes,
    MethodPlan,
    QuantileMethod,
)
from dpselect.ordered.order_statistics.scattered import fine_bits
from dpselect.ordered.round_values import measure_of, points_at_most
from dpselect.ordered.sources.declared import Column
from dpselect.randomness import RandomSource

__all__: list[str] = []


@METHODS.register("slice")
class Slice(QuantileMethod):
    """Costs (epsilon, delta), hardly more for many quantiles than for eight."""

    weights = False
    needs_delta = True

    def plan(self) -> MethodPlan:
        """Slices whose price at delta is nearly epsilon."""
        assert self.asked.delta is not None
        slicing, guarantee = plan_slices(self.asked.qs, self.asked.epsilon, self.asked.delta, self.asked.adjacency)
        return MethodPlan(tuple(slicing.rates), guarantee, slicing=slicing)

    def draw(self, column: Column, random: RandomSource) -> DrawnCodes:
        """One code in each slice, and a noisy number of rows."""
        assert self.planned.slicing is not None
        parts, measure = column.scattered(random), measure_of(column.domain)
        points, bits = measure.points, fine_bits(column.domain.size)
        codes, rows = slice_codes(parts, self.planned.slicing, size=points << bits, random=random)
        return DrawnCodes([measure.code_at(code >> bits) for code in codes], rows)

    def released_errors(self, drawn: DrawnCodes, size: int, failure: float) -> list[float]:
        """From the noisy number of rows."""
        assert drawn.rows is not None
        assert self.planned.slicing is not None
        fine = points_at_most(size) << fine_bits(size)
        return self.planned.slicing.rank_errors(fine, failure, drawn.rows)
