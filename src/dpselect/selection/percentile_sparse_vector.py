"""The first private candidate that passes its threshold often enough, when its passing probability can be computed.

Liu, Talwar 2019, Section 4.1: the sparse vector technique on log-odds, which move by at most 2 epsilon_1 between
neighbours. The classical technique is the case of Laplace noise on queries and a target of one half.
"""

from __future__ import annotations

import math
from typing import SupportsFloat

from dpselect.accounting.candidates.percentile_sparse_vector import log_odds_sensitivity, percentile_sparse_vector
from dpselect.errors import ArgumentError, number, secret_number
from dpselect.privacy import Guarantee, Spender
from dpselect.privacy.promises import promise
from dpselect.randomness import RandomSource
from dpselect.randomness.session import answers
from dpselect.selection.passing import PassingSession

__all__ = ["PercentileSparseVector", "laplace_log_odds", "log_odds"]

_FARTHEST = 600.0
"""Log-odds are clipped here, long before a probability underflows; cutting off moves no two apart."""


def log_odds(*, passing: SupportsFloat, failing: SupportsFloat) -> float:
    """Return log(passing / failing) for the probabilities that a candidate passes and that it fails.

    Compute both from the data, each to full precision. One minus the other loses the digits on which the privacy of
    near-certain events rests.

    Args:
        passing: the probability that one run passes, private.
        failing: the probability that one run fails, private. Both add up to one, to a thousandth.

    Returns:
        The log-odds: inf if only `failing` is 0, and -inf if only `passing` is.

    Raises:
        ArgumentError: if they are not probabilities, or do not add up to one. The message does not show them.
        TypeError: if one is not a number.

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
    """The log-odds that a query plus Laplace noise reaches its threshold. `gap` = query - threshold.

    >>> round(1 / (1 + math.exp(-laplace_log_odds(2.0, scale=4.0))), 9)
    0.69673467
    """
    width = number("scale", scale, above=0.0)
    steps = secret_number("gap", gap) / width
    # log of the smaller tail exp(-|steps|)/2 and of what is left
    small = -abs(steps) - math.log(2.0)
    return math.copysign(math.log1p(-math.exp(small)) - small, steps) if steps else 0.0


class PercentileSparseVector(PassingSession):
    """Does this candidate pass its threshold with a probability above the target? Many answers for one price.

    Each query is a candidate and a threshold, given by the log-odds that one run passes, computed exactly on the data.
    The answer is whether they exceed those of `target`, up to noise. After the first positive nothing is answered.
    Every candidate, which is never run, satisfies `guarantee` (you must ensure this).

    Args:
        guarantee: of one run of any of the candidates; pure.
        epsilon: the price, no matter what the candidates'; the noise has scale 4 epsilon_1/epsilon on the target and
            8 epsilon_1/epsilon on a query, so take it well above epsilon_1.
        target: the passing probability asked for, in (0, 1).
        max_queries: at most so many; with 1 the price is epsilon/4.
        oracle_error: how far computed log-odds are from the true ones at most, for |log-odds| up to 600.
        spender, label: where `guarantee` is paid, and its name in the record; see `PaidSession`.

    A query that is NaN counts as never passing. Price, end and streams of queries (`first`): see `PassingSession`.

    >>> from dpselect.privacy import pure_dp
    >>> from dpselect.randomness import keyed_source
    >>> search = PercentileSparseVector(guarantee=pure_dp(epsilon=0.01), epsilon=1.0, random=keyed_source(1))
    >>> search.above(log_odds(passing=0.01, failing=0.99)), search.above(log_odds(passing=0.9, failing=0.1))
    (False, True)
    >>> from dpselect.selection.percentile_sparse_vector import laplace_log_odds
    >>> stream = (laplace_log_odds(gap, scale=100.0) for gap in range(-2000, 2000, 500))
    >>> PercentileSparseVector(guarantee=pure_dp(epsilon=0.01), epsilon=1.0).first(stream).value is None
    False
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
        guarantee = promise("guarantee", guarantee)
        price = percentile_sparse_vector(guarantee, epsilon=epsilon, max_queries=max_queries, oracle_error=oracle_error)
        share = number("target", target, above=0.0, below=1.0)
        super().__init__(
            price,
            target=math.log(share) - math.log1p(-share),
            epsilon=epsilon,
            sensitivity=log_odds_sensitivity(guarantee, oracle_error=oracle_error),
            max_queries=max_queries,
            spender=spender,
            label=label,
            random=random,
        )

    @answers
    def above(self, log_odds: SupportsFloat) -> bool:
        """Whether the candidate passes often enough, from its log-odds. See `log_odds`."""
        value = secret_number("log_odds", log_odds)
        self._count_one()
        return self._test.above(min(max(value, -_FARTHEST), _FARTHEST) if value == value else value, self._target)

    def _asked(self, query: SupportsFloat) -> bool:
        return self.above(query)
