"""Columns of files and databases, read a batch at a time."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dpselect.errors import ArgumentError, ContentError, missing_extra
from dpselect.ordered.columns import Progress
from dpselect.ordered.sources import ColumnSource, DataColumn, SqlTable, TextColumn, block_of, duckdb_table
from dpselect.ordered.sql_column import quoted

__all__ = ["csv_column", "open_column", "parquet_column", "sql_column"]

BLOCK = 1 << 16


@contextmanager
def open_column(
    where: str, column: str, *, table: str | None = None, progress: Progress | None = None, text: bool = False
) -> Iterator[ColumnSource]:
    """A column of a Parquet file or folder, a CSV file, or a table behind an SQL URL (duckdb:///FILE, sqlite:///...).

    Whether values are whole numbers is taken from the schema of a Parquet file or database; CSV cells are doubles. With
    `text` the values are text, for `categories`.
    Raises `ArgumentError` that names the column, the table or the file; nothing is read from the rows yet.
    """
    if "://" in where:
        if table is None:
            raise ArgumentError("table: an SQL URL needs the name of a table")
        with sql_column(where, table, column) as source:
            yield source
        return
    if table is not None:
        raise ArgumentError("table: only for an SQL URL")
    path = Path(where)
    if not path.exists():
        raise ArgumentError(f"{where}: there is no such file")
    reader = csv_column if path.suffix.lower() in (".csv", ".txt") else parquet_column
    yield reader(path, column, progress, text)


@contextmanager
def sql_column(url: str, table: str, column: str) -> Iterator[SqlTable]:
    """A column of a table, in one transaction: all statements see the same rows where the engine allows it."""
    if url.startswith("duckdb:///"):
        with _duckdb(url.removeprefix("duckdb:///"), table, column) as source:
            yield source
        return
    import sqlalchemy as sa

    try:
        engine = sa.create_engine(url)
        file = engine.url.database if engine.dialect.name == "sqlite" else None
        if file and file != ":memory:" and not file.startswith("file:") and not Path(file).exists():
            raise ArgumentError(f"{url}: there is no such file")  # SQLite would make one
        inspector = sa.inspect(engine)
        *schema, name = table.split(".")
        columns = {c["name"]: c["type"] for c in inspector.get_columns(name, schema=schema[0] if schema else None)}
    except sa.exc.NoSuchTableError:
        raise ArgumentError(f"table: there is no {table!r}") from None
    except sa.exc.SQLAlchemyError as error:
        raise ArgumentError(f"{sa.engine.make_url(url).render_as_string() if '@' not in url else 'the SQL URL'}: "
                            f"{type(error).__name__}") from None  # fmt: skip
    if column not in columns:
        raise ArgumentError(f"column: there is no {column!r} in {table!r}")
    whole, cast, unit = _number_of(columns[column], engine.dialect.name)
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))

        def query(statement: str, parameters: Sequence[Any]) -> Sequence[Sequence[Any]]:
            named = {f"p{place}": value for place, value in enumerate(parameters)}
            return connection.execute(sa.text(statement), named).fetchall()

        yield SqlTable(query, table, column, whole, cast, unit)
    engine.dispose()


def _number_of(kind: Any, engine: str) -> tuple[bool, str, str | None]:
    """Whether a column holds whole numbers, the expression that makes a number of it, and the unit of moments.

    Each is a fixed map of single rows that never fails: a SQLite column may hold anything, a PostgreSQL moment may be
    infinite.
    """
    import sqlalchemy as sa

    if isinstance(kind, (sa.DateTime, sa.Date)):
        if engine == "sqlite":  # text, to the second
            return True, "CAST(strftime('%s', {0}) AS INTEGER)", "s"
        if engine == "postgresql":
            ticks = "CAST(EXTRACT(EPOCH FROM {0}) * 1000000 AS BIGINT)"
            return True, f"CASE WHEN isfinite({{0}}) THEN {ticks} END", "us"
        raise ArgumentError(f"column: moments are read from SQLite, PostgreSQL and DuckDB, not from {engine}")
    whole = isinstance(kind, sa.Integer)
    if engine == "sqlite":
        return whole, "CAST({0} AS INTEGER)" if whole else "CAST({0} AS REAL)", None
    if isinstance(kind, sa.Numeric) and not isinstance(kind, sa.Float):
        return False, "CAST({0} AS DOUBLE PRECISION)", None
    return whole, "{0}", None


@contextmanager
def _duckdb(path: str, table: str, column: str) -> Iterator[SqlTable]:
    try:
        import duckdb
    except ImportError:
        raise missing_extra("duckdb", "reading a DuckDB database") from None

    try:
        connection = duckdb.connect(path, read_only=True)
    except duckdb.Error:
        raise ArgumentError(f"duckdb:///{path}: it cannot be opened") from None
    with connection:
        try:
            relation = connection.sql(f"SELECT {quoted(column)} FROM {quoted(table)}")
        except duckdb.Error:
            raise ArgumentError(f"column: there is no {column!r} in a table {table!r}") from None
        connection.execute("BEGIN TRANSACTION")

        def query(statement: str, parameters: Sequence[Any]) -> Sequence[Sequence[Any]]:
            for place in reversed(range(len(parameters))):  # :p12 before :p1
                statement = statement.replace(f":p{place}", f"${place + 1}")
            return connection.execute(statement, list(parameters)).fetchall()

        yield duckdb_table(query, table, column, str(relation.types[0]))


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise missing_extra("parquet", "reading Parquet") from None
    return pyarrow


def parquet_column(
    path: str | Path, column: str, progress: Progress | None = None, text: bool = False
) -> DataColumn | TextColumn:
    """A column of a Parquet file or folder, read a batch at a time. Needs pyarrow."""
    pa = _pyarrow()
    import pyarrow.dataset as dataset

    try:
        table = dataset.dataset(str(path), format="parquet")
    except pa.ArrowException:
        raise ContentError(f"{path} cannot be read as Parquet") from None
    if column not in table.schema.names:
        raise ArgumentError(f"column: there is no {column!r} in {path}")
    kind = table.schema.field(column).type
    if pa.types.is_nested(kind):
        raise ArgumentError(f"column: {column!r} in {path} has no order")

    def batches() -> Iterator[Any]:
        # buffered: by default a whole column of a row group is held, and files may be one row group
        buffered = dataset.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
        scanner = table.scanner(
            columns=[column],
            batch_size=1 << 17,
            batch_readahead=1,
            fragment_readahead=1,
            fragment_scan_options=buffered,
        )
        try:
            for batch in scanner.to_batches():
                yield batch.column(0)
        except pa.ArrowException:  # its message may quote the data
            raise ContentError(f"column {column!r} of {path} cannot be read") from None

    if text:
        return TextColumn(lambda: (batch.cast(pa.string()).to_pylist() for batch in batches()), progress)
    try:
        dtype = block_of(pa.array([], kind)).dtype
    except TypeError:
        raise ArgumentError(f"column: {column!r} in {path} holds {kind}, which needs categories") from None
    return DataColumn(
        dtype, lambda: (block_of(batch).astype(dtype, copy=False) for batch in batches()), progress=progress
    )


def csv_column(
    path: str | Path, column: str, progress: Progress | None = None, text: bool = False
) -> DataColumn | TextColumn:
    """A column of a CSV file with a header, read a block at a time as doubles; a cell that is no number is missing."""
    with Path(path).open(newline="", encoding="utf-8-sig") as lines:
        header = next(csv.reader(lines), [])
    if column not in header:
        raise ArgumentError(f"column: there is no {column!r} in {path}")
    place = header.index(column)

    def blocks() -> Iterator[list[str]]:
        with Path(path).open(newline="", encoding="utf-8-sig", errors="replace") as lines:
            rows = csv.reader(lines)
            next(rows, None)
            block: list[str] = []
            try:
                for row in rows:
                    block.append(row[place] if place < len(row) else "")
                    if len(block) == BLOCK:
                        yield block
                        block = []
            except csv.Error:
                raise ContentError(f"column {column!r} of {path} cannot be read") from None
            yield block

    def chunks() -> Iterator[Any]:
        return (np.array([_number(cell) for cell in block]) for block in blocks())

    return TextColumn(blocks, progress) if text else DataColumn(np.dtype(np.float64), chunks, progress=progress)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
