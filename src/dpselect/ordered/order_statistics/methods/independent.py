"""Each quantile by itself, for an equal share of epsilon."""

from __future__ import annotations

import math
from fractions import Fraction

from dpselect.ordered.order_statistics.intervals import draw_code
from dpselect.ordered.order_statistics.methods.method import (
    METHODS,
    DrawnCodes,
    MethodPlan,
    ProvedMethod,
    cut_errors,
    read_around,
)
from dpselect.ordered.order_statistics.one import Quantile, quantile_rate
from dpselect.ordered.order_statistics.recursive import Cut, equal_share
from dpselect.ordered.round_values import measure_of, points_at_most
from dpselect.ordered.sources.declared import Column
from dpselect.privacy.composition import together
from dpselect.randomness import RandomSource

__all__: list[str] = []


@METHODS.register("independent")
class Independent(ProvedMethod):
    """One exponential mechanism for each quantile. Their answers are put in order."""

    most_values = math.inf

    def plan(self) -> MethodPlan:
        """Every quantile has the same share."""
        share = equal_share(self.asked.epsilon, len(self.asked.qs))
        each = [
            Quantile(q=q, epsilon=share, mechanism="exponential", adjacency=self.asked.adjacency).guarantee
            for q in self.asked.qs
        ]
        units = self.asked.units * self.asked.rows
        rates = tuple(quantile_rate(q, Fraction(share), self.asked.adjacency, units=units) for q in self.asked.qs)
        cuts = tuple(Cut(index, q, None, None, index) for index, q in enumerate(self.asked.qs))
        return MethodPlan(rates, together(*each), cuts)

    def rank_errors(self, size: int, failure: float) -> list[float]:
        """After ordering, a value may be another one's, whose error is larger."""
        return [max(cut_errors(self, points_at_most(size), failure))] * len(self.asked.qs)

    def draw(self, column: Column, random: RandomSource) -> DrawnCodes:
        """One draw for each quantile."""
        size, ranked, measure = column.domain.size, column.ranked(), measure_of(column.domain)
        read_around(ranked, self, size)
        draws = [
            draw_code(ranked, size=size, target=cut.share * ranked.total, rate=rate, random=random, measure=measure)
            for cut, rate in zip(self.planned.cuts, self.planned.rates, strict=True)
        ]
        return DrawnCodes(sorted(draws))
