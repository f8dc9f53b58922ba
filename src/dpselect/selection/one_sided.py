"""The largest threshold that one private candidate passes often enough (Liu, Talwar 2019, Section 4.3)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from dpselect.accounting.candidates.sampled_percentile import SmoothedCount
from dpselect.accounting.candidates.sampled_search import threshold_search, threshold_search_margin
from dpselect.errors import ArgumentError, integer, number
from dpselect.mechanisms import SparseVector
from dpselect.privacy import Guarantee
from dpselect.privacy.boundary import silence
from dpselect.privacy.promises import hold_promises
from dpselect.randomness import RandomSource
from dpselect.selection.candidates import Candidate, Selector, run_once

__all__ = ["ThresholdSearch", "passing_counts", "threshold_grid"]

_ROUNDING = 2.0**-40


def threshold_grid(count: int) -> tuple[float, ...]:
    """Return the falling thresholds 1 - 1/R, 1 - 2/R, ..., 0 for scores in [0, 1].

    Args:
        count: R, the number of thresholds, from 1 to 2**20.

    Raises:
        ArgumentError: if `count` is out of range.

    >>> threshold_grid(4)
    (0.75, 0.5, 0.25, 0.0)
    """
    count = integer("count", count, at_least=1, at_most=1 << 20)
    return tuple((count - i) / count for i in range(1, count + 1))


@dataclass(frozen=True, kw_only=True)
class ThresholdSearch(Selector):
    """A search for the first of falling `thresholds` that one run reaches with probability about `target`, or None.

    The candidate is run `statistic.samples` times, and this one batch serves all thresholds. A run that raises or
    scores NaN reaches no threshold. None means that not even the last one was found, which the noise allows. The
    guarantee is (epsilon, delta).

    Args:
        thresholds: scores, each below the one before. You must ensure that all arguments are fixed without the data.
        target: the probability that a run should reach the threshold, above 0 and at most 1.
        base: the guarantee of one run of the candidate, its score and failure included (you must ensure this).
        statistic: from `smoothed_count(base, samples=..., thresholds=len(thresholds), ...)`, or your own
            `SmoothedCount`. Privacy holds for any.
        epsilon: the epsilon of the search, half for the bar and half for the queries.
        failure_probability: lowers the bar by `threshold_search_margin`, so that the right threshold is rarely missed.
            Then too large a one is found more often. None leaves the bar as it is.

    Raises:
        ArgumentError: if the thresholds do not fall, or `target` is out of range.
        PromiseError: if `base` is not a `Guarantee`.

    >>> from dpselect.accounting.candidates.sampled_search import smoothed_count
    >>> from dpselect.privacy import pure_dp
    >>> base = pure_dp(epsilon=0.1)
    >>> counts = smoothed_count(base, samples=4000, thresholds=4, delta=1e-6, slack=0.25)
    >>> search = ThresholdSearch(thresholds=threshold_grid(4), target=0.25, base=base, statistic=counts, epsilon=20.0)
    >>> search(lambda random: (float(random.uniform(1)[0]) / 2, None)).value
    0.25
    """

    thresholds: Sequence[float]
    target: float
    base: Guarantee
    statistic: SmoothedCount
    epsilon: float
    failure_probability: float | None = None

    def __post_init__(self) -> None:
        hold_promises(self, "base")
        bars = tuple(number("thresholds", bar, finite=False) for bar in self.thresholds)
        if not bars or any(not later < earlier for earlier, later in pairwise(bars)):
            raise ArgumentError("thresholds must be at least one number, each below the one before")
        object.__setattr__(self, "thresholds", bars)
        object.__setattr__(self, "target", number("target", self.target, above=0.0, at_most=1.0))

    @property
    def guarantee(self) -> Guarantee:
        """`threshold_search` of these."""
        count = len(self.thresholds)
        price = threshold_search(self.base, statistic=self.statistic, epsilon=self.epsilon, thresholds=count)
        return price.guarantee

    @property
    def level(self) -> float:
        """The number that the statistic of a threshold is compared with."""
        level = self.statistic.statistic(self.statistic.samples * self.target)
        if self.failure_probability is None:
            return level
        return level - threshold_search_margin(
            sensitivity=self.statistic.sensitivity,
            slack=max(self.statistic.sensitivity - self.base.pure_epsilon, 0.0),
            epsilon=self.epsilon,
            failure_probability=self.failure_probability,
        )

    def _found(self, candidate: Candidate, random: RandomSource) -> float | None:
        half, level = float(self.epsilon) / 2.0, self.level
        test = SparseVector(
            epsilon_threshold=half,
            epsilon_queries=half,
            max_positives=1,
            sensitivity=self.statistic.sensitivity + _ROUNDING,
            adjacency=self.base.adjacency,
            random=random,
        )
        bars = tuple(self.thresholds)
        counts = zip(bars, passing_counts(candidate, bars, self.statistic.samples, random), strict=True)
        return next((bar for bar, count in counts if test.above(self.statistic.statistic(count), level)), None)


def passing_counts(candidate: Candidate, bars: tuple[float, ...], samples: int, source: RandomSource) -> list[int]:
    """The secret number of runs of one batch that reach each of the falling bars. No score is kept."""
    rising = bars[::-1]
    first = [0] * (len(bars) + 1)
    with silence():
        for _ in range(samples):
            outcome = run_once(candidate, source)
            # how many bars it reaches; NaN and failures reach none
            reached = 0 if outcome is None or outcome.score != outcome.score else bisect_right(rising, outcome.score)
            first[len(bars) - reached] += 1
    return list(accumulate(first[:-1]))
