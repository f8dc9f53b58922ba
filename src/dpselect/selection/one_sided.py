"""The largest threshold that one private candidate passes often enough (Liu, Talwar 2019, Section 4.3)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import SupportsFloat

from dpselect.accounting.candidates.sampled_percentile import SmoothedCount
from dpselect.accounting.candidates.sampled_search import threshold_search, threshold_search_margin
from dpselect.errors import ArgumentError, integer, number
from dpselect.mechanisms import SparseVector
from dpselect.privacy import Guarantee, Release, Spender
from dpselect.privacy.boundary import silence
from dpselect.privacy.promises import promise
from dpselect.randomness import RandomSource, resolve
from dpselect.selection.candidates import Candidate, check_candidate, run_once, searched
from dpselect.selection.rehearsal import Rehearsal

__all__ = ["prepared_search", "search_threshold", "threshold_grid"]

_ROUNDING = 2.0**-40


def threshold_grid(count: int) -> tuple[float, ...]:
    """1 - 1/R, 1 - 2/R, ..., 0 for scores in [0, 1].

    >>> threshold_grid(4)
    (0.75, 0.5, 0.25, 0.0)
    """
    count = integer("count", count, at_least=1, at_most=1 << 20)
    return tuple((count - i) / count for i in range(1, count + 1))


def search_threshold(
    candidate: Candidate,
    *,
    thresholds: Sequence[float],
    target: SupportsFloat,
    guarantee: Guarantee,
    statistic: SmoothedCount,
    epsilon: SupportsFloat,
    failure_probability: SupportsFloat | None = None,
    rehearse: Rehearsal = True,
    spender: Spender | None = None,
    label: str = "threshold search",
    random: RandomSource | None = None,
) -> Release:
    """The first of falling `thresholds` that one run reaches with a probability of about `target`, or None.

    The candidate is run `statistic.samples` times, and this one batch serves all thresholds. Thresholds, target,
    statistic and the rest are fixed without the data, and `guarantee` covers one run with its score and failure (the
    caller must ensure it). A run that raises or scores NaN reaches no threshold. None: not even the last
    one was found, which the noise allows. `rehearse`: as in `select_best`.

    `statistic` comes from `smoothed_count(guarantee, samples=..., thresholds=len(thresholds), ...)` or is a
    `SmoothedCount` by hand; privacy holds for any. With a `failure_probability` the bar is lowered by
    `threshold_search_margin`, so that the right threshold is seldom missed, and too large a one is found more often.

    The guarantee is (epsilon, delta) by `threshold_search`. Raises `ArgumentError` for thresholds that do not fall.

    >>> from dpselect.accounting.candidates.sampled_search import smoothed_count
    >>> from dpselect.privacy import pure_dp
    >>> base = pure_dp(epsilon=0.1)
    >>> counts = smoothed_count(base, samples=4000, thresholds=4, delta=1e-6, slack=0.25)
    >>> release = search_threshold(
    ...     lambda random: (float(random.uniform(1)[0]) / 2, None), thresholds=threshold_grid(4), target=0.25,
    ...     guarantee=base, statistic=counts, epsilon=20.0)
    >>> release.value
    0.25
    """
    check_candidate(candidate, rehearse)
    source = resolve(random)
    run, price = prepared_search(
        candidate,
        thresholds=thresholds,
        target=target,
        guarantee=guarantee,
        statistic=statistic,
        epsilon=epsilon,
        failure_probability=failure_probability,
        source=source,
    )
    return searched(run, price, spender=spender, label=label, replayable=source.replayable)


def prepared_search(
    candidate: Candidate,
    *,
    thresholds: Sequence[float],
    target: SupportsFloat,
    guarantee: Guarantee,
    statistic: SmoothedCount,
    epsilon: SupportsFloat,
    failure_probability: SupportsFloat | None,
    source: RandomSource,
) -> tuple[Callable[[], float | None], Guarantee]:
    """The run of `search_threshold`, unpaid, and its price: what it finds may be a secret of a larger search."""
    guarantee = promise("guarantee", guarantee)
    bars = tuple(number("thresholds", bar, finite=False) for bar in thresholds)
    if not bars or any(not later < earlier for earlier, later in pairwise(bars)):
        raise ArgumentError("thresholds must be at least one number, each below the one before")
    share = number("target", target, above=0.0, at_most=1.0)
    price = threshold_search(guarantee, statistic=statistic, epsilon=epsilon, thresholds=len(bars))
    level = statistic.statistic(statistic.samples * share)
    if failure_probability is not None:
        level -= threshold_search_margin(
            sensitivity=statistic.sensitivity,
            slack=max(statistic.sensitivity - guarantee.pure_epsilon, 0.0),
            epsilon=epsilon,
            failure_probability=failure_probability,
        )

    def run() -> float | None:
        half = float(epsilon) / 2.0
        test = SparseVector(
            epsilon_threshold=half,
            epsilon_queries=half,
            max_positives=1,
            sensitivity=statistic.sensitivity + _ROUNDING,
            adjacency=guarantee.adjacency,
            random=source,
        )
        counts = zip(bars, _passing_counts(candidate, bars, statistic.samples, source), strict=True)
        return next((bar for bar, count in counts if test.above(statistic.statistic(count), level)), None)

    return run, price.guarantee


def _passing_counts(candidate: Candidate, bars: tuple[float, ...], samples: int, source: RandomSource) -> list[int]:
    """How many runs of one batch reach each of the falling bars; no score is kept."""
    rising = bars[::-1]
    first = [0] * (len(bars) + 1)
    with silence():
        for _ in range(samples):
            outcome = run_once(candidate, source)
            # how many bars it reaches; NaN and failures reach none
            reached = 0 if outcome is None or outcome.score != outcome.score else bisect_right(rising, outcome.score)
            first[len(bars) - reached] += 1
    counts, total = [], 0
    for place in range(len(bars)):
        total += first[place]
        counts.append(total)
    return counts
