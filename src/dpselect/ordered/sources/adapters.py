"""Adapters from column types to rank queries: arrays, Arrow, pandas, polars, chunks, SQL tables, DuckDB relations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import tee
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpselect.capabilities import DuckRelation
from dpselect.errors import ArgumentError
from dpselect.numerics.moments import stamp_type
from dpselect.ordered.domains import Categories, Domain, Ticks, WholeNumbers
from dpselect.ordered.order_statistics.intervals import RankedColumn, SortedColumn, Window
from dpselect.ordered.sources.columns import ChunkedColumn, CountedColumn, Progress
from dpselect.ordered.sources.counted_ranks import CountedRanks
from dpselect.ordered.sources.engine_column import engine_column
from dpselect.ordered.sources.sql_counts import Query, SqlCounts, ask, duckdb_query, quoted
from dpselect.ordered.sources.sql_fates import number_counts
from dpselect.ordered.sources.sql_groups import SqlGroups
from dpselect.ordered.sources.sql_persons import SqlPersons
from dpselect.ordered.sources.sql_types import sql_type
from dpselect.tables.column_cells import text_chunks
from dpselect.tables.fates import NO_FATES, block_fates, is_missing_text, tally, text_fates
from dpselect.tables.frames import only_column, refuse_engine
from dpselect.tables.kinds.each_cell import text_of
from dpselect.tables.number_blocks import Block, block_of, blocks_of, chunk_of, present_in
from dpselect.tables.plain_lists import LARGEST
from dpselect.tables.statements import SQLITE_CELL

__all__ = [
    "ColumnSource",
    "DataColumn",
    "SqlTable",
    "TextColumn",
    "categorical_column",
    "personal_table",
    "read_values",
    "text_source",
    "typed_table",
    "unit_rows",
]

_BLOCK = 1 << 16


@runtime_checkable
class ColumnSource(Protocol):
    """A column that is not read yet."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values: part of the schema, not of the data."""
        ...

    def ranked(self, domain: Domain) -> RankedColumn:
        """The column with its ranks, under a domain."""
        ...


@runtime_checkable
class ZonedSource(Protocol):
    """A column of time stamps, with the time zone of its type if there is one."""

    zone: str | None


@runtime_checkable
class CountedSource(Protocol):
    """A column whose cells are counted by what became of them."""

    def fates(self, low: Any, high: Any) -> NDArray[np.int64]:
        """How many cells have each of `FATES`, under these bounds."""
        ...


@runtime_checkable
class CategorySource(Protocol):
    """A column whose rows are counted by category: text of a file, or a table."""

    def counted(self, named: Categories) -> Callable[[], NDArray[np.int64]]:
        """Counts the rows of each category."""
        ...

    def category_fates(self, named: Categories) -> NDArray[np.int64]:
        """How many cells have each of `FATES`: a cell that is none of the categories is missing or unreadable."""
        ...


@dataclass(frozen=True, repr=False)
class DataColumn:
    """A column in memory, or in chunks that can be read again. Objects are Python integers of any size.

    `written` is for a column whose cells may hold something else than its type: it yields the column's blocks with
    their cells as they are written. `missing` tells which of them have no value. `zone` is the time zone that the type
    of time stamps has. The values are in UTC. `by_group` makes a column of the rows of each group, if there is a column
    of groups too. `persons` yields the person of each row, if rows are to be limited by person.
    """

    dtype: np.dtype[Any]
    blocks: Callable[[], Iterator[Block]]
    ascending: Any = None
    progress: Progress | None = None
    written: Callable[[], Iterator[tuple[Block, Any]]] | None = None
    missing: Callable[[Any], bool] = is_missing_text
    zone: str | None = None
    by_group: Callable[[Categories], Sequence[DataColumn | TextColumn]] | None = None
    persons: Callable[[], Iterator[list[Any]]] | None = None

    def chunks(self) -> Iterator[NDArray[Any]]:
        """The values that are there, all of one type. NaN and NaT may be among them."""
        return map(present_in, self.blocks())

    @property
    def typed(self) -> bool:
        """Whether its type rules out that a cell holds something else."""
        return self.written is None

    def fates(self, low: Any, high: Any) -> NDArray[np.int64]:
        """How many cells have each of `FATES`, under these bounds. For time stamps, ticks of the column's unit."""
        if self.ascending is not None:
            raise ArgumentError("assume_sorted: the cells of such a column are not counted")
        return block_fates(self.blocks, low, high, self.written, self.missing)

    def ranked(self, domain: Domain) -> RankedColumn:
        """Found by bracketing in unsorted data, by place in sorted data."""
        if self.ascending is not None:
            return SortedColumn(self.ascending, domain)
        if self.dtype.kind == "O" or domain.size > 1 << 64:
            whole = (int(value) for chunk in self.chunks() for value in chunk)
            if not isinstance(domain, WholeNumbers):  # its thresholds are doubles
                whole = (min(max(value, -LARGEST), LARGEST) for value in whole)
            return SortedColumn(sorted(whole), domain)
        return ChunkedColumn(self.chunks, domain, self.progress)


