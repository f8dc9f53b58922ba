"""A database that holds a ledger, or will: opening, making, transactions, the witness."""

from __future__ import annotations

import os
import re
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from dpselect.cures import near_file
from dpselect.errors import expect
from dpselect.ledger.entries import ORIGIN, Body, ChainHead
from dpselect.ledger.locations import WitnessPlace, check_file, file_of, opened, translated, witness_at
from dpselect.ledger.refusals import (
    MAKES_IT,
    LedgerDamagedError,
    LedgerMissingError,
    LedgerUnavailableError,
    LostLedgerWarning,
    StaleRecordError,
)
from dpselect.ledger.schema import SCHEMA_VERSION, create_tables, is_there, migrate, schema_version
from dpselect.ledger.transaction import Transaction
from dpselect.randomness.process_start import refuse_while_starting
from dpselect.records.engines import CREATION_LOCKS, Database, shown_url, sqlite
from dpselect.records.witness import FolderWitness, Witness
from dpselect.storage import durable

__all__ = ["Begin", "Store"]

_LOCK = "LOCK TABLE ledger_entry IN EXCLUSIVE MODE"

Begin = Callable[[Transaction], None]
"""Writes the first entries of a new ledger."""

_STORES: weakref.WeakSet[Store] = weakref.WeakSet()


