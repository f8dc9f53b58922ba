"""A record in PostgreSQL, for servers on several machines: the chain of `dpselect.holdout.record` in two tables.

A turn holds an advisory lock of the database's, so that servers take turns. Each entry is one transaction, durable
before what it says is shown. The chain and what counts are one table, so that they cannot be at odds. The database
itself may be an older copy that was restored. Each server can tell this for its own answers: the state folder has the
last of them, and a chain without it is refused. Put the latest copy back then. Nothing is fixed.

The key is not in the database: give `key_variable`, whose value all servers have, or it is in the state folder of who
made the record.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, Final

from dpselect.errors import ArgumentError, StudyError, public_text
from dpselect.holdout.record import Record, WriteTurn
from dpselect.holdout.sealed_record import SealedRecord, check_row, discard_key, new_row
from dpselect.randomness.process_start import refuse_while_starting
from dpselect.records.chain import ChainHead
from dpselect.records.engines import CREATION_LOCKS, is_server, server, sqlite, unusable
from dpselect.records.witness import FolderWitness
from dpselect.storage.keys import state_folder

__all__ = ["AnyRecord", "SharedRecord", "create_record", "name_of", "names_at", "open_record"]

_WHAT: Final = "a holdout in a database"
_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS holdout_record (
        name TEXT PRIMARY KEY,
        format {whole} NOT NULL,
        kind TEXT NOT NULL,
        identifier TEXT UNIQUE NOT NULL,
        key_variable TEXT,
        terms TEXT NOT NULL,
        sealed {bytes} NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS holdout_entry (
        identifier TEXT NOT NULL,
        sequence {whole} NOT NULL,
        sealed {bytes} NOT NULL,
        PRIMARY KEY (identifier, sequence)
    )
    """,
)
_RECORDS: Final = "holdout_record"
_ABOUT: Final = "SELECT format, kind, identifier, key_variable, terms, sealed FROM holdout_record WHERE name = :name"


class SharedRecord(SealedRecord):
    """A record in a database. Make it with `create`, find it again with `open`. Used as a `Record` is."""

    def __init__(self, url: str, name: str, row: dict[str, Any]) -> None:
        super().__init__(name, row)
        self._database, self._alone = server(url), threading.Lock()
        with unusable(f"the witness of {name} in the state folder cannot be used now"):
            self._seen = _witnessed(self.identifier)

    @classmethod
    def create(
        cls,
        url: str,
        name: str,
        *,
        kind: str,
        terms: dict[str, Any],
        secret: bytes,
        key_variable: str | None,
        reserve: Callable[[str], None] | None,
    ) -> SharedRecord:
        """Write a new record, durable on return. Raises `StudyError` when the name is taken or it cannot be."""
        row, _ = new_row(kind=kind, terms=terms, secret=secret, key_variable=key_variable)
        try:
            with (
                closing(server(url)) as database,
                _failing(name),
                database.transaction(write=True, lock=CREATION_LOCKS["holdout"]),
            ):
                database.create(*_TABLES)
                if database.execute(_ABOUT, name=name).fetchone() is not None:
                    raise StudyError(f"{name} exists already; choose another name")
                if reserve is not None:
                    reserve(row["identifier"])
                database.execute(
                    "INSERT INTO holdout_record (name, format, kind, identifier, key_variable, terms, sealed) "
                    "VALUES (:name, :format, :kind, :identifier, :key_variable, :terms, :sealed)",
                    name=name,
                    **row,
                )
        except BaseException:
            discard_key(row)
            raise
        return cls(url, name, row)

    @classmethod
    def open(cls, url: str, name: str, *, kind: str) -> SharedRecord:
        """Find a record. Raises `StudyError` when there is none, it is of a newer format, or its key is not here."""
        refuse_while_starting(_WHAT)
        with closing(server(url)) as database, _failing(name), database.transaction(write=False):
            found = database.execute(_ABOUT, name=name).fetchone() if _RECORDS in database.tables() else None
        if found is None:
            raise StudyError(f"{name} does not exist in the database")
        row = dict(found._asdict())
        check_row(row, name, kind)
        return cls(url, name, row)

    @contextmanager
    def turn(self, *, several: bool = False) -> Iterator[WriteTurn]:  # noqa: ARG002 - each entry is durable at once
        """Wait for the other servers, then look at the entries and append one at most, or one more after each `keep`.

        Raises `StudyError` for a database that cannot be used or is an older copy, and when waiting takes too long.
        """
        refuse_while_starting(_WHAT)
        number = int(self.identifier[:15], 16)
        with self._alone, _failing(self._name):
            try:
                with self._database.transaction(write=True):  # of the session: it lasts until it is given back
                    self._database.execute("SELECT pg_advisory_lock(:number)", number=number)
                self._look()
                yield WriteTurn(self.entries, self._append, lambda: None)
            finally:
                self._give_back(number)

    def _give_back(self, number: int) -> None:
        try:
            with self._database.transaction(write=True):
                self._database.execute("SELECT pg_advisory_unlock(:number)", number=number)
        except Exception:  # with the connection the lock is gone
            self._database.close()

    def _look(self) -> None:
        """Read what is new. Raises `StudyError` unless what this server has read and answered is there."""
        known = self.tips[-1].sequence
        with self._database.transaction(write=False):
            rows = self._database.execute(
                "SELECT sequence, sealed FROM holdout_entry WHERE identifier = :identifier AND sequence >= :known "
                "ORDER BY sequence",
                identifier=self.identifier,
                known=known,
            ).fetchall()
        if not self.continues(rows):
            raise self._stale()
        tips = {tip.sequence: tip for tip in self.follow(rows)}
        if self._seen is not None:
            if tips.get(self._seen.sequence) != self._seen:
                self.forget()
                raise self._stale()
            self._seen = None

    def _append(self, entry: dict[str, Any], exposure: tuple[int, ...]) -> None:  # noqa: ARG002 - the chain has it
        row, tip = self.sealed(self.tips[-1], entry)
        with self._database.transaction(write=True):
            self._database.execute(
                "INSERT INTO holdout_entry (identifier, sequence, sealed) VALUES (:identifier, :sequence, :sealed)",
                identifier=self.identifier,
                sequence=tip.sequence,
                sealed=row,
            )
        self.follow([(tip.sequence, row)])
        with unusable(f"the witness of {self._name} in the state folder cannot be used now"):
            FolderWitness(state_folder() / "records").advance(self.identifier, tip, self._name)

    def _stale(self) -> StudyError:
        return StudyError(
            f"the database lacks an answer of {self._name} that this server has given: it is an older copy. Put the "
            "latest one back"
        )