@dataclass(frozen=True, repr=False)
class TextColumn:
    """A column of text, in chunks that can be read again. `by_group` and `persons` are as in `DataColumn`."""

    chunks: Callable[[], Iterator[list[Any]]]
    progress: Progress | None = None
    by_group: Callable[[Categories], Sequence[DataColumn | TextColumn]] | None = None
    persons: Callable[[], Iterator[list[Any]]] | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Raises `TypeError`: text has an order only by categories."""
        raise TypeError("values that are text need categories")

    def ranked(self, domain: Domain) -> RankedColumn:  # noqa: ARG002
        """Raises `TypeError`."""
        raise TypeError("values that are text need categories")

    def counted(self, named: Categories) -> Callable[[], NDArray[np.int64]]:
        """Counts the rows of each category."""

        def count() -> NDArray[np.int64]:
            counts = np.zeros(named.size, dtype=np.int64)
            for chunk in self.chunks():
                counts += named.counts(chunk)
                if self.progress is not None:
                    self.progress(len(chunk))
            return counts

        return count

    def category_fates(self, named: Categories) -> NDArray[np.int64]:
        """How many cells have each of `FATES`: a cell that is none of the categories is missing or unreadable."""
        counts = NO_FATES
        for chunk in self.chunks():
            counts = counts + tally(text_fates(chunk, named.places(chunk)))
        return counts


@dataclass(frozen=True, repr=False)
class SqlTable:
    """A column of a table: `query` runs SQL (see `sql_counts`). If `whole`, it holds integers.

    `table` and `column` are names, with dots between the parts of a name. `number_of` is an SQL expression with `{0}`
    for the column: a fixed map of single rows to numbers or NULL. No content may make it fail (you must ensure this).
    It is None for a column that has an order by categories only. If `unit` is given, the numbers are timestamps,
    counted in it since 1970. `zone` is the time zone of their type: instants are in UTC. `text_of` is the same for what
    names a category, or None if nothing does. If `any_type`, a cell may hold a value of another type than the column's,
    as in SQLite. `fence` follows the table's name in statements (see `SqlType`). `groups` is the column that splits the
    rows, and `persons` the one that says whose they are. `rows` is in place of the table in statements if only some of
    its rows are meant.
    """

    query: Query
    table: str
    column: str
    whole: bool = False
    number_of: str | None = "{0}"
    unit: str | None = None
    text_of: str | None = "{0}"
    zone: str | None = None
    any_type: bool = False
    fence: str = ""
    groups: SqlGroups | None = None
    rows: str = ""
    persons: SqlPersons | None = None

    @property
    def _rows(self) -> str:
        return self.rows or quoted(self.table)

    def by_group(self, named: Categories) -> list[SqlTable]:
        """The column of each group's rows, if the table was opened with `groups`."""
        if self.groups is None:
            raise ArgumentError(f"groups: open the table with open_column(..., {self.column!r}, by=...)")
        parts = [self.groups.part(named, group) for group in range(named.size)]
        return [replace(self, rows=rows, query=query, groups=None) for rows, query in parts]

    @property
    def dtype(self) -> np.dtype[Any]:
        """int64, float64 or timestamps, as declared. Raises `ArgumentError` for a column that needs categories."""
        self._number()
        if self.unit is not None:
            return stamp_type(self.unit)
        return np.dtype(np.int64 if self.whole else np.float64)

    def ranked(self, domain: Domain) -> RankedColumn:
        """Ranks from the engine."""
        kind = "f" if self.dtype.kind == "f" else "i"
        inner = domain if self.unit is None else Ticks(domain, self.unit)
        return CountedRanks(SqlCounts(self.query, self._number(), self._rows + self.fence, kind), inner, kind)

    def counted(self, named: Categories) -> Callable[[], NDArray[np.int64]]:
        """Counts the rows of each category. Texts and integers are read as the cells of a file are."""
        grouped = self._grouped()

        def count() -> NDArray[np.int64]:
            cells, rows = grouped()
            places = named.places(cells)
            return np.bincount(places[places >= 0], rows[places >= 0], named.size).astype(np.int64)

        return count

    def _grouped(self) -> Callable[[], tuple[list[Any], NDArray[np.int64]]]:
        """Reads the different cells, and how many rows have each of them. Raises for a column that has no categories.

        Equal cells of two types are two, as one row would decide which of them is read for all.
        """
        if self.text_of is None:
            raise ArgumentError(f"categories: column {self.column!r} holds neither text nor integers")
        text, column = self.text_of.replace("{0}", quoted(self.column)), quoted(self.column)
        by = f"{text}, typeof({column})" if self.any_type else text

        def read() -> tuple[list[Any], NDArray[np.int64]]:
            found = ask(self.query, f"SELECT {text}, count(*) FROM {self._rows} GROUP BY {by}", ())
            return [text_of(cell) for cell, _ in found], np.array([int(rows) for _, rows in found], dtype=np.int64)

        return read

    @property
    def typed(self) -> bool:
        """See `DataColumn.typed`."""
        return not self.any_type

    def fates(self, low: Any, high: Any) -> NDArray[np.int64]:
        """See `DataColumn.fates`. The engine counts them in one statement."""
        return number_counts(
            self.query,
            self._rows,
            cell=SQLITE_CELL.format(quoted(self.column)) if self.any_type else self._number(),
            number=self._number(),
            ends=(low, high),
            whole=self.dtype.kind != "f",
        )

    def category_fates(self, named: Categories) -> NDArray[np.int64]:
        """See `TextColumn.category_fates`."""
        cells, rows = self._grouped()()
        fates = text_fates(cells, named.places(cells))
        return np.bincount(fates, rows, len(NO_FATES)).astype(np.int64)

    def _number(self) -> str:
        if self.number_of is None:
            raise ArgumentError(f"column: {self.column!r} holds text, which needs categories")
        return self.number_of.replace("{0}", quoted(self.column))