class Store:
    """A database that holds a ledger. One object serves many threads, one after the other.

    SQLite must not be carried across a fork: a child would believe that it holds its parent's file locks, and the log
    could be deleted under it. So before a fork running transactions end and connections are closed.
    """

    def __init__(self, where: str | os.PathLike[str], *, timeout: float, witness: WitnessPlace) -> None:
        """Open what is at `where`, if anything is: `create` makes it. Nothing is written to disk here."""
        expect("where", where, str, os.PathLike)
        self._path = file_of(where)
        self._timeout = timeout
        self.name = str(self._path) if self._path else shown_url(os.fspath(where))
        self._database = opened(where, timeout=timeout)
        self._witness = witness_at(witness, is_file=self._path is not None, timeout=timeout)
        self._origin: Body | None = None
        self._current = True  # older tables are read as they are, and brought up to date by the first write
        self._witnessed = False  # whether the witness has kept all that this object committed, and has room for more
        self._alone = threading.RLock()
        _STORES.add(self)
        try:
            if self._path is not None:
                check_file(self._path)
            self._found()
        except BaseException:
            self.close()
            raise

    @property
    def origin(self) -> Body:
        """The entry that begins the ledger. Raises `LedgerMissingError` when there is none."""
        if not self._found() or self._origin is None:
            near = near_file(self._path) if self._path else ""
            raise LedgerMissingError(f"there is no ledger {self.name}: {MAKES_IT}{near}")
        return self._origin

    @property
    def missing(self) -> bool:
        """Whether there is no ledger yet."""
        return not self._found()

    def _found(self) -> bool:
        """Whether there is a ledger. Opens it when it is first seen."""
        with self._alone:
            if self._origin is not None:
                return True
            if self._path is not None and not os.path.lexists(self._path):
                return False
            with self._plain(write=False) as transaction:
                if not is_there(transaction.database):
                    return False
                self._current = schema_version(transaction.database) == SCHEMA_VERSION
                origin = _begun(transaction)
            self._origin = origin
        with self.read():  # an older copy is refused at once, and an unknown one witnessed
            return True

    def create(self, begin: Begin) -> bool:
        """Make the ledger. `begin` writes its first entries. False, and nothing, when there is one already.

        Raises `StartingProcessError` in a child process that is being started.
        """
        refuse_while_starting("a ledger that is made")
        with self._alone:
            if self._found():
                return False
            made = self._create_file(self._path, begin) if self._path is not None else self._create_tables(begin)
            return made and self._found()

    def _create_file(self, path: Path, begin: Begin) -> bool:
        """A whole ledger appears under its name or none does."""
        try:
            with durable.whole_file(path) as part:
                with (
                    closing(sqlite(part, timeout=self._timeout)) as database,
                    self._plain(write=True, database=database) as transaction,
                ):
                    self._write(transaction, begin)
                lost = self._witness.last_at(self._place) if isinstance(self._witness, FolderWitness) else None
            if lost is not None:  # only now: a ledger that another process makes meanwhile is not lost
                warnings.warn(
                    f"another ledger was at {self._place} before, with {lost.sequence} entries, and is gone: what was "
                    "spent from it is not in the new one",
                    LostLedgerWarning,
                    stacklevel=2,
                )
            durable.sync_folder(path.parent)
        except FileExistsError:
            return False  # another process was quicker
        except OSError as error:
            raise LedgerUnavailableError(f"the ledger {self.name} cannot be made: {error.strerror}") from None
        return True

    def _create_tables(self, begin: Begin) -> bool:
        with self._plain(write=True, lock=CREATION_LOCKS["ledger"]) as transaction:
            if is_there(transaction.database):
                return False
            self._write(transaction, begin)
        return True

    def _write(self, transaction: Transaction, begin: Begin) -> None:
        create_tables(transaction.database)
        begin(transaction)
        transaction.flush()
        self._check_witness(transaction, self._seen(str(_begun(transaction)["id"])))

    @property
    def _place(self) -> str:
        return str(self._path.absolute()) if self._path else self.name

    def read(self) -> AbstractContextManager[Transaction]:
        """One consistent view of the record."""
        return self._transaction(write=False)

    def write(self) -> AbstractContextManager[Transaction]:
        """Alone with the record. Durable when it ends, undone when it raises.

        Raises `StartingProcessError` in a child process that is being started.
        """
        refuse_while_starting("a ledger that is written to")
        return self._transaction(write=True, lock=_LOCK)

    @contextmanager
    def _transaction(self, *, write: bool, lock: str | None = None) -> Iterator[Transaction]:
        with self._alone:
            ledger = str(self.origin["id"])
            # read before the view begins: what is witnessed was committed, so the view has it
            seen = self._seen(ledger)
            with self._plain(write=write, lock=lock) as transaction:
                first = self._check_witness(transaction, seen)
                if write and not self._current:
                    migrate(transaction.database)
                if write and self._witness is not None and (seen is None or not self._witnessed):
                    # before anything is charged: a witness that cannot be written refuses
                    self._advance(self._witness, ledger, first)
                yield transaction
            self._current |= write
            tip = transaction.tip() if write else first
            if self._witness is not None and (seen is None or (write and tip.sequence > seen.sequence)):
                self._witnessed = False
                self._witness_committed(self._witness, ledger, tip)
            self._witnessed = self._witnessed or write

    def _advance(self, witness: Witness, ledger: str, head: ChainHead) -> None:
        with translated(witness.name):
            witness.advance(ledger, head, self._place)

    def _witness_committed(self, witness: Witness, ledger: str, tip: ChainHead) -> None:
        try:
            self._advance(witness, ledger, tip)
        except LedgerUnavailableError as error:
            raise LedgerUnavailableError(
                f"{error}. Entry {tip.sequence} is in the ledger anyway: once the witness can be written, the "
                "same call with the same identifier finds it and charges nothing more"
            ) from None

    def _seen(self, ledger: str) -> ChainHead | None:
        if self._witness is None:
            return None
        with translated(self._witness.name):
            return self._witness.read(ledger)

    def _check_witness(self, transaction: Transaction, seen: ChainHead | None) -> ChainHead:
        tip = transaction.tip()
        if seen is None or seen == tip or transaction.holds(seen.head) == seen.sequence:
            return tip
        assert self._witness is not None
        raise StaleRecordError(
            f"the ledger {self.name} lacks entry {seen.sequence}, which its witness {self._witness.name} knows: it is "
            "an older copy, or one that went another way. Put the latest one back; to read a backup, open it with "
            "witness=False"
        )

    @contextmanager
    def _plain(
        self, *, write: bool, lock: str | None = None, database: Database | None = None
    ) -> Iterator[Transaction]:
        """A transaction on what is there, no matter what it is."""
        database = database or self._database
        with translated(self.name), self._alone, database.transaction(write=write, lock=lock):
            transaction = Transaction(database)
            yield transaction
            transaction.flush()

    def close(self) -> None:
        """Close all connections. A later use opens new ones."""
        self._database.close()
        if self._witness is not None:
            self._witness.close()


def _begun(transaction: Transaction) -> Body:
    """The first entry, checked."""
    if transaction.tip() == ORIGIN:
        raise LedgerDamagedError("entry 1 is missing", 1)
    origin = transaction.entry(1)[1]
    known = isinstance(origin.get("id"), str) and re.fullmatch("[0-9a-f]{32}", origin["id"])
    if origin.get("kind") != "ledger" or not known or not isinstance(origin.get("dates"), bool):
        raise LedgerDamagedError("entry 1 does not begin a ledger", 1)
    return origin


_FORKING: list[Store] = []


def _before_fork() -> None:
    """End what runs, close connections, and keep others out until `_after_fork`."""
    _FORKING[:] = sorted(_STORES, key=id)
    for store in _FORKING:
        store._alone.acquire()
        store.close()


def _after_fork() -> None:
    """Go on, in the parent and in the child."""
    for store in _FORKING:
        store._alone.release()
    _FORKING.clear()


if sys.platform != "win32":
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
