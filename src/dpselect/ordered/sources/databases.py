"""Columns of databases: their types are checked, and a statement tried without rows, before anything is paid."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from dpselect.errors import ArgumentError, ContentError, missing_extra
from dpselect.ordered.sources.adapters import ColumnSource, SqlTable, grouped_table, personal_table, typed_table
from dpselect.ordered.sources.declared_missing import refuse_for_typed, sql_without
from dpselect.ordered.sources.opening import column_source
from dpselect.ordered.sources.request import ColumnRequest
from dpselect.ordered.sources.sql_counts import Query, ask, quoted
from dpselect.ordered.sources.sql_persons import md5
from dpselect.ordered.sources.sql_types import ENGINES
from dpselect.ordered.sources.table_column import table_column
from dpselect.tables import Written
from dpselect.tables.sources.database import why_not
from dpselect.tables.statements import with_parameters
from dpselect.tables.table import open_table

__all__ = ["open_duckdb", "open_sql"]


@column_source("sql:")
def open_sql(url: str, request: ColumnRequest) -> AbstractContextManager[ColumnSource]:
    """A column of a table, in one transaction: all statements see the same rows where the engine allows it.

    Raises `ArgumentError` for a URL, table, column or type that is not read.
    """
    return _checked(_sqlalchemy, url, request)


@column_source("duckdb:")
def open_duckdb(url: str, request: ColumnRequest) -> AbstractContextManager[ColumnSource]:
    """A column of a table in a DuckDB file, likewise. Needs duckdb."""
    return _checked(_duckdb, url, request)


@contextmanager
def _checked(opened: Callable[..., Any], url: str, request: ColumnRequest) -> Iterator[ColumnSource]:
    if request.table is None:
        _refuse_by_name(url, request)
        raise ArgumentError("table: an SQL URL needs the name of a table")
    if request.by == request.column:
        raise ArgumentError(f"by: {request.by!r} is the column of the values")
    if _has_cells(url, request):
        if request.person is not None:  # the rows of two readings may be in another order
            raise ArgumentError("person: not with a declared kind of a database's text. Cast the column in a table")
        yield table_column(url, request)
        return
    with opened(url, request) as typed:
        named = f"column: {request.column!r} of {request.table} has one"
        refuse_for_typed(request.declared, named, zone=typed.zone is not None)
        source = sql_without(typed, request.declared)
        for part in (source.number_of, source.text_of):
            if part is not None:
                expression = part.replace("{0}", quoted(request.column))
                statement = f"SELECT {expression} FROM {quoted(request.table)} WHERE 1 = 0"
                _tried(source.query, statement, request.column)
        yield source


def _has_cells(url: str, request: ColumnRequest) -> bool:
    """Whether a kind is declared of a column whose cells may be of it: one of text, or any one of SQLite.

    Its cells are read as those of a file.
    """
    if request.text or request.kind is None or not _is_listed(url):
        return False
    table = open_table(url, key="", form=Written(table=request.table))
    table.check([request.column], "column")
    return url.startswith("sqlite:") or table.types.get(request.column) == "category"


def _is_listed(url: str) -> bool:
    """Whether it is a database whose schema can be listed."""
    return url.startswith(("sqlite:///", "duckdb:///", "postgresql://")) and ":memory:" not in url


def _refuse_by_name(url: str, request: ColumnRequest) -> None:
    """Raise `ArgumentError` with the tables or columns that are there, of a database whose schema can be listed."""
    if _is_listed(url):
        open_table(url, key="", form=Written(table=request.table)).check([request.column], "column")


def _tried(query: Query, statement: str, column: str) -> None:
    with suppress(ContentError):
        ask(query, statement, ())
        return
    raise ArgumentError(f"column: {column!r} cannot be read by this engine")


@contextmanager
def _sqlalchemy(url: str, request: ColumnRequest) -> Iterator[SqlTable]:
    import sqlalchemy as sa

    table, column = request.table or "", request.column
    engine = _engine(url)
    try:
        kind = _reading(url, lambda: _type_name(engine, table, column))
        if kind is None:
            _refuse_by_name(url, request)
            raise ArgumentError(f"table: there is no {table!r} with a column {column!r}")
        with _reading(url, engine.connect) as connection:
            if engine.dialect.name == "sqlite":  # whose driver fails for text that is not UTF-8
                driver: Any = connection.connection.driver_connection
                driver.text_factory = lambda cell: cell.decode("utf-8", "replace")
                driver.create_function("md5", 1, md5, deterministic=True)
            if engine.dialect.name == "postgresql":
                connection.execute(sa.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))

            def query(statement: str, parameters: Sequence[Any]) -> Sequence[Sequence[Any]]:
                bound = with_parameters(statement, lambda place: f":p{place}", lambda name: name.replace(":", "\\:"))
                named = {f"p{place}": value for place, value in enumerate(parameters)}
                return connection.execute(sa.text(bound), named).fetchall()

            name = engine.dialect.name
            found = typed_table(name, query, table, column, kind)
            if request.by is not None:
                by = typed_table(name, query, table, request.by, _other_kind(url, engine, table, "by", request.by))
                found = grouped_table(found, by, name)
            if request.person is not None:
                kind = _other_kind(url, engine, table, "person", request.person)
                found = personal_table(found, typed_table(name, query, table, request.person, kind), name)
            yield found
    finally:
        engine.dispose()


def _other_kind(url: str, engine: Any, table: str, key: str, column: str) -> str:
    kind = _reading(url, lambda: _type_name(engine, table, column))
    if kind is None:
        raise ArgumentError(f"{key}: there is no column {column!r} in {table!r}")
    return str(kind)


def _engine(url: str) -> Any:
    import sqlalchemy as sa

    name = _reading(url, lambda: sa.make_url(url).get_backend_name())
    if name not in ("sqlite", "postgresql"):
        raise ArgumentError(f"the engine {name!r} is not read; {', '.join(ENGINES)} are")
    engine = _reading(url, lambda: sa.create_engine(url))
    file = engine.url.database if engine.dialect.name == "sqlite" else None
    if file and file != ":memory:" and not file.startswith("file:") and not Path(file).exists():
        raise ArgumentError(f"{url}: there is no such file")  # SQLite would make one
    return engine


def _reading(url: str, step: Callable[[], Any]) -> Any:
    """A step before any row is read. If it raises, the error shows only the kind of the exception."""
    import sqlalchemy as sa

    try:
        return step()
    except ArgumentError:
        raise
    except Exception as error:
        shown = url if "@" not in url else "the SQL URL"
        kind = "NoSuchTableError" if isinstance(error, sa.exc.NoSuchTableError) else type(error).__name__
        kind = why_not(error) or kind
    raise ArgumentError(f"{shown}: {kind}")


def _type_name(engine: Any, table: str, column: str) -> str | None:
    """The engine's name for the type of a column, or None if there is no such column."""
    import sqlalchemy as sa

    *schema, name = table.split(".")
    if "." in column:
        raise ArgumentError(f"column: {column!r} has a dot in its name; name it otherwise in a view")
    if engine.dialect.name == "sqlite":  # SQLAlchemy would guess from parts of the name, as SQLite does
        with engine.connect() as connection:
            sql = "SELECT type FROM pragma_table_xinfo(:t, :s) WHERE name = :c"
            found = connection.execute(sa.text(sql), {"t": name, "s": schema[0] if schema else "main", "c": column})
            return next((str(row[0]) for row in found), None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sa.exc.SAWarning)  # of a type that it does not know
        columns = sa.inspect(engine).get_columns(name, schema=schema[0] if schema else None)
    found = next((one["type"] for one in columns if one["name"] == column), None)
    if found is None:
        return None
    return type(found).__name__ + (" WITH TIME ZONE" if getattr(found, "timezone", False) else "")


