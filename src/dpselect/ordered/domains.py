"""Ordered domains as integers: every value has a code in 0 .. size-1, and a larger value no smaller code.

Encoding is a fixed map on single rows, so what is private for codes is private for values. It is monotone, so ranks
can be found among the values themselves and only the few that matter are encoded. No value makes it fail.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, rational
from dpselect.numerics.moments import stamp, stamp_type, ticks_in
from dpselect.tables.categories import category, positions

__all__ = [
    "Binades",
    "Categories",
    "Codes",
    "Domain",
    "Doubles",
    "Grid",
    "Ticks",
    "Timestamps",
    "WholeNumbers",
    "exact_decimal",
    "threshold_in",
]

Codes = NDArray[np.uint64] | list[int]
"""uint64 for domains of at most 2**64 values, Python integers beyond."""


@runtime_checkable
class Domain(Protocol):
    """An ordered set of `size` values."""

    @property
    def size(self) -> int: ...

    def encode(self, values: Any) -> Codes:
        """The codes of values that are not missing, clipped at the ends of the domain."""
        ...

    def decode(self, code: int) -> Any:
        """The value with this code."""
        ...

    def threshold(self, code: int) -> Any:
        """A value t such that exactly the values >= t have a code >= `code`, for codes 1 .. size-1."""
        ...


def exact_decimal(value: float | Fraction | int) -> Fraction:
    """A float stands for its shortest decimal: 0.1 is one tenth, in NumPy's types too."""
    return Fraction(str(value)) if isinstance(value, (float, np.floating)) else rational("granularity", value)


@dataclass(frozen=True)
class WholeNumbers:
    """lower, lower + 1, ..., upper: Python integers of any size."""

    lower: int
    upper: int

    @property
    def size(self) -> int:
        return self.upper - self.lower + 1

    def encode(self, values: Any) -> Codes:
        if not isinstance(values, np.ndarray) or values.dtype == object or self.size > 1 << 64:
            return [min(max(int(value), self.lower), self.upper) - self.lower for value in values]
        info = np.iinfo(values.dtype)
        low, high = max(self.lower, int(info.min)), min(self.upper, int(info.max))
        if low > high:  # the bounds are beyond every value that the type holds
            return np.full(len(values), 0 if self.lower > info.max else self.size - 1, dtype=np.uint64)
        kept = np.clip(values, values.dtype.type(low), values.dtype.type(high))
        wide = kept.astype(np.uint64 if info.min == 0 else np.int64, copy=False).view(np.uint64)
        return wide - np.uint64(self.lower % (1 << 64))  # modulo 2**64, and the difference is below that

    def decode(self, code: int) -> int:
        return self.lower + code

    threshold = decode


@dataclass(frozen=True)
class Grid:
    """The multiples of a granularity from `first` to `last` times it. Values go to the nearest, ties to even.

    Both numbers are at most 2**53 in magnitude, so that doubles hold every multiplier.
    """

    first: int
    last: int
    granularity: Fraction

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def encode(self, values: Any) -> NDArray[np.uint64]:
        with np.errstate(over="ignore", invalid="ignore"):
            steps = np.rint(np.asarray(values, dtype=np.float64) / float(self.granularity))
            kept = np.clip(steps, float(self.first), float(self.last))
        return np.asarray((kept - float(self.first)).astype(np.uint64))

    def decode(self, code: int) -> float:
        return float((self.first + code) * self.granularity)

    def threshold(self, code: int) -> float:
        wanted, step = self.first + code, float(self.granularity)
        found = float((wanted - Fraction(1, 2)) * self.granularity)
        # the quotient is rounded before it is rounded to an integer, so the edge may be a few doubles away
        while round(found / step) >= wanted:
            found = math.nextafter(found, -math.inf)
        while round(found / step) < wanted:
            found = math.nextafter(found, math.inf)
        return found


@dataclass(frozen=True)
class Doubles:
    """All double-precision numbers from lower to upper, each as likely as another before the data speak.

    Half of all doubles are below one in magnitude: for data whose order of magnitude is unknown. -0.0 is 0.0.
    """

    lower: float
    upper: float

    @property
    def size(self) -> int:
        return _position(self.upper) - _position(self.lower) + 1

    def encode(self, values: Any) -> NDArray[np.uint64]:
        kept = np.clip(np.asarray(values, dtype=np.float64), self.lower, self.upper)
        return np.asarray((_positions(kept) - np.int64(_position(self.lower))).view(np.uint64))

    def decode(self, code: int) -> float:
        return _double_at(_position(self.lower) + code)

    threshold = decode


@dataclass(frozen=True)
class Binades:
    """Real numbers by sign and power of two: 4094 codes. Each code is an interval (low, high)."""

    @property
    def size(self) -> int:
        return 2 * 2047

    def encode(self, values: Any) -> NDArray[np.uint64]:
        kept = np.clip(_floor_to_double(np.asarray(values)), -_LARGEST, _LARGEST)
        return np.asarray(((_positions(kept) >> np.int64(52)) + np.int64(2047)).view(np.uint64))

    def decode(self, code: int) -> tuple[float, float]:
        first = (code - 2047) << 52
        return _double_at(max(first, -_POSITION)), _double_at(min(first + (1 << 52), _POSITION))

    def threshold(self, code: int) -> float:
        return self.decode(code)[0]


