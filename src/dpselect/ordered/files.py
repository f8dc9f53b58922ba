"""Columns of files and databases, read a batch at a time."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, ContentError, missing_extra
from dpselect.ordered.columns import Progress
from dpselect.ordered.sources import ColumnSource, DataColumn, SqlTable, block_of
from dpselect.ordered.sql_column import quoted

__all__ = ["csv_column", "open_column", "parquet_column", "sql_column"]

BLOCK = 1 << 16


@contextmanager
def open_column(
    where: str, column: str, *, table: str | None = None, progress: Progress | None = None
) -> Iterator[ColumnSource]:
    """A column of a Parquet file or folder, a CSV file, or a table behind an SQL URL (duckdb:///FILE, sqlite:///...).

    Whether values are whole numbers is taken from the schema of a Parquet file or database; CSV cells are doubles.
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
    yield reader(path, column, progress)


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
    whole = isinstance(columns[column], sa.Integer)
    # a SQLite column may hold anything; a cast is a fixed map on single rows and never fails
    cast = {True: "INTEGER", False: "REAL"}[whole] if engine.dialect.name == "sqlite" else None
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))

        def query(statement: str, parameters: Sequence[Any]) -> Sequence[Sequence[Any]]:
            named = {f"p{place}": value for place, value in enumerate(parameters)}
            return connection.execute(sa.text(statement), named).fetchall()

        yield SqlTable(query, table, column, whole, cast)
    engine.dispose()


@contextmanager
def _duckdb(path: str, table: str, column: str) -> Iterator[SqlTable]:
    import duckdb

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

        yield SqlTable(query, table, column, "INT" in str(relation.types[0]).upper())


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise missing_extra("parquet", "reading Parquet") from None
    return pyarrow


def parquet_column(path: str | Path, column: str, progress: Progress | None = None) -> DataColumn:
    """A column of a Parquet file or folder, read a batch at a time. Needs pyarrow."""
    pa = _pyarrow()
    import pyarrow.dataset as dataset

    try:
        table = dataset.dataset(str(path), format="parquet")
    except pa.ArrowException:
        raise ContentError(f"{path} cannot be read as Parquet") from None
    if column not in table.schema.names:
        raise ArgumentError(f"column: there is no {column!r} in {path}")
    dtype = block_of(pa.array([], table.schema.field(column).type)).dtype

    def chunks() -> Iterator[NDArray[Any]]:
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
                yield block_of(batch.column(0)).astype(dtype, copy=False)
        except pa.ArrowException:  # its message may quote the data
            raise ContentError(f"column {column!r} of {path} cannot be read") from None

    return DataColumn(dtype, chunks, progress=progress)


def csv_column(path: str | Path, column: str, progress: Progress | None = None) -> DataColumn:
    """A column of a CSV file with a header, read a block at a time as doubles; a cell that is no number is missing."""
    with Path(path).open(newline="", encoding="utf-8-sig") as lines:
        header = next(csv.reader(lines), [])
    if column not in header:
        raise ArgumentError(f"column: there is no {column!r} in {path}")
    place = header.index(column)

    def chunks() -> Iterator[NDArray[Any]]:
        with Path(path).open(newline="", encoding="utf-8-sig", errors="replace") as lines:
            rows = csv.reader(lines)
            next(rows, None)
            block: list[float] = []
            try:
                for row in rows:
                    block.append(_number(row[place] if place < len(row) else ""))
                    if len(block) == BLOCK:
                        yield np.array(block)
                        block = []
            except csv.Error:
                raise ContentError(f"column {column!r} of {path} cannot be read") from None
            yield np.array(block)

    return DataColumn(np.dtype(np.float64), chunks, progress=progress)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
