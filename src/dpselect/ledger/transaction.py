"""Transactions on the record: append entries and keep the fold beside them, or nothing at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from dpselect.decoding.json_text import json_of
from dpselect.decoding.limits import ENTRY
from dpselect.ledger.entries import BOOKS, ORIGIN, Body, ChainHead, canonical, followed, next_head
from dpselect.ledger.fold import Account, MemoryBooks, Reservation, account_digest, apply, books_digest
from dpselect.ledger.refusals import LedgerDamagedError
from dpselect.ledger.schema import CLAIMS, schema_version
from dpselect.records.engines import Database

__all__ = ["Transaction"]

_END = (
    "SELECT sequence, head, body, NULL AS name "
    "FROM (SELECT * FROM ledger_entry ORDER BY sequence DESC LIMIT 2) AS last "
    "UNION ALL SELECT NULL, digest, NULL, name FROM ledger_account"
)
_HEAD = "SELECT sequence FROM ledger_entry WHERE head = :head"
_ENTRY = (
    "SELECT e.head AS head, e.body AS body, p.head AS before_head FROM ledger_entry e "
    "LEFT JOIN ledger_entry p ON p.sequence = e.sequence - 1 WHERE e.sequence = :sequence"
)
_ENTRIES = "SELECT sequence, head, body FROM ledger_entry ORDER BY sequence"
_PAGE = "SELECT sequence, head, body FROM ledger_entry WHERE sequence > :after ORDER BY sequence LIMIT 1000"
_APPEND = "INSERT INTO ledger_entry (sequence, head, body) VALUES (:sequence, :head, :body)"
_ACCOUNT = "SELECT terms, state FROM ledger_account WHERE name = :name"
_ACCOUNTS = "SELECT name FROM ledger_account"
_OPEN_ACCOUNT = "INSERT INTO ledger_account (name, terms, state, digest) VALUES (:name, :terms, :state, :digest)"
_SAVE_ACCOUNT = "UPDATE ledger_account SET state = :state, digest = :digest WHERE name = :name"
_RESERVATION = (
    "SELECT sequence, settled, claimed FROM ledger_reservation WHERE budget = :budget AND identifier = :identifier"
)
_RESERVATIONS = "SELECT budget, identifier, sequence, settled, claimed FROM ledger_reservation"
_UNCLAIMED = "SELECT budget, identifier, sequence, settled, NULL AS claimed FROM ledger_reservation"
_BOOK = (
    "INSERT INTO ledger_reservation (budget, identifier, sequence, settled, claimed) "
    "VALUES (:budget, :identifier, :sequence, :settled, :claimed)"
)
_REBOOK = (
    "UPDATE ledger_reservation SET settled = :settled, claimed = :claimed "
    "WHERE budget = :budget AND identifier = :identifier"
)
_SPENDING = (
    "SELECT a.terms AS terms, a.state AS state, r.sequence AS reserved, r.settled AS settled, "
    "r.claimed AS claimed, "
    "e.head AS reserved_head, e.body AS reserved_body, p.head AS before_head "
    "FROM ledger_account a "
    "LEFT JOIN ledger_reservation r ON r.budget = :budget AND r.identifier = :identifier "
    "LEFT JOIN ledger_entry e ON e.sequence = r.sequence "
    "LEFT JOIN ledger_entry p ON p.sequence = r.sequence - 1 WHERE a.name = :budget"
)
_TOUCH = "UPDATE ledger_meta SET value = value WHERE key = 'schema'"


class Transaction:
    """The books of `fold`, read from the tables as needed and written back when the transaction commits."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._accounts: dict[str, Account] = {}
        self._known: dict[str, str] = {}  # the terms of what the table holds
        self._changed: set[str] = set()
        self._reservations: dict[tuple[str, str], Reservation | None] = {}
        self._entries: dict[int, tuple[str, Body]] = {}
        self._end: tuple[ChainHead, ChainHead, str] | None = None
        self._kept: dict[str, str] = {}
        self._checked = False

    def tip(self) -> ChainHead:
        """The last entry."""
        return self._last()[1]

    def _last(self) -> tuple[ChainHead, ChainHead, str]:
        """The head before the last entry, its own, and its text, as stored, like the digests of the accounts."""
        if self._end is None:
            rows = self.database.execute(_END).fetchall()
            if not all(isinstance(row.head, str) and isinstance(row.sequence, int | None) for row in rows):
                raise LedgerDamagedError("the end of the record cannot be read")
            self._kept = {row.name: row.head for row in rows if row.name is not None}
            last = sorted((row for row in rows if row.name is None), key=lambda row: row.sequence or 0, reverse=True)
            heads = [ChainHead(row.sequence, row.head) for row in last] + [ORIGIN, ORIGIN]
            self._end = heads[1], heads[0], last[0].body if last else ""
        return self._end

    def _digests(self) -> dict[str, str]:
        """The digest of every account, checked against the last entry, and that against the one before it.

        Raises `LedgerDamagedError`.
        """
        before, tip, written = self._last()
        if not self._checked:
            if not all(map(str.isascii, self._kept.values())) or (
                tip != ORIGIN and followed(before, tip, written).get(BOOKS) != books_digest(self._kept)
            ):
                raise LedgerDamagedError("the kept sums are not those of the record")
            self._checked = True
        return self._kept

    def prefetch(self, budget: str, identifier: str) -> None:
        """Read in one go what a reservation or a settlement needs: the database is held meanwhile."""
        row = self.database.execute(_SPENDING, budget=budget, identifier=identifier).fetchone()
        if row is None:
            return
        if row.terms is not None:
            self._restore(budget, row.terms, row.state)
        found = None if row.reserved is None else Reservation(row.reserved, row.settled, row.claimed)
        self._reservations[budget, identifier] = found
        if row.reserved_body is not None:
            self._read(ChainHead(row.reserved, row.reserved_head), row.reserved_body, row.before_head)

    def account(self, name: str) -> Account | None:
        if name not in self._accounts:
            row = self.database.execute(_ACCOUNT, name=name).fetchone()
            if row is None:
                return None
            self._restore(name, row.terms, row.state)
        return self._accounts[name]

    def _restore(self, name: str, terms: str, state: str) -> None:
        self._known[name] = terms
        try:
            same = account_digest(terms, state) == self._digests().get(name)
            account = Account.restored(json_of(terms, ENTRY, "the terms"), json_of(state, ENTRY, "the sums"))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise LedgerDamagedError(f"the kept sums of budget {name!r} cannot be read") from None
        if not same or account.name != name:
            raise LedgerDamagedError(f"the kept sums of budget {name!r} are not those of the record")
        self._accounts[name] = account

    def save(self, account: Account) -> None:
        self._accounts[account.name] = account
        self._changed.add(account.name)

    def reservation(self, budget: str, identifier: str) -> Reservation | None:
        if (budget, identifier) not in self._reservations:
            row = self.database.execute(_RESERVATION, budget=budget, identifier=identifier).fetchone()
            self._reservations[budget, identifier] = None if row is None else Reservation(*row)
        return self._reservations[budget, identifier]

    def book(self, budget: str, identifier: str, reservation: Reservation) -> None:
        self._reservations[budget, identifier] = reservation
        fields: dict[str, Any] = {"budget": budget, "identifier": identifier, "settled": reservation.settled}
        fields["claimed"] = reservation.claimed
        if reservation.settled is None and reservation.claimed is None:
            self.database.execute(_BOOK, **fields, sequence=reservation.sequence)
        else:
            self.database.execute(_REBOOK, **fields)

    def body(self, sequence: int) -> Body:
        return self.entry(sequence)[1]

    def entry(self, sequence: int) -> tuple[str, Body]:
        """The head after an entry, and its body. Raises `LedgerDamagedError` when they do not fit each other."""
        if sequence not in self._entries:
            row = self.database.execute(_ENTRY, sequence=sequence).fetchone()
            if row is None:
                raise LedgerDamagedError(f"entry {sequence} is missing", sequence)
            self._read(ChainHead(sequence, row.head), row.body, row.before_head)
        return self._entries[sequence]

    def _read(self, head: ChainHead, body: str, before: str | None) -> None:
        last = ORIGIN.head if head.sequence == 1 else before
        if last is None:
            raise LedgerDamagedError(f"entry {head.sequence - 1} is missing", head.sequence - 1)
        self._entries[head.sequence] = (head.head, followed(ChainHead(head.sequence - 1, last), head, body))

    def holds(self, head: str) -> int | None:
        """The entry with this head, if the record has it."""
        row = self.database.execute(_HEAD, head=head).fetchone()
        return None if row is None else int(row.sequence)

    def append(self, body: Body) -> ChainHead:
        """Fold an entry in and append it. A rule that it violates is raised. Then nothing of it may be committed.

        Raises `LedgerDamagedError` when the sums that are kept are not those that the last entry speaks of.
        """
        digests, tip = self._digests(), self.tip()
        apply(self, tip.sequence + 1, body)
        for name in self._changed:
            digests[name] = account_digest(self._terms(name), canonical(self._accounts[name].state()))
        written = canonical({**body, BOOKS: books_digest(digests)})
        head = next_head(tip, written)
        self.database.execute(_APPEND, sequence=head.sequence, head=head.head, body=written)
        self._end = tip, head, written
        return head

    def touch(self) -> None:
        """Write without a change: the commit then syncs what a killed process wrote and did not live to sync."""
        self.database.execute(_TOUCH)

    def flush(self) -> None:
        """Write changed accounts."""
        for name in sorted(self._changed):
            terms, state = self._terms(name), canonical(self._accounts[name].state())
            fields = {"name": name, "state": state, "digest": account_digest(terms, state)}
            if name in self._known:
                self.database.execute(_SAVE_ACCOUNT, **fields)
            else:
                self.database.execute(_OPEN_ACCOUNT, **fields, terms=terms)
                self._known[name] = terms
        self._changed.clear()

    def _terms(self, name: str) -> str:
        return self._known.get(name) or canonical(self._accounts[name].terms)

    def account_names(self) -> list[str]:
        """All budgets."""
        return sorted(str(name) for (name,) in self.database.execute(_ACCOUNTS))

    def entries(self) -> Iterator[tuple[int, str, str]]:
        """Number, head and canonical text of every entry, in order, without holding all of them."""
        for row in self.database.stream(_ENTRIES):
            yield row.sequence, row.head, row.body

    def page(self, after: int) -> list[tuple[int, str, str]]:
        """The next thousand entries after a number."""
        return [(row.sequence, row.head, row.body) for row in self.database.execute(_PAGE, after=after)]

    def reservations(self) -> Iterator[tuple[str, str, Reservation]]:
        """Every booked reservation."""
        claimed = schema_version(self.database) >= CLAIMS
        for row in self.database.stream(_RESERVATIONS if claimed else _UNCLAIMED):
            yield row.budget, row.identifier, Reservation(row.sequence, row.settled, row.claimed)

    def write_whole(self, entries: Iterator[tuple[int, str, str]], books: MemoryBooks) -> None:
        """Append entries that were checked. `books` is their fold once they have all been read."""
        self.database.execute_all(
            _APPEND, ({"sequence": sequence, "head": head, "body": body} for sequence, head, body in entries)
        )
        for account in books.accounts.values():
            self.save(account)
        self.database.execute_all(
            _BOOK,
            (
                {"budget": budget, "identifier": identifier, **asdict(found)}
                for (budget, identifier), found in books.reservations.items()
            ),
        )

    def check_pages(self) -> None:
        """Have SQLite read every page. Raises `LedgerDamagedError`."""
        if self.database.dialect != "sqlite":
            return
        (found,) = self.database.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise LedgerDamagedError(f"the file is damaged: {found}")
