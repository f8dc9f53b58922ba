"""Choosing among private candidates without a threshold, in two private steps (Liu, Talwar 2019, Theorem 4.7)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, SupportsFloat

from dpselect.accounting.candidates.sampled_percentile import SmoothedCount
from dpselect.accounting.candidates.without_threshold import runs_needed, without_threshold
from dpselect.errors import ArgumentError, BoundUnavailableError, expect, number
from dpselect.privacy import Guarantee
from dpselect.privacy.promises import promise
from dpselect.randomness import RandomSource
from dpselect.selection.above import SelectAbove
from dpselect.selection.candidates import Candidate, Selector
from dpselect.selection.one_sided import ThresholdSearch, threshold_grid

__all__ = ["SelectWithoutThreshold"]

MOST_RUNS = 10_000_000
"""More runs than this are refused unless the caller says otherwise."""


@dataclass(frozen=True, kw_only=True)
class SelectWithoutThreshold(Selector):
    """A search that finds a threshold privately, then releases the first run that reaches it, or None.

    The threshold, a private output, is used and not released. The number of later runs depends on the data and is not
    released. The time it takes is visible, and is not covered.

    The guarantee is the search's (epsilon, delta) composed with the stopping's, which is below 2 epsilon_1.

    Any choice of the statistic, `stop_probability` and `max_runs` is private. Choose what you can afford. None is
    certain to find the best.

    Args:
        search: the private search for the threshold. Its `target` is how probable it should be that a run reaches the
            threshold found, about 1 / (2K) for one good candidate among K.
        stop_probability: the probability that a coin stops the later runs after a failure, from 1e-100 to below 1,
            fixed without the data (you must ensure this).
        max_runs: the largest number of later runs, public. The number is drawn again until it is within the limit
            (conditioned). None sets no limit.

    Raises:
        TypeError: if `search` is not a `ThresholdSearch`.
        ArgumentError: if a number is out of range, when the guarantee is asked for.

    >>> from dpselect.accounting.candidates.sampled_search import smoothed_count
    >>> from dpselect.privacy import pure_dp
    >>> base = pure_dp(epsilon=0.1)
    >>> counts = smoothed_count(base, samples=2000, thresholds=10, delta=1e-6, slack=0.25)
    >>> search = ThresholdSearch(thresholds=threshold_grid(10), target=0.2, base=base, statistic=counts, epsilon=4.0)
    >>> select = SelectWithoutThreshold(search=search, stop_probability=0.001)
    >>> release = select(lambda random: (float(random.uniform(1)[0]), "found"))
    >>> release.value, round(release.guarantee.pure_epsilon, 2)
    ('found', 4.2)
    """

    search: ThresholdSearch
    stop_probability: float
    max_runs: int | None = None

    def __post_init__(self) -> None:
        expect("search", self.search, ThresholdSearch)

    @classmethod
    def by_theorem(
        cls,
        *,
        candidates: int,
        thresholds: int,
        base: Guarantee,
        epsilon: SupportsFloat,
        delta: SupportsFloat,
        failure_probability: SupportsFloat = 0.1,
        most_runs: SupportsFloat = MOST_RUNS,
    ) -> SelectWithoutThreshold:
        """Return a selector whose winner is within 1/R of the best median score, at 2 epsilon_1 + `epsilon`.

        It is for a candidate that draws one of K candidates uniformly, with scores in [0, 1]. All numbers are the
        theorem's. It asks for so many runs (10^12 and far more) that this is a statement rather than a program. Choose
        them by hand, as you can afford, or use `select_best`.

        Args:
            candidates: K, how many candidates the proposal draws from, public.
            thresholds: R, how many thresholds make the grid.
            base: the guarantee of one run, its score and failure included (you must ensure this). It needs an epsilon,
                epsilon_1, outside its failure mass.
            epsilon: the epsilon of the search for the threshold.
            delta: the delta of that search.
            failure_probability: how often the score may be worse.
            most_runs: the largest number of runs to accept.

        Raises:
            ArgumentError: if the theorem asks for more than `most_runs`. The message has the number.
            BoundUnavailableError: if the base has no epsilon outside its failure mass.

        >>> from dpselect.privacy import pure_dp
        >>> SelectWithoutThreshold.by_theorem(candidates=2, thresholds=4, base=pure_dp(epsilon=0.01), epsilon=1.0,
        ...                                   delta=1e-6, failure_probability=0.25)
        Traceback (most recent call last):
        dpselect.errors.ArgumentError: the theorem asks for 10^12.7 runs, above most_runs = 1e+07; choose ...
        """
        base = promise("base", base)
        if not math.isfinite(base.pure_epsilon):
            raise BoundUnavailableError("the theorem needs a guarantee with an epsilon outside a failure mass")
        needed = runs_needed(
            candidates=candidates,
            thresholds=thresholds,
            epsilon_run=base.pure_epsilon,
            epsilon_search=epsilon,
            delta=delta,
            failure_probability=failure_probability,
        )
        most = number("most_runs", most_runs, at_least=1.0)
        log10_total = max(needed.log10_samples, needed.log10_later_runs)
        if log10_total > math.log10(most) or needed.total > most:
            raise ArgumentError(
                f"the theorem asks for 10^{log10_total:.1f} runs, above most_runs = {most:g}; choose samples "
                "and stop_probability by hand, or use select_best"
            )
        search = ThresholdSearch(
            thresholds=threshold_grid(thresholds),
            target=needed.target,
            base=base,
            statistic=SmoothedCount(
                samples=math.ceil(10.0**needed.log10_samples),
                smoothing=needed.smoothing,
                sensitivity=base.pure_epsilon + needed.slack,
            ),
            epsilon=float(epsilon),
            failure_probability=float(failure_probability),
        )
        return cls(search=search, stop_probability=10.0**needed.log10_stop_probability)

    @property
    def guarantee(self) -> Guarantee:
        """`accounting.candidates.without_threshold.without_threshold` of these."""
        return without_threshold(
            self.search.base,
            statistic=self.search.statistic,
            epsilon_search=self.search.epsilon,
            thresholds=len(self.search.thresholds),
            stop_probability=self.stop_probability,
            max_runs=self.max_runs,
        )

    def _found(self, candidate: Candidate, random: RandomSource) -> Any:
        # which of the two steps found nothing is not released
        bar = self.search._found(candidate, random)
        if bar is None:
            return None
        stopping = {"stop_probability": self.stop_probability, "max_runs": self.max_runs}
        return SelectAbove(threshold=bar, base=self.search.base, **stopping)._found(candidate, random)  # type: ignore[arg-type]
