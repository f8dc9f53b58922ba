"""The head of a ledger, kept outside of it: an older copy that is put back lacks the entry that was kept.

An entry is committed to the ledger, then to the witness, and only then acknowledged. So

- the ledger may be ahead of its witness (a crash in between, or another process): the witness follows;
- the ledger lacks the entry of its witness: it is an older copy, or one that went another way, and is refused;
- the witness knows nothing of a ledger (a copy that was moved to another machine or user): what it holds is taken as it
  is, and witnessed from then on.

A ledger is known by the random identifier in its first entry, wherever it lies. Entries are committed under the
ledger's own lock and a witness only ever goes forward, so many processes may share one.
"""

from __future__ import annotations

import os
import re
import warnings
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path

from dpselect.errors import ArgumentError
from dpselect.records.engines import is_server, opened, translated
from dpselect.ledger.entries import Head
from dpselect.ledger.refusals import LedgerDamagedError, LedgerUnavailableError, UnwitnessedWarning
from dpselect.storage import HeadFile, KeptHead, state_folder

__all__ = ["FolderWitness", "Witness", "WitnessPlace", "witness_at"]

WitnessPlace = bool | str | os.PathLike[str]

_VARIABLE = "DPSELECT_LEDGER_WITNESS"
_IDENTIFIER = re.compile("[0-9a-f]{32}")


class Witness(ABC):
    """Keeps the latest known head of each ledger. `name` is where it is, for messages."""

    name: str

    @abstractmethod
    def read(self, ledger: str) -> Head | None:
        """The latest head that it knows; None for a ledger that it has not seen."""

    @abstractmethod
    def advance(self, ledger: str, head: Head, place: str) -> None:
        """Keep a head, unless a later one is kept; durable on return. Raises `LedgerUnavailableError`."""

    def close(self) -> None:  # noqa: B027 - files have none
        """Close connections."""


class FileWitness(Witness):
    """One file for one ledger, named by the caller."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path

    def read(self, ledger: str) -> Head | None:
        file = self._file(ledger)
        try:
            kept = file.read()
        except OSError as error:
            raise LedgerUnavailableError(f"the witness {file.path} cannot be read: {error.strerror}") from None
        except ValueError:
            raise LedgerDamagedError(
                f"the witness {file.path} is damaged: compare the ledger with its latest receipt, then remove that file"
            ) from None
        if kept is None:
            return None
        if kept.chain != ledger:
            raise ArgumentError(f"witness: {file.path} is that of another ledger")
        return Head(kept.sequence, kept.head)

    def advance(self, ledger: str, head: Head, place: str) -> None:
        file = self._file(ledger)
        try:
            file.advance(KeptHead(ledger, head.sequence, head.head, place))
        except OSError as error:
            raise LedgerUnavailableError(f"the witness {file.path} cannot be written: {error.strerror}") from None
        except ValueError:
            raise LedgerDamagedError(f"the witness {file.path} is damaged") from None

    def _file(self, ledger: str) -> HeadFile:  # noqa: ARG002 - a folder has one for each
        return HeadFile(self._path)


class FolderWitness(FileWitness):
    """A file for each ledger in one folder. In the per-user state folder it is there by default.

    A file that is there and cannot be read or written refuses. Where none can be made, `required` refuses, and
    otherwise a warning says that nothing is witnessed.
    """

    def __init__(self, folder: Path, *, required: bool) -> None:
        super().__init__(folder)
        self._required = required
        self._absent = False

    def advance(self, ledger: str, head: Head, place: str) -> None:
        path = self._file(ledger).path
        if self._absent and not path.exists():
            return
        try:
            super().advance(ledger, head, place)
        except LedgerUnavailableError as error:
            if self._required or path.exists():
                raise
            self._absent = True
            warnings.warn(
                f"{error}. Nothing outside of the ledger knows how far it has come, so an older copy of it would not "
                f"be found. Set {_VARIABLE} to a folder that can be written, or pass witness=False",
                UnwitnessedWarning,
                stacklevel=2,
            )

    def last_at(self, place: str) -> KeptHead | None:
        """The head of a ledger that was used at a place last."""
        for path in self._path.glob("*.head"):
            with suppress(OSError, ValueError):
                kept = HeadFile(path).read()
                if kept is not None and kept.place == place:
                    return kept
        return None

    def _file(self, ledger: str) -> HeadFile:
        if not _IDENTIFIER.fullmatch(ledger):
            raise LedgerDamagedError("entry 1 names no identifier of a ledger", 1)
        return HeadFile(self._path / f"{ledger}.head")


class ServerWitness(Witness):
    """A table in a PostgreSQL database, which many machines can share."""

    _TABLE = (
        "CREATE TABLE IF NOT EXISTS ledger_witness "
        "(ledger TEXT PRIMARY KEY, sequence BIGINT NOT NULL, head TEXT NOT NULL, place TEXT NOT NULL)"
    )
    _READ = "SELECT sequence, head FROM ledger_witness WHERE ledger = :ledger"
    _ADVANCE = (
        "INSERT INTO ledger_witness (ledger, sequence, head, place) VALUES (:ledger, :sequence, :head, :place) "
        "ON CONFLICT (ledger) DO UPDATE SET sequence = EXCLUDED.sequence, head = EXCLUDED.head, "
        "place = EXCLUDED.place WHERE ledger_witness.sequence < EXCLUDED.sequence"
    )

    def __init__(self, url: str, *, timeout: float) -> None:
        self.name = url.rsplit("@", 1)[-1].split("?", 1)[0]
        self._database = opened(url, timeout=timeout)
        creation = "SELECT pg_advisory_xact_lock(6450517352)"
        with translated(self.name), self._database.transaction(write=True, lock=creation):
            self._database.execute(self._TABLE)

    def read(self, ledger: str) -> Head | None:
        with translated(self.name), self._database.transaction(write=False):
            row = self._database.execute(self._READ, ledger=ledger).fetchone()
        return None if row is None else Head(row.sequence, row.head)

    def advance(self, ledger: str, head: Head, place: str) -> None:
        with translated(self.name), self._database.transaction(write=True):
            self._database.execute(self._ADVANCE, ledger=ledger, sequence=head.sequence, head=head.head, place=place)

    def close(self) -> None:
        self._database.close()


def witness_at(place: WitnessPlace, *, is_file: bool, timeout: float) -> Witness | None:
    """The witness that is asked for; True means the variable's, else the state folder for a ledger in a file.

    Raises `ArgumentError` for a place that is none.
    """
    if place is True:
        place = os.environ.get(_VARIABLE) or True
    if place is True:
        return FolderWitness(state_folder() / "ledgers", required=False) if is_file else None
    if place is False or place is None:
        return None
    place = os.fspath(place)
    if not isinstance(place, str) or not place:
        raise ArgumentError("witness must be True, False, a file, a folder, or a postgresql:// URL")
    if "://" in place:
        if not is_server(place):
            raise ArgumentError("witness: of URLs, only postgresql:// ones are known")
        return ServerWitness(place, timeout=timeout)
    path = Path(place).absolute()
    return FolderWitness(path, required=True) if path.is_dir() else FileWitness(path)
