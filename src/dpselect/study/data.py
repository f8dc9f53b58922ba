"""From the cells of a table to rows that a learner takes.

`open_table` has read names only, so that a missing column is found before a row is read. `load` reads the rows and
turns them into a matrix by public facts alone: values are clipped to their declared bounds and scaled, categories
become indicator columns (`columns/`). Content errors name a column at most, never a value, a row or a count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, ContentError, MissingExtraError, StudyError
from dpselect.numerics.search import Array
from dpselect.study.cell_counts import column_fates, label_fates
from dpselect.study.columns.column import Column
from dpselect.study.row_parts import content_digests, key_digests, plain_digests, validation_mask
from dpselect.study.schema import Study
from dpselect.study.schema_data import Data
from dpselect.tables import Table
from dpselect.tables.header import absent
from dpselect.tables.numbers import otherwise_written
from dpselect.tables.person_rows import rows_of_persons
from dpselect.tables.row_digests import Digests
from dpselect.tables.table import open_table

__all__ = [
    "Rows",
    "cells_of",
    "encode_columns",
    "load",
    "of_numbers",
    "plain_numbers",
    "plan_columns",
    "refuse_one_class",
    "refuse_other_separators",
    "rows_of_part",
    "study_table",
]

_PLAIN: Final = ("number", "integer")
"""Kinds whose cells are numbers alone, and not durations, which text can write otherwise."""


@dataclass(frozen=True, repr=False)
class Rows:
    """Features in [-1, 1] (rows x features), labels as `Target.read` gives them, and a digest of each row.

    `labels` are places of the declared classes, -1 where a label is none of them, or numbers between the declared
    bounds. `digests` decide the rows' parts (`row_parts`). `numbers` are the cells of columns whose bounds are private,
    NaN where one is missing. Their features are made once bounds are estimated privately. `cells` are counts of how the
    cells are handled, one row for each column and the label last. It is None if they are not counted.
    """

    features: Array
    labels: NDArray[Any]
    digests: Digests
    numbers: Mapping[str, Array] = field(default_factory=dict)
    cells: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def all(self) -> tuple[Array, NDArray[Any]]:
        """The features and labels of all rows, for training."""
        return self.features, self.labels

    def parts(self, study: Study) -> tuple[tuple[Array, NDArray[Any]], tuple[Array, NDArray[Any]] | None]:
        """The training rows, and the features and labels of the validation rows if some private ones are held out."""
        if study.validation.data != "private":
            return self.all, None
        adjacency, fraction = study.privacy.adjacency, study.validation.fraction
        held_out = validation_mask(self.digests, fraction=fraction, adjacency=adjacency, salt=study.name)
        training = (self.features[~held_out], self.labels[~held_out])
        return training, (self.features[held_out], self.labels[held_out])

    def digest(self) -> bytes:
        """A digest of all that a search takes from the rows, private like them."""
        found = hashlib.sha256(self.digests.joined)
        counted = () if self.cells is None else (self.cells,)
        for part in (self.features, self.labels, *self.numbers.values(), *counted):
            found.update(f"{part.dtype.str} {part.shape}".encode())
            found.update(np.ascontiguousarray(part).data)
        return found.digest()

    def with_columns(self, columns: Mapping[str, Column]) -> Rows:
        """The same rows, in the same parts, with features by the bounds of these columns."""
        features, end = self.features.copy(), 0
        for name, column in columns.items():
            start, end = end, end + column.width
            if name in self.numbers:
                features[:, start:end] = column.features(self.numbers[name])
        return replace(self, features=features)


def study_table(source: str, folder: Path, key: str, data: Data, *, shared: bool = False) -> Table:
    """Open a source that a study names, written as `data` says. Raises `StudyError` that names `key`."""
    with _study_errors():
        return open_table(source, folder, key, form=data.form, shared=shared)


@contextmanager
def _study_errors() -> Iterator[None]:
    try:
        yield
    except MissingExtraError:
        raise
    except ArgumentError as error:
        raise StudyError(str(error)) from None


def plan_columns(data: Data, table: Table) -> dict[str, Column]:
    """The feature columns in file order with their public facts. Raises `StudyError` naming what is missing."""
    keys = {"data.label": data.label, "data.row_key": data.row_key, "data.person": data.person}
    special = {name for name in keys.values() if name is not None}
    named = {key: () if name is None else (name,) for key, name in keys.items()} | {"data.columns": data.columns}
    missing = {key: [name for name in names if name not in table.columns] for key, names in named.items()}
    if any(missing.values()):
        wrong = ", ".join(key for key, names in missing.items() if names)
        raise StudyError(f"{wrong}: {absent([name for names in missing.values() for name in names], table.columns)}")
    if data.bounds is not None and not table.header:
        raise StudyError(
            f"data.bounds: {table.where} has no header, so one row could add a column; name each under data.columns"
        )
    shared = None if data.bounds is None else Column(bounds=data.bounds)
    used = [name for name in table.columns if name in special or name in data.columns or shared is not None]
    with _study_errors():
        table.check(used)
        if table.empty is not None:
            for name in used:
                table.empty(name)
    facts = {name: data.columns.get(name, shared) for name in used if name not in special}
    return {name: fact for name, fact in facts.items() if fact is not None}


def load(
    data: Data,
    table: Table,
    facts: Mapping[str, Column] | None = None,
    *,
    counted: bool = False,
    most: int | None = None,
    salt: str = "",
) -> Rows:
    """Read and encode the rows, with the features in the order of `facts`, by default in the table's order.

    With `counted` the cells of each column are counted by how they are handled. With `most` only so many rows of each
    person are taken, chosen by `salt`, before anything is counted or encoded. The same tables are refused as without.

    Raises `ContentError` that names a column, never a value, a row or a count.
    """
    facts = plan_columns(data, table) if facts is None else facts
    person = None if most is None else data.person
    wanted = (data.label, *facts, *(name for name in (data.row_key, person) if name is not None))
    label = data.target.declared
    numeric = [*of_numbers(facts), *([data.label] if label.column_kind.numeric else [])]
    plain = {name for name in numeric if (facts[name].declared if name in facts else label).kind in _PLAIN}
    columns = cells_of(table, wanted, numeric, doubles=plain)
    refuse_other_separators(table, {name: columns[name] for name in plain}, data.decimal, data.thousands)
    length = np.size(columns[data.label])
    if length == 0:
        raise ContentError("the data have no rows")
    for name in wanted:
        if np.shape(columns[name]) != (length,):
            raise ContentError(f"column {name!r} does not have one cell for each row")
    labels = data.target.read(data.label, columns[data.label])
    if data.target.bounds is None:
        refuse_one_class(data, labels)
    chosen = None
    if person is not None and most is not None:
        contents = plain_digests(_encoded(facts, dict(columns), length)[2], labels)
        chosen = rows_of_persons(columns.pop(person), contents, most=most, salt=salt)
        columns = {name: np.asarray(cells)[chosen.places] for name, cells in columns.items()}
        labels, length = labels[chosen.places], len(chosen.places)
    places = slice(None) if chosen is None else chosen.places
    cells = _counted(data, table, facts, columns, plain, places) if counted else None
    keys = columns[data.row_key] if data.row_key else None
    features, numbers, told_apart = _encoded(facts, columns, length)
    if chosen is not None:
        digests = chosen.persons
    else:
        digests = content_digests(told_apart, labels) if keys is None else key_digests(keys)
    return Rows(features, labels, digests, numbers, cells)


def refuse_one_class(data: Data, labels: NDArray[Any]) -> None:
    """Raise `ContentError` unless at least two of the declared classes are among the labels."""
    if len(set(labels.tolist()) - {-1}) < 2:
        declared = ", ".join(map(repr, data.target.classes))
        raise ContentError(
            f"column {data.label!r} must hold at least two of the declared classes, {declared}: write them as it does"
        )


def rows_of_part(data: Data, table: Table, facts: Mapping[str, Column]) -> Rows:
    """The rows of a part of a table whose cells were counted before, so that no content is refused."""
    columns = cells_of(table, (data.label, *facts))
    labels = data.target.read(data.label, columns[data.label])
    parts = (
        fact.encode(name, columns[name]) if fact.categories else fact.features(fact.declared.read(columns[name]))
        for name, fact in facts.items()
    )
    return Rows(_joined(parts, facts, len(labels)), labels, Digests(b""))


def _encoded(
    facts: Mapping[str, Column], columns: dict[str, Any], length: int
) -> tuple[Array, dict[str, Array], Array]:
    """The features, the numbers of columns with private bounds, and both side by side: what tells rows apart.

    Cells are let go one column after the other, as their features come.
    """
    numbers = {name: fact.numbers(name, columns[name]) for name, fact in facts.items() if fact.private}
    parts = (
        fact.features(numbers[name]) if fact.private else fact.encode(name, columns.pop(name))
        for name, fact in facts.items()
    )
    features = _joined(parts, facts, length)
    return features, numbers, np.column_stack([features, *numbers.values()]) if numbers else features


def _counted(
    data: Data,
    table: Table,
    facts: Mapping[str, Column],
    columns: Mapping[str, Any],
    plain: Collection[str],
    places: slice | NDArray[np.intp],
) -> NDArray[np.int64]:
    """The counts of how each column's and the label's cells are handled, shape (columns + 1, fates).

    `columns` are the cells of the rows at these `places` of the table.
    """

    def cells(name: str) -> Any:
        """The cells, as the file writes them if they came as doubles and one of them is none."""
        came = table.is_text and name in plain
        again = came and bool(np.isnan(columns[name]).any())
        return np.asarray(cells_of(table, [name], [name])[name])[places] if again else columns[name]

    found = [column_fates(name, fact, cells(name)) for name, fact in facts.items()]
    return np.array([*found, label_fates(data.target, cells(data.label))], dtype=np.int64)


def cells_of(
    table: Table, wanted: Sequence[str], numbers: Collection[str] = (), *, doubles: Collection[str] = ()
) -> dict[str, Any]:
    """These columns, with `numbers` read as numbers. A cell that is no number as declared is none.

    Text of `doubles` comes as doubles, which is faster, but then it is lost that a cell holds text. A library's message
    about cells that it cannot read is not passed on, as it may quote them.
    """
    try:
        found = table.read(wanted, doubles)
        if table.restated is None:
            return found
        return {
            name: cells if name in doubles else table.restated(cells, name in numbers) for name, cells in found.items()
        }
    except (ArgumentError, ContentError):
        raise
    except Exception:
        pass
    raise ContentError("the data cannot be read")


def of_numbers(facts: Mapping[str, Column]) -> list[str]:
    """The columns whose cells are numbers."""
    return [name for name, fact in facts.items() if fact.declared.column_kind.numeric]


def plain_numbers(facts: Mapping[str, Column]) -> set[str]:
    """The columns whose cells are numbers, and not durations."""
    return {name for name in of_numbers(facts) if facts[name].declared.kind in _PLAIN}


def refuse_other_separators(
    table: Table, numbers: Mapping[str, Array], decimal: str | None, thousands: str | None, keys: str = "data."
) -> None:
    """Raise `ContentError` where a tenth of a column, and more than one cell, would be numbers with other separators.

    How numbers are written is a public fact, and what is declared of it a promise, which is broken there.
    """
    if not table.is_text:
        return
    for name, values in numbers.items():
        found = int(np.count_nonzero(~np.isnan(values)))
        if len(values) - found > 1 and 9 * (len(values) - found) > found:
            cells = [str(cell) for cell in table.read([name])[name]]
            otherwise = otherwise_written(cells, decimal or ".", thousands or "")
            if otherwise > 1 and 9 * otherwise > found:
                raise ContentError(
                    f"column {name!r} holds numbers with other separators than declared: declare {keys}decimal and "
                    f'{keys}thousands, of 1.234,5 as "," and "."'
                )


def encode_columns(columns: Mapping[str, Any], facts: Mapping[str, Column]) -> Array:
    """Features in [-1, 1] of rows to predict, by public facts, in the order of `facts`. Raises `ContentError`."""
    length = len(columns[next(iter(facts))])
    return _joined((fact.encode(name, columns[name], empty=True) for name, fact in facts.items()), facts, length)


def _joined(parts: Iterable[Array], facts: Mapping[str, Column], length: int) -> Array:
    """One matrix, with room for one part beside it."""
    features, end = np.empty((length, sum(fact.width for fact in facts.values()))), 0
    for part in parts:
        start, end = end, end + part.shape[1]
        features[:, start:end] = part
    return features
