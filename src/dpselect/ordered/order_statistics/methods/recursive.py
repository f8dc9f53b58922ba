"""Cut at the middle quantile, continue in both parts (Kaplan, Schnapp, Stemmer 2022)."""

from __future__ import annotations

from dpselect.mechanisms import bounded_range
from dpselect.ordered.order_statistics.methods.method import (
    METHODS,
    DrawnCodes,
    MethodPlan,
    ProvedMethod,
    cut_errors,
    read_around,
)
from dpselect.ordered.order_statistics.recursive import cut_rate, cutting_tree, equal_share, recursive_codes
from dpselect.ordered.order_statistics.scattered import ScatteredColumn, fine_bits
from dpselect.ordered.round_values import measure_of, points_at_most
from dpselect.ordered.sources.declared import Column
from dpselect.privacy.composition import together
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource

__all__: list[str] = []


@METHODS.register("recursive")
class Recursive(ProvedMethod):
    """A row is in one part of a level, so log2(m + 1) levels share epsilon instead of m quantiles."""

    def plan(self) -> MethodPlan:
        """Every level has the same share."""
        cuts = cutting_tree(self.asked.qs)
        levels = max(cut.level for cut in cuts) + 1
        each = equal_share(self.asked.epsilon, levels)
        rates = tuple(cut_rate(cut.share, epsilon_used(each), self.asked.adjacency) / self.asked.units for cut in cuts)
        level = bounded_range(epsilon=each, adjacency=self.asked.adjacency)
        return MethodPlan(rates, together(*[level] * levels), tuple(cuts))

    def rank_errors(self, size: int, failure: float) -> list[float]:
        """On the finer domain that breaks ties."""
        points = points_at_most(size)
        return cut_errors(self, points << fine_bits(points), failure)

    def draw(self, column: Column, random: RandomSource) -> DrawnCodes:
        """The cuts, from the top down."""
        parts, measure = column.scattered(random), measure_of(column.domain)
        points, bits = measure.points, fine_bits(measure.points)
        if isinstance(parts, ScatteredColumn) and not parts.at_once:
            read_around(parts.column, self, column.domain.size)
        codes = recursive_codes(parts, self.planned.cuts, size=points << bits, rates=self.planned.rates, random=random)
        return DrawnCodes([measure.code_at(code >> bits) for code in codes])
