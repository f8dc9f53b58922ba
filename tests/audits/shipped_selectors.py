"""Selectors among private candidates on the candidates that leak most, for `tests.audits.shipped_mechanisms`."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from dpselect.accounting import best_of
from dpselect.accounting.candidates.sampled_percentile import SmoothedCount, SmoothedOdds
from dpselect.audit import Subject
from dpselect.privacy import Release, pure_dp
from dpselect.randomness import RandomSource, keyed_source
from dpselect.repetitions import (
    BetaBinomial,
    Binomial,
    Fixed,
    Geometric,
    Harmonic,
    Logarithmic,
    Poisson,
    Repetitions,
    Tabulated,
    TruncatedNegativeBinomial,
    Uniform,
    ZeroTruncatedPoisson,
    capped,
    split_counts,
)
from dpselect.repetitions.truncation import Tilted
from dpselect.selection import (
    PercentileSparseVector,
    PrivateCandidate,
    SampledSparseVector,
    SelectAcceptable,
    SelectHyperparameters,
    SelectIncreasing,
    SelectWithDummies,
    SelectWithoutThreshold,
    ThresholdSearch,
    amplified,
    noisy_score_candidate,
    select_above,
    select_best,
)
from dpselect.selection.best import best_outcome
from dpselect.selection.candidates import Candidate
from tests.audits.shipped import ENTRIES, Shipped, audited, label, looped, number_or_nan, released

__all__ = ["LAWS", "best_of_draws"]

EPSILON = 0.5
BASE = pure_dp(epsilon=EPSILON)
TINY = 0.02
TRIES = ("above.threshold_stopping", "above.Geometric")
THRESHOLDS: dict[str, Any] = {
    "thresholds": [2.0, 1.0],
    "target": 0.5,
    "base": BASE,
    "statistic": SmoothedCount(samples=10, smoothing=2.0, sensitivity=2.0),
}


def response(better: bool, random: RandomSource) -> tuple[float, int]:
    """Randomised response that scores 1 for the answer that one of the two data sets gives more often."""
    high = 1.0 / (1.0 + math.exp(-EPSILON))
    found = int(random.bernoulli(high if better else 1.0 - high, 1)[0])
    return float(found), found


def split(better: bool, random: RandomSource) -> tuple[float, int]:
    """The same with a rare output between the two answers, on which best-of-K leaks most.

    Papernot, Steinke (2022), Appendix D.3: log-ratios epsilon, epsilon, -epsilon from worst to best.
    """
    worse = 1.0 / (1.0 + math.exp(EPSILON)) if better else 1.0 / (1.0 + math.exp(-EPSILON))
    rare = TINY if better else TINY * math.exp(EPSILON)
    u = float(random.uniform(1)[0])
    found = 0 if u < worse - rare else 1 if u < worse else 2
    return float(found), found


def candidates(run: Callable[[bool, RandomSource], tuple[float, int]]) -> tuple[Candidate, Candidate]:
    """The candidate on the data and on its neighbour."""
    return partial(run, False), partial(run, True)


def selector(
    name: str,
    select: Callable[..., Release],
    *prices: str,
    run: Callable[[bool, RandomSource], tuple[float, int]] = response,
    **options: Any,
) -> Subject:
    """What `select(candidate, **options)` releases."""
    priced_by = [f"dpselect.selection.{price}" for price in prices]
    return released(name, partial(select, **options), candidates(run), priced_by=priced_by)


def best_output(candidate: Candidate | PrivateCandidate, law: Repetitions, random: RandomSource) -> float:
    """What `select_best` releases, without its price."""
    found = best_outcome(candidate, law, random)
    return math.nan if found is None else float(found.output)


def best_of_draws(law: Repetitions) -> Subject:
    """`select_best` with K from a law, priced once for all draws: its pure epsilon (`best_of_some` has the curve)."""
    claim = best_of(BASE, law, bound="pure")
    return looped(f"best of K, {type(law).__name__}", partial(best_output, law=law), candidates(split), claim)


LAWS: tuple[Repetitions, ...] = (
    BetaBinomial(trials=5, shape=0.5),
    Binomial(trials=6, probability=0.5),
    Fixed(count=3),
    Geometric(gamma=0.2),
    Geometric(gamma=0.2).at_most(6),
    capped(Geometric(gamma=0.2), 6),
    Harmonic(limit=8),
    Logarithmic(gamma=0.1),
    Poisson(mean=4.0),
    Tabulated(probabilities=(0.0, 0.5, 0.0, 0.5)),
    Tilted(law=Geometric(gamma=0.2).at_most(20), factor=0.9),
    TruncatedNegativeBinomial(eta=0.5, gamma=0.1),
    Uniform(limit=6),
    ZeroTruncatedPoisson(mean=4.0),
)


@audited("selection.select_best", draws=500, planted=0.5)
def best_of_some() -> Subject:
    """`select_best` itself."""
    return selector(
        "best of K", select_best, "best.best_of", run=split, repetitions=Geometric(gamma=0.2), guarantee=BASE
    )


@audited("repetitions.split_counts", draws=500, planted=0.5)
def best_of_split_counts() -> Subject:
    """`split_counts`: the K runs of a mixture of two candidates, counted in advance."""
    law = Geometric(gamma=0.2)

    def run(better: bool, random: RandomSource) -> float:
        counts = split_counts(law, [1, 1], random=random)
        found = [split(better, random)[0] for _ in range(counts[0])]
        found += [2.0 * response(better, random)[0] for _ in range(counts[1])]
        return max(found, default=math.nan)

    return looped("best of K, counted in advance", run, (False, True), best_of(BASE, law))


@audited("selection.select_above", draws=1000, planted=0.8)
def above_a_threshold() -> Subject:
    """`select_above`."""
    return selector(
        "first above a threshold", select_above, *TRIES, threshold=1.0, stop_probability=0.1, guarantee=BASE
    )


@audited("selection.select_above", draws=200, many=8_000, planted=0.5)
def above_a_threshold_with_a_limit() -> Subject:
    """`select_above` with a limit, below which the number of tries is drawn again."""
    options: dict[str, Any] = {"threshold": 1.0, "stop_probability": 0.1, "max_runs": 5, "guarantee": BASE}
    return selector("first above a threshold, limited", select_above, *TRIES, **options)


@audited("selection.SelectAcceptable", draws=1000, planted=0.6)
def acceptable() -> Subject:
    """`SelectAcceptable`."""
    select = SelectAcceptable(acceptable=lambda score, _: score >= 1.0, floor=0.05, base=BASE)
    where = ("conditional.conditional_sampling", "conditional.Geometric")
    return selector("conditional sampling", select, *where, run=split)


@audited("selection.SelectAbove", draws=1000, planted=0.7)
def amplification() -> Subject:
    """`amplified`: a `SelectAbove`."""
    return selector("amplified", amplified(mean=0.3, margin=0.2, failure_probability=0.5, base=BASE), *TRIES)


@audited("selection.SelectWithDummies", draws=1000, many=4000, heavy=True)
def among_dummies() -> Subject:
    """`SelectWithDummies`."""
    select = SelectWithDummies(threshold=1.0, runs=20, gamma=0.24, base=BASE)
    return selector("drawn by weight among dummies", select, "dummies.select_among_dummies")


@audited("selection.SelectIncreasing", draws=1000, planted=0.3)
def increasing() -> Subject:
    """`SelectIncreasing`: two levels, the second at twice the price."""
    select = SelectIncreasing(levels=[BASE, pure_dp(epsilon=2.0 * EPSILON)], repetitions=Logarithmic.with_mean(mean=5))

    def run(better: bool, random: RandomSource) -> Any:
        return select([partial(response, better)] * 2, threshold=1.0, random=random).value

    claim = select.guarantee.worst()
    return looped("increasing budgets", run, (False, True), claim, lambda found: number_or_nan(found and found[0]))


@audited("selection.PercentileSparseVector", draws=500, planted=0.5)
def by_percentile() -> Subject:
    """`PercentileSparseVector` of four queries; log-odds move by two epsilon of a run."""
    make = partial(PercentileSparseVector, guarantee=BASE, epsilon=4.0)
    return looped(
        "percentile sparse vector",
        lambda stream, random: make(random=random).first(stream).value,
        ([0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0]),
        make(random=keyed_source(0)).worst,
        number_or_nan,
    )


@audited("selection.SampledSparseVector", draws=300, many=5000)
def by_sampling() -> Subject:
    """`SampledSparseVector` of two queries, ten runs each."""
    statistic = SmoothedOdds(samples=10, smoothing=2.0, sensitivity=3.0)
    make = partial(SampledSparseVector, guarantee=BASE, statistic=statistic, epsilon=3.0, max_queries=2)
    queries = [(partial(response, better), 1.0) for better in (False, True)]
    return looped(
        "sparse vector by sampling",
        lambda asked, random: make(random=random).first(asked).value,
        (queries, queries[::-1]),
        make(random=keyed_source(0)).worst,
        number_or_nan,
        priced_by=["dpselect.selection.sampled_sparse_vector.sampled_sparse_vector"],
    )


@audited("selection.ThresholdSearch", draws=500, many=5000)
def threshold_found() -> Subject:
    """`ThresholdSearch`: two thresholds by ten runs."""
    search = ThresholdSearch(**THRESHOLDS, epsilon=3.0)
    return selector("threshold found by sampling", search, "one_sided.threshold_search", run=split)


@audited("selection.SelectWithoutThreshold", draws=1000, many=1000, heavy=True)
def threshold_found_and_used() -> Subject:
    """`SelectWithoutThreshold`."""
    select = SelectWithoutThreshold(search=ThresholdSearch(**THRESHOLDS, epsilon=2.0), stop_probability=0.1)
    where = ("without_threshold.without_threshold", "one_sided.threshold_search")
    return selector("selection without a threshold", select, *where, run=split)


@audited("selection.SelectHyperparameters", draws=300, many=10_000, planted=0.3)
def hyperparameters() -> Subject:
    """`SelectHyperparameters`: both data sets change, and the price is that of one person in both."""
    law = Geometric(gamma=0.2)

    def select(better: bool, random: RandomSource) -> Release:
        return SelectHyperparameters(candidates=2, repetitions=law, training=BASE, validation_epsilon=EPSILON)(
            lambda _, inner: response(better, inner)[1], correct=lambda model: int(model == better), random=random
        )

    def told(found: Any) -> str:
        return "none" if found is None else label([found.model, min(max(found.noisy_correct, -1), 4)])

    where = ["dpselect.selection.hyperparameters.two_set_guarantee"]
    return released("hyperparameters", select, (False, True), told, priced_by=where)


@audited(
    "selection.select_best",
    "selection.noisy_score_candidate",
    "selection.PrivateCandidate",
    draws=300,
    many=12_000,
    planted=0.25,
)
def noisy_scores() -> Subject:
    """`noisy_score_candidate` within `select_best`."""
    law = Geometric(gamma=0.2)
    pair = tuple(noisy_score_candidate(scores, sensitivities=1.0, epsilon=EPSILON) for scores in ([1, 0, 0], [0, 1, 1]))
    claim = best_of(pair[0].guarantee, law)
    return looped("best of K noisy scores", partial(best_output, law=law), (pair[0], pair[1]), claim)


ENTRIES.extend(
    Shipped(
        name=f"best_of_{type(law).__name__}",
        make=partial(best_of_draws, law),
        covers=(f"repetitions.{type(law).__name__}", "selection.select_best"),
        draws=1000,
        planted=0.5,
    )
    for law in LAWS
)
