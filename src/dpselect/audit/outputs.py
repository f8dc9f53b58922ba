"""Outputs as the search for an event sees them: one key for each whole output, and its numbers.

Both are functions of the one output alone: how an output is read depends on no other, so that an event which was chosen
on some draws is a fixed set when it meets the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError

__all__ = ["Outputs", "as_outputs", "bit_keys", "joined", "mixed"]

Keys = NDArray[np.uint64]

_FLOAT: Final = np.uint64(0x5851F42D4C957F2D)  # sets the bits of a fraction apart from a whole number
_TEXT: Final = np.uint64(0x14057B7EF767814F)  # and a text from a number


@dataclass(frozen=True, eq=False)
class Outputs:
    """Draws of one mechanism.

    Attributes:
        keys: shape (count,), a fixed function of the output; 1, 1.0 and True are one output, 0.0 and -0.0 are two. Two
            different outputs have the same key with probability about 2**-64, and are then one label. That changes
            which events can be named, never whether a verdict holds.
        columns: shape (count, features): the numbers in each output; no features for outputs that are labels.
        floating: whether the numbers are floats, whose low bits may tell something.
        shown: shape (count,) or (count, features), the outputs as they came, to name an event by.
    """

    keys: Keys
    columns: NDArray[np.float64]
    floating: bool
    shown: NDArray[Any]

    def __len__(self) -> int:
        return int(self.keys.size)

    def take(self, chosen: slice | NDArray[np.intp]) -> Outputs:
        """Some of the draws."""
        return Outputs(self.keys[chosen], self.columns[chosen], self.floating, self.shown[chosen])

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
        return _objects(drawn.tolist() if drawn.ndim == 1 else [tuple(row) for row in drawn.tolist()])
    table = drawn.reshape(len(drawn), -1)
    if kind in "SU":
        code = np.dtype(np.uint8 if kind == "S" else np.uint32)
        fields = [_text_keys(np.ascontiguousarray(field).view(code).reshape(len(drawn), -1)) for field in table.T]
        return Outputs(mixed(np.stack(fields, axis=1)), np.zeros((len(drawn), 0)), False, drawn)
    if kind == "c":
        table, kind = np.concatenate((table.real, table.imag), axis=1), "f"
    if kind in "mM":
        table, kind = table.astype(np.int64), "i"
    if kind not in "biuf":
        raise ArgumentError(f"{name}: draws of type {drawn.dtype} cannot be audited")
    keys = _number_keys(table.astype(np.float64)) if kind == "f" else table.astype(np.uint64)  # wraps: one to one
    return Outputs(mixed(keys), table.astype(np.float64), kind == "f", drawn)


def joined(parts: Sequence[Outputs], name: str = "outputs") -> Outputs:
    """All draws of several parts. Raises `ArgumentError` where rows of numbers differ in length."""
    features = {part.columns.shape[1] for part in parts}
    if len(features - {0}) > 1:
        raise ArgumentError(f"{name}: some draws have other numbers of features than others")
    alike = [part.with_features(max(features)) for part in parts]
    kinds = {(part.shown.dtype.kind, part.shown.ndim) for part in parts}
    shown = [part.shown if len(kinds) == 1 else _as_objects(part.shown) for part in parts]
    return Outputs(
        np.concatenate([part.keys for part in alike]),
        np.concatenate([part.columns for part in alike]),
        any(part.floating for part in alike),
        np.concatenate(shown),
    )


def bit_keys(numbers: NDArray[np.float64]) -> Keys:
    """The bits of doubles; every NaN is one, while 0.0 and -0.0 are two outputs."""
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


def _number_keys(numbers: NDArray[np.float64]) -> Keys:
    """A whole number as such, so that it meets its equal among integers; the bits of any other."""
    bits = bit_keys(numbers)
    whole = (np.floor(numbers) == numbers) & (np.abs(numbers) < 2.0**63) & ~((numbers == 0.0) & np.signbit(numbers))
    return np.where(whole, np.where(whole, numbers, 0.0).astype(np.int64).astype(np.uint64), bits ^ _FLOAT)


def _text_keys(codes: NDArray[Any]) -> Keys:
    """Of texts as rows of characters; what fills an array up to its longest text does not count."""
    keys = np.full(len(codes), _TEXT)
    for place in range(codes.shape[1]):
        code = codes[:, place].astype(np.uint64)
        keys = np.where(code == 0, keys, _mix(keys, code))
    return keys


def _as_objects(shown: NDArray[Any]) -> NDArray[Any]:
    values = np.empty(len(shown), dtype=object)
    values[:] = shown.tolist() if shown.ndim == 1 else [tuple(row) for row in shown.tolist()]
    return values


def _objects(rows: Sequence[Any]) -> Outputs:
    """Python objects: a number counts as one, a text as itself, anything else by its type and `repr`."""
    shown = np.empty(len(rows), dtype=object)
    shown[:] = rows
    numbers = np.array([_number(row) for row in rows], dtype=np.float64).reshape(-1, 1)
    numeric = np.array([isinstance(row, _NUMBERS) for row in rows], dtype=bool)
    keys = np.zeros(len(rows), dtype=np.uint64)
    whole = np.array([_is_whole(row) for row in rows], dtype=bool)
    if whole.any():
        keys[whole] = as_outputs(shown[whole].astype(np.int64)).keys
    if (fractions := numeric & ~whole).any():
        keys[fractions] = as_outputs(numbers[fractions, 0]).keys
    if (labels := ~numeric).any():
        keys[labels] = as_outputs(np.array([_label(value) for value in shown[labels]])).keys
    columns = numbers if numeric.any() else numbers[:, :0]
    return Outputs(keys, columns, any(isinstance(row, (float, np.floating)) for row in rows), shown)


_NUMBERS: Final = (bool, int, float, np.number, np.bool_)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (bool, int, np.integer, np.bool_)) and -(2**63) <= int(value) < 2**63


def _number(value: Any) -> float:
    try:
        return float(value) if isinstance(value, _NUMBERS) else np.nan
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _label(value: Any) -> str:
    return value if isinstance(value, str) else f"{type(value).__name__} {value!r}"
