"""The price of a private rectangle and how many rows it needs, from public parameters.

With d axes there are 2d slices of m (and a few secret) positive rows. Each has one interior point, found by the
exponential mechanism with rate r. It has range r when a row is added to the slice, 2r when one is replaced. A noisy
count of the positive rows comes first. Two ways of slicing are priced, and the one that consumes fewer rows is taken.
One has sizes with noise (Reorder-Slice-Compute, Cohen et al. 2022, Theorem 2.1). The other has plain sizes, each slice
charged a replaced row.

Sample size. Write X for the largest domain of an axis, b for the failure probability. All this holds at once except
with probability b. Each line ends with its share of b:

- every interior point succeeds on m rows: each fails with probability at most |X| exp(-r m/2). Share: b/2 in all.
- the slices have at most M rows together: 2d m and a sum of 2d geometric numbers. Share: b/8.
- the noise of the count is between -c and c. The count is compared with M + c, so the slices are full. Share: b/8.
- a sample of N rows holds M + 2c of any fixed set of mass above xi, so that the count is passed. Share: b/8.
- the rectangle has error at most xi. It is inside the true one and what is missing are 2d strips. If their mass is
  above xi, one is above xi/(2d), and contains a fixed strip just above that (the narrowest). All sampled rows of that
  strip went into slices: fewer than M. Probability at most 2d P(Bin(N, xi/(2d)) < M). Or: the error on the sample is
  below M/N. If that is at most xi/2, the error is above xi with probability at most 4 (e N/d)^(2d) exp(-xi N/16). These
  are Vapnik's relative deviations for VC dimension 2d (Anthony, Shawe-Taylor 1993). The smaller N is taken. Share: b/8.

If the positive rows have mass below xi, then whether or not the count is passed the error is below xi: there are no
false positives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, SupportsFloat

from dpselect.errors import ArgumentError, number
from dpselect.mechanisms import NoisyCount, bounded_range
from dpselect.ordered.labelled_rows.threshold_plan import binomial_below, score_margin, smallest_count
from dpselect.ordered.slices.price import SlicePrice, plain_slicing_guarantee
from dpselect.privacy import Adjacency, Guarantee, compose
from dpselect.privacy.promises import hold_promises

__all__ = ["MOST_NOISY", "RectanglePlan", "Slicing", "plan_rectangle"]

Slicing = Literal["auto", "noisy", "plain"]

_COUNT_SHARE = 1.0 / 16.0
_NOISE_SHARE = 1.0 / 3.0
"""slice_epsilon over the rate. A smaller one buys privacy for rows; what is consumed changes little around this."""

MOST_NOISY = 10.0
"""Pricing noisy slices takes very long for larger epsilons, where few rows are enough anyway."""


@dataclass(frozen=True)
class RectanglePlan:
    """Public parameters of a `RectangleLearner`.

    Attributes:
        rate: of the exponential mechanisms.
        slice_epsilon: the noise of the slice sizes; None for plain slices.
        slice_size: m.
        consumed: M, an upper bound on the rows of all slices together.
        count_epsilon: the price of the noisy count.
        least_count: the noisy count that must be reached.
        guarantee: of everything.
    """

    dimensions: int
    domain_size: int
    failure_probability: float
    rate: float
    slice_epsilon: float | None
    slice_size: int
    consumed: int
    count_epsilon: float
    least_count: int
    guarantee: Guarantee

    def __post_init__(self) -> None:
        hold_promises(self, "guarantee")

    @property
    def insertion(self) -> Guarantee:
        """One interior point, when a row is added to its slice."""
        return bounded_range(epsilon=self.rate)

    @property
    def swap(self) -> Guarantee:
        """One interior point, when a row of its slice is replaced."""
        return _swap(self.rate)

    def rows(self, *, error: SupportsFloat) -> int:
        """Rows from which the rectangle has error at most `error` except with the plan's failure probability.

        For labels that some rectangle of the domain explains. The module's text derives it.
        """
        xi = number("error", error, at_least=1e-12, below=1.0)
        d, part = self.dimensions, self.failure_probability / 8.0
        most = self.consumed
        enough_positives = self.least_count + (self.least_count - most)
        counted = smallest_count(lambda rows: binomial_below(rows, xi, enough_positives) <= part, enough_positives)
        strips = smallest_count(lambda rows: 2 * d * binomial_below(rows, xi / (2 * d), most) <= part, most)

        def deviates(rows: int) -> bool:
            log_chance = math.log(4.0) + 2 * d * (1.0 + math.log(max(rows / d, 1.0))) - xi * rows / 16.0
            return log_chance <= math.log(part)

        start = max(math.ceil(2 * most / xi), math.ceil(32 * d / xi))  # from here on the bound falls with the rows
        return max(counted, min(strips, smallest_count(deviates, start)))


def _swap(rate: float) -> Guarantee:
    return bounded_range(epsilon=2.0 * rate, adjacency=Adjacency.REPLACE_ONE)


@lru_cache(maxsize=64)
def plan_rectangle(
    dimensions: int, domain_size: int, epsilon: float, delta: float, failure: float, noisy: bool, adjacency: Adjacency
) -> RectanglePlan:
    """The largest rate that (epsilon, delta) pays for, and what follows from it."""
    slices = 2 * dimensions
    count_epsilon = epsilon * _COUNT_SHARE
    count = NoisyCount(epsilon=count_epsilon, adjacency=adjacency).guarantee

    def price(rate: float) -> Guarantee:
        if not noisy:
            return compose(count, plain_slicing_guarantee(swap=_swap(rate), slices=slices, adjacency=adjacency))
        parts: dict[str, Any] = {"insertion": bounded_range(epsilon=rate), "swap": _swap(rate)}
        cut = SlicePrice(slice_epsilon=_slice_epsilon(rate), **parts, slices=slices)
        return compose(count, cut.guarantee(adjacency=adjacency))

    # by basic composition, 2d slices at twice the rate beside the count; the noisy price is never above the plain one
    start = epsilon * (1.0 - _COUNT_SHARE) / (2.0 * slices) * (1.0 - 1e-9)
    if noisy:
        start = plan_rectangle(dimensions, domain_size, epsilon, delta, failure, False, adjacency).rate
    rate = _largest_rate(price, epsilon, delta, start)
    size = 2 * score_margin(domain_size, rate, failure / (2.0 * slices))
    extra, part = 0, failure / 8.0
    slice_epsilon = _slice_epsilon(rate) if noisy else None
    if slice_epsilon is not None:
        success = -math.expm1(-slice_epsilon)
        # P(sum of the slices' noise > extra): fewer than `slices` successes in extra + slices trials
        extra = smallest_count(lambda rows: binomial_below(rows + slices, success, slices) <= part)
    margin = math.ceil(math.log(2.0 / part) / count_epsilon)
    return RectanglePlan(
        dimensions=dimensions,
        domain_size=domain_size,
        failure_probability=failure,
        rate=rate,
        slice_epsilon=slice_epsilon,
        slice_size=size,
        consumed=slices * size + extra,
        count_epsilon=count_epsilon,
        least_count=slices * size + extra + margin,
        guarantee=replace(
            price(rate),
            lower_profile=None,
            terms={
                "mechanism": "rectangle",
                "dimensions": dimensions,
                "rate": rate,
                "slice_epsilon": slice_epsilon,
                "count_epsilon": count_epsilon,
            },
        ),
    )


def _slice_epsilon(rate: float) -> float:
    return min(max(rate * _NOISE_SHARE, 1e-5), 2.0)


def _largest_rate(price: Callable[[float], Guarantee], epsilon: float, delta: float, start: float) -> float:
    """The largest rate whose price is at most epsilon, to 0.5 %. `start` is one. The rate returned was priced.

    By secants: the price grows about like a power of the rate.
    """

    def paid_for(rate: float) -> float:
        # a price may be zero at a delta that is large beside epsilon
        return max(price(rate).epsilon(delta), 1e-3 * epsilon)

    if not delta and price(start).pure_epsilon <= epsilon:
        return start
    low, paid = start, paid_for(start)
    if paid > epsilon:
        raise ArgumentError("epsilon and delta pay for no rate")
    high, power, tries = math.inf, 1.0, 0
    while paid < 0.995 * epsilon and high > low * 1.002:
        tries += 1
        guess = low * (0.998 * epsilon / paid) ** (1.0 / power)
        # searches: a root by secant steps; each price is expensive
        tried = guess if low < guess < high and (tries < 8 or math.isinf(high)) else math.sqrt(low * high)
        asked = paid_for(tried)
        power = max(math.log(asked / paid) / math.log(tried / low), 0.2)
        if asked <= epsilon:
            low, paid = tried, asked
        else:
            high = tried
    return low
