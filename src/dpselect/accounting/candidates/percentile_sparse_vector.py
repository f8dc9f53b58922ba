"""Sparse vector for private candidates with an exact percentile oracle (Liu, Talwar 2019, Section 4.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import SupportsFloat

from dpselect.accounting.candidates.search_price import PriceByOutput, first_positive_price
from dpselect.errors import BoundUnavailableError, integer, number
from dpselect.numerics.logs import ROUND_UP
from dpselect.privacy import Guarantee
from dpselect.privacy.promises import promise

__all__ = [
    "HaltingCutoffs",
    "halting_cutoffs",
    "log_odds_sensitivity",
    "percentile_sparse_vector",
]


def log_odds_sensitivity(base: Guarantee, *, oracle_error: SupportsFloat = 0.0) -> float:
    """2 epsilon_1 (+ 2 oracle_error): how far log(p / (1-p)) moves between neighbours, p the passing probability.

    log p and log(1-p) each move by at most epsilon_1, in opposite directions. Randomised response attains both.
    Raises `BoundUnavailableError` unless the base is pure: the odds of a rare event move without bound otherwise.

    >>> from dpselect.privacy import pure_dp
    >>> round(log_odds_sensitivity(pure_dp(epsilon=0.1)), 9)
    0.2
    """
    base = promise("base", base)
    if base.failure > 0.0 or not math.isfinite(base.pure_epsilon):
        raise BoundUnavailableError(
            "an exact percentile oracle needs a base with pure privacy: the odds of a rare event have no finite "
            "sensitivity otherwise; sample the candidates instead"
        )
    error = number("oracle_error", oracle_error, at_least=0.0)
    # 2**-40 covers the rounding of the comparison's log-odds, which are at most a few hundred
    return 2.0 * (base.pure_epsilon + error) * ROUND_UP + 2.0**-40


def percentile_sparse_vector(
    base: Guarantee, *, epsilon: SupportsFloat, max_queries: int | None = None, oracle_error: SupportsFloat = 0.0
) -> PriceByOutput:
    """The price of asking until a candidate passes its threshold often enough: epsilon, no matter what the base costs.

    The base decides the noise (scales 4 epsilon_1/epsilon and 8 epsilon_1/epsilon), not the price. Each query's
    candidate satisfies `base` (you must ensure this). With `max_queries=1` the price is epsilon/4.
    Source: Liu, Talwar 2019, Theorem 4.1.

    >>> from dpselect.privacy import pure_dp
    >>> price = percentile_sparse_vector(pure_dp(epsilon=0.1), epsilon=1.0)
    >>> price.guarantee.epsilon(delta=0), price.by_output.observed(None).epsilon(delta=0)
    (1.0, 0.5)
    """
    base = promise("base", base)
    epsilon = number("epsilon", epsilon, above=0.0, rounding="up")
    tests = None if max_queries is None else integer("max_queries", max_queries, at_least=1, at_most=1 << 1000)
    terms = {
        "mechanism": "percentile-sparse-vector",
        "base": dict(base.terms),
        "epsilon": epsilon,
        "max_queries": tests,
        "sensitivity": log_odds_sensitivity(base, oracle_error=oracle_error),
    }
    return first_positive_price(
        epsilon=epsilon,
        tests=tests,
        failure=0.0,
        adjacency=base.adjacency,
        theorem="sparse vector for private candidates (Liu, Talwar 2019, Theorem 4.1)",
        terms=terms,
    )


@dataclass(frozen=True)
class HaltingCutoffs:
    """Passing probabilities that a search tells apart, each statement failing with probability `failure` at most.

    Attributes:
        low: some query at or below this halts the search.
        high: the search goes past some query at or above this.
        sure: one given query at or above this does not halt the search, if nothing before it did.
    """

    low: float
    high: float
    sure: float


def halting_cutoffs(
    *,
    epsilon_run: SupportsFloat,
    epsilon: SupportsFloat,
    target: SupportsFloat,
    queries: int,
    failure_probability: SupportsFloat,
) -> HaltingCutoffs:
    """Odds beta^a / (R+1)^a, (R+1)^a / beta^a and 1 / beta^a times those of `target`, a = 12 epsilon_1 / epsilon.

    For `queries` = R queries of an epsilon_run-private base. Joint statements ("halts, and ..."), not conditional ones
    as printed: given earlier negative answers the third fails far more often than beta. Useless for a well above 1.
    Source: Liu, Talwar 2019, Theorem 4.1 and Corollary 4.2.

    >>> cut = halting_cutoffs(epsilon_run=0.1, epsilon=1.2, target=0.5, queries=9, failure_probability=0.1)
    >>> round(cut.low, 11), round(cut.high, 9), round(cut.sure, 9)
    (0.0099009901, 0.99009901, 0.909090909)
    """
    power = (
        12.0
        * number("epsilon_run", epsilon_run, at_least=0.0, rounding="up")
        / number("epsilon", epsilon, above=0.0, rounding="down")
    )
    target = number("target", target, above=0.0, below=1.0)
    queries = integer("queries", queries, at_least=1, at_most=1 << 1000)
    beta = number("failure_probability", failure_probability, above=0.0, below=1.0)
    centre = math.log(target) - math.log1p(-target)
    wide, narrow = power * math.log((queries + 1.0) / beta), -power * math.log(beta)
    return HaltingCutoffs(
        low=_from_odds(centre - wide), high=_from_odds(centre + wide), sure=_from_odds(centre + narrow)
    )


def _from_odds(log_odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-min(max(log_odds, -700.0), 700.0)))
