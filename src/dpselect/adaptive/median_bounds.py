"""How many blocks a private approximate median needs (Feldman, Steinke 2017, Section 3), and the exact failures.

An answer v is an approximate median of accuracy `accuracy` when more than (1 - accuracy)/2 of the block values are at
most v and as many at least v. All logarithms are natural. Epsilon is per block, replace-one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import SupportsFloat

from dpselect.errors import ArgumentError, integer, number

__all__ = [
    "advanced_composition",
    "exact_exponential_failure",
    "exponential_median_blocks",
    "least_exponential_blocks",
    "search_median_blocks",
    "search_steps",
]


def advanced_composition(epsilons: Iterable[float], slack: SupportsFloat) -> float:
    """(epsilon_j, 0)-private mechanisms compose to (this, slack). With delta they compose to (this, slack + k delta).

    Source: Feldman, Steinke 2017, Theorem 2.4.

    >>> round(advanced_composition([0.01] * 100, 1e-6), 7)
    0.5306522
    """
    slack = number("slack", slack, above=0.0, below=1.0)
    squares = math.fsum(e * e for e in epsilons)
    return 0.5 * squares + math.sqrt(2.0 * -math.log(slack) * squares)


def _parameters(grid_size: int, failure: SupportsFloat, epsilon: SupportsFloat, accuracy: SupportsFloat) -> tuple[
    int, float, float, float
]:  # fmt: skip
    return (
        integer("grid_size", grid_size, at_least=1, at_most=1 << 1000),
        number("failure_probability", failure, above=0.0, below=1.0),
        number("epsilon", epsilon, above=0.0),
        number("accuracy", accuracy, above=0.0, at_most=1.0),
    )


def exponential_median_blocks(
    *, grid_size: int, failure_probability: SupportsFloat, epsilon: SupportsFloat, accuracy: SupportsFloat
) -> float:
    """4 ln(|T|/beta) / (epsilon accuracy) blocks are enough for the exponential mechanism.

    Source: Feldman, Steinke 2017, Theorem 3.1.

    >>> round(exponential_median_blocks(grid_size=1001, failure_probability=0.05, epsilon=0.1, accuracy=0.25), 4)
    1584.7179
    """
    size, beta, epsilon, accuracy = _parameters(grid_size, failure_probability, epsilon, accuracy)
    return 4.0 * (math.log(size) - math.log(beta)) / (epsilon * accuracy)


def exact_exponential_failure(*, grid_size: int, blocks: int, epsilon: SupportsFloat, accuracy: SupportsFloat) -> float:
    """The largest probability over all data that the exponential mechanism's answer is no approximate median.

    x/(1 + x), x the larger of (N-2)/(exp(e/2 (C - floor(m/2))) + exp(e/2 (C - ceil(m/2)))) and (N-1) exp(-e/2 (2C-m)),
    C = ceil((1 + accuracy) m/2). The first is two neighbouring good answers as even as can be with everything else at
    badness C. The second is one good answer of badness m - C. Found by enumeration on small grids, which the tests
    repeat. No data does worse in those. One minus it is reported as 0 when C > m: nothing is bad then.

    >>> round(exact_exponential_failure(grid_size=6, blocks=8, epsilon=1, accuracy=0.5), 7)
    0.4238831
    """
    size = integer("grid_size", grid_size, at_least=1, at_most=1 << 1000)
    m = integer("blocks", blocks, at_least=1)
    epsilon = number("epsilon", epsilon, at_least=0.0)
    bad = math.ceil(round((1.0 + number("accuracy", accuracy, above=0.0, at_most=1.0)) * m / 2.0, 9))
    if bad > m or size < 2:
        return 0.0
    near, far = epsilon / 2.0 * (bad - math.ceil(m / 2)), epsilon / 2.0 * (bad - m // 2)
    log_odds = math.log(size - 1) - epsilon / 2.0 * (2 * bad - m)
    if size > 2:
        log_odds = max(math.log(size - 2) - (far + math.log1p(math.exp(near - far))), log_odds)
    return 1.0 / (1.0 + math.exp(-log_odds)) if log_odds > -700.0 else 0.0


def least_exponential_blocks(
    *, grid_size: int, failure_probability: SupportsFloat, epsilon: SupportsFloat, accuracy: SupportsFloat
) -> int:
    """The least number of blocks whose exact worst failure is at most `failure_probability`.

    A few larger numbers may fail again, since a failure is an integer of blocks: check the number that you use.

    >>> least_exponential_blocks(grid_size=1001, failure_probability=0.05, epsilon=0.1, accuracy=0.25)
    1461
    """
    size, beta, epsilon, accuracy = _parameters(grid_size, failure_probability, epsilon, accuracy)
    low = 0.25 * exponential_median_blocks(
        grid_size=size, failure_probability=beta, epsilon=epsilon, accuracy=accuracy
    )  # the exact need is above half of the theorem's

    def enough(m: int) -> bool:
        return exact_exponential_failure(grid_size=size, blocks=m, epsilon=epsilon, accuracy=accuracy) <= beta

    # in strides of one tooth of the rounding, then block by block through the last three teeth
    tooth = math.ceil(2.0 / accuracy) + 2
    m = max(1, int(low))
    while not any(enough(tried) for tried in (m, m + 1, m + 2)):
        m += tooth
    return next(tried for tried in range(max(1, m - 3 * tooth), m + 3) if enough(tried))


def search_steps(grid_size: int) -> int:
    """Probes of a binary search over the grid: ceil(log2 |T|)."""
    return (integer("grid_size", grid_size, at_least=1, at_most=1 << 1000) - 1).bit_length()


def search_median_blocks(
    *,
    grid_size: int,
    failure_probability: SupportsFloat,
    epsilon: SupportsFloat,
    delta: SupportsFloat,
    accuracy: SupportsFloat,
    one_sided: bool = True,
) -> float:
    """Blocks for an (epsilon, delta)-private median by binary search with Gaussian counts.

    Corollary 3.3 (`one_sided=False`): 12 sqrt(J ln(1/delta) ln(J/beta)) / (epsilon accuracy), J = 2 ceil(log2 |T|).
    Asking one count a step instead of two needs half the accuracy: 6 for 12 and half of J. Epsilon, delta, accuracy
    and failure below 1/2 (`ArgumentError`). Source: Feldman, Steinke 2017, Corollary 3.3.

    >>> round(search_median_blocks(grid_size=1001, failure_probability=0.05, epsilon=0.1, delta=1e-6, accuracy=0.25), 3)
    6493.273
    """
    size, beta, epsilon, accuracy = _parameters(grid_size, failure_probability, epsilon, accuracy)
    delta = number("delta", delta, above=0.0)
    if max(beta, epsilon, accuracy, delta) >= 0.5:
        raise ArgumentError("failure_probability, epsilon, delta and accuracy must be below 1/2")
    steps = max(search_steps(size), 1) * (1 if one_sided else 2)
    factor = 6.0 if one_sided else 12.0
    return factor * math.sqrt(steps * -math.log(delta) * math.log(steps / beta)) / (epsilon * accuracy)
