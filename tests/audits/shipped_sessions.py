"""Answers to adaptive questions, of sessions and of holdouts, for `tests.audits.shipped_mechanisms`.

Their noise is planned for an accurate answer from many rows, so that one row's share of it is small: these audits see
gross mistakes only. The two medians that the sessions are made of are audited at a price that shows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.adaptive import AdaptiveAnalysis, AdaptiveMeans, MultiplicativeWeights, integer_grid
from dpselect.adaptive.medians import ExponentialMedian, SearchMedian
from dpselect.adaptive.search_noise import SearchNoise
from dpselect.audit import Subject
from dpselect.holdout.block_medians import plan_block_medians
from dpselect.holdout.claim_checks import plan_checked
from dpselect.holdout.draws import Draws
from dpselect.holdout.gaussian import plan_gaussian
from dpselect.holdout.scores import METRICS, Scored
from dpselect.numerics.search import Array
from dpselect.privacy import Release
from dpselect.randomness import RandomSource, keyed_source
from tests.audits.shipped import audited, looped, released

__all__: list[str] = []

MOVED = ([0, 0, 0, 7, 7, 7], [0, 0, 7, 7, 7, 7])
GRID = integer_grid(0, 7)
Answers = Callable[[Array, RandomSource], list[Any]]


def rows(count: int, ones: int) -> Array:
    """So many zeros and ones."""
    return np.repeat([0.0, 1.0], [count - ones, ones])


def session(name: str, answers: Answers, pair: tuple[Any, Any]) -> Subject:
    """A subject that takes all answers of one session after the other, each with noise of its own."""

    def draw(neighbour: bool, count: int, random: RandomSource) -> NDArray[Any]:
        found: list[Any] = []
        while len(found) < count:
            found.extend(release.value for release in answers(pair[neighbour], random))
        return np.array(found[:count])

    return Subject(name=name, draw=draw, claim=answers(pair[0], keyed_source(0))[0].guarantee)


@audited("adaptive.ExponentialMedian", draws=500, planted=0.6)
def exponential_medians() -> Subject:
    """`ExponentialMedian`."""
    return looped(
        "median by the exponential mechanism",
        lambda values, random: ExponentialMedian(epsilon=1.0)(values, GRID, random=random).value,
        MOVED,
        ExponentialMedian(epsilon=1.0).guarantee,
    )


@audited("adaptive.SearchMedian", "adaptive.SearchNoise", draws=500, planted=0.4)
def searched_medians() -> Subject:
    """`SearchMedian`, with the noise of `SearchNoise`."""
    noise = SearchNoise.of_deviation(3, 2.0)
    return looped(
        "median by binary search",
        lambda values, random: SearchMedian(noise=noise)(values, GRID, random=random).value,
        MOVED,
        SearchMedian(noise=noise).guarantee,
    )


analysis = partial(AdaptiveAnalysis, subsample_size=1, failure_probability=0.9, grid_size=2, order="given")


@audited("adaptive.AdaptiveAnalysis", draws=400, many=5_000)
def estimates() -> Subject:
    """`AdaptiveAnalysis.estimate`."""

    def answers(data: Array, random: RandomSource) -> list[Any]:
        asked = analysis(data, queries=20, mechanism="binary_search", random=random)
        return [asked.estimate(np.mean, lower=0, upper=1, granularity=1, axis=True) for _ in range(20)]

    return session("adaptive medians", answers, (rows(300, 150), rows(300, 151)))


@audited("adaptive.AdaptiveAnalysis", draws=300, many=300, heavy=True)
def choices() -> Subject:
    """`AdaptiveAnalysis.choose`."""

    def answers(data: Array, random: RandomSource) -> list[Any]:
        asked = analysis(data, queries=20, random=random)
        return [asked.choose([np.min, lambda block: 1.0 - np.max(block)]) for _ in range(20)]

    return session("adaptive choices", answers, (rows(300, 150), rows(300, 151)))


@audited("adaptive.Verification", "adaptive.AdaptiveAnalysis", draws=30, many=30, heavy=True)
def verifications() -> Subject:
    """`AdaptiveAnalysis.verify`: one run of a `Verification`, how many of at most 20 answers come before a no."""

    make = partial(analysis, queries=1, verifications=20, refusals=1)

    def run(data: Array, random: RandomSource) -> int:
        asked = make(data, random=random)
        answers = (asked.verify(np.mean, 0.5, axis=True) for _ in range(19))  # a yes to the last changes nothing
        return sum(1 for _ in takewhile(lambda found: found.value, answers))

    pair = rows(20_000, 12_500), rows(20_000, 12_501)
    claim = make(pair[0], random=keyed_source(0)).verify(np.mean, 0.5, axis=True).guarantee
    return looped("verification", run, pair, claim)


@audited("adaptive.AdaptiveMeans", draws=100, many=200, heavy=True)
def means() -> Subject:
    """`AdaptiveMeans.mean`."""

    def answers(data: Array, random: RandomSource) -> list[Any]:
        asked = AdaptiveMeans(data, queries=5, failure_probability=0.25, random=random)
        return [asked.mean(lambda x: x, lower=0, upper=1) for _ in range(5)]

    return session("adaptive means", answers, (rows(200, 100), rows(200, 101)))


@audited("adaptive.MultiplicativeWeights", draws=20, many=20, heavy=True)
def multiplicative_weights() -> Subject:
    """`MultiplicativeWeights`: one question."""

    def ask(data: NDArray[np.int64], random: RandomSource) -> Release:
        asked = MultiplicativeWeights(data, universe=2, queries=1, grid_size=2, failure_probability=0.9, random=random)
        return asked.estimate([0.0, 1.0], lower=0, upper=1, granularity=1)

    pair = rows(60_000, 30_000).astype(np.int64), rows(60_000, 30_001).astype(np.int64)
    return released("multiplicative weights", ask, pair)


ROWS = 1000
LIMITS: dict[str, Any] = {"rows": ROWS, "failure_probability": 0.25, "tolerance": 0.01, "questions": 2}
PLANS: dict[str, tuple[str, Callable[..., Any]]] = {  # each with its metric
    "gaussian": ("accuracy", plan_gaussian),
    "checked": ("accuracy", partial(plan_checked, answers=2, largest_mu=2.0)),
    "block medians": ("auc", partial(plan_block_medians, largest_mu=2.0)),
}


@audited("holdout.Holdout", of=("block medians",), draws=100, many=200, heavy=True)
@audited("holdout.Holdout", of=("checked",), draws=300, many=5_000)
@audited("holdout.Holdout", of=("gaussian",), draws=500, many=5_000)
def holdout(name: str) -> Subject:
    """One question to a holdout with a plan: half of the predictions are wrong, or one more.

    The claim is as far from that as the plan's tolerance, so that no answer is certain.
    """
    metric, plan = PLANS[name]
    made, labels = plan(**LIMITS), np.arange(ROWS) % 2 == 1

    def ask(wrong: int, random: RandomSource) -> float:
        predictions = np.where(np.arange(ROWS) < wrong, ~labels, labels)
        scored = Scored(metric=METRICS[metric], labels=labels, predictions=predictions, bound=1.0)
        draws = Draws(key=random.bytes(32), predictions="p", question="q", run=0)
        return float(made.answer(scored, 0.5 + made.tolerance, draws)[1])

    return looped(f"holdout, {name}", ask, (ROWS // 2, ROWS // 2 + 1), made.row_privacy)
