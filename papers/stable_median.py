"""Feldman, Steinke (2017), "Generalization for Adaptively-chosen Estimators via Stable Median".

The paper has neither an experiment nor a table. Its column is its theorems with the constants that they print or that
their proofs give, computed apart from this library; attacks and coverage are ours.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from dpselect.adaptive import plan_blocks
from dpselect.adaptive.block_plan import Mechanism
from dpselect.adaptive.blocks import BlockPlan, break_even
from dpselect.adaptive.generalisation import paper_blocks
from papers.adaptive_analysts import block_grid, certified_answer, random_walk, sign_aggregation
from papers.stable_median_attacks import adaptive_attacks
from papers.stable_median_statements import statements
from papers.table import Context, Curve, Figure, Paper, Part, Row

__all__ = ["PAPER"]

_BETA: Final = 0.05

# ---- Theorem 4.3: blocks for k questions

_SIZES: Final = {
    (21, 10): 70_293, (21, 100): 220_514, (21, 1000): 838_934, (21, 10_000): 3_100_749,
    (1001, 10): 100_354, (1001, 100): 295_666, (1001, 1000): 1_076_585, (1001, 10_000): 3_852_267,
    (2**64, 10): 391_707, (2**64, 100): 1_024_047, (2**64, 1000): 3_379_930, (2**64, 10_000): 11_136_083,
}  # fmt: skip
_BREAK_EVEN: Final = {21: 160_000, 1001: 230_000, 2**64: 1_330_000}


def _plan(queries: int, size: int, mechanism: Mechanism | Literal["best"] = "best") -> BlockPlan:
    return plan_blocks(queries=queries, grid_size=size, failure_probability=_BETA, mechanism=mechanism)


def _paper_plan(queries: int, size: int) -> BlockPlan:
    return plan_blocks(queries=queries, grid_size=size, failure_probability=_BETA, accounting="paper")


def _sample_sizes(context: Context) -> Part:
    rows = [
        Row(
            name=f"blocks for {queries} answers on {_points(size)}",
            paper=float(known),
            ours=float(_paper_plan(queries, size).blocks),
            optimal=float(_plan(queries, size).blocks),
            note=f"constants of its proof; fresh blocks a question: {_plan(queries, size, 'splitting').blocks}",
        )
        for (size, queries), known in _SIZES.items()
    ]
    rows += [
        Row(
            name=f"questions from which on fresh blocks cost more, {_points(size)}",
            paper=float(known),
            ours=float(break_even(grid_size=size, failure_probability=_BETA, mechanism="paper")),
            optimal=float(break_even(grid_size=size, failure_probability=_BETA)),
            tolerance=0.02 * known,
            note="where it crosses, to 2 %, as fresh blocks come in integers",
        )
        for size, known in _BREAK_EVEN.items()
        if size == 1001 or not context.quick
    ]
    open_ = (
        "all constants of its statements: these are the constants of its proofs",
        "how many rows a block should have, and which median to take",
    )
    return Part(source="Theorem 4.3", rows=tuple(rows), figures=(_size_figure(context),), unspecified=open_)


def _size_figure(context: Context) -> Figure:
    counts = sorted({round(10.0 ** (i / 8)) for i in range(0, 41, 3 if context.quick else 1)})
    ways: tuple[tuple[Mechanism, str, str], ...] = (
        ("exponential", "exponential median, direct transfer", "--"),
        ("binary_search", "noisy binary search, direct transfer", "-"),
        ("splitting", "fresh blocks for each question", ":"),
    )
    theirs = tuple(paper_blocks(queries=k, grid_size=1001, failure_probability=_BETA) for k in counts)
    return Figure(
        name="sample-sizes",
        title="Blocks for adaptive answers within the quartiles (1,001 points, failure 0.05)",
        x_label="questions",
        y_label="blocks",
        log_x=True,
        log_y=True,
        curves=(
            Curve("Theorem 4.3", counts, theirs),
            *(
                Curve(label, counts, [float(_plan(k, 1001, way).blocks) for k in counts], style)
                for way, label, style in ways
            ),
        ),
    )


def _points(size: int) -> str:
    return "2^64 points" if size == 2**64 else f"{size} points"


# ---- coverage: Theorem 4.3 run with its own constants, and with ours

_ANALYSTS: Final = {"signs of all answers": sign_aggregation, "random walk": random_walk}
_COVERED: Final = ((10, 40, 400), (100, 4, 60))
"""Questions before the last, runs of the paper's algorithm and of ours in full mode."""


def _coverage(context: Context) -> Part:
    rows = []
    for queries, theirs, runs in _COVERED[: 1 if context.quick else 2]:
        paper = _paper_plan(queries + 1, 201)
        ours = (_plan(queries + 1, 201, "exponential"), _plan(queries + 1, 201, "binary_search"))
        for name in _ANALYSTS:
            shares = [_valid_share(context, plan, name, queries, 40 if context.quick else runs) for plan in ours]
            rows.append(
                Row(
                    name=f"share of runs with all {queries + 1} answers within the quartiles, {name}",
                    paper=1.0 - _BETA,
                    ours=_valid_share(context, paper, name, queries, 8 if context.quick else theirs),
                    optimal=min(shares),
                    relation=">=",
                    known="claim",
                    note=f"{paper.blocks} blocks; optimal: the lower of "
                    f"{ours[0].blocks} (exponential) and {ours[1].blocks} (binary search)",
                )
            )
    open_ = ("populations and analysts are ours: a block value is the mean of 10 rows, standard normal without signal",)
    return Part(source="Theorem 4.3, run", rows=tuple(rows), unspecified=open_)


def _valid_share(context: Context, plan: BlockPlan, analyst: str, queries: int, runs: int) -> float:
    context.progress(f"{queries + 1} answers from {plan.blocks} blocks, {analyst}")
    rng = np.random.default_rng(context.random.bits(128))
    answer = certified_answer(plan, block_grid(10), context.random)
    play = _ANALYSTS[analyst]
    return float(np.mean([play(rng, answer, plan.blocks, 10, queries).valid for _ in range(runs)]))


PAPER: Final = Paper(
    name="stable-median",
    citation="Feldman, Steinke (2017). Generalization for Adaptively-chosen Estimators via Stable Median. COLT 2017.",
    parts={
        "sample sizes": _sample_sizes,
        "statements": statements,
        "adaptive attacks": adaptive_attacks,
        "coverage": _coverage,
    },
    quick_seconds=14.0,
    full_seconds=120.0,
)
