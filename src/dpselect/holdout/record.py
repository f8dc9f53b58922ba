"""A sealed, versioned record of answers on disk whose exposure never goes back.

The file (SQLite, mode 0600) holds public terms in the clear, one AES-GCM record of secrets that never changes, and one
AES-GCM record for each entry. Entries are chained: each is bound to its place and to the hash of all before it, so none
can be changed, moved, dropped from the middle or carried to another file. The key lies outside the file.

That the end of the chain was not cut off, as by restoring an older copy, the file cannot know. So the per-user state
folder, where the key lies too, has a counter of its own for each record: how many entries there are, the hash of the
chain, and the exposure. An entry is committed to the file, then to the counter, and only then shown:

- the file is one entry ahead: a crash in between; the counter follows;
- the file is behind: an older copy was restored. Its last entry may never have been counted and is dropped; the
  exposure becomes the counter's. This loss is an entry itself;
- anything else: file and counter belong to different histories, and the record is refused.

All entries before the last one of any file are counted or dropped: one is appended only when file and counter agree, or
is a loss. So what a file shows was counted, whatever copies there are.

The counter's lock is held from reading the entries to committing the next one, so that processes take turns.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dpselect.errors import StudyError
from dpselect.randomness import system_source
from dpselect.randomness.starting import refuse_while_starting
from dpselect.storage import KeyPlace, durable, key_place, state_folder

__all__ = ["Record", "Turn"]

_FORMAT: Final = 1
_WHAT: Final = "a holdout on disk"
_NONCE_BYTES: Final = 12
_SCHEMA: Final = (
    """
    CREATE TABLE about (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        format INTEGER NOT NULL,
        kind TEXT NOT NULL,
        identifier TEXT NOT NULL,
        key_variable TEXT,
        terms TEXT NOT NULL,
        sealed BLOB NOT NULL
    ) STRICT
    """,
    "CREATE TABLE entry (sequence INTEGER PRIMARY KEY, sealed BLOB NOT NULL) STRICT",
)
_COUNTER: Final = """
CREATE TABLE IF NOT EXISTS counter (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    sequence INTEGER NOT NULL,
    head BLOB NOT NULL,
    exposure TEXT NOT NULL
) STRICT
"""


_Append = Callable[[dict[str, Any], tuple[int, ...]], None]


@dataclass(frozen=True)
class _Tip:
    """The end of a chain."""

    sequence: int
    head: bytes


class Turn:
    """The record while no other process can touch it. One entry is appended at most, or one more after each `keep`."""

    def __init__(self, entries: list[dict[str, Any]], append: _Append, keep: Callable[[], None]) -> None:
        self.entries = entries
        self._append = append
        self._keep = keep
        self._used = False

    def append(self, entry: dict[str, Any], exposure: tuple[int, ...]) -> None:
        """Put an entry on record with the exposure it leads to; durable when the turn ends, and not to be shown before.

        Raises `StudyError` when it cannot be written.
        """
        assert not self._used
        self._used = True
        self._append(entry, exposure)

    def keep(self) -> None:
        """Make what was appended durable now. The turn goes on: no other process comes in between.

        Only in a turn that was asked for with `several`. Raises `StudyError` when it cannot be written.
        """
        self._keep()
        self._used = False


class Record:
    """One record on disk. Make it with `create`, find it again with `open`."""

    def __init__(self, path: Path, row: dict[str, Any], keys: KeyPlace) -> None:
        self._path = path
        self._row = row
        key = keys.load(row["identifier"])
        if key is None:
            raise StudyError(f"the key of {path} is missing here; without it nothing in it can be read")
        self._cipher = AESGCM(key)

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        kind: str,
        terms: dict[str, Any],
        secret: bytes,
        exposure: tuple[int, ...],
        key_variable: str | None = None,
        reserve: Callable[[str], None] | None = None,
    ) -> Record:
        """Write a new record; durable on return. `exposure` is that of no entries.

        `reserve` is called with the record's identifier before the file appears, and may refuse. Raises `StudyError`
        when there is a file already or it cannot be written.
        """
        if path.exists():
            raise StudyError(f"{path} exists already; choose another path")
        keys = key_place(key_variable)
        identifier = system_source().bytes(16).hex()
        row: dict[str, Any] = {
            "format": _FORMAT,
            "kind": kind,
            "identifier": identifier,
            "key_variable": key_variable,
            "terms": json.dumps(terms, sort_keys=True, default=_plain),
        }
        keys.check()
        nonce = system_source().bytes(_NONCE_BYTES)
        sealed = nonce + AESGCM(keys.create(identifier)).encrypt(nonce, secret, _bound_to(row))
        part = path.with_name(f".{path.name}.{identifier}.part")
        made = False
        try:
            with _transaction(_counter_path(identifier, create=True)) as counter:
                counter.execute(_COUNTER)
                counter.execute(
                    "INSERT INTO counter VALUES (1, 0, ?, ?)", (_first_head(row, sealed), json.dumps(exposure))
                )
            durable.create_private(part, b"")
            with _transaction(part) as file:
                for statement in _SCHEMA:
                    file.execute(statement)
                file.execute("INSERT INTO about VALUES (1, ?, ?, ?, ?, ?, ?)", (*row.values(), sealed))
            if reserve is not None:
                reserve(identifier)
            os.link(part, path)  # unlike a renaming this never replaces a file
            made = True
            durable.sync_folder(path.parent)
        except FileExistsError:
            raise StudyError(f"{path} exists already; choose another path") from None
        except OSError as error:
            raise StudyError(f"{path} cannot be written: {error.strerror}") from None
        finally:
            with suppress(OSError):
                part.unlink()
            if not made:  # what is left opens nothing
                with suppress(OSError, StudyError):
                    _counter_path(identifier, create=False).unlink()
            if not made and key_variable is None:
                with suppress(OSError):
                    keys.destroy(identifier)
        return cls(path, {**row, "sealed": sealed}, keys)

    @classmethod
    def open(cls, path: Path, *, kind: str) -> Record:
        """Find a record. Raises `StudyError` when it is none, is of a newer format, or its key is not here."""
        refuse_while_starting(_WHAT)
        if not path.is_file():
            raise StudyError(f"{path} does not exist")
        try:
            with closing(durable.connect(path)) as connection:
                (form,) = connection.execute("SELECT format FROM about").fetchone() or (None,)
                if not isinstance(form, int) or form < 1:
                    raise _unusable(path)
                if form > _FORMAT:
                    raise StudyError(f"{path} was written by a newer version of dpselect (format {form})")
                cursor = connection.execute("SELECT format, kind, identifier, key_variable, terms, sealed FROM about")
                row = dict(zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True))
        except sqlite3.DatabaseError:
            raise _unusable(path) from None
        if row["kind"] != kind:
            raise StudyError(f"{path} holds another thing than a {kind}")
        return cls(path, row, key_place(row["key_variable"]))

    @property
    def identifier(self) -> str:
        """Random, public, fixed."""
        return str(self._row["identifier"])

    @property
    def terms(self) -> dict[str, Any]:
        """What anybody may know, once `secret` has been read without an error."""
        found: dict[str, Any] = json.loads(self._row["terms"])
        return found

    def secret(self) -> bytes:
        """What never changes and nobody may know. Raises `StudyError` when it or the terms were changed."""
        return self._open(bytes(self._row["sealed"]), _bound_to(self._row))

    @contextmanager
    def turn(self, *, several: bool = False) -> Iterator[Turn]:
        """Wait for the other processes, then look at the entries and append one at most, or `several` with `keep`.

        Raises `StudyError` for a damaged file, one that is at odds with its counter, and when waiting takes too long.
        """
        while True:
            with _transaction(_counter_path(self.identifier, create=False), held=several) as counter:
                entries, tips = self._entries()
                if self._agrees(counter, entries, tips):
                    yield Turn(entries, partial(self._extend, counter, tips), partial(_commit_and_go_on, counter))
                    return
            # mended, and committed; look again

    def _extend(
        self, counter: sqlite3.Connection, tips: list[_Tip], entry: dict[str, Any], exposure: tuple[int, ...]
    ) -> None:
        tips.append(self._append(counter, tips[-1], entry, exposure))

    def _agrees(self, counter: sqlite3.Connection, entries: list[dict[str, Any]], tips: list[_Tip]) -> bool:
        """Whether file and counter tell the same; mends what may be mended and says no."""
        found = counter.execute("SELECT sequence, head, exposure FROM counter").fetchone()
        if found is None:
            raise _no_counter()
        known, tip = _Tip(found[0], bytes(found[1])), tips[-1]
        if known == tip:
            return True
        exposure = tuple(json.loads(found[2]))
        if tip.sequence < known.sequence:
            after = _Tip(known.sequence, tip.head)  # leaves out the numbers of the entries that were lost
            self._append(counter, after, {"lost": exposure}, exposure)
            return False
        if tip.sequence == known.sequence + 1 and "lost" in entries[-1]:  # a crash amid the lines above
            _raise(counter, tip, exposure)
            return False
        if len(tips) > 1 and tips[-2] == known:
            # what the entry exposed the counter does not know; it may be too large by one until the next entry, and
            # counts only when the file is behind
            _raise(counter, tip, tuple(count + 1 for count in exposure))
            return False
        raise StudyError(f"{self._path} is not the file that was used last: two copies of it went different ways")

    def _append(self, counter: sqlite3.Connection, tip: _Tip, entry: dict[str, Any], exposure: tuple[int, ...]) -> _Tip:
        sequence = tip.sequence + 1
        nonce = system_source().bytes(_NONCE_BYTES)
        sealed = nonce + self._cipher.encrypt(
            nonce, json.dumps(entry, default=_plain).encode(), _place(tip.head, sequence)
        )
        with _transaction(self._path) as file:
            file.execute("INSERT INTO entry VALUES (?, ?)", (sequence, sealed))
        after = _Tip(sequence, _next_head(tip.head, sequence, sealed))
        _raise(counter, after, exposure)
        return after

    def _entries(self) -> tuple[list[dict[str, Any]], list[_Tip]]:
        """The entries that count, and the chain's end after each that there is."""
        tips = [_Tip(0, _first_head(self._row, bytes(self._row["sealed"])))]
        entries: list[dict[str, Any]] = []
        try:
            with closing(durable.connect(self._path)) as file:
                rows = file.execute("SELECT sequence, sealed FROM entry ORDER BY sequence").fetchall()
        except sqlite3.DatabaseError:
            raise _unusable(self._path) from None
        for sequence, sealed in rows:
            head = tips[-1].head
            entry = json.loads(self._open(bytes(sealed), _place(head, sequence)))
            if "lost" in entry and entries and "lost" not in entries[-1]:
                entries.pop()
            entries.append(entry)
            tips.append(_Tip(sequence, _next_head(head, sequence, bytes(sealed))))
        return entries, tips

    def _open(self, sealed: bytes, bound_to: bytes) -> bytes:
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], bound_to)
        except (InvalidTag, ValueError):
            raise StudyError(f"{self._path} cannot be opened: its key is another one, or it was changed") from None


