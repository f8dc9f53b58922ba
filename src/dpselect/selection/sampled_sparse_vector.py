"""The first private candidate that passes its threshold often enough, by running each.

Liu, Talwar 2019, Section 4.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import SupportsFloat

from dpselect.accounting.candidates.sampled_percentile import SmoothedOdds
from dpselect.accounting.candidates.sampled_search import sampled_sparse_vector
from dpselect.errors import BudgetError, integer, number
from dpselect.mechanisms import SparseVector
from dpselect.privacy import Guarantee, OutputGuarantee, Payment, Release, Spender
from dpselect.privacy.boundary import silence
from dpselect.privacy.nothing_found import warn_if_nothing_found
from dpselect.privacy.paid_session import PaidSession
from dpselect.privacy.promises import promise
from dpselect.randomness import RandomSource, resolve
from dpselect.randomness.session import answers
from dpselect.selection.candidates import Candidate, check_candidate, run_once

__all__ = ["SampledSparseVector", "count_passing", "select_first_by_sampling"]

_ROUNDING = 2.0**-40
"""Covers the rounding of a smoothed statistic, which is at most some dozens."""


def count_passing(candidate: Candidate, threshold: float, samples: int, source: RandomSource) -> int:
    """How many of so many fresh runs score at least `threshold`. Secret."""
    passed = 0
    with silence():
        for _ in range(samples):
            outcome = run_once(candidate, source)
            passed += outcome is not None and outcome.score >= threshold
    return passed


class SampledSparseVector(PaidSession):
    """Does this candidate pass its threshold with a probability above the target? By running it `samples` times.

    Each query's candidate satisfies `guarantee`, its score and failure included (the caller must ensure it). A run that
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

    Raises `BoundUnavailableError` when no bound exists for these numbers. `BudgetError`: asked after the session ended.

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
        super().__init__()
        guarantee = promise("guarantee", guarantee)
        self._price = sampled_sparse_vector(guarantee, statistic=statistic, epsilon=epsilon, max_queries=max_queries)
        self._statistic, self._left = statistic, integer("max_queries", max_queries, at_least=1, at_most=1 << 1000)
        self._target = statistic.statistic(statistic.samples * number("target", target, above=0.0, below=1.0))
        self._source = resolve(random)
        self._pay(Payment.open(self.guarantee, spender=spender, label=label))
        half = float(epsilon) / 2.0
        self._test = SparseVector(
            epsilon_threshold=half,
            epsilon_queries=half,
            max_positives=1,
            sensitivity=statistic.sensitivity + _ROUNDING,
            adjacency=guarantee.adjacency,
            random=self._source,
        )

    @property
    def guarantee(self) -> OutputGuarantee:
        """The price of what the session found: an index, say, or None."""
        return replace(self._price.by_output, interactive=True)

    @property
    def worst(self) -> Guarantee:
        """The price when something is found."""
        return replace(self._price.guarantee, interactive=True)

    @property
    def halted(self) -> bool:
        """Whether a positive was given or no query is left."""
        return self._test.halted or self._left == 0

    @answers
    def above(self, candidate: Candidate, threshold: SupportsFloat) -> bool:
        """Whether the candidate reaches the threshold, itself fixed without the data, often enough."""
        check_candidate(candidate)
        bar = number("threshold", threshold, finite=False)
        self._refuse_when_closed()
        if self.halted:
            raise BudgetError("this search has ended; open and charge a new one")
        self._left -= 1
        passed = count_passing(candidate, bar, self._statistic.samples, self._source)
        return self._test.above(self._statistic.statistic(passed), self._target)

    def _outcome(self) -> bool | None:
        return True if self._test.halted else None

    def __repr__(self) -> str:
        return f"<SampledSparseVector {'halted' if self.halted else 'open'}>"


def select_first_by_sampling(
    queries: Iterable[tuple[Candidate, SupportsFloat]],
    *,
    guarantee: Guarantee,
    statistic: SmoothedOdds,
    epsilon: SupportsFloat,
    max_queries: int,
    target: SupportsFloat = 0.5,
    spender: Spender | None = None,
    label: str = "select by sampling",
    random: RandomSource | None = None,
) -> Release:
    """The index of the first (candidate, threshold) that passes often enough, or None: none did, or the stream ended.

    The stream is read one query at a time, no further than the answer or `max_queries`; its length must not depend on
    the data (the caller must ensure it). The arguments are those of `SampledSparseVector`.
    """
    source = resolve(random)
    search = SampledSparseVector(
        guarantee=guarantee,
        statistic=statistic,
        epsilon=epsilon,
        max_queries=max_queries,
        target=target,
        spender=spender,
        label=label,
        random=source,
    )
    found = None
    with search:
        for index, (candidate, threshold) in enumerate(queries):
            if search.above(candidate, threshold):
                found = index
            if search.halted:
                break
    warn_if_nothing_found(found)
    return Release(
        value=found,
        guarantee=search.worst,
        receipt=search.receipt,
        replayable=source.replayable,
        realised=search.guarantee.observed(found),
    )
