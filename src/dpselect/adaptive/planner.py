"""Planning from what there is: rows, questions and a failure probability to subsample size, blocks and mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import SupportsFloat

import numpy as np

from dpselect.adaptive.blocks import BlockPlan, plan_blocks
from dpselect.adaptive.means import plan_means
from dpselect.adaptive.spread import error_from_standard_deviation
from dpselect.errors import ArgumentError, integer

__all__ = ["AnalysisPlan", "ConcentratedPlan", "plan_analysis", "plan_concentrated"]


@dataclass(frozen=True, kw_only=True)
class Option:
    """One way: how many blocks it needs, and the rows a block that leaves.

    `deviations`: for the mean of a function, the certified error in standard deviations of the function on one row
    (the grid comes on top); None when there are not enough rows.
    """

    name: str
    blocks: int
    subsample_size: int
    private: bool
    deviations: float | None


@dataclass(frozen=True, kw_only=True)
class AnalysisPlan:
    """All ways, the one to take (None when there are too few rows for any) and why."""

    options: tuple[Option, ...]
    best: Option | None
    reason: str
    mean_error: float | None
    """What `AdaptiveMeans` certifies for functions into [0, 1], when only means of bounded functions are asked for."""


def plan_analysis(
    *,
    rows: int,
    queries: int,
    failure_probability: SupportsFloat,
    grid_size: int,
    rank: SupportsFloat = 0.25,
    validity_only: bool = False,
) -> AnalysisPlan:
    """The ways to ask `queries` adaptive questions of `rows` rows, and the one with the largest blocks.

    Data splitting counts only when `validity_only`, since it promises no privacy to a row.

    >>> plan = plan_analysis(rows=1_000_000, queries=100, failure_probability=0.05, grid_size=1001)
    >>> plan.best.name, plan.best.blocks, plan.best.subsample_size
    ('binary_search', 4383, 228)
    """
    rows = integer("rows", rows, at_least=1)
    public = {"queries": queries, "grid_size": grid_size, "failure_probability": failure_probability}
    found: list[Option] = []
    for name in ("binary_search", "exponential", "splitting"):
        plan = plan_blocks(**public, rank=rank, mechanism=name)  # type: ignore[arg-type]
        found.append(_option(name, plan, rows))
    if float(rank) == 0.25:
        found.append(_option("paper", plan_blocks(**public, accounting="paper"), rows))  # type: ignore[arg-type]
    allowed = [one for one in found if one.subsample_size and (one.private or validity_only)]
    best = max(allowed, key=lambda one: one.subsample_size) if allowed else None
    try:
        mean_error = plan_means(queries=queries, rows=rows, failure_probability=failure_probability).error
    except ArgumentError:
        mean_error = None
    return AnalysisPlan(options=tuple(found), best=best, reason=_reason(found, best, rows), mean_error=mean_error)


def _option(name: str, plan: BlockPlan, rows: int) -> Option:
    size = rows // plan.blocks
    error = error_from_standard_deviation(plan.rank) / math.sqrt(size) if size else None
    return Option(name=name, blocks=plan.blocks, subsample_size=size, private=name != "splitting", deviations=error)


def _reason(found: list[Option], best: Option | None, rows: int) -> str:
    needs = ", ".join(f"{one.name} {one.blocks}" for one in found)
    if best is None:
        return f"no way is certified: blocks needed are {needs}, and there are {rows} rows"
    return f"{best.name} leaves the largest blocks, {best.subsample_size} rows each (blocks needed: {needs})"


@dataclass(frozen=True, kw_only=True)
class ConcentratedPlan:
    """Blocks and rows a block for estimators whose tails are known, at the rank that needs the fewest rows."""

    plan: BlockPlan
    subsample_size: int

    @property
    def rows(self) -> int:
        """All rows."""
        return self.plan.blocks * self.subsample_size


def plan_concentrated(
    *,
    queries: int,
    grid_size: int,
    failure_probability: SupportsFloat,
    subsample_for: Callable[[float], int],
    shared_noise: bool = True,
) -> ConcentratedPlan:
    """The rank at which the fewest rows keep every answer within the error that `subsample_for` stands for.

    `subsample_for(rank)`: rows a block for which qi(rank, 1 - rank) of the estimator is within the wanted error of the
    truth; `hoeffding_subsample`, or your own tail bound (owed). The idea of Feldman and Steinke's Theorem 4.7 at every
    rank: at a small one the whole interaction may have an epsilon of ln(1/(2 rank)), so few blocks are enough.

    >>> from dpselect.adaptive.spread import hoeffding_subsample
    >>> found = plan_concentrated(queries=100, grid_size=201, failure_probability=0.05,
    ...                           subsample_for=lambda rank: hoeffding_subsample(rank=rank, error=0.095))
    >>> found.rows < 300_000, found.plan.certified
    (True, True)
    """

    def at(log_rank: float) -> ConcentratedPlan:
        rank = min(math.exp(log_rank), 0.49)
        plan = plan_blocks(
            queries=queries,
            grid_size=grid_size,
            failure_probability=failure_probability,
            rank=rank,
            mechanism="binary_search",
            shared_noise=shared_noise,
        )
        return ConcentratedPlan(plan=plan, subsample_size=integer("subsample_for", subsample_for(rank), at_least=1))

    best = min((at(float(x)) for x in np.linspace(math.log(1e-11), math.log(0.4), 25)), key=lambda one: one.rows)
    centre, step = math.log(best.plan.rank), math.log(0.4e11) / 24.0
    finer = (at(float(x)) for x in np.linspace(max(centre - step, math.log(1e-12)), centre + step, 25))
    return min(best, *finer, key=lambda one: one.rows)