def _plain(value: Any) -> Any:
    """A NumPy number as Python's."""
    return value.item()


def _bound_to(row: dict[str, Any]) -> bytes:
    names = ("format", "kind", "identifier", "key_variable", "terms")
    return json.dumps(["dpselect record", *(row[name] for name in names)]).encode()


def _first_head(row: dict[str, Any], sealed: bytes) -> bytes:
    return hashlib.sha256(_bound_to(row) + sealed).digest()


def _place(head: bytes, sequence: int) -> bytes:
    return head + sequence.to_bytes(8, "big")


def _next_head(head: bytes, sequence: int, sealed: bytes) -> bytes:
    return hashlib.sha256(_place(head, sequence) + sealed).digest()


def _raise(counter: sqlite3.Connection, tip: _Tip, exposure: tuple[int, ...]) -> None:
    counter.execute(
        "UPDATE counter SET sequence = ?, head = ?, exposure = ?", (tip.sequence, tip.head, json.dumps(exposure))
    )


def _counter_path(identifier: str, *, create: bool) -> Path:
    folder = state_folder() / "records"
    path = folder / f"{identifier}.db"
    if create:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        durable.create_private(path, b"")
    elif not path.exists():
        raise _no_counter()
    return path


def _no_counter() -> StudyError:
    return StudyError(
        "the state folder has no count of the answers given: the record was made by another account or on another "
        "machine, or that folder is lost"
    )


def _unusable(path: Path) -> StudyError:
    return StudyError(f"{path} is not a record of dpselect, or it is damaged")


def _commit_and_go_on(counter: sqlite3.Connection) -> None:
    durable.commit(counter)
    counter.execute("BEGIN IMMEDIATE")


@contextmanager
def _transaction(path: Path, *, held: bool = False) -> Iterator[sqlite3.Connection]:
    """One durable transaction; errors of SQLite become `StudyError`. `held`: several, no other process in between."""
    refuse_while_starting(_WHAT)
    try:
        connection = durable.connect(path)
    except sqlite3.DatabaseError:
        raise _unusable(path) from None
    try:
        connection.execute("BEGIN IMMEDIATE")
        if held:  # only now: before, who waits would hold a lock that who writes waits for
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        yield connection
        durable.commit(connection)
    except sqlite3.DatabaseError as error:
        if "locked" in str(error):
            raise StudyError(f"{path} is in use by other processes; try again") from None
        raise StudyError(f"{path} cannot be written or is damaged") from None
    finally:
        connection.close()  # rolls back what was not committed
