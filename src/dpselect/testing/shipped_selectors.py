"""Selectors among private candidates on the candidates that leak most, for `dpselect.testing.shipped_mechanisms`."""

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
    Tilted,
    TruncatedNegativeBinomial,
    Uniform,
    ZeroTruncatedPoisson,
    capped,
    split_counts,
)
from dpselect.selection import (
    Candidate,
    PercentileSparseVector,
    PrivateCandidate,
    SampledSparseVector,
    amplify,
    increasing_budgets_guarantee,
    noisy_score_candidate,
    search_threshold,
    select_above,
    select_acceptable,
    select_best,
    select_first_by_percentile,
    select_first_by_sampling,
    select_hyperparameters,
    select_increasing,
    select_with_dummies,
    select_without_threshold_by_hand,
)
from dpselect.selection.best import best_outcome
from dpselect.testing.shipped import Shipped, label, looped, number_or_nan

__all__ = ["LAWS", "SELECTORS", "best_of_draws"]

EPSILON = 0.5
BASE = pure_dp(epsilon=EPSILON)
TINY = 0.02


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
    select: Callable[[Candidate, RandomSource], Any],
    *prices: str,
    run: Callable[[bool, RandomSource], tuple[float, int]] = response,
    number: Callable[[Any], float] = number_or_nan,
) -> Subject:
    """What `select(candidate, random)` releases; the claim is what the release says, which no data can change."""
    pair = candidates(run)
    claim = select(pair[0], keyed_source(0)).guarantee
    where = [f"dpselect.selection.{price}" for price in prices]
    return looped(name, lambda candidate, random: number(select(candidate, random).value), pair, claim, priced_by=where)


def best_of_draws(law: Repetitions) -> Subject:
    """`select_best` with K from a law, priced once for all draws: its pure epsilon (`best_of_some` has the curve)."""

    def run(candidate: Candidate, random: RandomSource) -> float:
        found = best_outcome(candidate, law, random)
        return math.nan if found is None else float(found.output)

    return looped(f"best of K, {type(law).__name__}", run, candidates(split), best_of(BASE, law, bound="pure"))


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


def best_of_some() -> Subject:
    """`select_best` itself."""
    law = Geometric(gamma=0.2)
    return selector(
        "best of K",
        lambda candidate, random: select_best(candidate, repetitions=law, guarantee=BASE, random=random),
        "best.best_of",
        run=split,
    )


def best_of_split_counts() -> Subject:
    """`split_counts`: the K runs of a mixture of two candidates, counted beforehand."""
    law = Geometric(gamma=0.2)

    def run(better: bool, random: RandomSource) -> float:
        counts = split_counts(law, [1, 1], random=random)
        found = [split(better, random)[0] for _ in range(counts[0])]
        found += [2.0 * response(better, random)[0] for _ in range(counts[1])]
        return max(found, default=math.nan)

    return looped("best of K, counted beforehand", run, (False, True), best_of(BASE, law))


def above_a_threshold() -> Subject:
    """`select_above`."""
    return selector(
        "first above a threshold",
        lambda candidate, random: select_above(
            candidate, threshold=1.0, stop_probability=0.1, guarantee=BASE, random=random
        ),
        "above.threshold_stopping",
        "above.Geometric",
    )


def above_a_threshold_with_a_limit() -> Subject:
    """`select_above` with a limit, below which the number of tries is drawn anew."""
    return selector(
        "first above a threshold, limited",
        lambda candidate, random: select_above(
            candidate, threshold=1.0, stop_probability=0.1, max_runs=5, guarantee=BASE, random=random
        ),
        "above.threshold_stopping",
        "above.Geometric",
    )


def acceptable() -> Subject:
    """`select_acceptable`."""
    return selector(
        "conditional sampling",
        lambda candidate, random: select_acceptable(
            candidate, acceptable=lambda score, _: score >= 1.0, floor=0.05, guarantee=BASE, random=random
        ),
        "conditional.conditional_sampling",
        "conditional.Geometric",
        run=split,
    )


