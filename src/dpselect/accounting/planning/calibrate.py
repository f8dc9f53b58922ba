"""The least noise that meets a total."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from inspect import isfunction, signature
from typing import Protocol, SupportsFloat

import numpy as np

from dpselect.caching import memoized
from dpselect.errors import ArgumentError, BudgetError, number
from dpselect.numerics.digits import rounded_up
from dpselect.privacy import Guarantee
from dpselect.privacy.profile import RenyiProfile, approximate_delta_at
from dpselect.privacy.promises import promise, refusal
from dpselect.privacy.renyi import RenyiCurve, epsilon_from_renyi

__all__ = ["GuaranteePrice", "ParameterPrice", "ParameterSearch", "calibrate", "least_parameter", "steady"]

_SMALLEST, _LARGEST = 1e-6, 1e9
_MOST_STEPS = 200
_STEADY = -1.3
"""About the power of the noise with which `steady` goes: -1.25 for Gaussians, to -1.5 for DP-SGD."""
_CLOSE = 3.0
"""A price that is below the target by less than so many times the accuracy is that of the least parameter: prices go
about as the power -1 to -2 of the noise."""
_FARTHEST = 8.0
"""The factor of a step, at most: what is priced has limits for its parameter, which a larger step would pass."""


def calibrate(
    make: Callable[[float], Guarantee],
    *,
    epsilon: SupportsFloat,
    delta: SupportsFloat,
    low: SupportsFloat | None = None,
    high: SupportsFloat | None = None,
    relative: SupportsFloat = 1e-4,
) -> float:
    """Return a noise parameter close above the smallest one whose guarantee is (epsilon, delta)-private.

    The result is the safe endpoint: it was seen to satisfy `make(parameter).epsilon(delta) <= epsilon`. Some parameter
    within the factor 1 - `relative` of it was seen not to, by its epsilon or by an approximation of its delta. A Renyi
    curve is searched first if there is one: it is cheap, and an upper bound on the answer.

    Args:
        make: a function from a noise parameter (a noise multiplier, a Laplace scale) to a `Guarantee`. You must ensure
            that its epsilon at `delta` falls as the parameter grows, and that it uses no data.
        epsilon: the target, above 0.
        delta: the target, in [0, 1).
        low: the smallest parameter to search, above 0. None, the default, takes 1e-6. `low` is returned if it meets the
            target already.
        high: the largest parameter to search, above `low`. None, the default, takes 1e9.
        relative: the relative accuracy, in (0, 1), 1e-4 unless given.

    Returns:
        The parameter, in the unit of `make`.

    Raises:
        BudgetError: if even `high` does not meet the target, for example because delta is below a failure mass.
        ArgumentError: if a number is out of range, or `make` is not a function or does not return a `Guarantee`
            (`PromiseError`).
        TypeError: if an argument that must be a number is not.

    >>> from dpselect.privacy import gaussian
    >>> noise = calibrate(lambda s: gaussian(noise_multiplier=s), epsilon=1.0, delta=1e-6)
    >>> round(noise, 2), gaussian(noise_multiplier=noise).epsilon(delta=1e-6) <= 1.0
    (4.22, True)
    """
    if not callable(make):
        raise refusal("make", make, "a function from noise to a Guarantee")
    if (named := _only_by_name(make)) is not None:
        raise ArgumentError(f"make takes the noise without a name. Write lambda noise: {named}")
    epsilon = number("epsilon", epsilon, above=0.0, rounding="down")
    delta = number("delta", delta, at_least=0.0, below=1.0, rounding="down")
    relative = number("relative", relative, above=0.0, below=1.0)
    lowest = number("low", low, above=0.0) if low is not None else _SMALLEST
    highest = number("high", high, above=lowest) if high is not None else _LARGEST

    def price(parameter: float) -> GuaranteePrice:
        return GuaranteePrice(promise("what make returns", make(parameter)))

    return least_parameter(price, epsilon=epsilon, delta=delta, relative=relative, low=lowest, high=highest)


def _only_by_name(make: Callable[[float], Guarantee]) -> str | None:
    """The call to write for a function of this library that takes its noise by name alone, or None."""
    if not isfunction(make):
        return None
    needed = [each for each in signature(make).parameters.values() if each.default is each.empty]
    if len(needed) != 1 or needed[0].kind is not needed[0].KEYWORD_ONLY:
        return None
    return f"{make.__name__}({needed[0].name}=noise)"


class ParameterPrice(Protocol):
    """The cost of a parameter."""

    @property
    def has_profile(self) -> bool:
        """Whether there is more than a Renyi curve or a pure epsilon."""

    def epsilon(self, delta: float) -> float:
        """The price at `delta`."""

    def by_renyi(self, delta: float) -> float:
        """Near it, as the start of a search for a parameter. Quick if there is a Renyi curve."""

    def approximate_delta(self, epsilon: float) -> float | None:
        """Near the delta at `epsilon`, in a fraction of the time of `epsilon`, or None if nothing is known."""


@dataclass(frozen=True)
class GuaranteePrice:
    """A guarantee as a price."""

    guarantee: Guarantee

    @property
    def has_profile(self) -> bool:
        """Whether the guarantee has a privacy profile."""
        return self.guarantee.profile is not None

    def epsilon(self, delta: float) -> float:
        """The guarantee's."""
        return self.guarantee.epsilon(delta)

    def by_renyi(self, delta: float) -> float:
        """That of the Renyi curve alone, or of all where there is none."""
        guarantee = self.guarantee
        if guarantee.renyi_curve is None or delta <= guarantee.failure:
            return guarantee.epsilon(delta)
        inside = (delta - guarantee.failure) / (1.0 - guarantee.failure)
        return min(epsilon_from_renyi(guarantee.renyi_curve, inside), guarantee.pure_epsilon)

    def approximate_delta(self, epsilon: float) -> float | None:
        """By the profile, if that knows it quickly, and by the Renyi curve."""
        guarantee = self.guarantee
        found = None if guarantee.profile is None else approximate_delta_at(guarantee.profile, epsilon)
        if found is None or guarantee.renyi_curve is None:
            return found
        return min(found, _delta_by_renyi(guarantee.renyi_curve, guarantee.failure, epsilon))


