"""The declared columns of a model in operators: cells that are missing, beyond their bounds or unknown included.

The graph has two inputs: `numbers`, a column for each column of numbers, and `categories`, a column of texts for each
column with categories that are not all numbers. Columns that are read alike are encoded together.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

import numpy as np

from dpselect.errors import ArgumentError
from dpselect.numerics.search import Array
from dpselect.study.columns.column import INDICATOR, TEXT, Column
from dpselect.study.to_onnx.graph import Graph, Tensor, Value
from dpselect.study.to_onnx.rows import clipped, first_set, log, log1p
from dpselect.tables import Declared

__all__ = ["CATEGORIES", "NUMBERS", "input_of", "refuse_other_columns", "table_features"]

NUMBERS: Final = "numbers"
CATEGORIES: Final = "categories"
REFUSES: Final = "a_number_is_missing_in_a_column_that_declares_nothing_for_it"
"""The name of the operator that fails, without its number. ONNX has no messages, and runtimes show that name."""
_UNKNOWN: Final = "\x00"
_READERS: Final = ("number", "integer", "boolean", "date", "timestamp", "duration")
_SCALES: Final = ("linear", "log", "bins")
_WORDS: Final = {Decimal(1): ("true", "True", "TRUE"), Decimal(0): ("false", "False", "FALSE")}
_LONG: Final = 10**20
"""Integers from here on are written as they are declared only."""
_plainly: Final = Declared(kind="category").category


@dataclass(frozen=True)
class _Alike:
    """The facts that columns of numbers share if one set of operators encodes them."""

    declared: Declared
    scale: str
    above_zero: bool
    indicated: bool
    refuses: bool


def refuse_other_columns(columns: Mapping[str, Column]) -> None:
    """Raise `ArgumentError` for a column that the graph cannot encode, which names it."""
    for name, column in columns.items():
        if column.kind == TEXT:
            raise ArgumentError(
                f"--to: column {name!r} holds text, whose words are hashed, which ONNX has no operator for. Export to "
                "a .joblib file"
            )
        known = column.categories is not None or (column.kind in _READERS and column.scale.partition(":")[0] in _SCALES)
        if not known:
            raise ArgumentError(
                f"--to: column {name!r} has a kind or a scale that dpselect does not bring, without operators. "
                "Export to a .joblib file"
            )


def input_of(column: Column) -> str:
    """The input that takes the cells of the column."""
    if column.categories is None or all(map(_is_number, map(column.declared.category, column.categories))):
        return NUMBERS
    return CATEGORIES


def _is_number(named: Any) -> bool:
    """Whether a category is the one of a float64, or is the missing cell, which NaN stands for."""
    return named == "" or (isinstance(named, Decimal) and Decimal(repr(float(named))) == named)


def table_features(graph: Graph, columns: Mapping[str, Column]) -> Value:
    """The features as `encode_columns` makes them, of the inputs, which are added to the graph."""
    taken = {each: [name for name in columns if input_of(columns[name]) == each] for each in (NUMBERS, CATEGORIES)}
    for each, kind in ((NUMBERS, "float64"), (CATEGORIES, "string")):
        if taken[each]:
            about = "columns in this order: " + ", ".join(map(repr, taken[each]))
            graph.inputs.append(Tensor(each, kind, ("rows", len(taken[each])), about))
    starts, end = {}, 0
    for name, column in columns.items():
        starts[name], end = end, end + column.width
    groups: dict[Any, list[str]] = {}
    for name, column in columns.items():
        groups.setdefault(name if column.categories is not None else _alike(column), []).append(name)
    parts, order = [], []
    for names in groups.values():
        here = [columns[name] for name in names]
        source = input_of(here[0])
        cells = graph.columns(source, [taken[source].index(name) for name in names])
        found = _indicators(graph, cells, here[0]) if here[0].categories is not None else _numbers(graph, cells, here)
        parts += found
        indicated = here[0].missing == INDICATOR and here[0].categories is None
        own = [range(starts[name], starts[name] + columns[name].width - indicated) for name in names]
        order += [place for places in own for place in places]
        order += [places.stop for places in own if indicated]
    joined = graph.beside(parts)
    return joined if order == sorted(order) else graph.columns(joined, np.argsort(order).tolist())


def _alike(column: Column) -> _Alike:
    low = column.limits[0]
    return _Alike(column.declared, column.scale, low > 0, column.missing == INDICATOR, column.missing is None)


def _numbers(graph: Graph, cells: Value, columns: Sequence[Column]) -> list[Value]:
    """`Column.features` of columns that are alike, each after the other, and then their indicators."""
    alike = _alike(columns[0])
    values = _read(graph, cells, alike.declared)
    lost = graph.add("IsNaN", values)
    low, high = np.array([column.limits for column in columns]).T
    fill = low
    if alike.refuses:
        values = _refusing(graph, values, lost)
    elif not alike.indicated:
        fill = np.array([column._number(column.missing) for column in columns])
    inside = clipped(graph, graph.add("Where", lost, fill, values), low, high)
    features = _scaled(graph, inside, (low, high), alike.scale)
    if not alike.indicated:
        return [features]
    kept, width = lost, columns[0].width - 1
    if width > 1:
        kept = graph.columns(lost, np.repeat(np.arange(len(columns)), width).tolist())
    return [graph.add("Where", kept, 0.0, features), graph.cast(lost, "float64")]


def _read(graph: Graph, cells: Value, declared: Declared) -> Value:
    """`Declared.read` of numbers: of dates seconds since 1970 in UTC, of durations seconds, of booleans 1 and 0."""
    plain = replace(declared, missing_values=None)
    values = cells
    if declared.kind == "integer":
        whole = graph.add("Equal", graph.add("Floor", cells), cells)
        finite = graph.add("Not", graph.add("IsInf", cells))
        values = graph.add("Where", graph.add("And", whole, finite), cells, np.nan)
    elif declared.kind == "boolean":
        named = [*(declared.true_values or ()), *(declared.false_values or ()), 0, 1]
        known = {float(each) for each in map(declared.category, named) if isinstance(each, Decimal)}
        values = graph.add("Add", graph.add("Mul", cells, 0.0), np.nan)
        for each in sorted(known):
            (meant,) = plain.read([each])
            values = graph.add("Where", graph.add("Equal", cells, each), float(meant), values)
    dates = declared.kind in ("date", "timestamp")
    for value in declared.missing_values or ():
        for absent in plain.read([str(value)] if dates else [value, str(value)]):
            if not np.isnan(absent):
                values = graph.add("Where", graph.add("Equal", values, float(absent)), np.nan, values)
    return values


def _refusing(graph: Graph, values: Value, lost: Value) -> Value:
    """The values. Running the graph fails where one is lost, as `predict` does: a place of an array is out of range."""
    places = graph.cast(lost, "int64")
    zero = graph.add("Gather", np.zeros(1), places, into=f"{REFUSES}_{next(graph.names)}")
    return graph.add("Add", values, zero)


def _scaled(graph: Graph, values: Value, bounds: tuple[Array, Array], scale: str) -> Value:
    """The features of the scales `linear`, `log` and `bins`, of values within the bounds."""
    name, _, size = scale.partition(":")
    share = _share(graph, values, *bounds) if name != "log" else _log_share(graph, values, *bounds)
    if name != "bins":
        return graph.add("Sub", graph.add("Mul", share, 2.0), 1.0)
    bins, count = int(size), len(bounds[0])
    place = graph.add("Min", graph.add("Floor", graph.add("Mul", share, float(bins))), float(bins - 1))
    here = graph.add("Equal", graph.reshaped(place, -1, count, 1), np.arange(bins, dtype=np.float64))
    return graph.reshaped(graph.cast(here, "float64"), -1, count * bins)


def _share(graph: Graph, values: Value, low: Array, high: Array) -> Value:
    """The way from the lower bound to the upper one, from 0 to 1."""
    above = graph.add("Sub", graph.add("Div", values, 2.0), low / 2)
    return clipped(graph, graph.add("Div", above, high / 2 - low / 2), 0.0, 1.0)


def _log_share(graph: Graph, values: Value, low: Array, high: Array) -> Value:
    """The same of logarithms. The bounds become 0 and 1 exactly: they are common, and a logarithm may miss them."""
    added, of_bounds = (log, np.log) if (low > 0).all() else (log1p, np.log1p)
    share = _share(graph, added(graph, values), of_bounds(low), of_bounds(high))
    not_low = graph.add("Where", graph.add("Greater", values, low), share, 0.0)
    return graph.add("Where", graph.add("GreaterOrEqual", values, high), 1.0, not_low)


def _indicators(graph: Graph, cells: Value, column: Column) -> list[Value]:
    """`Column.encode` of a column with categories: a row of a table by the place of the cell among the known ones."""
    if input_of(column) == CATEGORIES:
        known = _spellings(column)
        table = np.array([column.encode("", [each])[0] for each in (*known, _UNKNOWN)])
        attributes: dict[str, Any] = {"keys_strings": known, "values_int64s": range(len(known))}
        place = graph.add("LabelEncoder", cells, domain="ai.onnx.ml", default_int64=len(known), **attributes)
    else:
        numbers = _codes(column)
        table = np.array([column.encode("", [each])[0] for each in (*numbers, np.nan, _UNKNOWN)])
        missing = graph.add("IsNaN", cells)
        flags = [graph.add("Equal", cells, numbers[None, :]), missing] if len(numbers) else [missing]
        place = first_set(graph, flags)
    return [graph.reshaped(graph.add("Gather", table, place, axis=0), -1, column.width)]


def _named(column: Column) -> list[Any]:
    """The values that the column declares, categories and missing ones."""
    return [*(column.categories or ()), *(column.missing_values or ())]


def _codes(column: Column) -> Array:
    """The categories as numbers."""
    found = {named for named in map(_plainly, _named(column)) if isinstance(named, Decimal)}
    return np.array(sorted(float(each) for each in found))


def _spellings(column: Column) -> list[str]:
    """How the categories may be written in the input: as declared, in either Unicode form, and numbers in a few."""
    found: dict[str, None] = {"": None}
    for value in _named(column):
        named = _plainly(value)
        written = {str(value).strip(), str(named)}
        if isinstance(named, Decimal):
            written |= {repr(float(named)), *(_WORDS.get(named, ()))}
            written |= {str(int(named))} if named == int(named) and abs(named) < _LONG else set()
        forms = (unicodedata.normalize(form, each) for each in sorted(written) for form in ("NFC", "NFD"))
        found |= dict.fromkeys((*sorted(written), *forms))
    return list(found)