@contextmanager
def _duckdb(url: str, request: ColumnRequest) -> Iterator[SqlTable]:
    try:
        import duckdb
    except ImportError:
        raise missing_extra("duckdb", "reading a DuckDB database") from None

    other, table = request.by or request.person, request.table or ""
    columns = [request.column, *([] if other is None else [other])]
    try:
        connection = duckdb.connect(url.removeprefix("duckdb:///"), read_only=True)
    except duckdb.Error as error:
        raise ArgumentError(f"{url}: {why_not(error) or 'it cannot be opened'}") from None
    with connection:
        try:
            kinds = [connection.sql(f"SELECT {quoted(each)} FROM {quoted(table)}").types[0] for each in columns]
        except duckdb.Error:
            _refuse_by_name(url, request)
            names = " or ".join(map(repr, columns))
            raise ArgumentError(f"column: there is no {names} in a table {table!r}") from None
        connection.execute("BEGIN TRANSACTION")

        def query(statement: str, parameters: Sequence[Any]) -> Sequence[Sequence[Any]]:
            bound = with_parameters(statement, lambda place: f"${place + 1}")
            return connection.execute(bound, list(parameters)).fetchall()

        found, *others = [
            typed_table("duckdb", query, table, each, str(kind)) for each, kind in zip(columns, kinds, strict=True)
        ]
        if request.by is not None:
            found = grouped_table(found, others[0], "duckdb")
        if request.person is not None:
            found = personal_table(found, others[0], "duckdb")
        yield found
