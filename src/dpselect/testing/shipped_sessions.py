"""Answers to adaptive questions, of sessions and of holdouts, for `dpselect.testing.shipped_mechanisms`.

Their noise is planned for an accurate answer from many rows, so that one row's share of it is small: these audits see
gross mistakes only. The two medians that the sessions are made of are audited at a price that shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.adaptive import (
    AdaptiveAnalysis,
    AdaptiveMeans,
    ExponentialMedian,
    MultiplicativeWeights,
    SearchMedian,
    SearchNoise,
    integer_grid,
)
from dpselect.audit import Subject
from dpselect.holdout.block_medians import plan_block_medians
from dpselect.holdout.checked import plan_checked
from dpselect.holdout.draws import Draws
from dpselect.holdout.gaussian import plan_gaussian
from dpselect.holdout.scores import METRICS, Scored
from dpselect.privacy import Guarantee
from dpselect.randomness import RandomSource, keyed_source
from dpselect.testing.shipped import Shipped, audited, looped

__all__ = ["SESSIONS"]

SESSIONS: list[Shipped] = []

MOVED = ([0, 0, 0, 7, 7, 7], [0, 0, 7, 7, 7, 7])
GRID = integer_grid(0, 7)
Answers = Callable[[NDArray[Any], RandomSource], list[Any]]


def rows(count: int, ones: int) -> NDArray[np.float64]:
    """So many zeros and ones."""
    return np.repeat([0.0, 1.0], [count - ones, ones])


def session(name: str, answers: Answers, pair: tuple[Any, Any], claim: Guarantee) -> Subject:
    """A subject that takes all answers of one session after the other, each with noise of its own."""

    def draw(neighbour: bool, count: int, random: RandomSource) -> NDArray[Any]:
        found: list[Any] = []
        while len(found) < count:
            found.extend(answers(pair[neighbour], random))
        return np.array(found[:count])

    return Subject(name=name, draw=draw, claim=claim)


@audited(SESSIONS, "adaptive.ExponentialMedian", draws=500, planted=0.6)
def exponential_medians() -> Subject:
    """`ExponentialMedian`."""
    return looped(
        "median by the exponential mechanism",
        lambda values, random: ExponentialMedian(epsilon=1.0)(values, GRID, random=random).value,
        MOVED,
        ExponentialMedian(epsilon=1.0).guarantee,
    )


@audited(SESSIONS, "adaptive.SearchMedian", "adaptive.SearchNoise", draws=500, planted=0.4)
def searched_medians() -> Subject:
    """`SearchMedian`, with the noise of `SearchNoise`."""
    noise = SearchNoise.of_deviation(3, 2.0)
    return looped(
        "median by binary search",
        lambda values, random: SearchMedian(noise=noise)(values, GRID, random=random).value,
        MOVED,
        SearchMedian(noise=noise).guarantee,
    )


def analysis(data: NDArray[Any], random: RandomSource) -> AdaptiveAnalysis:
    """Twenty questions."""
    return AdaptiveAnalysis(
        data,
        queries=20,
        subsample_size=1,
        failure_probability=0.9,
        grid_size=2,
        mechanism="binary_search",
        order="given",
        random=random,
    )


@audited(SESSIONS, "adaptive.AdaptiveAnalysis", draws=400, many=5_000)
def estimates() -> Subject:
    """`AdaptiveAnalysis.estimate`."""

    def answers(data: NDArray[Any], random: RandomSource) -> list[Any]:
        asked = analysis(data, random)
        return [asked.estimate(np.mean, lower=0, upper=1, granularity=1, axis=True) for _ in range(20)]

    pair = rows(300, 150), rows(300, 151)
    claim = answers(pair[0], keyed_source(0))[0].guarantee
    return session("adaptive medians", lambda data, random: [x.value for x in answers(data, random)], pair, claim)


@audited(SESSIONS, "adaptive.AdaptiveAnalysis", draws=300, many=300, heavy=True)
def choices() -> Subject:
    """`AdaptiveAnalysis.choose`."""

    def answers(data: NDArray[Any], random: RandomSource) -> list[Any]:
        asked = AdaptiveAnalysis(
            data, queries=20, subsample_size=1, failure_probability=0.9, grid_size=2, order="given", random=random
        )
        return [asked.choose([np.min, lambda block: 1.0 - np.max(block)]) for _ in range(20)]

    pair = rows(300, 150), rows(300, 151)
    claim = answers(pair[0], keyed_source(0))[0].guarantee
    return session("adaptive choices", lambda data, random: [x.value for x in answers(data, random)], pair, claim)


@audited(SESSIONS, "adaptive.Verification", "adaptive.AdaptiveAnalysis", draws=30, many=30, heavy=True)
def verifications() -> Subject:
    """`AdaptiveAnalysis.verify`: one run of a `Verification`, how many of at most 20 answers come before a no."""

    def run(data: NDArray[Any], random: RandomSource) -> tuple[int, Guarantee]:
        asked = AdaptiveAnalysis(
            data,
            queries=1,
            subsample_size=1,
            failure_probability=0.9,
            grid_size=2,
            verifications=20,
            refusals=1,
            order="given",
            random=random,
        )
        yes, found = 0, asked.verify(np.mean, 0.5, axis=True)
        while found.value and yes < 19:
            yes, found = yes + 1, asked.verify(np.mean, 0.5, axis=True)
        return yes, found.guarantee

    pair = rows(20_000, 12_500), rows(20_000, 12_501)
    claim = run(pair[0], keyed_source(0))[1]
    return looped("verification", lambda data, random: run(data, random)[0], pair, claim)


@audited(SESSIONS, "adaptive.AdaptiveMeans", draws=100, many=200, heavy=True)
def means() -> Subject:
    """`AdaptiveMeans.mean`."""

    def answers(data: NDArray[Any], random: RandomSource) -> list[Any]:
        asked = AdaptiveMeans(data, queries=5, failure_probability=0.25, random=random)
        return [asked.mean(lambda x: x, lower=0, upper=1) for _ in range(5)]

    pair = rows(200, 100), rows(200, 101)
    claim = answers(pair[0], keyed_source(0))[0].guarantee
    return session("adaptive means", lambda data, random: [x.value for x in answers(data, random)], pair, claim)


@audited(SESSIONS, "adaptive.MultiplicativeWeights", draws=20, many=20, heavy=True)
def multiplicative_weights() -> Subject:
    """`MultiplicativeWeights`: one question."""

    def ask(data: NDArray[Any], random: RandomSource) -> Any:
        asked = MultiplicativeWeights(data, universe=2, queries=1, grid_size=2, failure_probability=0.9, random=random)
        return asked.estimate([0.0, 1.0], lower=0, upper=1, granularity=1)

    pair = tuple(rows(60_000, ones).astype(np.int64) for ones in (30_000, 30_001))
    claim = ask(pair[0], keyed_source(0)).guarantee
    return looped("multiplicative weights", lambda data, random: ask(data, random).value, (pair[0], pair[1]), claim)


def holdout(name: str, metric: str, plan: Any) -> Callable[[], Subject]:
    """One question to a holdout with a plan: half of the predictions are wrong, or one more.

    The claim is as far from that as the plan's tolerance, so that no answer is certain.
    """

    def make() -> Subject:
        labels = np.arange(ROWS) % 2 == 1

        def ask(wrong: int, random: RandomSource) -> float:
            predictions = np.where(np.arange(ROWS) < wrong, ~labels, labels)
            scored = Scored(metric=METRICS[metric], labels=labels, predictions=predictions, bound=1.0)
            draws = Draws(key=random.bytes(32), predictions="p", question="q", run=0)
            return float(made.answer(scored, 0.5 + made.tolerance, draws)[1])

        made = plan()
        return looped(f"holdout, {name}", ask, (ROWS // 2, ROWS // 2 + 1), made.row_privacy)

    make.__name__ = f"holdout_{name}".replace(" ", "_")
    return make


ROWS = 1000
LIMITS = {"rows": ROWS, "failure_probability": 0.25, "tolerance": 0.01}

SESSIONS += [
    Shipped(
        make=holdout("gaussian", "accuracy", lambda: plan_gaussian(questions=2, **LIMITS)),  # type: ignore[arg-type]
        covers=("holdout.Holdout",),
        draws=500,
        many=5_000,
    ),
    Shipped(
        make=holdout("checked", "accuracy", lambda: plan_checked(questions=2, answers=2, largest_mu=2.0, **LIMITS)),  # type: ignore[arg-type]
        covers=("holdout.Holdout",),
        draws=300,
        many=5_000,
    ),
    Shipped(
        make=holdout("block medians", "auc", lambda: plan_block_medians(questions=2, largest_mu=2.0, **LIMITS)),  # type: ignore[arg-type]
        covers=("holdout.Holdout",),
        draws=100,
        many=200,
        heavy=True,
    ),
]