@memoized
def _delta_by_renyi(curve: RenyiCurve, failure: float, epsilon: float) -> float:
    return float(RenyiProfile(curve, failure).remove(np.array([epsilon]))[0])


def least_parameter(
    price: Callable[[float], ParameterPrice],
    *,
    epsilon: float,
    delta: float,
    relative: float,
    low: float = _SMALLEST,
    high: float = _LARGEST,
    unspent: float = 0.0,
) -> float:
    """`calibrate` for prices.

    A parameter whose price leaves at most the share `unspent` of epsilon is taken as it is, without looking whether a
    smaller one would do.
    """

    price = cache(price)

    @cache
    def full(parameter: float) -> float:
        return price(parameter).epsilon(delta)

    def near(parameter: float) -> float:
        return price(parameter).by_renyi(delta)

    def nearer(parameter: float) -> float:
        found = price(parameter).approximate_delta(epsilon)
        return steady(1.0 if found is None else found)

    start, exponent, below = min(max(1.0, low), high), None, 0.0
    search = ParameterSearch(epsilon, low, high, relative, unspent)
    if price(start).has_profile:
        try:
            start = replace(search, relative=max(relative, 1e-2)).least(near, start)
            exponent = _exponent((start, near(start)), (1.02 * start, near(1.02 * start)))
            if delta > 0.0 and price(start).approximate_delta(epsilon) is not None:
                below, start = ParameterSearch(steady(delta), low, high, 0.5 * relative).bracket(nearer, start, _STEADY)
        except BudgetError:
            start = min(max(start, math.sqrt(low * high)), high)
    # mostly one evaluation shows that the approximation was good
    good = below > 0.0 and epsilon * (1.0 - _CLOSE * relative) <= full(start) <= epsilon
    return start if good else search.least(full, start, exponent)


def steady(delta: float) -> float:
    """A price that falls about as noise rises, in proportion, as delta at a fixed epsilon falls.

    Of a Gaussian mechanism the logarithm of delta falls with the square of the noise.
    """
    return 1.0 / math.sqrt(-math.log(delta)) if 0.0 < delta < 1.0 else math.inf if delta >= 1.0 else 0.0


