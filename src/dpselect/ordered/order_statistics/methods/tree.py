"""Noisy counts of a small domain (Hay, Rastogi, Miklau, Suciu 2010)."""

from __future__ import annotations

from dpselect.ordered.order_statistics.methods.method import (
    METHODS,
    DrawnCodes,
    MethodPlan,
    QuantileMethod,
)
from dpselect.ordered.order_statistics.small_domain import MOST_CODES
from dpselect.ordered.order_statistics.tree import tree_codes
from dpselect.ordered.sources.declared import Column
from dpselect.privacy import pure_dp
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource

__all__: list[str] = []


@METHODS.register("tree")
class Tree(QuantileMethod):
    """Good for any number of quantiles at once and for few rows."""

    most_values = MOST_CODES

    def plan(self) -> MethodPlan:
        """Epsilon of a row is the rate."""
        rate = epsilon_used(self.asked.epsilon) / self.asked.rows
        return MethodPlan((rate,), pure_dp(epsilon=self.asked.epsilon, adjacency=self.asked.adjacency))

    def draw(self, column: Column, random: RandomSource) -> DrawnCodes:
        """The codes, with the noisy counts that they come from."""
        found = tree_codes(
            column.ranked(),
            self.asked.qs,
            size=column.domain.size,
            epsilon=self.planned.rates[0],
            adjacency=self.asked.adjacency,
            random=random,
            units=self.asked.units,
        )
        return DrawnCodes(found.codes, found.rows if self.asked.units == 1 else None, found)

    def released_errors(self, drawn: DrawnCodes, size: int, failure: float) -> list[float]:
        """From the noisy counts."""
        assert drawn.tree is not None
        return [error / self.asked.units for error in drawn.tree.rank_errors(self.asked.qs, size, failure)]
