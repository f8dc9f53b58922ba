"""The one reading of a public domain: `domain_size=`, or `lower=`, `upper=` and `granularity=`, everywhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self, SupportsIndex

import numpy as np

from dpselect.errors import ArgumentError, integer, number, rational
from dpselect.mechanisms.grid import grid_at_most
from dpselect.numerics.moments import FIRST, LAST, UNITS, instant_of, span_in, start_of, tick_at
from dpselect.ordered.domains import Domain, Doubles, Grid, Timestamps, WholeNumbers, exact_decimal

__all__ = ["PublicDomain"]


@dataclass(frozen=True, kw_only=True)
class PublicDomain:
    """The arguments that declare a domain: all that is asked of it, everywhere.

    Attributes:
        domain_size: the integers 0 .. domain_size - 1. Or:
        lower, upper: public bounds of the values, both included.
        granularity: the values are the multiples of it between the bounds; as for `quantile`.

    >>> PublicDomain(domain_size=11).size(), PublicDomain(lower=0, upper=1, granularity=0.1).size()
    (11, 11)
    """

    domain_size: SupportsIndex | None = None
    lower: Any = None
    upper: Any = None
    granularity: Any = None

    def of_type(self, dtype: np.dtype[Any]) -> Domain:
        """The domain of a column of this type.

        `domain_size` are the integers from 0 on. For a column of float64 numbers the nearest integer counts. Raises
        `ArgumentError` for arguments that leave nothing, and where both ways or neither are given.

        >>> from dpselect.ordered.public_domain import PublicDomain
        >>> kind = np.dtype(np.int64)
        >>> PublicDomain(domain_size=10).of_type(kind) == PublicDomain(lower=0, upper=9).of_type(kind)
        True
        """
        dtype, lower, upper, granularity = np.dtype(dtype), self.lower, self.upper, self.granularity
        if self.domain_size is not None:
            if lower is not None or upper is not None or granularity is not None:
                raise ArgumentError("give domain_size, or lower and upper (and granularity), not both")
            if dtype.kind == "M":
                raise ArgumentError("domain_size is for numbers: give timestamps a lower and an upper")
            lower, upper = 0, integer("domain_size", self.domain_size, at_least=1) - 1
            if dtype.kind == "f":
                integer("domain_size", upper + 1, at_most=1 << 53)
                granularity = 1
        if lower is None or upper is None:
            raise ArgumentError(
                "public bounds are needed, which are never read off the data. Write lower=0, upper=100 with yours, "
                "or give those of private_range, or domain_size="
            )
        if dtype.kind == "M":
            return _timestamps(dtype, lower, upper, granularity)
        if dtype.kind in "iuO" and granularity is None:
            low, high = _whole("lower", lower, math.ceil), _whole("upper", upper, math.floor)
            _ordered(low, high)
            return WholeNumbers(low, high)
        return _of_doubles(dtype, number("lower", lower), number("upper", upper), granularity)

    def by_bounds(self, *, doubles: bool = False) -> Domain:
        """The domain where no column says its type: doubles if a bound is a float or there is a granularity.

        Without a granularity those are a fine grid, as for `quantile`, or with `doubles` all of them. Time stamps
        have the finer unit of the two bounds.
        """
        bounds = (self.lower, self.upper)
        stamps = [bound.dtype for bound in bounds if isinstance(bound, np.datetime64)]
        if stamps:
            return self.of_type(max(stamps, key=_fineness))
        if not any(isinstance(bound, (float, np.floating)) for bound in bounds):
            return self.of_type(np.dtype(object))
        if doubles and self.granularity is None:
            every = {"domain_size": self.domain_size, "lower": self.lower, "upper": self.upper}
            return PublicDomain(**every, granularity="float64").of_type(np.dtype(float))
        return self.of_type(np.dtype(float))

    def of_size(self, size: int) -> Self:
        """The same with 0 .. size - 1 for the domain: what is planned goes by its size alone."""
        return replace(self, domain_size=size, lower=None, upper=None, granularity=None)

    def size(self) -> int:
        """The number of values, for plans without rows (see `by_bounds`)."""
        return self.by_bounds().size


def _of_doubles(dtype: np.dtype[Any], lower: float, upper: float, granularity: Any) -> Doubles | Grid:
    _ordered(lower, upper)
    if isinstance(granularity, str):
        if granularity != "float64":
            raise ArgumentError(f"granularity must be a number or 'float64', got {granularity!r}")
        return Doubles(lower + 0.0, upper + 0.0)
    largest = max(abs(lower), abs(upper))
    if dtype.kind != "f" and largest > 1 << 52:
        raise ArgumentError("granularity: integers with one need bounds of at most 2**52 in magnitude")
    if granularity is None:
        step = Fraction(grid_at_most(max(largest * 2.0**-48, 2.0**-1022)) if largest else 1.0)
        low, high = Fraction(lower), Fraction(upper)
    else:
        number("granularity", granularity, above=0.0)
        step, low, high = exact_decimal(granularity), exact_decimal(lower), exact_decimal(upper)
    first, last = math.ceil(low / step), math.floor(high / step)
    if first > last:
        raise ArgumentError("granularity leaves no value between lower and upper")
    if max(abs(first), abs(last)) > 1 << 53:
        raise ArgumentError("granularity must be at least 2**-53 times the larger bound")
    return Grid(first, last, step)


def _whole(name: str, bound: Any, rounded: Callable[[Any], int]) -> int:
    if isinstance(bound, int) and not isinstance(bound, bool):
        return bound
    if isinstance(bound, np.integer):
        return int(bound)  # NumPy's would be rounded to a double first
    number(name, bound)
    return rounded(rational(name, bound))


def _ordered(low: Any, high: Any) -> None:
    if not low <= high:
        raise ArgumentError(
            f"lower must be at most upper, got {low!r} and {high!r}. Write lower={high!r}, upper={low!r}"
        )


def _timestamps(dtype: np.dtype[Any], lower: Any, upper: Any, granularity: Any) -> Timestamps:
    """Bounds beyond what the unit of the values holds are clipped to it: no value is beyond."""
    unit, count = np.datetime_data(dtype)
    if count != 1 or unit == "generic":
        raise ArgumentError("values: timestamps must be in whole units")
    first, last = _instant("lower", lower, unit), _instant("upper", upper, unit)
    if first > last:
        raise ArgumentError(f"lower must be at most upper, got {lower} and {upper}. Write lower={upper}, upper={lower}")
    low, high = max(tick_at(first, unit, up=True), FIRST), min(tick_at(last, unit), LAST)
    if low > high:
        raise ArgumentError(
            f"lower and upper leave no timestamp of the type of the values, {dtype}: give other bounds, or convert the "
            "values to another unit"
        )
    try:
        step = 1 if granularity is None else span_in(granularity, unit)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"granularity must be a duration of whole units of the values ({unit}), such as "
            f"numpy.timedelta64(1, {unit!r}), got {granularity!r}"
        ) from None
    if step < 1:
        raise ArgumentError("granularity must be at least one unit of the values")
    return Timestamps(low, high, unit, min(step, high - low + 1))


def _instant(name: str, bound: Any, unit: str) -> int:
    """Exactly: an integer counts units of the values."""
    if isinstance(bound, (int, np.integer)) and not isinstance(bound, bool):
        return start_of(int(bound), unit)
    try:
        found = instant_of(bound)
    except (TypeError, ValueError, OverflowError):
        found = None
    if found is None:
        raise ArgumentError(
            f"{name} must be a timestamp: a numpy.datetime64, a datetime, or text in ISO 8601, got {bound!r:.60}"
        )
    return found


def _fineness(dtype: np.dtype[Any]) -> int:
    unit, _ = np.datetime_data(dtype)
    return -1 if unit == "generic" else UNITS.index(unit)
