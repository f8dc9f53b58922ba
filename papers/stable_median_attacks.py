"""What adaptive analysts are told about pure noise: by the whole sample, by exact medians, by private medians."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import ndtr

from dpselect.adaptive.grids import uniform_grid
from papers.adaptive_analysts import (
    Answer,
    Claimed,
    block_grid,
    exact_median,
    expected_claim,
    plain_mean,
    private_median,
    sign_aggregation,
    votes,
)
from papers.table import Context, Curve, Figure, Part, Row

__all__ = ["adaptive_attacks"]

_ROWS: Final = 10_000


@dataclass(frozen=True)
class _Way:
    """A way of answering: `rows` of each block; without privacy for `rho` 0. One row a block: the whole sample."""

    label: str
    rows: int
    rho: float = 0.0

    @property
    def blocks(self) -> int:
        return _ROWS // self.rows

    def answer(self, context: Context, questions: int) -> Answer:
        if self.rows == 1:
            return plain_mean
        if not self.rho:
            return exact_median(self.rows)
        return private_median(block_grid(self.rows), rho=self.rho, queries=questions + 1, random=context.random)

    def attacked(self, context: Context, questions: int, runs: int) -> list[Claimed]:
        context.progress(f"{questions} questions, {self.label}")
        answer = self.answer(context, questions)
        rng = np.random.default_rng(context.random.bits(128))
        return [sign_aggregation(rng, answer, self.blocks, self.rows, questions) for _ in range(runs)]


_WHOLE: Final = _Way("whole sample", 1)
_FIFTY: Final = _Way("exact median, 50 rows a block", 50)
_TEN: Final = _Way("exact median, 10 rows a block", 10)
_PRIVATE: Final = _Way("private median, 10 rows a block, rho 0.5", 10, 0.5)
_CAREFUL: Final = _Way("private median, 10 rows a block, rho 0.0081", 10, 0.0081)

_ATTACKS: Final = (
    # questions, way, runs in quick mode (0: not at all) and in full mode
    (100, _WHOLE, 20, 100),
    (100, _FIFTY, 20, 100),
    (100, _PRIVATE, 20, 100),
    (1000, _WHOLE, 3, 20),
    (1000, _FIFTY, 6, 20),
    (1000, _TEN, 6, 20),
    (1000, _PRIVATE, 6, 20),
    (1000, _CAREFUL, 6, 20),
    (10_000, _WHOLE, 0, 2),
    (10_000, _TEN, 0, 2),
    (10_000, _PRIVATE, 0, 4),
)


def adaptive_attacks(context: Context) -> Part:
    """10,000 rows without any signal, and analysts that look for some."""
    rows = []
    for questions, way, quick, full in _ATTACKS:
        if runs := quick if context.quick else full:
            rows.append(_claim(questions, way, way.attacked(context, questions, runs)))
    rows += [_vote(context, features) for features in ((101, 1001) if context.quick else (101, 1001, 10_001))]
    open_ = (
        "any experiment: analysts and populations are ours (10,000 standard normal rows, no signal); rho is the "
        "concentrated privacy of all answers together, far above what so few blocks certify (the planner refuses)",
    )
    return Part(source="No experiment", rows=tuple(rows), figures=(_figure(context),), unspecified=open_)


def _claim(questions: int, way: _Way, found: list[Claimed]) -> Row:
    final, interim = np.mean([one.final for one in found]), np.mean([one.interim for one in found])
    told = f"within the quartiles {final:.0%} of the time, earlier answers {interim:.1%}"
    if way is _WHOLE:
        told = f"expected {expected_claim(questions, _ROWS):.4f}, standard error 0.01"
    return Row(
        name=f"claim after {questions} questions, {way.label}",
        ours=float(np.mean([one.claim for one in found])),
        note=f"truth 0, {len(found)} runs; {told}",
    )


def _vote(context: Context, features: int) -> Row:
    """By the whole sample, and by private medians of shares in their natural range of 11 points."""
    context.progress(f"a vote of {features} features")
    runs = 4 if features < 1000 else 1
    runs *= 1 if context.quick or features > 10_000 else 10
    rng = np.random.default_rng(context.random.bits(128))
    private = private_median(uniform_grid(-0.5, 0.5, 0.1), rho=0.5, queries=features + 1, random=context.random)
    ways: tuple[Callable[..., float], ...] = (plain_mean, private)
    whole, median = (
        float(np.mean([votes(rng, way, _ROWS // 10, 10, features).claim for _ in range(runs)])) for way in ways
    )
    expected = float(ndtr(expected_claim(features, _ROWS)))
    return Row(
        name=f"claimed accuracy of a vote of {features} features, whole sample",
        ours=whole,
        optimal=median,
        note=f"truth 0.5, {runs} runs; expected {expected:.4f}; optimal: private median, 10 rows a block, rho 0.5",
    )


def _figure(context: Context) -> Figure:
    counts, runs = ((10, 30, 100, 300), 6) if context.quick else ((10, 30, 100, 300, 1000), 20)
    curves = []
    for way in (_WHOLE, _FIFTY, _TEN, _PRIVATE):
        claims = [[one.claim for one in way.attacked(context, k, runs)] for k in counts]
        curves.append(Curve(way.label, counts, np.mean(claims, axis=1), "o-", band=np.std(claims, axis=1)))
    return Figure(
        name="attacks",
        title="What an adaptive analyst finds in 10,000 rows of noise (truth 0)",
        x_label="questions",
        y_label="claim: mean and deviation of the runs",
        log_x=True,
        curves=tuple(curves),
    )
