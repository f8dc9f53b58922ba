"""How many rows a private threshold needs: from public parameters, with the union bound and its constants.

Write X for the domain, xi for the error on the distribution, b for the failure probability. All sizes are rounded up.

Realisable, by errors. Some cut makes no error and has weight 1; the at most |X| others with a or more errors weigh at
most exp(-rate a) each, so the drawn cut makes fewer than a = ceil(log(|X|/b')/rate) errors except with probability
b' (McSherry, Talwar 2007, Theorem 6). A cut above the true one with error more than xi misclassifies a fixed interval of
mass more than xi (the shortest one of that kind that starts at the true cut), and fewer than a of N rows lie in it with
probability at most P(Bin(N, xi) < a); the same below. Hence P(error > xi) <= b' + 2 P(Bin(N, xi) < a), and b' = b/3.

Realisable, by an interior point. With m points on each side the best score is at least m and the at most |X| cuts that
are no interior points score 0: m = ceil(log(|X|/b')/rate). An interior point misclassifies fewer than m rows on either
side; the rest is as before with m in the place of a.

Any labels, by errors. err(c) is P(y = 0, x < c) + P(y = 1, x >= c). Both terms are distribution functions (of x where
the label is that one, and of infinity elsewhere), and each deviates upwards by more than t with probability at most
exp(-2 N t^2) (Massart 1990, one-sided); at the best cut, which is fixed, so does the sum. With b/4 for each of these
three and for the mechanism, err exceeds the least one by at most a/N + 3 t, t = sqrt(log(4/b)/(2N)).

With the direction learnt as well there are 2|X| + 1 other rules, four intervals instead of two, and the deviations
downwards count too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import SupportsFloat, SupportsIndex

from scipy.special import betainc

from dpselect.errors import ArgumentError, integer, number
from dpselect.privacy import Adjacency

__all__ = ["binomial_below", "interior_point_rows", "smallest_count", "threshold_rows"]

_UP = 1.0 + 2.0**-40


def binomial_below(count: int, probability: float, limit: int) -> float:
    """P(Bin(count, probability) < limit), rounded up.

    >>> round(binomial_below(10, 0.5, 3), 6)
    0.054688
    """
    if limit <= 0:
        return 0.0
    if limit > count:
        return 1.0
    return min(1.0, float(betainc(count - limit + 1.0, limit, 1.0 - probability)) * (1.0 + 1e-9))


def smallest_count(enough: Callable[[int], bool], start: int = 1) -> int:
    """The least count from `start` on that is enough, for a condition that stays true once it is."""
    high = max(start, 1)
    while not enough(high):
        high *= 2
    low = start - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def score_margin(candidates: int, rate: float, failure_probability: float) -> int:
    """ceil(log(candidates/failure_probability)/rate): the score that bad candidates fall behind, and still lose."""
    return max(1, math.ceil((math.log(candidates) - math.log(failure_probability)) / rate * _UP))


def interior_point_rows(domain_size: int, rate: float, failure_probability: SupportsFloat) -> int:
    """The m of the module's text for one third of the failure probability: the rows on each side of the cut."""
    return score_margin(domain_size, rate, number("failure_probability", failure_probability, above=0, below=1) / 3.0)


def threshold_rows(
    *,
    domain_size: SupportsIndex,
    error: SupportsFloat,
    epsilon: SupportsFloat,
    failure_probability: SupportsFloat = 0.05,
    method: str = "errors",
    realisable: bool = True,
    either_side: bool = False,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
) -> int:
    """Rows from which `learn_threshold` has error at most `error` except with `failure_probability`, proved above.

    `realisable`: some threshold makes no error at all; otherwise `error` is the excess over the best threshold (by
    errors only). Depends on public parameters only.

    >>> threshold_rows(domain_size=2**32, error=0.1, epsilon=1.0)
    386
    >>> threshold_rows(domain_size=2**32, error=0.1, epsilon=1.0, method="interior-point")
    688
    """
    from dpselect.ordered.thresholds import threshold_rate  # which needs `interior_point_rows`

    size = integer("domain_size", domain_size, at_least=1)
    xi = number("error", error, above=0.0, below=1.0)
    failure = number("failure_probability", failure_probability, above=0.0, below=1.0)
    parsed = number("epsilon", epsilon, above=0.0)
    rate = float(threshold_rate(epsilon=Fraction(parsed), method=method, adjacency=adjacency))  # type: ignore[arg-type]
    if method != "errors" and (either_side or not realisable):
        raise ArgumentError("method: only 'errors' learns the direction or has a bound when labels may be wrong")
    rules = 2 * size + 1 if either_side else size
    if realisable:
        regions = 4 if either_side else 2
        part = failure / (regions + 1)
        margin = score_margin(rules, rate, part)
        return smallest_count(lambda rows: binomial_below(rows, xi, margin) <= part, margin)
    part = failure / (6 if either_side else 4)
    margin = score_margin(rules, rate, part)
    deviation = -math.log(part) / 2.0
    return smallest_count(lambda rows: margin / rows + 3.0 * math.sqrt(deviation / rows) * _UP <= xi, margin)
