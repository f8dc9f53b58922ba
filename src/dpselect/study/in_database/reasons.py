"""Whether a database can add up what a study needs of the rows that train, from public facts alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from dpselect.errors import ArgumentError
from dpselect.privacy import Adjacency
from dpselect.study.columns.column import TEXT, Column
from dpselect.study.price import Priced
from dpselect.study.schema_data import Data

if TYPE_CHECKING:
    from dpselect.ordered.sources.sql_types import SqlType

__all__ = ["reason_to_read", "rows_note"]

_MOST_FEATURES: Final = 200
_NUMBERS: Final = ("number", "integer", "boolean")
_LARGEST: Final = 1e100
"""Bounds beyond would make an engine fail for a result that is no float64, and so would bounds that are nearer."""


def rows_note(priced: Priced) -> str | None:
    """A note for people whose rows are in a database and whose learner is ridge. None for others."""
    settled = priced.settled
    if settled.table.engine is None or settled.recipe.kind != "ridge" or settled.candidates:
        return None
    reason = reason_to_read(priced)
    held = " and dpselect reads the rows that validate" if settled.study.validation.data == "private" else ""
    return f"dpselect reads all rows: {reason}" if reason else f"the database adds up the rows that train{held}"


def reason_to_read(priced: Priced) -> str | None:
    """Why the rows of a study are read. None if the database adds up those that train."""
    return next(_reasons(priced), None)


def _reasons(priced: Priced) -> Iterator[str]:
    settled = priced.settled
    study, engine = settled.study, settled.table.engine
    data, names = study.data, {*settled.recipe.shared, *study.space}
    if engine is None:
        yield "data.source is not a database"
        return
    if settled.recipe.kind != "ridge" or settled.candidates:
        yield 'learner.name is not "ridge"'
    if not engine.stored:
        yield "data.table is a view or has computed columns, so its rows may differ from one statement to the next"
    for name in ("map", "class_weights"):
        if name in names:
            yield f"learner.{name} is set"
    if "row_norm" in study.space:
        yield "space.row_norm makes other rows in each run"
    if not 1.0 / _LARGEST <= settled.recipe.estimator(1.0, {}, None).row_norm <= _LARGEST:
        yield "learner.row_norm is too far from 1"
    if data.person is not None:
        yield "data.person chooses rows of each person"
    if study.validation.data == "training":
        yield 'validation.data is "training"'
    if study.validation.data == "private":
        if data.row_key is None:
            yield "data.row_key is not set, so the content of rows splits them"
        if study.privacy.adjacency is Adjacency.REPLACE_ONE:
            yield "under replace_one the position of a row splits them"
    if priced.price.purchase is not None:
        yield "bounds are private"
    if sum(column.width for column in settled.columns.values()) > _MOST_FEATURES:
        yield f"there are more than {_MOST_FEATURES} features"
    for name, column in settled.columns.items():
        if not _fits(engine.name, engine.types.get(name, ""), name, column):
            yield f"column {name!r} has a type, a kind or a scale that databases do not encode here"
    if not _label_fits(engine.name, engine.types, data):
        yield f"label {data.label!r} has a type or a kind that databases do not encode here"


def _fits(engine: str, kind: str, name: str, column: Column) -> bool:
    found = _type(engine, kind, name)
    if found is None or column.kind == TEXT:
        return False
    if column.categories is not None:
        return found.text is not None
    plain = column.missing_values is None and column.true_values is None and column.scale != "log"
    return plain and _is_number(found, column.kind) and _moderate(column.limits)


def _label_fits(engine: str, types: Mapping[str, str], data: Data) -> bool:
    target = data.target
    found, declared = _type(engine, types.get(data.label, ""), data.label), target.declared
    if found is None:
        return False
    if target.bounds is None:
        return declared.kind == "category" and found.text is not None
    return declared.missing_values is None and _is_number(found, declared.kind) and _moderate(target.bounds)


def _type(engine: str, kind: str, name: str) -> SqlType | None:
    from dpselect.ordered.sources.sql_types import sql_type  # which other studies need not load

    try:
        return sql_type(engine, kind, name)
    except ArgumentError:
        return None


def _is_number(found: SqlType, kind: str) -> bool:
    """Whether the engine's numbers are those of the kind."""
    whole = found.whole or kind == "number"
    return kind in _NUMBERS and found.number is not None and found.unit is None and whole


def _moderate(bounds: tuple[float, float]) -> bool:
    low, high = bounds
    return low >= -_LARGEST and high <= _LARGEST and high - low >= 1.0 / _LARGEST
