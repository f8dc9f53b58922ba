"""The types of SQL columns that are read, and how: a list for each engine. Types that are not on it are refused.

An expression is a fixed map of single rows to a number, a text or NULL. No content makes it fail: a value that a cast
could not hold is clipped or NULL before it. NULL is missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from dpselect.errors import ArgumentError
from dpselect.tables.statements import SQLITE_CELL

__all__ = ["ENGINES", "SqlType", "sql_type"]

ENGINES = ("SQLite", "PostgreSQL", "DuckDB")
_BEYOND = 2**1024 - 2**970
"""From here on a number is nearer to what would follow the largest float64, and counts as infinite."""
_NEAR_ZERO = "2.4703282292062328e-324"
"""Half of the smallest float64 above 0."""


@dataclass(frozen=True)
class SqlType:
    """`{0}` stands for the column. `number` or `text` is None where a type has none.

    `whole`: the numbers are BIGINT, else doubles without NaN. `unit`: they are timestamps, counted in it since 1970, in
    UTC if `zoned`. Rows are grouped by `text`, byte by byte, and read as the names of categories. `fence` follows the
    table: an engine then computes the number once for a row, not in each comparison.
    """

    number: str | None
    whole: bool = False
    unit: str | None = None
    text: str | None = None
    zoned: bool = False
    fence: str = ""


def sql_type(engine: str, name: str, column: str) -> SqlType:
    """The type by the engine's own name for it. `engine` is "sqlite", "postgresql" or "duckdb".

    Raises `ArgumentError` for a type that is not on the list.

    >>> sql_type("duckdb", "INTEGER", "age").whole
    True
    """
    plain = re.sub(r"\s*\(\s*\d+\s*(,\s*\d+\s*)?\)", "", name.strip().upper())
    if engine == "duckdb" and re.fullmatch(r"ENUM\('.*'\)", name, flags=re.DOTALL):
        plain = "ENUM"
    found = _TYPES.get(engine, {}).get(plain)
    if found is None:
        what = name if len(name) < 60 else name[:57] + "..."
        cast = f"cast it in a view to {_CASTS.get(plain, 'a number, a date, a timestamp or text')}"
        if engine == "sqlite":  # whose types are hints, and whose views have none
            cast = 'declare its kind, such as "number" or "date"'
        raise ArgumentError(f"column: {column!r} is of the type {what or 'none'}, which is not read; {cast}")
    return found


_CASTS = {"INTERVAL": "seconds: EXTRACT(EPOCH FROM it), for which a month has 30 days"}


def _named(kind: SqlType, *names: str) -> dict[str, SqlType]:
    return dict.fromkeys(names, kind)


def _sqlite() -> dict[str, SqlType]:
    """A SQLite column may hold anything: a cell that is not a number, no integer or no text is missing."""
    word = "WHEN typeof({0}) = 'text' THEN CASE lower(trim({0})) WHEN 'true' THEN 1 WHEN 'false' THEN 0 %sEND END"
    integer = (
        "CASE WHEN typeof({0}) = 'integer' OR typeof({0}) = 'real' AND ({0} = CAST({0} AS INTEGER) OR abs({0}) > 9e18) "
        "THEN CAST({0} AS INTEGER) " + word % ""
    )
    infinite = {f"{sign}{name}": f"{sign}9e999" for sign in ("", "+", "-") for name in ("inf", "infinity")}
    infinities = "".join(f"WHEN '{name}' THEN {value} " for name, value in infinite.items())
    number = "CASE WHEN typeof({0}) IN ('integer', 'real') THEN CAST({0} AS REAL) " + word % infinities
    # the sign takes the column's affinity away: a view of two tables may hold a text that equals a number for it, and a
    # text would then name a category only if another row holds that number
    text = "+{0} COLLATE BINARY"
    # a cell 'now' would be another time in each statement; integers could be seconds, milliseconds or 20240131
    # SQLite takes the 30th of February for the 1st of March, and a time alone for one in the year 2000
    timestamp = (
        "CASE WHEN typeof({0}) = 'text' AND trim({0}) GLOB '[0-9][0-9][0-9][0-9]-*' AND trim({0}) >= '0001' "
        "AND date(substr(trim({0}), 1, 10), '+0 days') = substr(trim({0}), 1, 10) "
        "AND substr(trim({0}), 12, 2) <> '24' THEN CAST(strftime('%s', trim({0})) AS INTEGER) END"
    )
    whole = SqlType(integer, whole=True, text=f"{SQLITE_CELL} COLLATE BINARY")
    return {
        **_named(whole, "INT", "INTEGER", "TINYINT", "SMALLINT", "MEDIUMINT", "BIGINT", "INT2", "INT4", "INT8"),
        **_named(SqlType(integer, whole=True), "BOOLEAN", "BOOL"),
        **_named(SqlType(number), "REAL", "DOUBLE", "DOUBLE PRECISION", "FLOAT", "NUMERIC", "DECIMAL", "NUM"),
        **_named(SqlType(timestamp, whole=True, unit="s"), "DATE", "DATETIME", "TIMESTAMP"),
        **_named(SqlType(None, text=text), "TEXT", "VARCHAR", "CHAR", "CHARACTER", "NVARCHAR", "NCHAR", "CLOB"),
    }


def _postgresql() -> dict[str, SqlType]:
    text = 'CAST({0} AS TEXT) COLLATE "C"'
    # NUMERIC holds what no double does, and the cast fails for it, also where it comes too near to zero
    double = (
        "CASE WHEN {0} = 'NaN' THEN NULL "
        f"WHEN {{0}} >= {_BEYOND} THEN CAST('Infinity' AS DOUBLE PRECISION) "
        f"WHEN {{0}} <= -{_BEYOND} THEN CAST('-Infinity' AS DOUBLE PRECISION) "
        f"WHEN abs({{0}}) < {_NEAR_ZERO} THEN 0 ELSE CAST({{0}} AS DOUBLE PRECISION) END"
    )
    ticks = (
        "CASE WHEN {0} > '-infinity' AND {0} < '290000-01-01' "
        "THEN CAST(EXTRACT(EPOCH FROM {0}) * 1000000 AS BIGINT) END"
    )
    return {
        **_named(SqlType("{0}", whole=True, text=text), "SMALLINT", "INTEGER", "BIGINT"),
        **_named(SqlType("CAST({0} AS INTEGER)", whole=True), "BOOLEAN"),
        **_named(SqlType("NULLIF({0}, 'NaN')"), "DOUBLE_PRECISION", "DOUBLE PRECISION"),
        **_named(SqlType("CAST(NULLIF({0}, 'NaN') AS DOUBLE PRECISION)"), "REAL"),
        **_named(SqlType(double, fence=" OFFSET 0"), "NUMERIC"),
        **_named(SqlType(ticks, whole=True, unit="us"), "DATE", "TIMESTAMP"),
        **_named(SqlType(ticks, whole=True, unit="us", zoned=True), "TIMESTAMP WITH TIME ZONE"),
        **_named(SqlType(None, text=text), "TEXT", "VARCHAR", "CHAR", "ENUM", "CHARACTER VARYING", "CHARACTER"),
    }


def _duckdb() -> dict[str, SqlType]:
    text = "encode(CAST({0} AS VARCHAR))"  # bytes, which a collation does not compare
    whole = SqlType("CAST({0} AS BIGINT)", whole=True, text=text)
    finite = SqlType("CASE WHEN isfinite({0}) THEN epoch_us({0}) END", whole=True, unit="us")

    # epoch_us fails for days out of the range of microseconds, and even if CASE rules them out, as it is applied to the
    # smallest and the largest of a column in advance
    days = "greatest(least({0} - DATE '1970-01-01', 106000000), -106000000)"
    date = replace(finite, number=f"CASE WHEN isfinite({{0}}) THEN CAST({days} AS BIGINT) * 86400000000 END")

    def within(kind: str) -> SqlType:
        """The range in which microseconds fit. The function isfinite itself fails for seconds out of it.

        Version 2.0.1 takes seconds and milliseconds to epoch_us by way of nanoseconds, which fails after the year 2262.
        """
        ends = (f"CAST('290000-01-01{era}' AS {kind})" for era in (" (BC)", ""))
        ticks = "epoch_us(TRY_CAST({0} AS TIMESTAMP))"
        return replace(finite, number=f"CASE WHEN {{0}} BETWEEN {' AND '.join(ends)} THEN {ticks} END")

    return {
        **_named(whole, "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"),
        **_named(SqlType("CAST({0} AS BIGINT)", whole=True), "BOOLEAN"),
        **_named(SqlType("CAST({0} AS DOUBLE)"), "UBIGINT", "HUGEINT", "UHUGEINT", "DECIMAL"),
        **_named(SqlType("CASE WHEN NOT isnan({0}) THEN CAST({0} AS DOUBLE) END"), "FLOAT", "DOUBLE"),
        **{kind: within(kind) for kind in ("TIMESTAMP_S", "TIMESTAMP_MS")},
        **_named(date, "DATE"),
        **_named(finite, "TIMESTAMP", "TIMESTAMP_NS"),
        **_named(replace(finite, zoned=True), "TIMESTAMP WITH TIME ZONE"),
        **_named(SqlType(None, text=text), "VARCHAR", "ENUM"),
    }


_TYPES = {"sqlite": _sqlite(), "postgresql": _postgresql(), "duckdb": _duckdb()}