AnyRecord = Record | SharedRecord


def name_of(where: str | os.PathLike[str]) -> str | None:
    """The name after the # of a database's URL, or None for a file."""
    named = os.fspath(where)
    return named.partition("#")[2] if is_server(named) else None


def names_at(url: str) -> list[str]:
    """The records in a database. Raises `StudyError` when it cannot be used."""
    with closing(server(url)) as database, _failing("the boards"), database.transaction(write=False):
        if _RECORDS not in database.tables():
            return []
        return [str(row[0]) for row in database.execute("SELECT name FROM holdout_record ORDER BY name")]


def create_record(
    where: str | os.PathLike[str],
    *,
    exposure: tuple[int, ...],
    key_variable: str | None = None,
    reserve: Callable[[str], None] | None = None,
    **content: Any,
) -> AnyRecord:
    """A new record in a file, or at postgresql://...#NAME."""
    if not is_server(os.fspath(where)):
        return Record.create(Path(where), exposure=exposure, key_variable=key_variable, reserve=reserve, **content)
    return SharedRecord.create(*_parts(where), key_variable=key_variable, reserve=reserve, **content)


def open_record(where: str | os.PathLike[str], *, kind: str) -> AnyRecord:
    """A record that is there, in a file or at postgresql://...#NAME."""
    if not is_server(os.fspath(where)):
        return Record.open(Path(where), kind=kind)
    return SharedRecord.open(*_parts(where), kind=kind)


def _parts(where: str | os.PathLike[str]) -> tuple[str, str]:
    url, _, name = os.fspath(where).partition("#")
    if not name or "/" in name:
        raise ArgumentError(
            "a holdout or gate in a database is named after a #, without a slash: postgresql://...#NAME"
        )
    return url, public_text("name", name, longest=80)


def _failing(name: str) -> AbstractContextManager[None]:
    return unusable(f"the database of {name} cannot be used now")


def _witnessed(identifier: str) -> ChainHead | None:
    """The last answer that was given from this state folder. Version 0.2 witnessed it in a table of SQLite."""
    folder = state_folder() / "records"
    heads = [FolderWitness(folder).read(identifier)]
    path = folder / f"{identifier}.witness.db"
    if path.exists():
        with closing(sqlite(path)) as file, file.transaction(write=False):
            found = file.execute("SELECT sequence, head FROM witness").fetchone() if file.tables() else None
        heads.append(None if found is None else ChainHead(found.sequence, bytes(found.head).hex()))
    return max((head for head in heads if head is not None), key=lambda head: head.sequence, default=None)
