"""A sealed, versioned record of answers on disk whose exposure never goes back.

The file (SQLite, mode 0600) holds public terms in the clear, one AES-GCM record of secrets that never changes, and one
AES-GCM record for each entry. Entries are chained. Each is bound to its place and to the hash of all before it. So none
can be changed, moved, dropped from the middle or carried to another file. The key is outside the file.

The file cannot show whether the end of the chain is still there after an older copy was restored. So the per-user state
folder, which has the key too, has a counter for each record: how many entries there are, the hash of the chain, and the
exposure. An entry is committed to the file, then to the counter, and only then shown:

- the file is one entry ahead after a crash in between. The counter follows.
- the file is behind: an older copy was restored. Its last entry may never have been counted and is dropped. The
  exposure becomes the counter's. This loss is an entry itself.
- anything else: file and counter belong to different histories, and the record is refused.

All entries before the last one of any file are counted or dropped: one is appended only when file and counter agree, or
is a loss. So everything that a file shows was counted, no matter what copies there are.

The counter's lock is held from reading the entries to committing the next one, so that processes take turns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from dpselect.cures import near_file
from dpselect.decoding.json_text import json_of
from dpselect.decoding.limits import DOCUMENT
from dpselect.errors import StudyError
from dpselect.holdout.sealed_record import SealedRecord, check_row, discard_key, new_row
from dpselect.randomness.process_start import refuse_while_starting
from dpselect.records.chain import ChainHead
from dpselect.records.engines import Database, RecordDamagedError, sqlite, unusable
from dpselect.storage import durable
from dpselect.storage.keys import state_folder

__all__ = ["Record", "Snapshot", "WriteTurn"]

S = TypeVar("S")

_WHAT: Final = "a holdout on disk"
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
_ABOUT: Final = "INSERT INTO about VALUES (1, :format, :kind, :identifier, :key_variable, :terms, :sealed)"
_COUNTER: Final = """
CREATE TABLE IF NOT EXISTS counter (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    sequence INTEGER NOT NULL,
    head BLOB NOT NULL,
    exposure TEXT NOT NULL
) STRICT
"""


_Append = Callable[[dict[str, Any], tuple[int, ...]], None]


class WriteTurn:
    """The record while no other process can touch it. One entry is appended at most, or one more after each `keep`."""

    def __init__(self, entries: list[dict[str, Any]], append: _Append, keep: Callable[[], None]) -> None:
        self.entries = entries
        self._append = append
        self._keep = keep
        self._used = False

    def append(self, entry: dict[str, Any], exposure: tuple[int, ...]) -> None:
        """Put an entry on record with the exposure it leads to. Durable when the turn ends, not to be shown before.

        Raises `StudyError` when it cannot be written.
        """
        assert not self._used
        self._used = True
        self._append(entry, exposure)

    def keep(self) -> None:
        """Make what was appended durable now. The turn continues: no other process comes in between.

        Only in a turn that was asked for with `several`. Raises `StudyError` when it cannot be written.
        """
        self._keep()
        self._used = False


class Snapshot(Generic[S]):
    """The state that a record's entries amount to, continued from where it was at the last look.

    >>> folded = Snapshot(lambda total, entries: total + sum(entry["a"] for entry in entries), 0)
    >>> first = {"a": 1}
    >>> folded.of([first]), folded.of([first, {"a": 2}]), folded.of([{"a": 5}])
    (1, 3, 5)
    """

    def __init__(self, fold: Callable[[S, list[dict[str, Any]]], S], start: S) -> None:
        self._fold, self._start = fold, start
        self._known: tuple[int, dict[str, Any] | None, S] = 0, None, start

    def of(self, entries: list[dict[str, Any]]) -> S:
        """The state. Called within a turn, with its entries: those that are known are the same objects."""
        count, last, state = self._known
        if count > len(entries) or (count and entries[count - 1] is not last):
            count, state = 0, self._start
        state = self._fold(state, entries[count:])
        self._known = len(entries), entries[-1] if entries else None, state
        return state


class Record(SealedRecord):
    """One record on disk. Make it with `create`, find it again with `open`."""

    def __init__(self, path: Path, row: dict[str, Any]) -> None:
        super().__init__(str(path), row)
        self._path = path

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
        """Write a new record, durable on return. `exposure` is that of no entries.

        `reserve` is called with the record's identifier before the file appears, and may refuse. Raises `StudyError`
        when there is a file already or it cannot be written.
        """
        if path.exists():
            opened = (
                f". To open it, write {kind.capitalize()}.open({str(path)!r})" if kind in ("gate", "holdout") else ""
            )
            raise StudyError(f"{path} exists already; choose another path{opened}")
        row, tip = new_row(kind=kind, terms=terms, secret=secret, key_variable=key_variable)
        identifier = row["identifier"]
        made = False
        try:
            with _transaction(_counter_path(identifier, create=True)) as counter:
                counter.execute(_COUNTER)
                counter.execute(
                    "INSERT INTO counter VALUES (1, 0, :head, :exposure)",
                    head=bytes.fromhex(tip.head),
                    exposure=json.dumps(exposure),
                )
            with durable.whole_file(path) as part:
                with _transaction(part) as file:
                    for statement in _SCHEMA:
                        file.execute(statement)
                    file.execute(_ABOUT, **row)
                if reserve is not None:
                    reserve(identifier)
            made = True
            durable.sync_folder(path.parent)
        except FileExistsError:
            raise StudyError(f"{path} exists already; choose another path") from None
        except OSError as error:
            raise StudyError(f"{path} cannot be written: {error.strerror}") from None
        finally:
            if not made:
                with suppress(OSError, StudyError):
                    _counter_path(identifier, create=False).unlink()
                discard_key(row)
        return cls(path, row)

    @classmethod
    def open(cls, path: Path, *, kind: str) -> Record:
        """Find a record. Raises `StudyError` when it is none, is of a newer format, or its key is not here."""
        refuse_while_starting(_WHAT)
        if not path.is_file():
            raise StudyError(f"{path} does not exist{near_file(path)}")
        with _failing(path):
            with closing(sqlite(path)) as file, file.transaction(write=False):
                found = file.execute("SELECT * FROM about").fetchone()
            try:
                row = dict(found._asdict())
                if not isinstance(row["format"], int) or row["format"] < 1:
                    raise RecordDamagedError
                check_row(row, str(path), kind)
                return cls(path, row)
            except (AttributeError, KeyError):
                raise RecordDamagedError from None

    @contextmanager
    def turn(self, *, several: bool = False) -> Iterator[WriteTurn]:
        """Wait for the other processes, then look at the entries and append one at most, or `several` with `keep`.

        Raises `StudyError` for a damaged file, one that is at odds with its counter, and when waiting takes too long.
        """
        while True:
            with _transaction(_counter_path(self.identifier, create=False), held=several) as counter:
                entries, tips = self._entries()
                if self._agrees(counter, entries, tips):
                    yield WriteTurn(entries, partial(self._extend, counter, tips), counter.keep)
                    return
            # repaired, and committed; look again

    def _extend(
        self, counter: Database, tips: list[ChainHead], entry: dict[str, Any], exposure: tuple[int, ...]
    ) -> None:
        tips.append(self._append(counter, tips[-1], entry, exposure))

    def _agrees(self, counter: Database, entries: list[dict[str, Any]], tips: list[ChainHead]) -> bool:
        """Whether file and counter agree. Repairs what may be repaired and returns False."""
        found = counter.execute("SELECT sequence, head, exposure FROM counter").fetchone()
        if found is None:
            raise _no_counter()
        known, tip = ChainHead(found.sequence, bytes(found.head).hex()), tips[-1]
        if known == tip:
            return True
        exposure = tuple(json_of(found.exposure, DOCUMENT, "the counter"))
        if tip.sequence < known.sequence:
            after = ChainHead(known.sequence, tip.head)  # leaves out the numbers of the entries that were lost
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

    def _append(self, counter: Database, tip: ChainHead, entry: dict[str, Any], exposure: tuple[int, ...]) -> ChainHead:
        row, after = self.sealed(tip, entry)
        with _transaction(self._path) as file:
            file.execute("INSERT INTO entry VALUES (:sequence, :sealed)", sequence=after.sequence, sealed=row)
        _raise(counter, after, exposure)
        return after

    def _entries(self) -> tuple[list[dict[str, Any]], list[ChainHead]]:
        """The entries that count, and the chain's ends after the last of them and the one before.

        Entries that were read are not read again as long as the last of them is there as it was. The others were bound
        to it when it was written.
        """
        known = self.tips[-1].sequence
        wanted = "SELECT sequence, sealed FROM entry WHERE sequence >= :known ORDER BY sequence"
        with _failing(self._path), closing(sqlite(self._path)) as file, file.transaction(write=False):
            rows = file.execute(wanted, known=known).fetchall()
            if not self.continues(rows):
                self.forget()  # another copy: from the beginning
                rows = file.execute(wanted, known=0).fetchall()
        self.follow(rows)
        return self.entries, self.tips


def _raise(counter: Database, tip: ChainHead, exposure: tuple[int, ...]) -> None:
    counter.execute(
        "UPDATE counter SET sequence = :sequence, head = :head, exposure = :exposure",
        sequence=tip.sequence,
        head=bytes.fromhex(tip.head),
        exposure=json.dumps(exposure),
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


def _failing(path: Path) -> AbstractContextManager[None]:
    said = f"{path} is not a record of dpselect, cannot be written, or is damaged"
    return unusable(said, locked=f"{path} is in use by other processes; try again")


@contextmanager
def _transaction(path: Path, *, held: bool = False) -> Iterator[Database]:
    """One durable transaction. Errors of SQLite become `StudyError`. `held`: several, with no other process between."""
    refuse_while_starting(_WHAT)
    with _failing(path), closing(sqlite(path)) as database, database.transaction(write=True):
        if held:  # only now: earlier, a process that waits would hold a lock that the writer waits for
            database.execute("PRAGMA locking_mode=EXCLUSIVE")
        yield database
