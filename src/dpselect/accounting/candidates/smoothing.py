"""The smoothing, and the number of draws, of a statistic of counts whose price was asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from scipy.special import betainc, betaincc

from dpselect.accounting.candidates.sampled_percentile import SmoothedCount, SmoothedOdds
from dpselect.errors import ArgumentError, BoundUnavailableError
from dpselect.numerics.search import root_between

__all__ = ["fewest_samples", "with_smoothing"]

Statistic = TypeVar("Statistic", SmoothedOdds, SmoothedCount)

_RELATIVE = 2.0**-8
_LARGEST = 1e15
_ERR = 0.05
_MOST_SAMPLES = 10**9


def with_smoothing(
    make: Callable[[float], Statistic],
    failure: Callable[[Statistic, float], float],
    *,
    delta: float,
    smoothing: float | None,
) -> Statistic:
    """The statistic with the given smoothing, or with the smallest (to some %) that keeps `delta`.

    `failure(statistic, enough)` is what is charged, not followed below `enough`. More smoothing draws statistics
    together, so that it falls. The statistic returned was seen to be charged at most
    `delta`. Raises `ArgumentError` if the given smoothing fails more often, naming one that would do, and
    `BoundUnavailableError` if none would.
    """

    def kept(size: float) -> bool:
        return failure(make(size), delta * (1.0 - 1e-9)) <= delta

    def smallest() -> float:
        found = root_between(kept, safe=_LARGEST, unsafe=0.0, start=1.0, relative=_RELATIVE)
        while found < _LARGEST and failure(make(found), 0.0) > delta:
            found *= 1.0 + _RELATIVE
        if found >= _LARGEST:
            raise BoundUnavailableError(f"no smoothing up to {_LARGEST:g} keeps delta {delta:g}: take fewer samples")
        return found

    if smoothing is None:
        return make(smallest())
    if failure(make(smoothing), 0.0) > delta:
        raise ArgumentError(
            f"smoothing {smoothing:g} fails with a larger probability than delta {delta:g}: give delta alone, or a "
            f"smoothing of at least {math.ceil(smallest() * 1000.0) / 1000.0:.15g}"
        )
    return make(smoothing)


def fewest_samples(*, target: float, sensitivity: float, odds: bool) -> int:
    """The fewest draws at which counting errs by less than the noise does, for a candidate that passes with `target`.

    Except with probability 0.05, by exact binomial tails, the log of the count (`odds`: the log-odds) is within
    `sensitivity` of its value at the expected count. The noise of the sparse vector has 2/epsilon and 4/epsilon times
    that scale. At most 10**9.
    """
    growth = math.exp(min(sensitivity, 500.0))
    low = target / (target + growth * (1.0 - target)) if odds else target / growth
    high = growth * target / (growth * target + 1.0 - target) if odds else growth * target

    def errs(samples: int) -> float:
        least, most = math.ceil(low * samples), math.floor(min(high, 1.0) * samples)
        below = float(betaincc(least, samples - least + 1, target)) if least > 0 else 0.0
        above = float(betainc(most + 1, samples - most, target)) if most < samples else 0.0
        # a count of 0 (for odds: of all) has no log
        return below + above if least > 0 and (most < samples or not odds) else 1.0

    samples = 1
    while errs(samples) > _ERR:
        samples = math.ceil(samples * 1.02)
        if samples > _MOST_SAMPLES:
            raise ArgumentError("target is too rare to be counted in a billion draws: give samples")
    return samples
