"""The first private candidate that passes its threshold often enough, when its passing probability can be computed.

Liu, Talwar 2019, Section 4.1: the sparse vector technique on log-odds, which move by at most 2 epsilon_1 between
neighbours. The classical technique is the case of Laplace noise on queries and a target of one half.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import SupportsFloat

from dpselect.accounting.candidates.percentile_sparse_vector import log_odds_sensitivity, percentile_sparse_vector
from dpselect.errors import ArgumentError, BudgetError, integer, number, secret_number
from dpselect.mechanisms import SparseVector
from dpselect.privacy import Guarantee, OutputGuarantee, Payment, Release, Spender
from dpselect.privacy.nothing_found import warn_if_nothing_found
from dpselect.privacy.paid_session import PaidSession
from dpselect.privacy.promises import promise
from dpselect.randomness import RandomSource, resolve
from dpselect.randomness.session import answers

__all__ = ["PercentileSparseVector", "laplace_log_odds", "log_odds", "select_first_by_percentile"]

_FARTHEST = 600.0
"""Log-odds are cut off here, long before a probability underflows; cutting off moves no two apart."""


def log_odds(*, passing: SupportsFloat, failing: SupportsFloat) -> float:
    """log(passing / failing) for the probabilities that a candidate passes and that it fails, each to full precision.

    Give both: one minus the other loses the digits on which the privacy of near-certain events rests.

    >>> log_odds(passing=0.5, failing=0.5), log_odds(passing=0.0, failing=1.0)
    (0.0, -inf)
    """
    p, q = _probability(passing), _probability(failing)
    if not 0.999 < p + q < 1.001:
        raise ArgumentError("passing and failing must add up to one")
    if p == 0.0 or q == 0.0:
        return math.inf if p > 0.0 else -math.inf
    return math.log(p) - math.log(q)


def _probability(value: SupportsFloat) -> float:
    # without the value, which is computed from the data
    parsed = secret_number("passing and failing", value)
    if not 0.0 <= parsed <= 1.0:
        raise ArgumentError("passing and failing must be probabilities")
    return parsed


def laplace_log_odds(gap: SupportsFloat, *, scale: SupportsFloat) -> float:
    """The log-odds that a query plus Laplace noise reaches its threshold; `gap` = query - threshold.

    >>> round(1 / (1 + math.exp(-laplace_log_odds(2.0, scale=4.0))), 9)
    0.69673467
    """
    width = number("scale", scale, above=0.0)
    steps = secret_number("gap", gap) / width
    # log of the smaller tail exp(-|steps|)/2 and of what is left
    small = -abs(steps) - math.log(2.0)
    return math.copysign(math.log1p(-math.exp(small)) - small, steps) if steps else 0.0


class PercentileSparseVector(PaidSession):
    """Does this candidate pass its threshold with a probability above the target? Many answers for one price.

    Each query is a candidate and a threshold, given by the log-odds that one run passes, computed exactly on the data;
    the answer is whether they exceed those of `target`, up to noise. After the first positive nothing is answered.
    Every candidate, which is never run, satisfies `guarantee` (the caller must ensure it).

    Args:
        guarantee: of one run of any of the candidates; pure.
        epsilon: the price, whatever the candidates'; the noise has scale 4 epsilon_1/epsilon on the target and
            8 epsilon_1/epsilon on a query, so take it well above epsilon_1.
        target: the passing probability asked for, in (0, 1).
        max_queries: at most so many; with 1 the price is epsilon/4.
        oracle_error: how far computed log-odds are from the true ones at most, for |log-odds| up to 600.
        spender, label: where `guarantee` is paid, and its name in the record; see `PaidSession`.

    `guarantee` prices the session by its output: epsilon/2 if nothing was found. A query that is NaN counts as never
    passing. `BudgetError`: asked after the session has ended. Not copied, not pickled, not shared with a fork.

    >>> from dpselect.privacy import pure_dp
    >>> from dpselect.randomness import keyed_source
    >>> search = PercentileSparseVector(guarantee=pure_dp(epsilon=0.01), epsilon=1.0, random=keyed_source(1))
    >>> search.above(log_odds(passing=0.01, failing=0.99)), search.above(log_odds(passing=0.9, failing=0.1))
    (False, True)
    """

    def __init__(
        self,
        *,
        guarantee: Guarantee,
        epsilon: SupportsFloat,
        target: SupportsFloat = 0.5,
        max_queries: int | None = None,
        oracle_error: SupportsFloat = 1e-9,
        spender: Spender | None = None,
        label: str = "percentile sparse vector",
        random: RandomSource | None = None,
    ) -> None:
        super().__init__()
        guarantee = promise("guarantee", guarantee)
        self._price = percentile_sparse_vector(
            guarantee, epsilon=epsilon, max_queries=max_queries, oracle_error=oracle_error
        )
        share = number("target", target, above=0.0, below=1.0)
        self._target = math.log(share) - math.log1p(-share)
        self._left = None if max_queries is None else integer("max_queries", max_queries, at_least=1, at_most=1 << 1000)
        self._pay(Payment.open(self.guarantee, spender=spender, label=label))
        half = float(epsilon) / 2.0
        self._test = SparseVector(
            epsilon_threshold=half,
            epsilon_queries=half,
            max_positives=1,
            sensitivity=log_odds_sensitivity(guarantee, oracle_error=oracle_error),
            adjacency=guarantee.adjacency,
            random=random,
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
    def above(self, log_odds: SupportsFloat) -> bool:
        """Whether the candidate passes often enough, from its log-odds; see `log_odds`."""
        value = secret_number("log_odds", log_odds)
        self._refuse_when_closed()
        if self.halted:
            raise BudgetError("this search has ended; open and charge a new one")
        if self._left is not None:
            self._left -= 1
        return self._test.above(min(max(value, -_FARTHEST), _FARTHEST) if value == value else value, self._target)

    def _outcome(self) -> bool | None:
        return True if self._test.halted else None

    def __repr__(self) -> str:
        return f"<PercentileSparseVector {'halted' if self.halted else 'open'}>"


def select_first_by_percentile(
    log_odds: Iterable[SupportsFloat],
    *,
    guarantee: Guarantee,
    epsilon: SupportsFloat,
    target: SupportsFloat = 0.5,
    max_queries: int | None = None,
    oracle_error: SupportsFloat = 1e-9,
    spender: Spender | None = None,
    label: str = "select by percentile",
    random: RandomSource | None = None,
) -> Release:
    """The index of the first query whose candidate passes its threshold often enough, or None at the stream's end.

    The stream is read one query at a time, no further than the answer, and may be endless; its length must not depend
    on the data (the caller must ensure it). The arguments are those of `PercentileSparseVector`.

    >>> from dpselect.privacy import pure_dp
    >>> stream = (laplace_log_odds(gap, scale=100.0) for gap in range(-2000, 2000, 500))
    >>> select_first_by_percentile(stream, guarantee=pure_dp(epsilon=0.01), epsilon=1.0).value is None
    False
    """
    source = resolve(random)
    search = PercentileSparseVector(
        guarantee=guarantee,
        epsilon=epsilon,
        target=target,
        max_queries=max_queries,
        oracle_error=oracle_error,
        spender=spender,
        label=label,
        random=source,
    )
    found = None
    with search:
        for index, query in enumerate(log_odds):
            if search.above(query):
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
