"""An SQLite file of another tool: opened for reading only, and asked for plain tables alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from dpselect.decoding.limits import SWEEP, LimitError
from dpselect.errors import ContentError

__all__ = ["SqliteTables", "has_tables"]

_MAGIC: Final = b"SQLite format 3\0"


class SqliteTables:
    """The tables of a file. Views and virtual tables are not among them: they could compute for ever."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._connection, self._name = connection, name
        listed = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'")
        self.names = frozenset(str(row[0]) for row in listed)

    def rows(self, table: str, columns: str) -> list[tuple[Any, ...]]:
        """All rows of some columns. Raises `ContentError`, and `LimitError` for too many rows."""
        if table not in self.names:
            raise ContentError(f"{self._name} has no table {table!r}")
        most = SWEEP.entries
        found = self._connection.execute(f"SELECT {columns} FROM {table} LIMIT {most + 1}").fetchall()
        if len(found) > most:
            raise LimitError(f"{self._name} has more than {most} rows in {table!r}")
        return found

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Iterator[SqliteTables]:
        """Open a file for reading. Raises `ContentError` for what is not a readable SQLite file."""
        try:
            with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
                connection.text_factory = lambda text: text.decode("utf-8", "replace")
                yield cls(connection, path.name)
        except sqlite3.DatabaseError as error:
            raise ContentError(f"{path.name} cannot be read as an SQLite file ({type(error).__name__})") from None


def has_tables(source: str, *tables: str) -> bool:
    """Whether a file is an SQLite database with these tables. False for what cannot be read."""
    path = Path(source)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            return False
    try:
        with SqliteTables.opened(path) as found:
            return set(tables) <= found.names
    except ContentError:
        return False
