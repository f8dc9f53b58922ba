"""Structured outputs as columns: which features are looked at, and the numbers that stand for them.

A `Reading` is fitted to some draws of both data sets and is fixed from then on, so that it reads every other draw by
itself. It keeps the features in which the two sets of draws differ most, and others in the order in which they occur.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.audit.dissection import dissect
from dpselect.audit.outputs import Exact, Outputs, as_object_array, consists_of_numbers
from dpselect.numerics.search import Array

__all__ = ["Reading", "dissected", "fitted_reading", "is_structured"]

_Key = tuple[str, type]

_COLUMNS: Final = 32
_BY_DIFFERENCE: Final = 22  # the others are there for events that no feature shows by itself
_FREQUENT: Final = 4  # a value seen this often has a code of its own
_BINS: Final = 12
_FEATURES: Final = 4_000_000  # held in memory of one data set's draws


def is_structured(data: Outputs, neighbour: Outputs) -> bool:
    """Whether these outputs are more than numbers of one type."""
    if all(side.shown.dtype.kind not in "OUS" for side in (data, neighbour)):
        return False
    kinds = {_kind(value) for side in (data, neighbour) for value in side.objects()}
    return len(kinds) > 1 or None in kinds


def _kind(value: Any) -> Any:
    """The type of an output of numbers. None for another."""
    inner = value.value if isinstance(value, Exact) else value
    if not consists_of_numbers(inner):
        return None
    if not isinstance(value, Exact):
        return "numbers"
    if isinstance(inner, np.ndarray):
        return inner.dtype.str, inner.shape
    if not isinstance(inner, (list, tuple)):
        return type(inner)
    if any(part != part for part in inner):  # NaN, which has a sign and a payload
        return None
    return type(inner), tuple(map(type, inner))


def dissected(outputs: Outputs, *, most: int = _FEATURES) -> Outputs:
    """The draws with the features of each, as many of the draws as memory should hold."""
    if outputs.parts is not None:
        return outputs
    memo: dict[str, list[Any]] = {}
    held = 0
    parts = []
    for value in outputs.objects():
        inner = value.value if isinstance(value, Exact) else value
        if isinstance(inner, str):
            if (features := memo.get(inner)) is None:
                features = memo[inner] = dissect(value)
                held += len(features)
        else:
            features = dissect(value)
            held += len(features)
        parts.append(features)
        if held > most:
            break
    return replace(outputs.take(slice(0, len(parts))), parts=as_object_array(parts))


@dataclass(frozen=True, eq=False)
class _Column:
    """One feature: a number as it is, another value by its code (-1 for a rare one, -2 for a missing one)."""

    name: str
    codes: Mapping[str, int] | None
    absent: float


@dataclass(frozen=True, eq=False)
class Reading:
    """A fixed choice of features. Without any, outputs are read as the numbers that they are."""

    columns: tuple[_Column, ...] = ()
    structured: bool = False

    def __call__(self, outputs: Outputs) -> Outputs:
        """The same draws, with one column for each feature."""
        if not self.structured:
            return outputs
        outputs = dissected(outputs, most=1 << 62)
        assert outputs.parts is not None
        table = np.empty((len(outputs), len(self.columns)))
        for place, column in enumerate(self.columns):
            table[:, place] = column.absent
        wanted = self._wanted
        for row, features in enumerate(outputs.parts):
            for name, value in features:
                if (found := wanted.get((name, type(value)))) is not None:
                    place, codes = found
                    table[row, place] = value if codes is None else codes.get(value, -1)
        nominal = frozenset(place for place, column in enumerate(self.columns) if column.codes is not None)
        names = tuple(column.name for column in self.columns)
        return replace(outputs, columns=table, floating=True, names=names, nominal=nominal)

    @cached_property
    def _wanted(self) -> dict[_Key, tuple[int, Mapping[str, int] | None]]:
        return {
            (column.name, float if column.codes is None else str): (place, column.codes)
            for place, column in enumerate(self.columns)
        }


def fitted_reading(data: Outputs, neighbour: Outputs) -> Reading:
    """The features of dissected draws that tell the two data sets apart best, then others that vary."""
    assert data.parts is not None
    assert neighbour.parts is not None
    sizes = len(data), len(neighbour)
    tables = _by_name(data.parts), _by_name(neighbour.parts)
    found: dict[bytes, tuple[float, _Column]] = {}
    for name, kind in dict.fromkeys((*tables[0], *tables[1])):
        sides = [table.get((name, kind), ([], [])) for table in tables]
        if sum(len(rows) for rows, _ in sides) < _FREQUENT:
            continue
        column, encoded = _encoded(name, sides, sizes)
        if encoded[0].size == 0 or _constant(encoded):
            continue
        mark = np.concatenate(encoded).tobytes()
        if mark not in found:  # two names of one thing need one column
            found[mark] = (_difference(*encoded), column)
    order = list(found.values())
    best = sorted(range(len(order)), key=lambda place: -order[place][0])
    chosen = [*best[:_BY_DIFFERENCE], *sorted(best[_BY_DIFFERENCE:])][:_COLUMNS]
    return Reading(tuple(order[place][1] for place in chosen), structured=True)


def _by_name(parts: NDArray[Any]) -> dict[_Key, tuple[list[int], list[Any]]]:
    """The rows in which each feature occurs, with its values. At one name there may be a number or a text."""
    table: dict[_Key, tuple[list[int], list[Any]]] = {}
    for row, features in enumerate(parts):
        for name, value in features:
            key = name, type(value)
            if (held := table.get(key)) is None:
                held = table[key] = ([], [])
            held[0].append(row)
            held[1].append(value)
    return table


def _encoded(
    name: str, sides: Sequence[tuple[list[int], list[Any]]], sizes: tuple[int, int]
) -> tuple[_Column, tuple[Array, Array]]:
    first = next(value for _, values in sides for value in values)
    if isinstance(first, str):
        seen = Counter(sides[0][1]) + Counter(sides[1][1])
        frequent = sorted(value for value, count in seen.items() if count >= _FREQUENT)
        codes = {value: code for code, value in enumerate(frequent)}
        column = _Column(name, codes, -2.0)
    else:
        codes, column = None, _Column(name, None, np.nan)
    encoded = []
    for (rows, values), size in zip(sides, sizes, strict=True):
        filled = np.full(size, column.absent)
        filled[rows] = values if codes is None else [codes.get(value, -1) for value in values]
        encoded.append(filled)
    return column, (encoded[0], encoded[1])


def _constant(sides: tuple[Array, Array]) -> bool:
    both = np.concatenate(sides)
    return bool(np.all(both == both[0]) or np.isnan(both).all())


def _difference(ours: Array, theirs: Array) -> float:
    """By how much the two differ, in deviations of a chi-square statistic. Numbers fall into quantiles."""
    both = np.concatenate((ours, theirs))
    levels = np.unique(both)
    if levels.size > 4 * _BINS:
        finite = np.sort(both[~np.isnan(both)])
        cuts = np.unique(finite[np.linspace(0, finite.size - 1, _BINS + 1).astype(np.intp)])
        cell = np.where(np.isnan(both), cuts.size + 1, np.searchsorted(cuts, both, side="right"))
    else:
        cell = np.searchsorted(levels, both)
    share = len(ours) / len(both)
    one = np.bincount(cell[: len(ours)], minlength=int(cell.max()) + 1)
    total = np.bincount(cell)
    kept = total >= _FREQUENT
    if kept.sum() < 1:
        return 0.0
    expected = total[kept] * share
    statistic = float(np.sum((one[kept] - expected) ** 2 / (expected * (1.0 - share))))
    freedom = max(int(kept.sum()) - 1, 1)
    return float((statistic - freedom) / np.sqrt(2.0 * freedom))
