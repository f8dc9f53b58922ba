"""Planning from what there is: rows, questions and a failure probability to subsample size, blocks and mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, SupportsFloat

import numpy as np

from dpselect.adaptive.blocks import BlockPlan, break_even, plan_blocks
from dpselect.adaptive.means import plan_means
from dpselect.adaptive.spread import error_from_standard_deviation
from dpselect.errors import ArgumentError, integer
from dpselect.privacy.notebook import bound, grid, text

__all__ = ["AnalysisPlan", "ConcentratedPlan", "plan_analysis", "plan_concentrated"]


_HEAD: Final = ("way", "blocks", "rows in a block", "private", "error in deviations", "error of means in [0, 1]")


@dataclass(frozen=True, kw_only=True)
class AnalysisOption:
    """One way: how many blocks it needs, and the rows a block that leaves.

    `deviations`: for the mean of a function, the certified error in standard deviations of the function on one row.
    `error`: for the mean of a function into [0, 1], the certified error. The grid comes on top of both. None when there
    are not enough rows, or nothing is certified.
    """

    name: str
    blocks: int
    subsample_size: int
    private: bool
    deviations: float | None = None
    error: float | None = None
    rank: float = 0.25


@dataclass(frozen=True, kw_only=True)
class AnalysisPlan:
    """All ways, the one to take (None when there are too few rows for any) and why.

    From `break_even` questions on, asking the same data needs fewer blocks than splitting it. `print` shows a table of
    the ways: their blocks, whether they are private, and the errors that they certify.
    """

    options: tuple[AnalysisOption, ...]
    best: AnalysisOption | None
    reason: str
    break_even: int

    def __str__(self) -> str:
        rows = [_HEAD, *([text(cell) for cell in row] for row in self._table)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
        return "\n".join([*lines, self.reason])

    def _repr_html_(self) -> str:
        return grid("ways to ask", _HEAD, self._table, note=self.reason)

    @property
    def _table(self) -> list[tuple[Any, ...]]:
        """A row for each way, those with too few rows for a block too."""
        return [
            (
                f"{one.name} (best)" if one is self.best else one.name,
                one.blocks,
                one.subsample_size or "too few rows",
                "yes" if one.private else "no",
                "none" if one.deviations is None else bound(one.deviations),
                "none" if one.error is None else bound(one.error),
            )
            for one in self.options
        ]


def plan_analysis(
    *,
    rows: int,
    queries: int,
    failure_probability: SupportsFloat,
    grid_size: int,
    rank: SupportsFloat = 0.25,
    validity_only: bool = False,
    statistic: Literal["any", "bounded_mean"] = "any",
) -> AnalysisPlan:
    """Return the ways to ask `queries` adaptive questions of `rows` rows, the best one and why.

    Args:
        rows: how many rows you have, an integer of at least 1. Public.
        queries: how many questions may be asked, an integer in [1, 1e9].
        failure_probability: the probability, at most, that some answer is not valid, all answers together, at least
            1e-12 and below 1.
        grid_size: the most grid points of a question, an integer of at least 2. Public.
        rank: answers are in qi(rank, 1 - rank) of their estimators, at least 1e-12 and below 0.5. The default is 0.25.
        validity_only: whether data splitting counts, too. False by default, since it promises no privacy to a row.
        statistic: "any", the default: any function of a block, so the way with the largest blocks is best.
            "bounded_mean": only means of functions of a row into [0, 1] (scale by the width of yours). Then the way
            with the smallest certified error is best: Gaussian noise on the mean over all rows ("gaussian_means",
            `AdaptiveMeans`), medians of block means at the quartiles or at the best rank ("concentrated": give its
            `rank` to `AdaptiveAnalysis`), or new rows each time.

    Returns:
        An `AnalysisPlan`. Its `best` is None if there are too few rows for any way.

    Raises:
        ArgumentError: for a number out of range, or another `statistic`.
        TypeError: if an argument is not a number.

    >>> plan = plan_analysis(rows=1_000_000, queries=100, failure_probability=0.05, grid_size=1001)
    >>> plan.best.name, plan.best.blocks, plan.best.subsample_size
    ('binary_search', 4383, 228)
    """
    if statistic not in ("any", "bounded_mean"):
        raise ArgumentError(f"statistic must be 'any' or 'bounded_mean', got {statistic!r}")
    rows = integer("rows", rows, at_least=1, at_most=1 << 1000)
    public: Any = {"queries": queries, "grid_size": grid_size, "failure_probability": failure_probability}
    found = [
        _option(name, plan_blocks(**public, rank=rank, mechanism=name), rows)
        for name in ("binary_search", "exponential", "splitting")
    ]
    if float(rank) == 0.25:
        found.append(_option("paper", plan_blocks(**public, accounting="paper"), rows))
    found.append(_means(queries, rows, failure_probability))
    if statistic == "bounded_mean":
        found.append(_concentrated(rows, public))
    allowed = [one for one in found if one.subsample_size and (one.private or validity_only)]
    if statistic == "any":
        allowed = [one for one in allowed if one.name != "gaussian_means"]
        best = max(allowed, key=lambda one: one.subsample_size, default=None)
    else:
        best = min((one for one in allowed if one.error is not None), key=lambda one: one.error or 0.0, default=None)
    return AnalysisPlan(
        options=tuple(found),
        best=best,
        reason=_reason(found, best, rows, statistic),
        break_even=break_even(grid_size=grid_size, failure_probability=failure_probability, rank=rank),
    )


def _option(name: str, plan: BlockPlan, rows: int) -> AnalysisOption:
    size, each = rows // plan.blocks, rows // plan.queries
    deviations = error = None
    if size:
        deviations = error_from_standard_deviation(plan.rank) / math.sqrt(size)
        # a block's mean is off by more with probability at most rank: by Cantelli at deviation 1/2, or by Hoeffding
        error = min(0.5 * deviations, math.sqrt(-math.log(plan.rank) / (2.0 * size)))
    if name == "splitting" and each:  # the plain mean of all new rows
        error = math.sqrt(math.log(2.0 * plan.queries / plan.failure_probability) / (2.0 * each))
    return AnalysisOption(
        name=name,
        blocks=plan.blocks,
        subsample_size=size,
        private=name != "splitting",
        deviations=deviations,
        error=error if error is not None and error < 0.5 else None,  # one half is known in advance
        rank=plan.rank,
    )


def _means(queries: int, rows: int, failure_probability: SupportsFloat) -> AnalysisOption:
    try:
        error = plan_means(queries=queries, rows=rows, failure_probability=failure_probability).error
    except ArgumentError:
        error = None
    return AnalysisOption(name="gaussian_means", blocks=rows, subsample_size=1, private=True, error=error)


def _concentrated(rows: int, public: Any) -> AnalysisOption:
    plans = [
        plan_blocks(**public, rank=rank, mechanism="binary_search") for rank in np.geomspace(1e-9, 0.25, 25).tolist()
    ]
    options = [_option("concentrated", plan, rows) for plan in plans]
    return min(options, key=lambda one: math.inf if one.error is None else one.error)


def _reason(found: list[AnalysisOption], best: AnalysisOption | None, rows: int, statistic: str) -> str:
    if statistic == "bounded_mean":
        errors = ", ".join(f"{one.name} {one.error:.3g}" for one in found if one.error is not None)
        if best is None:
            return f"no way is certified for {rows} rows"
        return f"{best.name} has the smallest certified error for functions into [0, 1] (errors: {errors})"
    needs = ", ".join(f"{one.name} {one.blocks}" for one in found if one.name != "gaussian_means")
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
    refined: bool = True,
) -> ConcentratedPlan:
    """Return the plan at the rank at which the fewest rows keep every answer within the error that you want.

    The idea of Feldman and Steinke's Theorem 4.7 at every rank: at a small one the whole interaction may have an
    epsilon of ln(1/(2 rank)), so few blocks are enough.

    Args:
        queries: how many questions may be asked, an integer in [1, 1e9].
        grid_size: the most grid points of a question, an integer of at least 2. Public.
        failure_probability: the probability, at most, that some answer is not valid, all answers together, at least
            1e-12 and below 1.
        subsample_for: `subsample_for(rank)` gives the rows in a block for which qi(rank, 1 - rank) of the estimator is
            within the wanted error of the truth. Use `hoeffding_subsample`, or your own tail bound (you must ensure
            this). It is called with ranks from 1e-12 to 0.49.
        refined: False for independent noise and a union bound over answers, as in `plan_blocks`. True by default.

    Returns:
        A `ConcentratedPlan`: the plan of the blocks and the rows in each.

    Raises:
        ArgumentError: for a number out of range, or if `subsample_for` gives no integer of at least 1. If it raises,
            the exception passes through.
        TypeError: if an argument is not a number.

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
            refined=refined,
        )
        return ConcentratedPlan(plan=plan, subsample_size=integer("subsample_for", subsample_for(rank), at_least=1))

    best = min((at(float(x)) for x in np.linspace(math.log(1e-11), math.log(0.4), 25)), key=lambda one: one.rows)
    centre, step = math.log(best.plan.rank), math.log(0.4e11) / 24.0
    finer = (at(float(x)) for x in np.linspace(max(centre - step, math.log(1e-12)), centre + step, 25))
    return min(best, *finer, key=lambda one: one.rows)
