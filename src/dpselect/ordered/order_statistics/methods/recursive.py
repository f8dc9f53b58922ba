"""Cut at the middle quantile, continue in both parts (Kaplan, Schnapp, Stemmer 2022)."""

from __future__ import annotations

from fractions import Fraction

from dpselect.mechanisms import bounded_range
from dpselect.ordered.order_statistics.methods.method import (
    METHODS,
    DrawnCodes,
    MethodPlan,
    ProvedMethod,
    cut_errors,
    read_around,
)
from dpselect.ordered.order_statistics.recursive import cut_rate, cutting_tree, level_shares, recursive_codes
from dpselect.ordered.order_statistics.scattered import ScatteredColumn, fine_bits
from dpselect.ordered.round_values import measure_of, points_at_most
from dpselect.ordered.sources.declared import Column
from dpselect.privacy import Adjacency
from dpselect.privacy.composition import together
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource

__all__: list[str] = []

_FEW = 0.03
"""Rows times epsilon over the square of the number of quantiles. Below it, the last cuts are within a few rows."""
_FADE = Fraction(3, 4)
"""A wrong cut at the top is worse then than one below it. See `benchmarks/quantiles_ties.py rule`."""


@METHODS.register("recursive")
class Recursive(ProvedMethod):
    """A row is in one part of a level, so log2(m + 1) levels share epsilon instead of m quantiles."""

    def plan(self) -> MethodPlan:
        """Every level has the same share, or with very few rows the first levels have larger ones."""
        cuts, adjacency = cutting_tree(self.asked.qs), self.asked.adjacency
        levels = max(cut.level for cut in cuts) + 1
        # halved for replaced rows, as `GroupedQuantiles` draws them: it prices by this plan what it draws by another
        row = self.asked.row_epsilon
        added = row if adjacency is Adjacency.ADD_OR_REMOVE_ONE else 0.5 * row
        few = added * self.asked.expected_rows < _FEW * len(self.asked.qs) ** 2
        each = level_shares(self.asked.epsilon, levels, _FADE if few else Fraction(1))
        units = self.asked.units * self.asked.rows
        rates = tuple(cut_rate(cut.share, epsilon_used(each[cut.level]), adjacency) / units for cut in cuts)
        guarantees = [bounded_range(epsilon=share, adjacency=adjacency) for share in each]
        return MethodPlan(rates, together(*guarantees), tuple(cuts))

    def rank_errors(self, size: int, failure: float) -> list[float]:
        """On the finer domain that breaks ties."""
        return cut_errors(self, points_at_most(size) << fine_bits(size), failure)

    def draw(self, column: Column, random: RandomSource) -> DrawnCodes:
        """The cuts, from the top down."""
        parts, measure = column.scattered(random), measure_of(column.domain)
        points, bits = measure.points, fine_bits(column.domain.size)
        if isinstance(parts, ScatteredColumn) and not parts.at_once:
            read_around(parts.column, self, column.domain.size)
        codes = recursive_codes(parts, self.planned.cuts, size=points << bits, rates=self.planned.rates, random=random)
        return DrawnCodes([measure.code_at(code >> bits) for code in codes])
