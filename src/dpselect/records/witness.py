"""The latest head of a record, kept outside of it. An older copy that is put back lacks the entry that was kept.

An entry is committed to the record, then to the witness, and only then acknowledged. So

- the record may be ahead of its witness (a crash in between, or another process). The witness follows.
- the record lacks the entry of its witness: it is an older copy, or one that went another way, and is refused.
- the witness does not know a record (a copy that was moved to another machine or user): its content is accepted, and
  witnessed from then on.

A record is known by its random identifier, wherever it is. A witness only goes forward: many processes may share one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpselect.errors import ArgumentError
from dpselect.records.chain import ChainHead
from dpselect.records.engines import CREATION_LOCKS, RecordDamagedError, RecordUnavailableError, server, shown_url
from dpselect.storage.heads import HeadFile, KeptHead

__all__ = ["FileWitness", "FolderWitness", "ServerWitness", "Witness"]

_IDENTIFIER = re.compile("[0-9a-f]{32}")


class FileWitness:
    """Keeps the latest known head of one record in a file. `name` is where it is, for messages."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path

    def read(self, record: str) -> ChainHead | None:
        """The latest head that it knows, or None for a record that it has not seen.

        Raises `RecordUnavailableError`, `RecordDamagedError`, and on a server the errors of the driver.
        """
        file = self._file(record)
        with _failing(file, "read"):
            kept = file.read()
        if kept is not None and kept.chain != record:
            raise ArgumentError(f"witness: {file.path} is that of another ledger")
        return None if kept is None else ChainHead(kept.sequence, kept.head)

    def advance(self, record: str, head: ChainHead, place: str) -> None:
        """Keep a head, unless a later one is kept. Durable on return. Raises as `read`."""
        file = self._file(record)
        with _failing(file, "written"):
            file.advance(KeptHead(record, head.sequence, head.head, place))

    def close(self) -> None:
        """Close connections: a file has none."""

    def _file(self, record: str) -> HeadFile:  # noqa: ARG002 - a folder has one for each
        return HeadFile(self._path)


@contextmanager
def _failing(file: HeadFile, use: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RecordUnavailableError(f"the witness {file.path} cannot be {use}: {error.strerror}") from None
    except ValueError:
        raise RecordDamagedError(
            f"the witness {file.path} is damaged: compare the ledger with its latest receipt, then remove that file"
        ) from None


class FolderWitness(FileWitness):
    """A file for each record in one folder.

    A file that is there and cannot be read or written refuses. When none can be made, `without` is called once with the
    reason and nothing is witnessed. If `without` is None, that refuses too.
    """

    def __init__(self, folder: Path, *, without: Callable[[str], None] | None = None) -> None:
        super().__init__(folder)
        self._without = without
        self._absent = False

    def advance(self, record: str, head: ChainHead, place: str) -> None:
        path = self._file(record).path
        if self._absent and not path.exists():
            return
        try:
            super().advance(record, head, place)
        except RecordUnavailableError as error:
            if self._without is None or path.exists():
                raise
            self._absent = True
            self._without(str(error))

    def last_at(self, place: str) -> KeptHead | None:
        """The head of a record that was used at a place last."""
        for path in self._path.glob("*.head"):
            with suppress(OSError, ValueError):
                kept = HeadFile(path).read()
                if kept is not None and kept.place == place:
                    return kept
        return None

    def _file(self, record: str) -> HeadFile:
        if not _IDENTIFIER.fullmatch(record):
            raise RecordDamagedError("the record has no identifier")
        return HeadFile(self._path / f"{record}.head")


class ServerWitness:
    """A table in a PostgreSQL database, which many machines can share. Used as a `FileWitness` is."""

    _TABLE = (
        "CREATE TABLE IF NOT EXISTS ledger_witness "
        "(ledger TEXT PRIMARY KEY, sequence {whole} NOT NULL, head TEXT NOT NULL, place TEXT NOT NULL)"
    )
    _READ = "SELECT sequence, head FROM ledger_witness WHERE ledger = :ledger"
    _ADVANCE = (
        "INSERT INTO ledger_witness (ledger, sequence, head, place) VALUES (:ledger, :sequence, :head, :place) "
        "ON CONFLICT (ledger) DO UPDATE SET sequence = EXCLUDED.sequence, head = EXCLUDED.head, "
        "place = EXCLUDED.place WHERE ledger_witness.sequence < EXCLUDED.sequence"
    )

    def __init__(self, url: str, *, timeout: float) -> None:
        self.name = shown_url(url)
        self._database = server(url, timeout=timeout)
        with self._database.transaction(write=True, lock=CREATION_LOCKS["witness"]):
            self._database.create(self._TABLE)

    def read(self, record: str) -> ChainHead | None:
        with self._database.transaction(write=False):
            row = self._database.execute(self._READ, ledger=record).fetchone()
        return None if row is None else ChainHead(row.sequence, row.head)

    def advance(self, record: str, head: ChainHead, place: str) -> None:
        with self._database.transaction(write=True):
            self._database.execute(self._ADVANCE, ledger=record, sequence=head.sequence, head=head.head, place=place)

    def close(self) -> None:
        self._database.close()


Witness = FileWitness | ServerWitness