def read_values(values: Any, *, assume_sorted: bool = False) -> ColumnSource:
    """Make a source of what a caller may hand over.

    * A `ColumnSource` as it is, or a DuckDB relation with one column.
    * An Arrow array or chunked array, or a polars or pandas series.
    * A column of an engine that counts: an Ibis column, a lazy polars or Spark frame with one column, a Dask series.
    * A function that returns an iterator of chunks, called once for each reading (two, most often).
    * An iterator of chunks, which is kept in memory as it cannot be read again.
    * Anything that NumPy makes a one-dimensional array of real numbers or timestamps of. Values without a type (a
      list, a tuple, a deque), text and the categories of pandas hold doubles (`blocks_of`).

    The first chunk, which may be empty, has the type of the column. If there is no chunk, it is a column of doubles.
    Later chunks are read as that type: their types, which one cell may change in other libraries, change nothing.

    Nulls, NaN and NaT are missing: such rows are not in the column. Cells of a list or of an array of objects that are
    not numbers (integers) are missing too. Raises `TypeError` and `ArgumentError` for a type or shape that does not
    fit.
    """
    if (counted := engine_column(values)) is not None:
        if assume_sorted:
            raise ArgumentError("assume_sorted needs values in memory")
        return counted
    if isinstance(values, (str, Path)):
        raise ArgumentError('values is a name: write open_column("people.csv", "age") for a column of that file')
    if not _is_relation(values):
        values = _column_of(values)
    # the protocol last: it would ask a column of text for its type
    if isinstance(values, (SqlTable, TextColumn, ColumnSource)):
        source: ColumnSource = _for_rows(values)
    elif _is_relation(values):
        source = _relation(values)
    elif callable(values):
        source = _readable(values)
    elif isinstance(values, Iterator):
        (kept,) = tee(values, 1)  # a copy of it starts over, and what was taken from the iterator is kept
        source = _readable(lambda: copy(kept))
    else:
        parts = blocks_of(values)
        source = DataColumn(parts[0][0].dtype, lambda: (piece for part in parts for piece in _pieces(part)))
        if assume_sorted:
            return _ascending(parts)
    if assume_sorted:
        raise ArgumentError("assume_sorted needs values in memory")
    return source


def _for_rows(source: Any) -> Any:
    """A source that is not for persons, or was limited to a number of rows of each."""
    if getattr(source, "persons", None) is not None:
        raise ArgumentError("rows_per_person: the column was opened with person=..., so say how many rows of one count")
    return source


def _column_of(values: Any) -> Any:
    """The column of a frame in memory with one. Other engines than those that count are refused by name."""
    refuse_engine(values, "values")
    return only_column(values, "values")


