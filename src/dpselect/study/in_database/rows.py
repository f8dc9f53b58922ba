"""The rows of a study that a database holds: exact sums over those that train, and the held-out rows themselves.

All statements are in one transaction, so that a table that others change is one table here. The search begins when it
is over: no run asks the database.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ContentError
from dpselect.learners.rows import MOST_ROWS
from dpselect.learners.sufficient_statistics import RowSums
from dpselect.ordered.sources.sql_fates import number_fate
from dpselect.ordered.sources.sql_groups import travels
from dpselect.ordered.sources.sql_types import sql_type
from dpselect.study.cell_counts import column_fates, label_fates
from dpselect.study.columns.column import INDICATOR, Column
from dpselect.study.data import Rows, refuse_one_class, rows_of_part
from dpselect.study.in_database.dialect import DIALECTS, Split
from dpselect.study.in_database.fields import CategoryField, NumberField
from dpselect.study.in_database.statement import RowStatement
from dpselect.study.learners.recipe import Training
from dpselect.study.price import Priced
from dpselect.tables.fates import FATES, MISSING, UNREADABLE
from dpselect.tables.kinds.each_cell import text_of
from dpselect.tables.statements import SQLITE_CELL
from dpselect.tables.table import TableEngine, TableSession

__all__ = ["SummedRows", "sum_rows"]

_EXPRESSIONS: Final = 1500
"""So many results a statement has at most. PostgreSQL has 1,664."""
Sums = dict[tuple[int, int], list[int]]
"""Of each part and class: the number of rows, and sums over them."""


@dataclass(frozen=True, repr=False)
class SummedRows:
    """The rows of a study: sums over the rows that train, and those that validate, None if none do.

    `held_out_sums` are the sums over the rows that validate. `size` is the number of all rows, those
    whose label is none of the classes included. `cells` are those of `Rows`.
    """

    sums: RowSums
    held_out_sums: RowSums
    held_out: Rows | None
    size: int
    cells: NDArray[np.int64] | None

    def __len__(self) -> int:
        return self.size

    @property
    def all(self) -> Training:
        """The features and labels of all rows, or their sums, for training."""
        return self.sums + self.held_out_sums, None

    def parts(self, study: Any) -> tuple[Training, tuple[Any, Any] | None]:  # noqa: ARG002
        """The sums over the training rows, and the features and labels of the validation rows."""
        held_out = self.held_out
        return (self.sums, None), None if held_out is None else (held_out.features, held_out.labels)

    def digest(self) -> bytes:
        """A digest of all that a search takes from the rows, private like them."""
        found = hashlib.sha256(b"" if self.held_out is None else self.held_out.digest())
        for sums in (self.sums, self.held_out_sums):
            found.update(repr((sums.row_norm, sums.count)).encode())
            for part in (sums.totals, sums.gram, sums.targets, sums.moments):
                found.update(f"{part.shape}".encode() + np.ascontiguousarray(part).tobytes())
        found.update(b"" if self.cells is None else self.cells.tobytes())
        return found.digest()


def sum_rows(priced: Priced, *, counted: bool) -> SummedRows:
    """Let the database add up the rows of a study for which `reason_to_read` is None.

    Raises `ContentError` for what `study.data.load` refuses, before anything is charged.
    """
    settled = priced.settled
    study, engine = settled.study, settled.table.engine
    assert engine is not None
    split = None
    if study.validation.data == "private":
        assert study.data.row_key is not None
        split = Split(study.data.row_key, study.validation.fraction, study.name)
    with engine.session(DIALECTS[engine.name].functions(split)) as session:
        return _Adding(priced, engine, session, split).rows(counted=counted)


@dataclass(frozen=True, repr=False)
class _Adding:
    priced: Priced
    engine: TableEngine
    session: TableSession
    split: Split | None

    def rows(self, *, counted: bool) -> SummedRows:
        settled = self.priced.settled
        data, columns = settled.study.data, settled.columns
        cells = self._cells()
        count = int(cells[0].sum())
        if count == 0:
            raise ContentError("the data have no rows")
        if count > MOST_ROWS:
            raise ContentError(f"the data must have at most {MOST_ROWS} rows")
        if data.target.bounds is None:
            refuse_one_class(data, data.target.read(data.label, self._distinct[data.label][1]))
        for (name, column), found in zip(columns.items(), cells, strict=False):
            if column.categories is None:
                lost = int(found[MISSING] + found[UNREADABLE])
                column.refuse_lost(name, some=lost > 0, every=lost == count)
        if data.target.bounds is not None and cells[-1][MISSING:].any():
            data.target.refuse_lost(data.label)
        train, held_out = self._sums()
        return SummedRows(train, held_out, self._held_out(), count, cells if counted else None)

    @cached_property
    def _distinct(self) -> dict[str, tuple[list[Any], list[Any], NDArray[np.int64]]]:
        """Of each column of categories its different cells, as the engine has them and as text, with their rows."""
        found = {}
        for name in self._of_categories:
            text, column = self._text(name), _quoted(name)
            by = f"{text}, typeof({column})" if self.engine.name == "sqlite" else text
            cells = self.session.ask(f"SELECT {text}, count(*) FROM {self.engine.rows} GROUP BY {by}", ())
            rows = np.array([int(rows) for _, rows in cells], dtype=np.int64)
            found[name] = [cell for cell, _ in cells], [text_of(cell) for cell, _ in cells], rows
        return found

    @property
    def _of_categories(self) -> list[str]:
        settled = self.priced.settled
        named = [name for name, column in settled.columns.items() if column.categories is not None]
        data = settled.study.data
        return [*named, data.label] if data.target.bounds is None else named

    def _text(self, name: str) -> str:
        return str(sql_type(self.engine.name, self.engine.types[name], name).text).replace("{0}", _quoted(name))

    def _number(self, name: str) -> str:
        """The number of a cell as a float64. In SQLite a column of integers may hold others."""
        column = self.priced.settled.columns.get(name)
        declared = self.priced.settled.study.data.target.declared if column is None else column.declared
        others = self.engine.name == "sqlite" and declared.kind == "number"
        number = str(sql_type(self.engine.name, "REAL" if others else self.engine.types[name], name).number)
        return f"CAST({number.replace('{0}', _quoted(name))} AS DOUBLE PRECISION)"

    def _cells(self) -> NDArray[np.int64]:
        """How the cells of the columns and of the label are handled, as `study.data.load` counts them."""
        settled = self.priced.settled
        target, label = settled.study.data.target, settled.study.data.label
        ends = {name: column.limits for name, column in settled.columns.items() if column.categories is None}
        if target.bounds is not None:
            ends[label] = target.bounds
        numbers = self._number_fates(ends)
        found = []
        for name, column in settled.columns.items():
            _, cells, rows = self._distinct.get(name, ([], [], np.zeros(0, dtype=np.int64)))
            found.append(numbers[name] if name in numbers else column_fates(name, column, cells, rows))
        _, cells, rows = self._distinct.get(label, ([], [], np.zeros(0, dtype=np.int64)))
        found.append(numbers[label] if label in numbers else label_fates(target, cells, rows))
        return np.array(found, dtype=np.int64)

    def _number_fates(self, ends: Mapping[str, tuple[float, float]]) -> dict[str, NDArray[np.int64]]:
        """The counts of all columns of numbers, in one statement."""
        if not ends:
            return {}
        parameters: list[Any] = []

        def bound(value: Any) -> str:
            parameters.append(value)
            return f":p{len(parameters) - 1}"

        fates, sums = [], []
        for place, (name, limits) in enumerate(ends.items()):
            number = self._number(name)
            cell = SQLITE_CELL.format(_quoted(name)) if self.engine.name == "sqlite" else number
            fates.append(f"{number_fate(bound, cell=cell, number=number, ends=limits)} AS t{place}")
            sums += [f"sum(CASE WHEN t{place} = {fate} THEN 1 ELSE 0 END)" for fate in range(len(FATES))]
        fence = DIALECTS[self.engine.name].fence
        inner = f"(SELECT {', '.join(fates)} FROM {self.engine.rows}{fence}) AS cells"
        (counts,) = self.session.ask(f"SELECT {', '.join(sums)} FROM {inner}", parameters)
        table = np.array([int(count or 0) for count in counts], dtype=np.int64).reshape(-1, len(FATES))
        return dict(zip(ends, table, strict=True))

    def _sums(self) -> tuple[RowSums, RowSums]:
        """The sums over the rows that train and over those that are held out."""
        target = self.priced.settled.study.data.target
        fields = [self._field(name, column) for name, column in self.priced.settled.columns.items()]
        width, regression = sum(each.width for each in fields), target.bounds is not None
        names = [f"z{place}" for place in range(width)]
        pairs = list(combinations_with_replacement(range(width), 2))
        of_targets = ["y", *(f"{name} * y" for name in names)] if regression else []
        listed = [*names, *of_targets, *(f"z{first} * z{second}" for first, second in pairs)]
        row_norm = float(self.priced.settled.recipe.estimator(1.0, {}, None).row_norm)
        found: Sums = {}
        for start in range(0, len(listed), _EXPRESSIONS):
            statement = self._statement(fields, row_norm)
            text = statement.sums(listed[start : start + _EXPRESSIONS])
            for part, place, rows, sums in _groups(self.session.ask(text, statement.parameters), regression):
                found.setdefault((part, place), [rows]).extend(sums)
        classes = 0 if regression else len(target.classes)
        parts = [{place: sums for (part, place), sums in found.items() if part == each} for each in (0, 1)]
        return _row_sums(parts[0], row_norm, width, classes), _row_sums(parts[1], row_norm, width, classes)

    def _statement(self, fields: Sequence[NumberField | CategoryField], row_norm: float) -> RowStatement:
        return RowStatement(self.engine.name, self.engine.rows, fields, self._label(), row_norm, self.split)

    def _field(self, name: str, column: Column) -> NumberField | CategoryField:
        if column.categories is None:
            indicated = column.missing == INDICATOR
            return NumberField(self._number(name), column.limits, column.fill, column.bins, indicated)
        cells, texts, _ = self._distinct[name]
        places = _places(column.encode(name, [*texts, None]))
        return self._category(name, cells, places, column.width, other=column.other)

    def _label(self) -> NumberField | CategoryField:
        data = self.priced.settled.study.data
        if data.target.bounds is not None:
            low, high = data.target.bounds
            return NumberField(self._number(data.label), data.target.bounds, low / 2 + high / 2)
        cells, texts, _ = self._distinct[data.label]
        places = data.target.read(data.label, [*texts, None]).tolist()
        return self._category(data.label, cells, places, len(data.target.classes), other=False)

    def _category(self, name: str, cells: list[Any], places: list[int], width: int, *, other: bool) -> CategoryField:
        """`places` are those of the cells, and of a cell without a value, which is last."""
        column = self.priced.settled.columns.get(name)
        unlisted = -1 if not other or column is None or column.categories is None else len(column.categories)
        spellings: dict[int, list[Any]] = {}
        for cell, place in zip(cells, places, strict=False):
            if place != unlisted and travels(self.engine.name, cell):
                spellings.setdefault(place, []).append(cell)
        return CategoryField(self._text(name), width, spellings, places[-1], unlisted)

    def _held_out(self) -> Rows | None:
        """The rows that are held out, read and encoded one by one."""
        settled = self.priced.settled
        if self.split is None:
            return None
        statement = self._statement([], 1.0)
        condition = statement.held_out()
        return rows_of_part(settled.study.data, self.session.part(condition, statement.parameters), settled.columns)


def _places(features: NDArray[np.float64]) -> list[int]:
    """The feature that is 1 of each row, -1 for none."""
    return np.where(features.any(axis=1), features.argmax(axis=1), -1).tolist()


def _groups(found: Sequence[Sequence[Any]], regression: bool) -> Iterator[tuple[int, int, int, list[int]]]:
    """The part, the class, the number of rows and the sums of each group."""
    for row in found:
        part, place, rest = (row[0], 0, row[1:]) if regression else (row[0], row[1], row[2:])
        yield int(part), int(place), int(rest[0]), [int(each) for each in rest[1:]]


def _row_sums(groups: Mapping[int, Sequence[int]], row_norm: float, width: int, classes: int) -> RowSums:
    """The sums of a part, from those of its classes, or of all its rows where there are none."""
    size = 1 + width + (0 if classes else 1 + width) + width * (width + 1) // 2
    table = np.zeros((max(classes, 1), size), dtype=np.int64)
    for place, sums in groups.items():
        table[place] = sums
    above, gram = np.triu_indices(width), np.zeros((width, width), dtype=np.int64)
    gram[above] = table[:, -(width * (width + 1) // 2) :].sum(axis=0)
    gram = gram + np.triu(gram, 1).T
    counts, totals = table[:, 0], table[:, 1 : 1 + width]
    if classes:
        # a target is the number of classes less 1 for the class of a row, and -1 for the others
        targets = classes * counts - counts.sum()
        moments = (classes * totals - totals.sum(axis=0)).T
    else:
        targets, moments = table[0, 1 + width : 2 + width], table[0, 2 + width : 2 + 2 * width, None]
    return RowSums(row_norm, int(counts.sum()), totals.sum(axis=0), gram, targets, moments)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
