"""The rows of a table with at most a declared number of each person's: the same table with a condition, for its FROM.

The word of a row is a hash of its person, its content, its cell as written, and a number among equal rows. So which
rows take part does not depend on the order in which an engine reads them. Cells without a value have the same content,
but may be missing or unreadable. The cell as written tells them apart.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final, Protocol

from dpselect.errors import ArgumentError
from dpselect.ordered.sources.sql_counts import quoted

__all__ = ["SqlPersons", "md5"]

_TEXT: Final = {"sqlite": "TEXT", "postgresql": "TEXT", "duckdb": "VARCHAR"}
_BYTEWISE: Final = {"sqlite": " COLLATE BINARY", "postgresql": ' COLLATE "C"', "duckdb": ""}


def md5(text: Any) -> str:
    """The hash of a text, for SQLite, which has none. A hash of another length would do as well."""
    return hashlib.md5(str(text).encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


class ValueColumn(Protocol):
    """The table and the column of the values."""

    @property
    def table(self) -> str: ...
    @property
    def column(self) -> str: ...
    @property
    def fence(self) -> str: ...


@dataclass(frozen=True)
class SqlPersons:
    """The column of the persons. Two are the same if their texts are, without outer blanks. NULL and blanks are none.

    Raises `ArgumentError` for a column that holds neither text nor integers. `named` says whether it does.
    """

    engine: str
    column: str
    named: bool

    def __post_init__(self) -> None:
        if not self.named:
            raise ArgumentError(
                f"person: column {self.column!r} holds neither text nor integers, so it names no persons"
            )

    def rows(self, values: ValueColumn, seen: str, *, most: int) -> str:
        """At most `most` rows of each person, for the FROM of a statement. `seen` is an expression for a row's content.

        Rows of equal content are equal to anyone who reads them, so each statement sees the same rows.
        """
        cell, text, bytewise = quoted(values.column), _TEXT[self.engine], _BYTEWISE[self.engine]
        # names that the column of the values cannot have
        person, value, written, number, place = (
            quoted(f"{values.column} {name}") for name in ("person", "content", "written", "number", "place")
        )
        as_written = f"quote({cell})" if self.engine == "sqlite" else f"CAST({cell} AS {text})"
        read = (
            f"SELECT {cell}, trim(CAST({quoted(self.column)} AS {text})){bytewise} AS {person}, "
            f"{seen.replace('{0}', cell)} AS {value}, {as_written} AS {written} "
            f"FROM {quoted(values.table)}{values.fence}"
        )
        numbered = (
            f"SELECT {cell}, {person}, {value}, {written}, "
            f"row_number() OVER (PARTITION BY {person}, {value}, {written}) AS {number} "
            f"FROM ({read}) AS read WHERE {person} <> ''"
        )
        content = " || ' ' || ".join(f"coalesce(CAST({each} AS {text}), '')" for each in (value, written, number))
        word = f"md5({person} || ' ' || {content})"
        placed = (
            f"SELECT {cell}, row_number() OVER (PARTITION BY {person} "
            f"ORDER BY {word}, {value}, {written}, {number}) AS {place} FROM ({numbered}) AS numbered"
        )
        return f"(SELECT {cell} FROM ({placed}) AS placed WHERE {place} <= {most}) AS part"
