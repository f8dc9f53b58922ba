"""Transactions on the record: append entries and keep the fold beside them, or nothing at all."""

from __future__ import annotations

import json
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import Connection, Executable, text

from dpselect.ledger.engines import READ, WRITE, file_of, open_engine, translated
from dpselect.ledger.entries import ORIGIN, Body, Head, canonical, next_head
from dpselect.ledger.fold import Account, MemoryBooks, Reservation, apply
from dpselect.ledger.refusals import LedgerDamagedError
from dpselect.ledger.schema import SCHEMA_VERSION, create_tables, is_new, migrate, schema_version
from dpselect.randomness.starting import refuse_while_starting

__all__ = ["Begin", "Store", "Transaction"]

_TIP = text("SELECT sequence, head FROM ledger_entry ORDER BY sequence DESC LIMIT 1")
_HEAD = text("SELECT sequence FROM ledger_entry WHERE head = :head")
_ENTRY = text("SELECT head, body FROM ledger_entry WHERE sequence = :sequence")
_ENTRIES = text("SELECT sequence, head, body FROM ledger_entry ORDER BY sequence")
_PAGE = text("SELECT sequence, head, body FROM ledger_entry WHERE sequence > :after ORDER BY sequence LIMIT 1000")
_APPEND = text("INSERT INTO ledger_entry (sequence, head, body) VALUES (:sequence, :head, :body)")
_ACCOUNT = text("SELECT terms, state FROM ledger_account WHERE name = :name")
_ACCOUNTS = text("SELECT name FROM ledger_account ORDER BY name")
_OPEN_ACCOUNT = text("INSERT INTO ledger_account (name, terms, state) VALUES (:name, :terms, :state)")
_SAVE_ACCOUNT = text("UPDATE ledger_account SET state = :state WHERE name = :name")
_RESERVATION = text(
    "SELECT sequence, settled FROM ledger_reservation WHERE budget = :budget AND identifier = :identifier"
)
_RESERVATIONS = text("SELECT budget, identifier, sequence, settled FROM ledger_reservation")
_BOOK = text(
    "INSERT INTO ledger_reservation (budget, identifier, sequence, settled) "
    "VALUES (:budget, :identifier, :sequence, :settled)"
)
_SETTLE = text("UPDATE ledger_reservation SET settled = :settled WHERE budget = :budget AND identifier = :identifier")
_SPENDING = text(
    "SELECT t.sequence AS tip, t.head AS head, a.terms AS terms, a.state AS state, r.sequence AS reserved, "
    "r.settled AS settled, e.head AS reserved_head, e.body AS reserved_body "
    "FROM (SELECT sequence, head FROM ledger_entry ORDER BY sequence DESC LIMIT 1) t "
    "LEFT JOIN ledger_account a ON a.name = :budget "
    "LEFT JOIN ledger_reservation r ON r.budget = :budget AND r.identifier = :identifier "
    "LEFT JOIN ledger_entry e ON e.sequence = r.sequence"
)
_TOUCH = text("UPDATE ledger_meta SET value = value WHERE key = 'schema'")
_LOCK = {"postgresql": text("LOCK TABLE ledger_entry IN EXCLUSIVE MODE")}
_LOCK_CREATION = {"postgresql": text("SELECT pg_advisory_xact_lock(6450517351)")}