def _pieces(part: Block) -> Iterator[Block]:
    values, present = part
    for start in range(0, len(values), _BLOCK):
        piece = slice(start, start + _BLOCK)
        yield values[piece], None if present is None else present[piece]


def _ascending(parts: list[Block]) -> DataColumn:
    kept = [present_in(part) for part in parts]
    values = kept[0] if len(kept) == 1 else np.concatenate(kept)
    dtype = values.dtype
    if dtype.kind in "fM":  # missing values come last
        values = values[: int(np.searchsorted(values, np.array(np.nan if dtype.kind == "f" else "NaT", dtype=dtype)))]
    return DataColumn(dtype, lambda: iter([(values, None)]), values.tolist() if dtype.kind == "O" else values)


def _readable(chunks: Callable[[], Iterator[Any]]) -> DataColumn:
    first = next(iter(chunks()), None)
    dtype = np.dtype(np.float64) if first is None else block_of(first)[0].dtype
    return DataColumn(dtype, lambda: (chunk_of(chunk, dtype) for chunk in chunks()))


def _is_relation(values: Any) -> bool:
    """Whether values are a relation of DuckDB."""
    return isinstance(values, DuckRelation)


def _relation(relation: Any) -> SqlTable:
    if len(relation.columns) != 1:
        raise ArgumentError("values: a relation must have one column; project it first")
    name = relation.columns[0]
    # a name with a dot would be read as a table and a column
    plain = relation if "." not in name else relation.project(f'"{name.replace(chr(34), chr(34) * 2)}" AS value')
    return typed_table("duckdb", duckdb_query(plain), "rows", plain.columns[0], str(relation.types[0]))


def grouped_table(source: SqlTable, by: SqlTable, engine: str) -> SqlTable:
    """The column with the column of the same table that splits its rows. Raises for one that names no groups."""
    return replace(source, groups=SqlGroups(engine, by.query, by.table, by.column, by.text_of))


def personal_table(source: SqlTable, person: SqlTable, engine: str) -> SqlTable:
    """The column with the column of the same table that says whose row it is. Raises for one that names no persons."""
    return replace(source, persons=SqlPersons(engine, person.column, person.text_of is not None))


def typed_table(engine: str, query: Query, table: str, column: str, name: str) -> SqlTable:
    """A column by its engine's name for its type. Raises `ArgumentError` for a type that is not on the list."""
    kind = sql_type(engine, name, column)
    zone, loose = "UTC" if kind.zoned else None, engine == "sqlite"
    return SqlTable(query, table, column, kind.whole, kind.number, kind.unit, kind.text, zone, loose, kind.fence)


def text_source(values: Any) -> CategorySource:
    """A source that counts rows by category. Raises for a type that is not read."""
    if (counted := engine_column(values)) is not None:
        return counted
    if _is_relation(values):
        return _relation(values)
    values = _column_of(values)
    if isinstance(values, CategorySource):
        return _for_rows(values)
    if isinstance(values, ColumnSource) or callable(values):
        raise TypeError("values: categories need values in memory, or a column of text")
    return TextColumn(text_chunks(values))


def categorical_column(source: CategorySource, named: Categories) -> Callable[[], RankedColumn]:
    """Counts rows of a `text_source` by category. Those outside the declared list are missing."""
    count = source.counted(named)

    def column() -> CountedColumn:
        counts = count()
        kept = np.flatnonzero(counts)
        return CountedColumn(Window(kept.astype(np.uint64), counts[kept], 0, 0))

    return column


def unit_rows(
    source: ColumnSource, units: NDArray[np.int64], domain: Domain
) -> Callable[[], tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """Reads the codes of rows that count as `units` rows each, an integer >= 0. Missing values contribute 0.

    Raises `ArgumentError` at once where the numbers of rows and units differ.
    """
    if not isinstance(source, DataColumn) or source.dtype.kind == "O":
        raise ArgumentError("weights need values in memory, of a type of NumPy")
    if sum(len(values) for values, _ in source.blocks()) != len(units):
        raise ArgumentError("weights must have one entry for each row")

    def read() -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        parts = [*source.blocks(), (np.empty(0, dtype=source.dtype), None)]
        values = np.concatenate([part for part, _ in parts])
        present = np.concatenate([np.ones(len(part), dtype=bool) if mask is None else mask for part, mask in parts])
        kept = (units > 0) & present & (values == values)
        return np.asarray(domain.encode(values[kept]), dtype=np.uint64), units[kept]

    return read
