"""The first private candidate that passes its threshold often enough, by running each.

Liu, Talwar 2019, Section 4.2.
"""

from __future__ import annotations

from typing import SupportsFloat

from dpselect.accounting.candidates.sampled_percentile import SmoothedOdds
from dpselect.accounting.candidates.sampled_search import sampled_sparse_vector
from dpselect.errors import number
from dpselect.privacy import Guarantee, Spender
from dpselect.privacy.promises import promise
from dpselect.randomness import RandomSource
from dpselect.randomness.session import answers
from dpselect.selection.candidates import Candidate, check_candidate
from dpselect.selection.one_sided import passing_counts
from dpselect.selection.passing import PassingSession

__all__ = ["SampledSparseVector"]

_ROUNDING = 2.0**-40
"""Covers the rounding of a smoothed statistic, which is at most some dozens."""


class SampledSparseVector(PassingSession):
    """Does this candidate pass its threshold with a probability above the target? By running it `samples` times.

    Each query's candidate satisfies `guarantee`, its score and failure included (you must ensure this). A run that
    raises or scores NaN does not pass. After the first positive, or `max_queries` answers, nothing is answered. The
    counts stay secret, and the runs behind them are not released.

    Args:
        guarantee: of one run of any of the candidates.
        statistic: number of samples, smoothing and sensitivity: `smoothed_odds(guarantee, delta=..., ...)` finds
            them for a delta; a `SmoothedOdds` by hand is priced as it is.
        epsilon: what a positive costs, beside the delta of sampling.
        target: the passing probability asked for, in (0, 1).
        max_queries: the number of answers at most; part of the price.
        spender, label: where `guarantee` is paid, and its name in the record; see `PaidSession`.

    Price, end and streams of queries (`first`, of pairs of a candidate and a threshold): see `PassingSession`. Raises
    `BoundUnavailableError` when no bound exists for these numbers.

    >>> from dpselect.privacy import pure_dp
    >>> from dpselect.accounting.candidates.sampled_search import smoothed_odds
    >>> base = pure_dp(epsilon=0.1)
    >>> counts = smoothed_odds(base, samples=1000, max_queries=5, delta=1e-6, slack=0.25)
    >>> search = SampledSparseVector(guarantee=base, statistic=counts, epsilon=8.0, max_queries=5)
    >>> coin = lambda bias: lambda random: (float(random.bernoulli(bias, 1)[0]), None)
    >>> search.above(coin(0.001), 1.0), search.above(coin(0.999), 1.0)
    (False, True)
    """

    def __init__(
        self,
        *,
        guarantee: Guarantee,
        statistic: SmoothedOdds,
        epsilon: SupportsFloat,
        max_queries: int,
        target: SupportsFloat = 0.5,
        spender: Spender | None = None,
        label: str = "sampled sparse vector",
        random: RandomSource | None = None,
    ) -> None:
        guarantee = promise("guarantee", guarantee)
        self._statistic = statistic
        super().__init__(
            sampled_sparse_vector(guarantee, statistic=statistic, epsilon=epsilon, max_queries=max_queries),
            target=statistic.statistic(statistic.samples * number("target", target, above=0.0, below=1.0)),
            epsilon=epsilon,
            sensitivity=statistic.sensitivity + _ROUNDING,
            max_queries=max_queries,
            spender=spender,
            label=label,
            random=random,
        )

    @answers
    def above(self, candidate: Candidate, threshold: SupportsFloat) -> bool:
        """Whether the candidate reaches the threshold, itself fixed without the data, often enough."""
        check_candidate(candidate)
        bar = number("threshold", threshold, finite=False)
        self._count_one()
        (passed,) = passing_counts(candidate, (bar,), self._statistic.samples, self._source)
        return self._test.above(self._statistic.statistic(passed), self._target)

    def _asked(self, query: tuple[Candidate, SupportsFloat]) -> bool:
        return self.above(*query)
