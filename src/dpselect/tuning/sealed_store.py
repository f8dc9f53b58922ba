"""The sealed store: one encrypted record of fixed size in a SQLite file, rewritten whole by every commit.

The file has one row. Four public parts are in the clear: the study's random identifier and fingerprint, the stage, the
receipt. Everything else is one AES-GCM record. Its associated data bind it to that identifier, fingerprint, stage and
shape, so that no part can be swapped or carried to another study. Its size is a function of the number of slots and of
`payload_bytes`, both public. There is one commit for each slot, a constant number more, and one for each resume.
Neither depends on the number of runs, as long as that is at most the number of slots.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import struct
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dpselect.decoding.json_text import json_of
from dpselect.decoding.limits import ENTRY
from dpselect.errors import StudyError
from dpselect.privacy.release import Receipt
from dpselect.randomness import system_source
from dpselect.randomness.process_start import refuse_while_starting
from dpselect.records.claims import ClaimFile
from dpselect.records.engines import Database, RecordDamagedError, sqlite, unusable
from dpselect.records.seal import EXTRA_BYTES, BrokenSealError, Seal
from dpselect.storage.keys import KeyPlace
from dpselect.tuning.machine import Bond, Candidate, Search, Stage
from dpselect.tuning.trial import TAG_BYTES

__all__ = ["MemoryStore", "SealedStore", "SearchFinishedError", "Shape", "Store"]

_FORMAT: Final = 2
_HEAD: Final = struct.Struct(">QQ32s?Q32s32s32s16s")
_BEST: Final = struct.Struct(f">?Qd{TAG_BYTES}sQ")
_SCHEMA: Final = """
CREATE TABLE search (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    format INTEGER NOT NULL,
    identifier TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    key_variable TEXT,
    stage TEXT NOT NULL,
    receipt TEXT NOT NULL,
    sealed BLOB NOT NULL
) STRICT
"""


class SearchFinishedError(StudyError):
    """The search is done: its reservation is settled, its release was written and its key destroyed."""


@dataclass(frozen=True)
class Shape:
    """The public size of a sealed record."""

    slots: int
    payload_bytes: int
    history_bytes: int = 0

    @property
    def plain_bytes(self) -> int:
        """Bytes before encryption."""
        return _HEAD.size + 2 * self.slots + self.history_bytes + _BEST.size + self.payload_bytes

    @property
    def sealed_bytes(self) -> int:
        """Bytes on disk."""
        return self.plain_bytes + EXTRA_BYTES

    def pack(self, search: Search) -> bytes:
        """The record of a search, padded. A record with the final release may be longer than that."""
        bond = search.bond
        head = _HEAD.pack(
            *(search.counted, search.executed, search.master, search.replayable, search.rounds_done),
            *(bond.blinding, bond.binding, bond.rows, bond.claim),
        )
        best = search.best or Candidate(0, 0.0, bytes(TAG_BYTES), b"")
        tail = _BEST.pack(search.best is not None, best.index, best.score, best.tag, len(best.payload))
        middle = search.done + search.losses + search.history.ljust(self.history_bytes, b"\0")
        return (head + middle + tail + best.payload).ljust(self.plain_bytes, b"\0")

    def unpack(self, record: bytes, stage: Stage) -> Search:
        """The search of a record."""
        counted, executed, master, replayable, rounds_done, *bond = _HEAD.unpack_from(record)
        middle = _HEAD.size + self.slots
        history = middle + self.slots
        end = history + self.history_bytes
        found, index, score, tag, length = _BEST.unpack_from(record, end)
        payload = record[end + _BEST.size :][:length]
        return Search(
            slots=self.slots,
            stage=stage,
            counted=counted,
            executed=executed,
            master=master,
            replayable=replayable,
            rounds_done=rounds_done,
            done=record[_HEAD.size : middle],
            losses=record[middle:history],
            history=record[history:end],
            best=Candidate(index, score, tag, payload) if found else None,
            bond=Bond(*bond),
        )


class SealedStore:
    """One search on disk, held by one process at a time. Open it with `SealedStore.open`."""

    def __init__(self, database: Database, shape: Shape, keys: KeyPlace, row: Mapping[str, Any]) -> None:
        self._database = database
        self._shape = shape
        self._keys = keys
        self._fingerprint = str(row["fingerprint"])
        self._receipt = str(row["receipt"])
        self._seal: Seal | None = None
        self.identifier = str(row["identifier"])
        self.outside: ClaimFile | None = ClaimFile.of(self.identifier)
        self.stage: Stage = row["stage"]

    @classmethod
    @contextmanager
    def open(cls, path: Path, *, fingerprint: str, shape: Shape, keys: KeyPlace, resume: bool) -> Iterator[SealedStore]:
        """Create the store, or open it again to resume, and close it in the end.

        Raises `StudyError` if a new search meets an old store, if the study has changed since, or if another process
        holds the store: all before anything sealed is read.
        """
        if not (resume and path.exists()):  # a finished search no longer needs its key
            keys.check()
        if not resume and path.exists() and path.stat().st_size:
            raise StudyError(f"{path} already holds a search; resume it, or choose another path")
        with closing(_made(path)) as database:
            row = _row(database, path, fingerprint, keys.variable)
            if row["format"] != _FORMAT:
                raise StudyError(f"{path} was written by another version of dpselect")
            names = [] if row["key_variable"] == keys.variable else ["key_variable"]
            if row["fingerprint"] != fingerprint or names:
                changed = names + _changes(row["fingerprint"], fingerprint)
                if "draws" in changed:
                    raise StudyError(
                        f"{path} was begun by another version of dpselect, whose learners draw other numbers from the "
                        "same key. Finish this search with that version"
                    )
                shown = ", ".join(changed)
                raise StudyError(
                    f"the study has changed since the search in {path} was begun{shown and f': {shown}'}; it cannot be "
                    "resumed unless it is changed back"
                )
            yield cls(database, shape, keys, row)

    @property
    def receipt(self) -> Receipt | None:
        """The receipt of the reservation, if the study has a ledger."""
        fields = json_of(self._receipt, ENTRY, "the receipt")
        return Receipt(**fields) if fields else None

    def reserved(self, receipt: Receipt | None) -> None:
        """Note that the price is charged. This is durable with the next `save`."""
        fields = receipt and {
            "account": receipt.account,
            "identifier": receipt.identifier,
            "charged": dict(receipt.charged),
            "sequence": receipt.sequence,
            "head": receipt.head,
        }
        self._receipt = json.dumps(fields)

    def create_key(self) -> None:
        """Make the key. Nothing may be sealed yet: it could never be read again."""
        if self._sealed():
            raise _damaged()
        self._seal = Seal(self._keys.create(self.identifier))

    def has_key(self) -> bool:
        """Whether the key can be found."""
        return self._keys.load(self.identifier) is not None

    def save(self, search: Search) -> None:
        """Seal a search, in one durable commit that rewrites the whole record under a fresh nonce."""
        assert self._seal is not None
        sealed = self._seal.close(self._shape.pack(search), self._bound_to(search.stage))
        self._write(
            "UPDATE search SET stage = :stage, receipt = :receipt, sealed = :sealed",
            stage=search.stage.value,
            receipt=self._receipt,
            sealed=sealed,
        )
        self.stage = search.stage

    def load(self) -> Search:
        """Open the sealed search. Raises `StudyError` for a missing or wrong key and for a changed record."""
        if self.stage is Stage.NEW:
            return Search(slots=self._shape.slots, stage=self.stage)
        key = self._keys.load(self.identifier)
        if key is None:
            raise StudyError(f"the key of this search is missing: {self._keys.sought(self.identifier)}")
        self._seal = Seal(key)
        try:
            record = self._seal.open(self._sealed(), self._bound_to(self.stage))
        except BrokenSealError:
            raise _damaged() from None
        return self._shape.unpack(record, self.stage)

    def wipe(self) -> str | None:
        """Destroy the key, then note it. Returns the environment variable that the operator must drop, if any.

        The record is overwritten too, which is all that a key in a variable allows. Older versions of it may survive in
        freed blocks of the disk until the operator drops that variable.
        """
        self._keys.destroy(self.identifier)
        self._seal = None
        noise = system_source().bytes(max(self._shape.sealed_bytes, len(self._sealed())))
        self._write("UPDATE search SET stage = :stage, sealed = :sealed", stage=Stage.WIPED.value, sealed=noise)
        self.stage = Stage.WIPED
        return self._keys.variable

    def _sealed(self) -> bytes:
        return bytes(self._database.execute("SELECT sealed FROM search").fetchone().sealed)

    def _bound_to(self, stage: Stage) -> bytes:
        shape = [self._shape.slots, self._shape.payload_bytes]
        shape += [self._shape.history_bytes] if self._shape.history_bytes else []
        return json.dumps(["dpselect", _FORMAT, self.identifier, self._fingerprint, stage.value, shape]).encode()

    def _write(self, statement: str, **values: object) -> None:
        try:
            with self._database.transaction(write=True):
                self._database.execute(statement, **values)
        except sqlite3.OperationalError as error:  # a full disk: what was committed before is still there
            raise StudyError(f"the store cannot be written: {error}") from None


class MemoryStore:
    """A search that is not kept on disk: nothing is written, it cannot be resumed, and there is no key to destroy."""

    def __init__(self, slots: int) -> None:
        self.identifier = system_source().bytes(16).hex()
        self.outside: ClaimFile | None = None
        self.stage = Stage.NEW
        self.receipt: Receipt | None = None
        self._slots = slots

    def reserved(self, receipt: Receipt | None) -> None:
        """Note that the price is charged."""
        self.receipt = receipt

    def create_key(self) -> None:
        """Nothing to do."""

    def has_key(self) -> bool:
        """There is no key that could be lost."""
        return True

    def save(self, search: Search) -> None:
        """Note the stage."""
        self.stage = search.stage

    def load(self) -> Search:
        """A new search."""
        return Search(slots=self._slots)

    def wipe(self) -> str | None:
        """Nothing to do."""
        self.stage = Stage.WIPED
        return None


Store = SealedStore | MemoryStore


def _changes(before: str, now: str) -> list[str]:
    """Names of the parts that differ, of the first group in which any does."""
    try:
        groups = zip(json_of(before, ENTRY, "the record"), json_of(now, ENTRY, "the study"), strict=True)
        found = [[name for name in old | new if old.get(name) != new.get(name)] for old, new in groups]
    except (TypeError, ValueError, AttributeError):
        return []
    return next(filter(None, found), [])


def _damaged() -> StudyError:
    return StudyError("the sealed record cannot be opened: the key is another one, or the record was changed")


def _made(path: Path) -> Database:
    """The database of a store, with an empty file where there is none."""
    refuse_while_starting("a search on disk")
    try:
        try:  # made here and not by SQLite, so that it is never readable by others; its journal has the same mode
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:  # not opened: closing it would drop the lock of another search of this process
            if path.is_symlink():
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        path.chmod(0o600)
        # The folder is not synced here: SQLite does so when it makes its journal, before the first commit returns.
        return sqlite(path, exclusive=True, timeout=1.0)
    except OSError as error:
        raise StudyError(f"the store {path} cannot be written: {error.strerror}") from None


def _row(database: Database, path: Path, fingerprint: str, variable: str | None) -> dict[str, Any]:
    """The public part of the search, a new one if there is none. From now on all other processes are kept out."""
    damaged, locked = "is not a store of dpselect, or it is damaged", "another process is running the search in"
    with unusable(f"{path} {damaged}", locked=f"{locked} {path}"):
        with database.transaction(write=False):
            # one that was killed while it created the store left it empty: nothing was charged or drawn
            begun = bool(database.tables())
        if not begun:
            with database.transaction(write=True):
                database.execute(_SCHEMA)
                database.execute(
                    "INSERT INTO search VALUES (1, :format, :identifier, :fingerprint, :key, :stage, 'null', x'')",
                    format=_FORMAT,
                    identifier=system_source().bytes(16).hex(),
                    fingerprint=fingerprint,
                    key=variable,
                    stage=Stage.NEW.value,
                )
        found = database.execute("SELECT format, identifier, fingerprint, key_variable, stage, receipt FROM search")
        try:
            row = dict(found.fetchone()._asdict())
            return {**row, "stage": Stage(row["stage"])}
        except (ValueError, AttributeError):
            raise RecordDamagedError from None