@dataclass(frozen=True)
class Timestamps:
    """`lower + k * step` in a datetime64 unit. The integers of that unit are the inner domain."""

    lower: int
    upper: int
    unit: str
    step: int = 1

    @property
    def size(self) -> int:
        return (self.upper - self.lower) // self.step + 1

    def encode(self, values: Any) -> NDArray[np.uint64]:
        ticks = ticks_in(np.asarray(values), self.unit)
        codes = np.asarray(WholeNumbers(self.lower, self.upper).encode(ticks), dtype=np.uint64)
        return np.minimum(codes // np.uint64(self.step), np.uint64(self.size - 1))

    def decode(self, code: int) -> np.datetime64:
        return stamp(self.lower + code * self.step, self.unit)

    threshold = decode


@dataclass(frozen=True)
class Ticks:
    """A domain of timestamps for rows that are integers of its unit since 1970, as engines give them."""

    timestamps: Domain
    unit: str

    @property
    def size(self) -> int:
        return self.timestamps.size

    def encode(self, values: Any) -> Codes:
        return self.timestamps.encode(np.asarray(values, dtype=np.int64).view(stamp_type(self.unit)))

    def decode(self, code: int) -> Any:
        return self.timestamps.decode(code)

    def threshold(self, code: int) -> int:
        return int(self.timestamps.threshold(code).astype(np.int64))


@dataclass(frozen=True)
class Categories:
    """A declared list of values in their order. Values outside it are missing."""

    names: tuple[Any, ...]

    def __post_init__(self) -> None:
        if len(set(map(category, self.names))) != len(self.names) or not self.names:
            raise ArgumentError(
                "categories must be a list of different values that is not empty; 1, 1.0, '1' and True are the same one"
            )

    @property
    def size(self) -> int:
        return len(self.names)

    def counts(self, values: Sequence[Any]) -> NDArray[np.int64]:
        """How often each of them occurs, by `category`. Other values are not counted."""
        found = self.places(values)
        return np.bincount(found[found >= 0], minlength=self.size).astype(np.int64)

    def places(self, values: Sequence[Any]) -> NDArray[np.int64]:
        """The place of each value among them, -1 for another."""
        return positions(values, self.names)

    def encode(self, values: Any) -> NDArray[np.uint64]:
        return np.asarray(np.asarray(values, dtype=np.int64).astype(np.uint64))

    def decode(self, code: int) -> Any:
        return self.names[code]

    def threshold(self, code: int) -> int:
        return code


def threshold_in(dtype: np.dtype[Any], threshold: Any) -> Any:
    """The smallest value of a type that is at least the threshold, or None when there is none.

    Integers of a type are below 2**52 in magnitude or beyond every threshold where thresholds are floats.
    """
    if dtype.kind in "iu":
        info, least = np.iinfo(dtype), math.ceil(threshold)
        return None if least > info.max else dtype.type(max(least, int(info.min)))
    if dtype.kind == "f" and dtype.itemsize < 8:
        with np.errstate(over="ignore"):
            narrow = dtype.type(threshold)
        return narrow if float(narrow) >= threshold else np.nextafter(narrow, dtype.type(np.inf))
    return threshold


_LARGEST = float(np.finfo(np.float64).max)
_POSITION = (2047 << 52) - 1


def _floor_to_double(values: NDArray[Any]) -> NDArray[np.float64]:
    """The largest double that is not above: the nearest one of a large integer may be beyond a power of two."""
    if values.dtype.kind == "f":
        return values.astype(np.float64, copy=False)
    negative = values < 0
    wide = values.astype(np.uint64 if values.dtype.kind == "u" else np.int64).view(np.uint64)
    magnitude = np.where(negative, np.uint64(0) - wide, wide)
    tail = np.uint64((1 << 11) - 1)
    whole = (magnitude + np.where(negative, tail, np.uint64(0))) & ~tail
    magnitude = np.where(magnitude >> np.uint64(53) == 0, magnitude, whole)
    return np.where(negative, -magnitude.astype(np.float64), magnitude.astype(np.float64))


def _position(value: float) -> int:
    return int(_positions(np.array([value]))[0])


def _positions(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Doubles as integers in the same order: 0 for zero, the bits of the magnitude with the sign of the number."""
    bits = np.ascontiguousarray(values).view(np.int64)
    magnitude = bits & np.int64((1 << 63) - 1)
    return np.where(bits < 0, -magnitude, magnitude)


def _double_at(position: int) -> float:
    magnitude = float(np.array([abs(position)], dtype=np.int64).view(np.float64)[0])
    return math.copysign(magnitude, position) if position else 0.0