def amplified() -> Subject:
    """`amplify`."""
    return selector(
        "amplified",
        lambda candidate, random: amplify(
            candidate, mean=0.3, margin=0.2, failure_probability=0.5, guarantee=BASE, random=random
        ),
        "above.threshold_stopping",
        "above.Geometric",
    )


def among_dummies() -> Subject:
    """`select_with_dummies`."""
    return selector(
        "drawn by weight among dummies",
        lambda candidate, random: select_with_dummies(
            candidate, threshold=1.0, runs=20, gamma=0.24, guarantee=BASE, random=random
        ),
        "dummies.select_among_dummies",
    )


def increasing() -> Subject:
    """`select_increasing`: two levels, the second at twice the price."""
    levels = [PrivateCandidate(response_of(better), BASE) for better in (False, True)]
    law, twice = Logarithmic.with_mean(mean=5), pure_dp(epsilon=2.0 * EPSILON)

    def run(first: PrivateCandidate, random: RandomSource) -> float:
        found = select_increasing(
            [first, PrivateCandidate(first.run, twice)], threshold=1.0, repetitions=law, random=random
        ).value
        return math.nan if found is None else float(found[0])

    claim = increasing_budgets_guarantee([BASE, twice], repetitions=law).worst()
    price = "dpselect.selection.increasing_budgets.increasing_budgets_guarantee"
    return looped("increasing budgets", run, (levels[0], levels[1]), claim, priced_by=[price])


def response_of(better: bool) -> Candidate:
    """Randomised response on one of the data sets."""
    return partial(response, better)


def by_percentile() -> Subject:
    """`select_first_by_percentile` of four queries; log-odds move by two epsilon of a run."""
    streams = ([0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0])
    fixed = {"guarantee": BASE, "epsilon": 4.0}
    return looped(
        "percentile sparse vector",
        lambda stream, random: number_or_nan(select_first_by_percentile(stream, **fixed, random=random).value),  # type: ignore[arg-type]
        streams,
        PercentileSparseVector(**fixed, random=keyed_source(0)).worst,  # type: ignore[arg-type]
    )


def by_sampling() -> Subject:
    """`select_first_by_sampling` of two queries, ten runs each."""
    statistic = SmoothedOdds(samples=10, smoothing=2.0, sensitivity=3.0)
    fixed = {"guarantee": BASE, "statistic": statistic, "epsilon": 3.0, "max_queries": 2}
    return looped(
        "sparse vector by sampling",
        lambda better, random: number_or_nan(
            select_first_by_sampling(
                [(partial(response, better), 1.0), (partial(response, not better), 1.0)],
                **fixed,  # type: ignore[arg-type]
                random=random,
            ).value
        ),
        (False, True),
        SampledSparseVector(**fixed, random=keyed_source(0)).worst,  # type: ignore[arg-type]
        priced_by=["dpselect.selection.sampled_sparse_vector.sampled_sparse_vector"],
    )


def threshold_found() -> Subject:
    """`search_threshold`: two thresholds by ten runs."""
    statistic = SmoothedCount(samples=10, smoothing=2.0, sensitivity=2.0)
    return selector(
        "threshold found by sampling",
        lambda candidate, random: search_threshold(
            candidate,
            thresholds=[2.0, 1.0],
            target=0.5,
            guarantee=BASE,
            statistic=statistic,
            epsilon=3.0,
            random=random,
        ),
        "one_sided.threshold_search",
        run=split,
    )


def threshold_found_and_used() -> Subject:
    """`select_without_threshold_by_hand`."""
    statistic = SmoothedCount(samples=10, smoothing=2.0, sensitivity=2.0)
    return selector(
        "selection without a threshold",
        lambda candidate, random: select_without_threshold_by_hand(
            candidate,
            thresholds=[2.0, 1.0],
            target=0.5,
            guarantee=BASE,
            statistic=statistic,
            epsilon=2.0,
            stop_probability=0.1,
            random=random,
        ),
        "without_threshold.without_threshold",
        "one_sided.threshold_search",
        run=split,
    )


