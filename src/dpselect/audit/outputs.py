"""Outputs as the search for an event sees them: one key for each whole output, and its numbers.

Both are functions of the one output alone: how an output is read depends on no other, so that an event which was chosen
on some draws is a fixed set when it meets the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError
from dpselect.numerics.search import Array

__all__ = [
    "Exact",
    "Outputs",
    "as_object_array",
    "as_outputs",
    "as_plain_numbers",
    "bit_keys",
    "consists_of_numbers",
    "joined",
    "mixed",
]

Keys = NDArray[np.uint64]

_FLOAT: Final = np.uint64(0x5851F42D4C957F2D)  # sets the bits of a fraction apart from an integer
_TEXT: Final = np.uint64(0x14057B7EF767814F)  # and a text from a number


@dataclass(frozen=True, slots=True)
class Exact:
    """An output that one call gave, whose types count: its `int` is no `float`.

    In an array that a mechanism makes of many outputs they do not count, since NumPy makes one type of several.
    """

    value: Any

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, eq=False)
class Outputs:
    """Draws of one mechanism.

    Attributes:
        keys: shape (count,), a fixed function of the output. 1, 1.0 and True are one output, 0.0 and -0.0 are two. Two
            different outputs have the same key with probability about 2**-64, and are then one label. That changes
            which events can be named, never whether a verdict holds.
        columns: shape (count, features): the numbers in each output, NaN behind the end of a shorter one; no features
            for outputs that are labels.
        floating: whether the numbers are floats, whose low bits may tell something.
        shown: shape (count,) or (count, features), the outputs as they came, to name an event by.
        parts: shape (count,), the features of each (`dpselect.audit.dissection`), once they are taken apart.
        names: of the columns. Without it they are called by their numbers.
        nominal: columns whose numbers are codes without an order.
    """

    keys: Keys
    columns: Array
    floating: bool
    shown: NDArray[Any]
    parts: NDArray[Any] | None = None
    names: tuple[str, ...] = ()
    nominal: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return int(self.keys.size)

    def take(self, chosen: slice | NDArray[np.intp]) -> Outputs:
        """Some of the draws."""
        parts = None if self.parts is None else self.parts[chosen]
        columns, shown = self.columns[chosen], self.shown[chosen]
        return replace(self, keys=self.keys[chosen], columns=columns, shown=shown, parts=parts)

    def objects(self) -> list[Any]:
        """The outputs as Python objects. Elements of a table of numbers are floats, since NumPy mixes their types."""
        shown = self.shown.astype(np.float64) if self.shown.dtype.kind in "biu" else self.shown
        return shown.tolist() if shown.ndim == 1 else [tuple(row) for row in shown.tolist()]

    def halves(self) -> tuple[Outputs, Outputs]:
        """The first half of the draws, and the others."""
        half = len(self) // 2
        return self.take(slice(0, half)), self.take(slice(half, None))

    def with_features(self, features: int) -> Outputs:
        """The same draws with so many columns: those that are missing are NaN."""
        kept = self.columns[:, :features]
        missing = np.full((len(self), features - kept.shape[1]), np.nan)
        return replace(self, columns=np.concatenate((kept, missing), axis=1))


def as_outputs(drawn: NDArray[Any], name: str = "outputs") -> Outputs:
    """Parse an array of draws: numbers, labels, rows of either, or any Python objects.

    Raises `ArgumentError` for other shapes. Nothing in the message comes from the draws.
    """
    if not isinstance(drawn, np.ndarray):
        raise ArgumentError(f"{name}: draws must be a NumPy array, got {type(drawn).__name__}")
    if drawn.ndim not in (1, 2) or (drawn.ndim == 2 and drawn.shape[1] == 0):
        raise ArgumentError(f"{name}: draws must have the shape (count,) or (count, features), got {drawn.shape}")
    kind = drawn.dtype.kind
    if kind == "O":
        return _objects(list(drawn) if drawn.ndim == 1 else [tuple(row) for row in drawn])
    table = drawn.reshape(len(drawn), -1)
    if kind in "SU":
        fields = [
            _text_keys(field.astype(str) if kind == "U" else np.char.decode(field, "latin-1")) for field in table.T
        ]
        return Outputs(mixed(np.stack(fields, axis=1)), np.zeros((len(drawn), 0)), False, drawn)
    if kind == "c":
        table, kind = np.concatenate((table.real, table.imag), axis=1), "f"
    if kind in "mM":
        table, kind = table.astype(np.int64), "i"
    if kind not in "biuf":
        raise ArgumentError(f"{name}: draws of type {drawn.dtype} cannot be audited")
    keys = _number_keys(table.astype(np.float64)) if kind == "f" else _whole_keys(table)
    return Outputs(mixed(keys), table.astype(np.float64), kind == "f", drawn)


def joined(parts: Sequence[Outputs]) -> Outputs:
    """All draws of several parts. Rows of numbers may differ in length, which tells something too."""
    features = max(part.columns.shape[1] for part in parts)
    alike = [part.with_features(features) for part in parts]
    kinds = {(part.shown.dtype.kind, part.shown.shape[1:]) for part in parts}
    shown = [part.shown if len(kinds) == 1 else as_object_array(part.objects()) for part in parts]
    return Outputs(
        np.concatenate([part.keys for part in alike]),
        np.concatenate([part.columns for part in alike]),
        any(part.floating for part in alike),
        np.concatenate(shown),
    )


def bit_keys(numbers: Array) -> Keys:
    """The bits of doubles. Every NaN is one, while 0.0 and -0.0 are two outputs."""
    return np.ascontiguousarray(np.where(np.isnan(numbers), np.nan, numbers)).view(np.uint64)


def mixed(parts: Keys) -> Keys:
    """One key from each row, shape (count, parts): add, multiply and shift (splitmix64), column by column."""
    keys = np.zeros(len(parts), dtype=np.uint64)
    for place in range(parts.shape[1]):
        keys = _mix(keys, parts[:, place])
    return keys


def _mix(keys: Keys, part: Keys) -> Keys:
    keys = (keys ^ part) + np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def _number_keys(numbers: Array) -> Keys:
    """An integer as such, so that it meets its equal among integers, and the bits of any other number."""
    bits = bit_keys(numbers)
    whole = (np.floor(numbers) == numbers) & (np.abs(numbers) < 2.0**63) & ~((numbers == 0.0) & np.signbit(numbers))
    return np.where(whole, np.where(whole, numbers, 0.0).astype(np.int64).astype(np.uint64), bits ^ _FLOAT)


def _whole_keys(numbers: NDArray[Any]) -> Keys:
    """Integers, modulo 2**64. If no signed integer holds them, the floats that they are near to."""
    keys = numbers.astype(np.uint64)
    if numbers.dtype.kind == "u" and np.any(large := numbers >= np.uint64(2**63)):
        keys[large] = _number_keys(numbers[large].astype(np.float64))
    return keys


def _text_keys(texts: Iterable[str]) -> Keys:
    """Of texts. NumPy fills an array up to its longest text with zeros, which do not count."""
    memo: dict[str, int] = {}
    keys = []
    for text in texts:
        if (key := memo.get(text)) is None:
            code = text.rstrip("\0").encode("utf-8", "surrogatepass")
            key = memo[text] = int.from_bytes(blake2b(code, digest_size=8).digest())
        keys.append(key)
    return np.array(keys, dtype=np.uint64) ^ _TEXT


def as_object_array(values: Sequence[Any]) -> NDArray[Any]:
    """One element for each value, no matter what it is."""
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value
    return array


def _objects(rows: Sequence[Any]) -> Outputs:
    """Python objects, each read by itself: numbers and rows of numbers as such, a text as itself, all else by its type
    and `repr`."""
    shown = as_object_array(rows)
    rows = [row.value if isinstance(row, Exact) else row for row in rows]
    parsed = [() if _is_table(row) else _numbers(row) for row in rows]
    widths = np.array([len(numbers) for numbers in parsed])
    values = list(chain.from_iterable(parsed))
    whole = np.array([_is_whole(value) for value in values], dtype=bool)
    floats = np.array([_as_float(value) for value in values], dtype=np.float64)
    parts = _number_keys(floats)
    parts[whole] = np.array([int(value) for value in values if _is_whole(value)], dtype=np.int64).astype(np.uint64)
    starts = np.concatenate(([0], np.cumsum(widths)[:-1]))  # in `values`
    keys = np.zeros(len(rows), dtype=np.uint64)
    tables: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for place, row in enumerate(rows):
        if _is_table(row):
            widths[place] = row.size
            tables.setdefault((row.dtype.str, row.shape), []).append(place)
    columns = np.full((len(rows), int(widths.max(initial=0))), np.nan)
    for rows_alike in tables.values():  # arrays of one type and shape at once
        read = as_outputs(np.array([np.ravel(rows[place]) for place in rows_alike]))
        keys[rows_alike], columns[rows_alike, : read.columns.shape[1]] = read.keys, read.columns
    single = np.array([bool(numbers) for numbers in parsed], dtype=bool)
    for width in np.unique(widths[single]):
        alike = np.flatnonzero(single & (widths == width))
        places = starts[alike][:, None] + np.arange(width)
        keys[alike], columns[alike, :width] = mixed(parts[places]), floats[places]
    if (labels := np.flatnonzero(widths == 0)).size:
        keys[labels] = mixed(_text_keys([_label(rows[place]) for place in labels])[:, None])
    floating = any(isinstance(value, (float, np.floating)) for value in values)
    return Outputs(keys, columns, floating or any(np.dtype(kind).kind == "f" for kind, _ in tables), shown)


def consists_of_numbers(value: Any) -> bool:
    """Whether an output is a number, or a row or table of numbers."""
    return _is_table(value) or len(_numbers(value)) > 0


def as_plain_numbers(value: Any) -> float | tuple[float, ...] | None:
    """Such an output as a float or a row of floats, regardless of its types. None for another."""
    numbers = tuple(map(_as_float, _numbers(value)))
    if not numbers:
        return None
    return numbers[0] if isinstance(value, _NUMBERS) else numbers


def _is_array(value: Any) -> bool:
    """Whether it is an array that its numbers say all about: a masked one also tells which of them are missing."""
    return isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray)


def _is_table(value: Any) -> bool:
    return _is_array(value) and value.dtype.kind in "biuf" and value.size > 0


_NUMBERS: Final = (bool, int, float, np.integer, np.floating, np.bool_)


def _numbers(value: Any) -> Sequence[Any]:
    """The numbers that an output consists of, or none if it is anything else."""
    if isinstance(value, _NUMBERS):
        return (value,)
    if isinstance(value, (complex, np.complexfloating)):
        return value.real, value.imag
    if not (isinstance(value, (list, tuple)) or _is_array(value)):
        return ()
    if isinstance(value, np.ndarray) and value.dtype.kind == "c":
        value = np.stack((value.real, value.imag))
    try:
        flat = np.asarray(value, dtype=object).ravel().tolist()
    except ValueError:  # no table
        return ()
    return flat if all(isinstance(number, _NUMBERS) for number in flat) else ()


def _is_whole(value: Any) -> bool:
    return isinstance(value, (bool, int, np.integer, np.bool_)) and -(2**63) <= int(value) < 2**63


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _label(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        value = tuple(value)
    name, shown = type(value).__name__, repr(value)
    if " at 0x" in shown:  # where earlier draws left room in memory is no part of an output, and ties draws together
        raise ArgumentError(f"outputs of type {name} have no repr of their own. Return numbers, text or rows of them")
    return f"{name} {shown}"
