"""The generalisation theorems of Feldman and Steinke (2017), with the constants that their proofs give.

"Generalization for Adaptively-chosen Estimators via Stable Median", Theorems 4.1 to 4.7 and 5.1. If the printed
statement and its proof differ, the proof counts, and the docstring notes it. All logarithms are natural. Privacy is per
block, replace-one. `failure_probability` is that of everything together. `transfer.py` has the bounds to use. These are
far more cautious and are here for comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import SupportsFloat

from dpselect.adaptive.median_bounds import advanced_composition
from dpselect.errors import ArgumentError, integer, number
from dpselect.numerics.search import last_true

__all__ = [
    "ConcentratedRequirement",
    "MeanGeneralisation",
    "concentrated_blocks",
    "mean_generalisation",
    "mean_generalisation_blocks",
    "most_queries",
    "paper_blocks",
    "paper_composed_epsilon",
    "paper_epsilon",
    "projection_grid_size",
    "single_block_escape",
    "sparse_vector_blocks",
    "transfer_blocks",
    "verification_blocks",
]


@dataclass(frozen=True)
class MeanGeneralisation:
    """S[f] - D[f] <= alpha + gamma mad(f(D)) for all functions f that an (epsilon, delta)-private interaction names."""

    epsilon: float
    delta: float
    blocks: float
    alpha: float
    gamma: float


def _queries(value: int) -> int:
    return integer("queries", value, at_least=1, at_most=1 << 1000)


def _failure(value: SupportsFloat) -> float:
    return number("failure_probability", value, above=0.0, below=1.0)


def mean_generalisation(
    *,
    epsilon: SupportsFloat,
    delta: SupportsFloat,
    blocks: SupportsFloat,
    queries: int,
    failure_probability: SupportsFloat,
) -> MeanGeneralisation:
    """Theorem 4.1 (A.3) read forwards: gamma = exp(2 epsilon) - 1, alpha = 4 ln(2k/beta)/(epsilon m) + 8 delta/beta.

    One-sided, for functions into [0, 1]. Apply it to 1 - f for the other side. A number below 1 is not promised: an
    alpha of 1 or more says nothing. Source: Feldman, Steinke 2017, Theorem 4.1.

    >>> round(mean_generalisation(epsilon=0.1, delta=0, blocks=10_000, queries=1, failure_probability=0.05).alpha, 6)
    0.014756
    """
    epsilon, beta = number("epsilon", epsilon, above=0.0), _failure(failure_probability)
    delta, m = number("delta", delta, at_least=0.0, at_most=1.0), number("blocks", blocks, above=0.0)
    k = _queries(queries)
    alpha = 4.0 / (epsilon * m) * math.log(2.0 * k / beta) + 8.0 * delta / beta
    return MeanGeneralisation(epsilon, delta, m, alpha, math.expm1(2.0 * epsilon))


def mean_generalisation_blocks(
    *, alpha: SupportsFloat, gamma: SupportsFloat, queries: int, failure_probability: SupportsFloat
) -> MeanGeneralisation:
    """Theorem 4.1 read backwards: epsilon = ln(1 + gamma)/2, delta = alpha beta/16, m = 8 ln(2k/beta)/(epsilon alpha).

    Source: Feldman, Steinke 2017, Theorem 4.1.

    >>> found = mean_generalisation_blocks(alpha=1/16, gamma=1/8, queries=10, failure_probability=0.05)
    >>> round(found.epsilon, 8), round(found.blocks, 3)
    (0.05889152, 13022.376)
    """
    alpha, gamma = number("alpha", alpha, above=0.0, at_most=1.0), number("gamma", gamma, above=0.0, at_most=1.0)
    beta, k = _failure(failure_probability), _queries(queries)
    epsilon = 0.5 * math.log1p(gamma)
    blocks = 8.0 / (epsilon * alpha) * math.log(2.0 * k / beta)
    return MeanGeneralisation(epsilon, alpha * beta / 16.0, blocks, alpha, gamma)


def transfer_blocks(*, queries: int, failure_probability: SupportsFloat, epsilon: SupportsFloat = 0.05) -> float:
    """Theorem 4.2: least number of blocks from which sample medians within (3/8, 5/8) are valid at the quartiles.

    `failure_probability` is the theorem's beta (its conclusion fails with 2 beta at most), for an interaction that is
    (epsilon, beta/256)-private with epsilon at most ln(9/8)/2 = 0.0588915. The paper takes 1/20 and 2560 ln(2k/beta).
    Its monitor puts out a single function, so `queries=1` is enough regardless of the number of questions. Source:
    Feldman, Steinke 2017, Theorem 4.2.

    >>> round(transfer_blocks(queries=100, failure_probability=0.05), 3)
    21232.767
    """
    epsilon = number("epsilon", epsilon, above=0.0, at_most=0.5 * math.log(1.125))
    beta, k = _failure(failure_probability), _queries(queries)
    return 128.0 / epsilon * math.log(2.0 * k / beta)


def paper_blocks(*, queries: int, grid_size: int, failure_probability: SupportsFloat) -> float:
    """Theorem 4.3: 640 sqrt(max(k, 16) ln(512/beta)) ln(2k|T|/beta) blocks answer k median questions.

    The algorithm fails with twice the beta of its parts, so beta/2 stands in them. Source: Feldman, Steinke 2017,
    Theorem 4.3.

    >>> round(paper_blocks(queries=100, grid_size=1001, failure_probability=0.05), 3)
    295665.026
    """
    k, size = _queries(queries), integer("grid_size", grid_size, at_least=2, at_most=1 << 1000)
    half = _failure(failure_probability) / 2.0
    log_size = math.log(size)
    return 640.0 * math.sqrt(max(k, 16) * math.log(256.0 / half)) * (math.log(k / half) + log_size)


def paper_epsilon(*, queries: int, grid_size: int, failure_probability: SupportsFloat) -> float:
    """The epsilon of each median in Theorem 4.3: 16 ln(k|T|/beta)/m."""
    half = _failure(failure_probability) / 2.0
    blocks = paper_blocks(queries=queries, grid_size=grid_size, failure_probability=failure_probability)
    return 16.0 * (math.log(queries / half) + math.log(grid_size)) / blocks


def paper_composed_epsilon(*, queries: int, grid_size: int, failure_probability: SupportsFloat) -> float:
    """Equation (5), which must be at most 1/20: the epsilon of all medians of Theorem 4.3 together."""
    epsilon = paper_epsilon(queries=queries, grid_size=grid_size, failure_probability=failure_probability)
    return advanced_composition([epsilon] * queries, _failure(failure_probability) / 512.0)


def most_queries(blocks: SupportsFloat, needed: Callable[[int], float], *, limit: int = 1 << 40) -> int:
    """The inverse of a requirement that grows with the number of questions: the most that `blocks` allow, 0 for none.

    >>> needed = lambda k: paper_blocks(queries=k, grid_size=1001, failure_probability=0.05)
    >>> most_queries(295_666, needed), most_queries(10, needed)
    (100, 0)
    """
    blocks = number("blocks", blocks, at_least=0.0)
    return last_true(lambda k: needed(k) <= blocks, 1, limit, start=1) or 0


def projection_grid_size(granularity: SupportsFloat, *, half_range: SupportsFloat = 5.0) -> int:
    """Corollary 4.4's grid: the multiples of the granularity within the half range, 2 floor(5/zeta) + 1 (not 10/zeta).

    Mean in [-1, 1] and mean absolute deviation at most 1 put the quartiles in [-5, 5]. A standard deviation of at most
    1 puts them in [-3, 3]. Clipping there changes no quartile, rounding to the nearest moves them by zeta/2 at most.
    Source: Feldman, Steinke 2017, Corollary 4.4.

    >>> projection_grid_size(0.01)
    1001
    """
    granularity = number("granularity", granularity, above=0.0)
    return 2 * math.floor(number("half_range", half_range, above=0.0) / granularity + 1e-9) + 1


def single_block_escape(*, rank: SupportsFloat, epsilon: SupportsFloat, delta: SupportsFloat = 0.0) -> float:
    """The probability that a block's own value is outside qi(rank, 1 - rank) of a chosen estimator.

    At most 2 rank exp(epsilon) + delta. Source: Feldman, Steinke 2017, Theorem 4.6.
    """
    rank, epsilon = number("rank", rank, at_least=0.0, at_most=0.5), number("epsilon", epsilon, at_least=0.0)
    return min(1.0, 2.0 * rank * math.exp(min(epsilon, 700.0)) + number("delta", delta, at_least=0.0))


@dataclass(frozen=True)
class ConcentratedRequirement:
    """Theorem 4.7: blocks, the rank (which is also delta) and the epsilon of the whole interaction."""

    blocks: float
    rank: float
    epsilon: float
    escape: float


def concentrated_blocks(
    *, queries: int, grid_size: int, failure_probability: SupportsFloat, as_printed: bool = False
) -> ConcentratedRequirement:
    """Theorem 4.7, concentrated estimators: m = 8 ln(2k|T|/beta) sqrt(2k ln(1/delta)), delta = rank = beta/(10km).

    The printed formula forgets k inside the logarithm, after which epsilon passes ln 2. Its statement has the rank beta
    t/(4kn), with which the proof's k m (4 rank + delta) <= beta/2 fails. `as_printed` shows the former. `escape` is k m
    (2 rank exp(epsilon) + delta), which must be at most beta/2. Source: Feldman, Steinke 2017, Theorem 4.7.

    >>> round(concentrated_blocks(queries=100, grid_size=1001, failure_probability=0.05).blocks, 3)
    7461.922
    """
    k, size = _queries(queries), integer("grid_size", grid_size, at_least=2, at_most=1 << 1000)
    beta = _failure(failure_probability)
    utility = math.log(2.0 * k / beta) + math.log(size)
    logarithm = math.log(2.0 / beta) + math.log(size) if as_printed else utility
    blocks = 1.0
    for _ in range(200):
        blocks = 8.0 * logarithm * math.sqrt(2.0 * k * math.log(10.0 * k * blocks / beta))
    rank = beta / (10.0 * k * blocks)
    epsilon = advanced_composition([4.0 * utility / blocks] * k, rank)
    return ConcentratedRequirement(blocks, rank, epsilon, k * blocks * (2.0 * rank * math.exp(epsilon) + rank))


def sparse_vector_blocks(
    *,
    queries: int,
    refusals: int,
    epsilon: SupportsFloat,
    delta: SupportsFloat,
    accuracy: SupportsFloat,
    failure_probability: SupportsFloat,
) -> float:
    """Theorem 5.2 with the textbook constant: sqrt(512 l ln(1/delta)) (ln k + ln(2l/beta)) / (epsilon accuracy).

    Source: Feldman, Steinke 2017, Theorem 5.2.
    """
    k, ell = _queries(queries), integer("refusals", refusals, at_least=1, at_most=1 << 1000)
    epsilon, accuracy = number("epsilon", epsilon, above=0.0), number("accuracy", accuracy, above=0.0)
    delta = number("delta", delta, above=0.0, below=1.0)
    logs = math.log(k) + math.log(2.0 * ell / _failure(failure_probability))
    return math.sqrt(512.0 * ell * -math.log(delta)) * logs / (epsilon * accuracy)


def verification_blocks(
    *, rank: SupportsFloat, margin: SupportsFloat, queries: int, refusals: int, failure_probability: SupportsFloat
) -> tuple[float, float]:
    """Theorem 5.1: (blocks for its generalisation step, blocks for its sparse vector). The larger is needed.

    A yes means that the guess is in qi(rank - margin, 1 - rank + margin). A no means that it is outside qi(rank, 1 -
    rank). epsilon = ln(1 + margin/(8 rank))/2, delta = margin beta/384, m_1 = 96 ln(16k/beta)/(epsilon margin). Source:
    Feldman, Steinke 2017, Theorem 5.1.

    >>> [round(m, 1) for m in verification_blocks(rank=0.2, margin=0.1, queries=1000, refusals=10,
    ...                                           failure_probability=0.05)]
    [401455.1, 3393042.1]
    """
    rank, margin = number("rank", rank, above=0.0, below=0.5), number("margin", margin, above=0.0)
    if margin >= rank:
        raise ArgumentError("margin must be below rank")
    beta, k = _failure(failure_probability), _queries(queries)
    epsilon, delta = 0.5 * math.log1p(margin / (8.0 * rank)), margin * beta / 384.0
    first = 96.0 / (epsilon * margin) * math.log(16.0 * k / beta)
    second = sparse_vector_blocks(
        queries=2 * k,
        refusals=refusals,
        epsilon=epsilon,
        delta=delta,
        accuracy=margin / 3.0,
        failure_probability=beta / 2.0,
    )
    return first, second