def hyperparameters() -> Subject:
    """`select_hyperparameters`: both data sets change, and the price is that of one person in both."""
    law = Geometric(gamma=0.2)

    def select(better: bool, random: RandomSource) -> Release:
        return select_hyperparameters(
            lambda _, inner: response(better, inner)[1],
            candidates=2,
            correct=lambda model: int(model == better),
            repetitions=law,
            training=BASE,
            validation_epsilon=EPSILON,
            random=random,
        )

    def run(better: bool, random: RandomSource) -> str:
        found = select(better, random).value
        return "none" if found is None else label([found.model, min(max(found.noisy_correct, -1), 4)])

    claim = select(False, keyed_source(0)).guarantee
    where = ["dpselect.selection.hyperparameters.two_set_guarantee"]
    return looped("hyperparameters", run, (False, True), claim, priced_by=where)


def noisy_scores() -> Subject:
    """`noisy_score_candidate` within `select_best`."""
    law = Geometric(gamma=0.2)
    pair = tuple(noisy_score_candidate(scores, sensitivities=1.0, epsilon=EPSILON) for scores in ([1, 0, 0], [0, 1, 1]))

    def run(candidate: PrivateCandidate, random: RandomSource) -> float:
        found = best_outcome(candidate, law, random)
        return math.nan if found is None else float(found.output)

    return looped("best of K noisy scores", run, (pair[0], pair[1]), best_of(pair[0].guarantee, law))


def law_entry(law: Repetitions) -> Shipped:
    """The entry of a law of K."""
    kind = type(law).__name__

    def make() -> Subject:
        return best_of_draws(law)

    make.__name__ = f"best_of_{kind}"
    return Shipped(make=make, covers=(f"repetitions.{kind}", "selection.select_best"), draws=1000, planted=0.5)


SELECTORS = (
    *(law_entry(law) for law in LAWS),
    Shipped(make=best_of_some, covers=("selection.select_best",), draws=500, planted=0.5),
    Shipped(make=best_of_split_counts, covers=("repetitions.split_counts",), draws=500, planted=0.5),
    Shipped(make=above_a_threshold, covers=("selection.select_above",), draws=1000, planted=0.8),
    Shipped(
        make=above_a_threshold_with_a_limit, covers=("selection.select_above",), draws=200, many=8_000, planted=0.5
    ),
    Shipped(make=acceptable, covers=("selection.select_acceptable",), draws=1000, planted=0.6),
    Shipped(make=amplified, covers=("selection.amplify",), draws=1000, planted=0.7),
    Shipped(make=among_dummies, covers=("selection.select_with_dummies",), draws=1000, many=4000, heavy=True),
    Shipped(
        make=increasing, covers=("selection.select_increasing", "selection.PrivateCandidate"), draws=1000, planted=0.3
    ),
    Shipped(
        make=by_percentile,
        covers=("selection.select_first_by_percentile", "selection.PercentileSparseVector"),
        draws=500,
        planted=0.5,
    ),
    Shipped(
        make=by_sampling,
        covers=("selection.select_first_by_sampling", "selection.SampledSparseVector"),
        draws=300,
        many=5000,
    ),
    Shipped(make=threshold_found, covers=("selection.search_threshold",), draws=500, many=5000),
    Shipped(
        make=threshold_found_and_used,
        covers=("selection.select_without_threshold_by_hand",),
        draws=1000,
        many=1000,
        heavy=True,
    ),
    Shipped(make=hyperparameters, covers=("selection.select_hyperparameters",), draws=300, many=10_000, planted=0.3),
    Shipped(
        make=noisy_scores,
        covers=("selection.select_best", "selection.noisy_score_candidate"),
        draws=300,
        many=12_000,
        planted=0.25,
    ),
)
