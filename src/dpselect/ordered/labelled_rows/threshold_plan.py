"""What a private threshold costs and how many rows it needs, from public parameters.

Write X for the domain, xi for the error on the distribution, b for the failure probability. All sizes are rounded up.

Realisable, by errors. Some cut makes no error and has weight 1; the at most |X| others with a or more errors weigh at
most exp(-rate a) each, so the drawn cut makes fewer than a = ceil(log(|X|/b')/rate) errors except with probability
b' (McSherry, Talwar 2007, Theorem 6). A cut above the true one with error more than xi misclassifies a fixed interval
of mass more than xi (the shortest one of that kind that starts at the true cut), and fewer than a of N rows lie in it
with probability at most P(Bin(N, xi) < a); the same below. Hence P(error > xi) <= b' + 2 P(Bin(N, xi) < a); b' = b/3.

Realisable, by an interior point. The mechanism needs 2m points to succeed except with probability b' (`rows_per_side`;
for the exponential one the best score is at least m and the at most |X| cuts that are no interior points score 0, so m
= ceil(log(|X|/b')/rate)). An interior point misclassifies fewer than m rows on either side; the rest is as before with
m in the place of a.

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
from dataclasses import replace
from fractions import Fraction
from typing import Literal, SupportsFloat, SupportsIndex, TypedDict, Unpack, get_args

from scipy.special import betainc

from dpselect.errors import ArgumentError, integer, number
from dpselect.mechanisms import bounded_range
from dpselect.numerics import first_true
from dpselect.ordered.interior_points.interior_point import choose_method, interior_point_guarantee
from dpselect.ordered.interior_points.rows import Method, interior_point_rows
from dpselect.ordered.order_statistics.one import parse_epsilon
from dpselect.ordered.public_domain import PublicDomain, size_of_domain
from dpselect.ordered.slices.price import swap_of
from dpselect.privacy import Adjacency, Guarantee
from dpselect.privacy.adjacency import parse_adjacency

__all__ = [
    "Interior",
    "ThresholdMethod",
    "binomial_below",
    "interior_search",
    "rows_per_side",
    "score_margin",
    "smallest_count",
    "swap_budget",
    "threshold_guarantee",
    "threshold_rate",
    "threshold_rows",
]

ThresholdMethod = Literal["errors", "interior-point"]
Interior = Method | Literal["auto"]

_UP = 1.0 + 2.0**-40


def threshold_rate(
    *,
    epsilon: Fraction,
    method: ThresholdMethod = "errors",
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
) -> Fraction:
    """The largest rate at which the exponential mechanism of `learn_threshold` has range epsilon.

    "errors": a row that is added adds 0 or 1 to the errors of every cut, so log-weights span at most rate: epsilon.
    A replaced row moves them by at most 1 either way: epsilon/2.

    "interior-point": the score is min(#{p <= c}, #{p >= c}) over the 2m points p. A positive row that is added moves
    one of the m largest up, a negative one moves one of the m smallest down; either way one point is swapped and every
    score moves by at most 1, some up and some down: epsilon/2. A replaced row may swap two points, one in each half
    and both in the same direction (a positive that becomes a negative), so scores move by at most 2: epsilon/4.

    >>> threshold_rate(epsilon=Fraction(1), method="interior-point", adjacency="replace_one")
    Fraction(1, 4)
    """
    replaced = parse_adjacency(adjacency) is Adjacency.REPLACE_ONE
    if method not in get_args(ThresholdMethod):
        raise ArgumentError(f"method must be one of {get_args(ThresholdMethod)}, got {method!r}")
    return epsilon / ((1 if method == "errors" else 2) * (2 if replaced else 1))


def threshold_guarantee(
    *,
    epsilon: SupportsFloat,
    delta: SupportsFloat = 0.0,
    method: ThresholdMethod = "errors",
    interior: Interior = "exponential",
    failure_probability: SupportsFloat = 0.05,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    **domain: Unpack[PublicDomain],
) -> Guarantee:
    """What `learn_threshold` with the same arguments promises, at most (epsilon, delta).

    An exponential mechanism has range epsilon, and so pure epsilon. Other interior points (which need the domain) are
    private for a swap of one point, which is an added or removed row; a replaced row is two such steps.

    >>> threshold_guarantee(epsilon=0.5).epsilon(delta=0)
    0.5
    """
    adjacency = parse_adjacency(adjacency)
    threshold_rate(epsilon=Fraction(1), method=method)  # refuses an unknown method
    if method == "errors" and interior != "exponential":
        raise ArgumentError("interior is for the interior-point method")
    if interior == "exponential":
        claimed = bounded_range(epsilon=parse_epsilon(epsilon), adjacency=adjacency)
    else:
        step = interior_point_guarantee(
            **interior_search(
                domain_size=size_of_domain(**domain),
                epsilon=epsilon,
                delta=delta,
                interior=interior,
                failure_probability=failure_probability,
                adjacency=adjacency,
            )
        )
        claimed = replace(step, adjacency=Adjacency.ADD_OR_REMOVE_ONE)
        if adjacency is Adjacency.REPLACE_ONE:
            claimed = swap_of(claimed)
    terms = {
        "mechanism": "threshold",
        "method": method,
        "epsilon": float(epsilon),
        "delta": number("delta", delta, at_least=0.0, below=1.0),
    }
    if method == "interior-point":
        terms["interior"] = interior
    # another mechanism than those whose worst case is known exactly
    return replace(claimed, terms=terms, lower_profile=None)


def swap_budget(epsilon: SupportsFloat, delta: SupportsFloat, adjacency: Adjacency | str) -> tuple[float, float]:
    """(epsilon, delta) for a swap of one of the points: a replaced row is two steps, (2e, (1 + exp(e)) d) from (e, d).

    Rounded down.
    """
    whole, failure = parse_epsilon(epsilon), number("delta", delta, at_least=0.0, below=1.0)
    if parse_adjacency(adjacency) is Adjacency.ADD_OR_REMOVE_ONE:
        return whole, failure
    return whole / 2.0, failure / (1.0 + math.exp(whole / 2.0)) * (1.0 - 1e-11)


def rows_per_side(
    *,
    domain_size: SupportsIndex,
    epsilon: SupportsFloat,
    delta: SupportsFloat = 0.0,
    interior: Interior = "exponential",
    failure_probability: SupportsFloat = 0.05,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
) -> int:
    """The m of the module's text: half the points that the interior point needs for a third of the failure.

    >>> rows_per_side(domain_size=2**32, epsilon=1.0)
    53
    """
    search = interior_search(
        domain_size=domain_size,
        epsilon=epsilon,
        delta=delta,
        interior=interior,
        failure_probability=failure_probability,
        adjacency=adjacency,
    )
    points = interior_point_rows(**search)
    if points is None:
        raise ArgumentError(f"delta must be above 0 and small beside failure_probability for {interior!r}")
    return -(-points // 2)


class InteriorSearch(TypedDict):
    """The arguments of `interior_point` and of what plans and prices it, for one swapped point."""

    method: Method
    domain_size: int
    epsilon: float
    delta: float
    failure_probability: float
    adjacency: Adjacency


def interior_search(
    *,
    domain_size: SupportsIndex,
    epsilon: SupportsFloat,
    delta: SupportsFloat,
    interior: Interior,
    failure_probability: SupportsFloat,
    adjacency: Adjacency | str,
) -> InteriorSearch:
    """An interior point of the cuts; "auto" is settled here, so that the price and the draw cannot part."""
    size = integer("domain_size", domain_size, at_least=1) + 1
    failure = number("failure_probability", failure_probability, above=0.0, below=1.0) / 3.0
    step_epsilon, step_delta = swap_budget(epsilon, delta, adjacency)
    method = interior
    if method == "auto":
        method = choose_method(
            domain_size=size,
            epsilon=step_epsilon,
            delta=step_delta,
            expected_rows=0,
            failure_probability=failure,
            adjacency=Adjacency.REPLACE_ONE,
        )
    return InteriorSearch(
        method=method,
        domain_size=size,
        epsilon=step_epsilon,
        delta=step_delta,
        failure_probability=failure,
        adjacency=Adjacency.REPLACE_ONE,
    )


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
    return first_true(enough, max(start, 0), None, start=max(start, 1), step=max(start, 1))


def score_margin(candidates: int, rate: float, failure_probability: float) -> int:
    """ceil(log(candidates/failure_probability)/rate): the score that bad candidates fall behind, and still lose."""
    return max(1, math.ceil((math.log(candidates) - math.log(failure_probability)) / rate * _UP))


def threshold_rows(
    *,
    error: SupportsFloat,
    epsilon: SupportsFloat,
    failure_probability: SupportsFloat = 0.05,
    delta: SupportsFloat = 0.0,
    method: ThresholdMethod = "errors",
    interior: Interior = "exponential",
    realisable: bool = True,
    either_side: bool = False,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    **domain: Unpack[PublicDomain],
) -> int:
    """Rows from which `learn_threshold` has error at most `error` except with `failure_probability`, proved above.

    `realisable`: some threshold makes no error at all; otherwise `error` is the excess over the best threshold (by
    errors only). Depends on public parameters only.

    >>> threshold_rows(domain_size=2**32, error=0.1, epsilon=1.0)
    386
    >>> threshold_rows(domain_size=2**32, error=0.1, epsilon=1.0, method="interior-point")
    688
    """
    size = size_of_domain(**domain)
    xi = number("error", error, at_least=1e-12, below=1.0)
    failure = number("failure_probability", failure_probability, above=0.0, below=1.0)
    parsed = number("epsilon", epsilon, at_least=1e-12)
    rate = float(threshold_rate(epsilon=Fraction(parsed), method=method, adjacency=adjacency))
    if method != "errors" and (either_side or not realisable):
        raise ArgumentError("method: only 'errors' learns the direction or has a bound when labels may be wrong")
    rules = 2 * size + 1 if either_side else size
    if realisable:
        regions = 4 if either_side else 2
        part = failure / (regions + 1)
        margin = (
            score_margin(rules, rate, part)
            if method == "errors"
            else rows_per_side(
                domain_size=size,
                epsilon=epsilon,
                delta=delta,
                interior=interior,
                failure_probability=failure,
                adjacency=adjacency,
            )
        )
        return smallest_count(lambda rows: binomial_below(rows, xi, margin) <= part, margin)
    part = failure / (6 if either_side else 4)
    margin = score_margin(rules, rate, part)
    deviation = -math.log(part) / 2.0
    return smallest_count(lambda rows: margin / rows + 3.0 * math.sqrt(deviation / rows) * _UP <= xi, margin)