@dataclass(frozen=True)
class ParameterSearch:
    """The target of a search for a parameter, and its range."""

    target: float
    lowest: float = _SMALLEST
    highest: float = _LARGEST
    relative: float = 1e-4
    unspent: float = 0.0

    def _met(self, price: float) -> bool:
        return self.target * (1.0 - self.unspent) <= price <= self.target

    def least(self, price: Callable[[float], float], start: float, exponent: float | None = None) -> float:
        """The smallest parameter that was seen to meet the target: the second of `bracket`."""
        return self.bracket(price, start, exponent)[1]

    def bracket(
        self, price: Callable[[float], float], start: float, exponent: float | None = None
    ) -> tuple[float, float]:
        """A parameter that was seen not to meet the target, 0 if there is none, and close above it one that was.

        From `start` out, then by secant steps in log-log coordinates, and by bisection if four of them gained little.
        The price goes about as the parameter to the power of `exponent`, if that is known.
        """
        target, lowest, highest, relative = self.target, self.lowest, self.highest, self.relative
        safe = unsafe = start
        safe_price = unsafe_price = price(start)
        if self._met(safe_price):
            return 0.0, safe
        # a price that is close to the target is left in small steps, which then grow
        ratio = safe_price / target
        unknown = 2.0 if exponent is None else 1.02
        factor = unknown if not 0.0 < ratio < math.inf else min(max(abs(ratio - 1.0) + 1.01, 1.02), _FARTHEST)
        if exponent is not None and 0.0 < ratio < math.inf:
            factor = min(max(math.exp(1.03 * abs(math.log(ratio) / exponent)), 1.0 + relative), factor * factor)
        while safe_price > target:
            if safe >= highest:
                cure = "" if safe_price < math.inf else ". If the noise is Gaussian, give a delta above 0"
                raise BudgetError(
                    f"no parameter up to {highest:g} meets epsilon={target:g} at this delta: "
                    f"the smallest epsilon there is {rounded_up(safe_price)}{cure}"
                )
            unsafe, unsafe_price = safe, safe_price
            safe, factor = min(safe * factor, highest), min(factor * factor, _FARTHEST)
            safe_price = price(safe)
        while unsafe_price <= target:
            if unsafe <= lowest:
                return 0.0, unsafe
            safe, safe_price = unsafe, unsafe_price
            unsafe, factor = max(unsafe / factor, lowest), min(factor * factor, _FARTHEST)
            unsafe_price = price(unsafe)
        # the line goes through the last two prices, which are the nearest ones once it is a good guess
        before, last = (unsafe, unsafe_price), (safe, safe_price)
        spans: list[float] = []
        while safe > unsafe * (1.0 + relative) and not self._met(safe_price) and len(spans) < _MOST_STEPS:
            spans.append(math.log(safe / unsafe))
            guess = _crossing(before, last, target * (1.0 - 0.3 * self.unspent))
            if not unsafe < guess < safe or (len(spans) > 4 and spans[-1] > 0.5 * spans[-5]):
                guess = math.sqrt(unsafe) * math.sqrt(safe)  # searches: a root by secant steps; each price is expensive
            share = math.log(guess / unsafe) / spans[-1]
            if not self.unspent:  # past the crossing from the end that is nearer, so that the other end moves as well
                share += (0.4 if share < 0.5 else -0.4) * relative / spans[-1]
            margin = min(0.2 * relative / spans[-1], 0.25)
            trial = unsafe * math.exp(spans[-1] * min(max(share, margin), 1.0 - margin))
            before, last = last, (trial, price(trial))
            if last[1] > target:
                unsafe = trial
            else:
                safe, safe_price = last
        return unsafe, safe


def _exponent(one: tuple[float, float], other: tuple[float, float]) -> float | None:
    """The slope of the line through two points in log-log coordinates, or None if it does not fall."""
    (x, y), (u, v) = one, other
    if not 0.0 < v < y < math.inf:
        return None
    return math.log(v / y) / math.log(u / x)


def _crossing(one: tuple[float, float], other: tuple[float, float], target: float) -> float:
    """The place at which the line through two points meets `target`, in log-log coordinates. 0 if there is none."""
    (x, y), (u, v) = one, other
    if not 0.0 < min(y, v) < max(y, v) < math.inf:
        return 0.0
    exponent = math.log(y / target) / math.log(y / v)
    return x * math.exp(min(max(exponent * math.log(u / x), -700.0), 700.0))
