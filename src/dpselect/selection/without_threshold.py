"""Choosing among private candidates without a threshold, in two private steps (Liu, Talwar 2019, Theorem 4.7)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, SupportsFloat

from dpselect.accounting.candidates.sampled_percentile import SmoothedCount
from dpselect.accounting.candidates.without_threshold import RunsNeeded, runs_needed, without_threshold
from dpselect.errors import ArgumentError, BoundUnavailableError, integer, number
from dpselect.privacy import Guarantee, Release, Spender
from dpselect.privacy.promises import promise
from dpselect.randomness import RandomSource, resolve
from dpselect.repetitions import Geometric
from dpselect.selection.above import first_above
from dpselect.selection.candidates import Candidate, check_candidate, output_of, searched
from dpselect.selection.one_sided import prepared_search, threshold_grid
from dpselect.selection.rehearsal import Rehearsal

__all__ = ["select_without_threshold", "select_without_threshold_by_hand"]

MOST_RUNS = 10_000_000
"""More runs than this are refused unless the caller says otherwise."""


def select_without_threshold(
    candidate: Candidate,
    *,
    candidates: int,
    thresholds: int,
    guarantee: Guarantee,
    epsilon: SupportsFloat,
    delta: SupportsFloat,
    failure_probability: SupportsFloat = 0.1,
    most_runs: SupportsFloat = MOST_RUNS,
    rehearse: Rehearsal = True,
    spender: Spender | None = None,
    label: str = "select without threshold",
    random: RandomSource | None = None,
) -> Release:
    """A run whose score is within 1/R of the best median among `candidates`, at 2 epsilon_1 + `epsilon`.

    `candidate` draws one of K candidates uniformly, scores in [0, 1]; R `thresholds` make the grid. All numbers are the
    theorem's, and it asks for so many runs (10^12 and far more) that this is a statement rather than a program:
    `ArgumentError` with the number when they exceed `most_runs`. Use `select_without_threshold_by_hand`, with what you
    can afford, or `select_best`. The base needs an epsilon outside its failure mass.

    >>> from dpselect.privacy import pure_dp
    >>> select_without_threshold(lambda random: (1.0, "a"), candidates=2, thresholds=4, guarantee=pure_dp(epsilon=0.01),
    ...                          epsilon=1.0, delta=1e-6, failure_probability=0.25)
    Traceback (most recent call last):
    dpselect.errors.ArgumentError: the theorem asks for 10^12.7 runs, above most_runs = 1e+07; give ...
    """
    check_candidate(candidate, rehearse)
    guarantee = promise("guarantee", guarantee)
    if not math.isfinite(guarantee.pure_epsilon):
        raise BoundUnavailableError("the theorem needs a guarantee with an epsilon outside a failure mass")
    needed = runs_needed(
        candidates=candidates,
        thresholds=thresholds,
        epsilon_run=guarantee.pure_epsilon,
        epsilon_search=epsilon,
        delta=delta,
        failure_probability=failure_probability,
    )
    _refuse(needed, number("most_runs", most_runs, at_least=1.0))
    statistic = SmoothedCount(
        samples=math.ceil(10.0**needed.log10_samples),
        smoothing=needed.smoothing,
        sensitivity=guarantee.pure_epsilon + needed.slack,
    )
    return select_without_threshold_by_hand(
        candidate,
        thresholds=threshold_grid(thresholds),
        target=needed.target,
        guarantee=guarantee,
        statistic=statistic,
        epsilon=epsilon,
        stop_probability=10.0**needed.log10_stop_probability,
        failure_probability=failure_probability,
        rehearse=False,
        spender=spender,
        label=label,
        random=random,
    )


def _refuse(needed: RunsNeeded, most: float) -> None:
    log10_total = max(needed.log10_samples, needed.log10_later_runs)
    if log10_total > math.log10(most) or needed.total > most:
        raise ArgumentError(
            f"the theorem asks for 10^{log10_total:.1f} runs, above most_runs = {most:g}; give samples and "
            "stop_probability by hand (select_without_threshold_by_hand), or use select_best"
        )


def select_without_threshold_by_hand(
    candidate: Candidate,
    *,
    thresholds: Sequence[float],
    target: SupportsFloat,
    guarantee: Guarantee,
    statistic: SmoothedCount,
    epsilon: SupportsFloat,
    stop_probability: SupportsFloat,
    max_runs: int | None = None,
    failure_probability: SupportsFloat | None = None,
    rehearse: Rehearsal = True,
    spender: Spender | None = None,
    label: str = "select without threshold",
    random: RandomSource | None = None,
) -> Release:
    """Find a threshold by `search_threshold`, then release the first run that reaches it, or None.

    `target`: how probable it should be that a run reaches the threshold found, about 1 / (2K) for one good candidate
    among K. `statistic`, `stop_probability` and `max_runs` (conditioned) are what you can afford; any choice is
    private, none is promised to find the best. The threshold, a private output, is used and not released.

    The guarantee is `accounting.without_threshold.without_threshold(...)`: the search's (epsilon, delta) composed with
    the stopping's, which is below 2 epsilon_1. The number of later runs depends on the data and does not leave; the
    time it takes does, and is not covered. `rehearse`: as in `select_best`.

    >>> from dpselect.accounting.candidates.sampled_search import smoothed_count
    >>> from dpselect.privacy import pure_dp
    >>> base = pure_dp(epsilon=0.1)
    >>> counts = smoothed_count(base, samples=2000, thresholds=10, delta=1e-6, slack=0.25)
    >>> release = select_without_threshold_by_hand(
    ...     lambda random: (float(random.uniform(1)[0]), "found"), thresholds=threshold_grid(10), target=0.2,
    ...     guarantee=base, statistic=counts, epsilon=4.0, stop_probability=0.001)
    >>> release.value, round(release.guarantee.pure_epsilon, 2)
    ('found', 4.2)
    """
    check_candidate(candidate, rehearse)
    guarantee = promise("guarantee", guarantee)
    bars = tuple(thresholds)
    total = without_threshold(
        guarantee,
        statistic=statistic,
        epsilon_search=epsilon,
        thresholds=len(bars),
        stop_probability=stop_probability,
        max_runs=max_runs,
    )
    source = resolve(random)
    search, _ = prepared_search(
        candidate,
        thresholds=bars,
        target=target,
        guarantee=guarantee,
        statistic=statistic,
        epsilon=epsilon,
        failure_probability=failure_probability,
        source=source,
    )
    tries = Geometric(gamma=float(stop_probability))
    law = tries if max_runs is None else tries.at_most(integer("max_runs", max_runs, at_least=1))

    def run() -> Any:
        # which of the two steps found nothing is not released
        found = search()
        return None if found is None else output_of(first_above(candidate, found, law, source))

    return searched(run, total, spender=spender, label=label, replayable=source.replayable)
