"""Areas under the curve by private medians over blocks: `AdaptiveAnalysis`'s mechanism, for a private holdout.

An area is no mean over rows, and one row of a rare class can move it far. The median of the areas in m blocks of rows
moves by one rank. It is certified to be within the quartiles of the area on a block's number of new rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import SupportsFloat

from dpselect.adaptive import plan_blocks
from dpselect.adaptive.blocks import BlockPlan
from dpselect.adaptive.grids import uniform_grid
from dpselect.adaptive.medians import SearchMedian
from dpselect.errors import ArgumentError, integer
from dpselect.holdout.draws import Draws
from dpselect.holdout.scores import Scored
from dpselect.privacy import Adjacency, Guarantee, gaussian

__all__ = ["BlockMedianPlan", "plan_block_medians"]

_STEP = Fraction(1, 1000)


@dataclass(frozen=True, kw_only=True)
class BlockMedianPlan:
    """`blocks` says what is certified, for areas on `subsample_size` rows."""

    blocks: BlockPlan
    subsample_size: int
    tolerance: float

    mechanism = "blocks"
    error: float | None = None

    @property
    def questions(self) -> int:
        return self.blocks.queries

    @property
    def answers(self) -> int:
        return self.blocks.queries

    @property
    def failure_probability(self) -> float:
        return self.blocks.failure_probability

    @property
    def certified(self) -> bool:
        return self.blocks.certified

    @property
    def row_privacy(self) -> Guarantee | None:
        """The guarantee of all answers together for a row."""
        return gaussian(noise_multiplier=1.0 / self.blocks.mu, adjacency=Adjacency.REPLACE_ONE)

    def answer(self, scored: Scored, claim: float | None, draws: Draws) -> tuple[bool | None, float]:
        """Whether the claim is within the tolerance of the private median, and that median."""
        order = draws.cut().permutation(scored.rows)
        cut = order[: self.blocks.blocks * self.subsample_size].reshape(self.blocks.blocks, self.subsample_size)
        noise = self.blocks.noise
        assert noise is not None
        value = SearchMedian(noise=noise)(
            scored.block_areas(cut), uniform_grid(0, 1, _STEP), random=draws.answer()
        ).value
        return (None if claim is None else abs(float(value) - claim) <= self.tolerance), float(value)

    def interval(self, value: float, agrees: bool | None) -> tuple[float, float] | None:  # noqa: ARG002
        """None: the certificate is in quantiles of the area on a block's rows."""
        return None


def plan_block_medians(
    *,
    questions: int,
    rows: int,
    failure_probability: SupportsFloat,
    tolerance: float,
    largest_mu: float,
    subsample_size: int | None = None,
) -> BlockMedianPlan:
    """The largest blocks whose medians are certified and within the price, or blocks of the size asked for.

    Raises `ArgumentError` when there are too few rows, naming how many blocks are needed.
    """
    plan = plan_blocks(
        queries=questions,
        grid_size=uniform_grid(0, 1, _STEP).size,
        failure_probability=failure_probability,
        mechanism="binary_search",
    )
    needed = max(plan.blocks, math.ceil(plan.blocks * plan.mu / largest_mu * (1.0 + 1e-6)))
    size = rows // needed if subsample_size is None else integer("subsample_size", subsample_size, at_least=2)
    if size < 2 or rows // size < needed:
        raise ArgumentError(
            f"rows are too few: this certificate needs {needed} blocks of at least 2 rows, and there are {rows} rows"
        )
    return BlockMedianPlan(blocks=plan.at(rows // size), subsample_size=size, tolerance=tolerance)