class Transaction:
    """The books of `fold`, read from the tables as needed and written back when the transaction commits."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._accounts: dict[str, Account] = {}
        self._known: set[str] = set()
        self._changed: set[str] = set()
        self._reservations: dict[tuple[str, str], Reservation | None] = {}
        self._entries: dict[int, tuple[str, Body]] = {}
        self._tip: Head | None = None

    def tip(self) -> Head:
        """The last entry."""
        if self._tip is None:
            row = self._connection.execute(_TIP).one_or_none()
            self._tip = ORIGIN if row is None else Head(row.sequence, row.head)
        return self._tip

    def prefetch(self, budget: str, identifier: str) -> None:
        """Read in one go what a reservation or a settlement needs: the database is held meanwhile."""
        row = self._connection.execute(_SPENDING, {"budget": budget, "identifier": identifier}).one_or_none()
        if row is None:
            return
        self._tip = Head(row.tip, row.head)
        if row.terms is not None:
            self._restore(budget, row.terms, row.state)
        found = None if row.reserved is None else Reservation(row.reserved, row.settled)
        self._reservations[budget, identifier] = found
        if row.reserved_body is not None:
            self._read(row.reserved, row.reserved_head, row.reserved_body)

    def account(self, name: str) -> Account | None:
        if name not in self._accounts:
            row = self._connection.execute(_ACCOUNT, {"name": name}).one_or_none()
            if row is None:
                return None
            self._restore(name, row.terms, row.state)
        return self._accounts[name]

    def _restore(self, name: str, terms: str, state: str) -> None:
        self._known.add(name)
        try:
            self._accounts[name] = Account.restored(json.loads(terms), json.loads(state))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise LedgerDamagedError(f"the kept sums of budget {name!r} cannot be read") from None

    def save(self, account: Account) -> None:
        self._accounts[account.name] = account
        self._changed.add(account.name)

    def reservation(self, budget: str, identifier: str) -> Reservation | None:
        if (budget, identifier) not in self._reservations:
            row = self._connection.execute(_RESERVATION, {"budget": budget, "identifier": identifier}).one_or_none()
            self._reservations[budget, identifier] = None if row is None else Reservation(row.sequence, row.settled)
        return self._reservations[budget, identifier]

    def book(self, budget: str, identifier: str, reservation: Reservation) -> None:
        self._reservations[budget, identifier] = reservation
        fields = {"budget": budget, "identifier": identifier, "settled": reservation.settled}
        if reservation.settled is None:
            self._connection.execute(_BOOK, {**fields, "sequence": reservation.sequence})
        else:
            self._connection.execute(_SETTLE, fields)

    def body(self, sequence: int) -> Body:
        return self.entry(sequence)[1]

    def entry(self, sequence: int) -> tuple[str, Body]:
        """The head after an entry, and its body."""
        if sequence not in self._entries:
            row = self._connection.execute(_ENTRY, {"sequence": sequence}).one_or_none()
            if row is None:
                raise LedgerDamagedError(f"entry {sequence} is missing", sequence)
            self._read(sequence, row.head, row.body)
        return self._entries[sequence]

    def _read(self, sequence: int, head: str, body: str) -> None:
        try:
            self._entries[sequence] = (head, json.loads(body))
        except ValueError:
            raise LedgerDamagedError(f"entry {sequence} cannot be read", sequence) from None

    def holds(self, head: str) -> int | None:
        """The entry with this head, if the record has it."""
        found = self._connection.execute(_HEAD, {"head": head}).scalar()
        return None if found is None else int(found)

    def append(self, body: Body) -> Head:
        """Fold an entry in and append it. What it violates is raised, and then nothing of it may be committed."""
        tip = self.tip()
        apply(self, tip.sequence + 1, body)
        written = canonical(body)
        head = next_head(tip, written)
        self._connection.execute(_APPEND, {"sequence": head.sequence, "head": head.head, "body": written})
        self._tip = head
        return head

    def touch(self) -> None:
        """Write without a change: the commit then syncs what a killed process wrote and did not live to sync."""
        self._connection.execute(_TOUCH)

    def flush(self) -> None:
        """Write changed accounts."""
        for name in sorted(self._changed):
            account = self._accounts[name]
            fields = {"name": name, "state": canonical(account.state())}
            if name in self._known:
                self._connection.execute(_SAVE_ACCOUNT, fields)
            else:
                self._connection.execute(_OPEN_ACCOUNT, {**fields, "terms": canonical(account.terms)})

    def account_names(self) -> list[str]:
        """All budgets."""
        return [str(name) for name in self._connection.execute(_ACCOUNTS).scalars()]

    def entries(self) -> Iterator[tuple[int, str, str]]:
        """Number, head and canonical text of every entry, in order, without holding all of them."""
        streamed = self._connection.execution_options(yield_per=1000)
        for row in streamed.execute(_ENTRIES):
            yield row.sequence, row.head, row.body

    def page(self, after: int) -> list[tuple[int, str, str]]:
        """The next thousand entries after a number."""
        return [(row.sequence, row.head, row.body) for row in self._connection.execute(_PAGE, {"after": after})]

    def reservations(self) -> Iterator[tuple[str, str, Reservation]]:
        """Every booked reservation."""
        streamed = self._connection.execution_options(yield_per=1000)
        for row in streamed.execute(_RESERVATIONS):
            yield row.budget, row.identifier, Reservation(row.sequence, row.settled)

    def write_whole(self, entries: Iterator[tuple[int, str, str]], books: MemoryBooks) -> None:
        """Append entries that were checked; `books` is their fold once they have all been read."""
        block: list[dict[str, int | str]] = []
        for sequence, head, body in entries:
            block.append({"sequence": sequence, "head": head, "body": body})
            if len(block) == 1000:
                self._connection.execute(_APPEND, block)
                block = []
        if block:
            self._connection.execute(_APPEND, block)
        for account in books.accounts.values():
            self.save(account)
        booked = [
            {"budget": budget, "identifier": identifier, "sequence": found.sequence, "settled": found.settled}
            for (budget, identifier), found in books.reservations.items()
        ]
        if booked:
            self._connection.execute(_BOOK, booked)

    def is_new(self) -> bool:
        """Whether there is no ledger yet."""
        return is_new(self._connection)

    def version(self) -> int:
        """The schema version of the tables."""
        return schema_version(self._connection)

    def create_tables(self) -> None:
        """Make the tables of a new ledger."""
        create_tables(self._connection)

    def migrate(self) -> None:
        """Bring older tables up to date."""
        migrate(self._connection)

    def check_pages(self) -> None:
        """Have SQLite read every page. Raises `LedgerDamagedError`."""
        if self._connection.dialect.name != "sqlite":
            return
        found = self._connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
        if found != "ok":
            raise LedgerDamagedError(f"the file is damaged: {found}")


Begin = Callable[[Transaction], None]
"""Writes the first entries of a new ledger."""

_STORES: weakref.WeakSet[Store] = weakref.WeakSet()


class Store:
    """A database that holds a ledger. One object serves many threads, one after the other.

    SQLite must not be carried across a fork: a child would believe that it holds its parent's file locks, and the log
    could be deleted under it. So before a fork running transactions end and connections are closed.
    """

    def __init__(self, where: str | os.PathLike[str], *, begin: Begin | None, timeout: float) -> None:
        """Open what is at `where`; a new ledger is begun by `begin`, and refused without."""
        path = file_of(where)
        # never a password, which may stand before the @ or after the ?
        self.name = str(path) if path else os.fspath(where).rsplit("@", 1)[-1].split("?", 1)[0]
        with translated(self.name):
            self._engine = open_engine(where, create=begin is not None, timeout=timeout)
        self._begin = begin
        self._alone = threading.RLock()
        _STORES.add(self)
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        with self._transaction(write=False) as transaction:
            if not transaction.is_new() and transaction.version() == SCHEMA_VERSION:
                return
        with self._transaction(write=True, lock=_LOCK_CREATION) as transaction:
            if not transaction.is_new():
                transaction.migrate()
            elif self._begin is None:
                raise LedgerDamagedError(f"the ledger {self.name} is empty")
            else:
                transaction.create_tables()
                self._begin(transaction)

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """One consistent view of the record."""
        with self._transaction(write=False) as transaction:
            yield transaction

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Alone with the record; durable when it ends, or as if it had not been when it raises.

        Raises `StartingProcessError` in a child process that is being started.
        """
        refuse_while_starting("a ledger that is written to")
        with self._transaction(write=True, lock=_LOCK) as transaction:
            yield transaction

    @contextmanager
    def _transaction(self, *, write: bool, lock: Mapping[str, Executable] | None = None) -> Iterator[Transaction]:
        with translated(self.name), self._alone, self._engine.connect() as plain:
            connection = plain.execution_options(**(WRITE if write else READ[plain.dialect.name]))
            with connection.begin():
                statement = (lock or {}).get(connection.dialect.name)
                if statement is not None:
                    connection.execute(statement)
                transaction = Transaction(connection)
                yield transaction
                transaction.flush()

    def before_fork(self) -> None:
        """End what runs, close connections, and keep others out until `after_fork`."""
        self._alone.acquire()
        self._engine.dispose()

    def after_fork(self) -> None:
        """Go on, in the parent and in the child."""
        self._alone.release()

    def close(self) -> None:
        """Close all connections; a later use opens new ones."""
        self._engine.dispose()


_FORKING: list[Store] = []


def _before_fork() -> None:
    _FORKING[:] = sorted(_STORES, key=id)
    for store in _FORKING:
        store.before_fork()


def _after_fork() -> None:
    for store in _FORKING:
        store.after_fork()
    _FORKING.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
