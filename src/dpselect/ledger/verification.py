"""Verifying a record: hash every entry, fold it again, and compare with what is kept beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpselect.ledger.entries import BOOKS, ORIGIN, ChainHead, canonical, followed, without_books
from dpselect.ledger.fold import MemoryBooks
from dpselect.ledger.refusals import LedgerDamagedError
from dpselect.ledger.transaction import Transaction

__all__ = ["folded", "verify_record"]


def folded(entries: Iterable[tuple[int, str, str]], books: MemoryBooks) -> Iterator[tuple[ChainHead, str]]:
    """Check and fold entries in order, yielding head and text. Raises `LedgerDamagedError` at the first bad one."""
    tip = ORIGIN
    for sequence, head, text in entries:
        following = ChainHead(sequence, head)
        body = followed(tip, following, text)
        if canonical(body) != text:
            raise LedgerDamagedError(f"entry {sequence} does not fit the chain of hashes", sequence)
        if sequence == 1 and body.get("kind") != "ledger":
            raise LedgerDamagedError("entry 1 does not begin a ledger", 1)
        try:
            books.apply(sequence, without_books(body))
            sums = books.digest()
        except (ValueError, RuntimeError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
            raise LedgerDamagedError(f"entry {sequence} breaks a rule of the record: {error}", sequence) from None
        if body.get(BOOKS) != sums:
            raise LedgerDamagedError(f"entry {sequence} breaks a rule of the record: its sums are others", sequence)
        tip = following
        yield tip, text


def verify_record(transaction: Transaction) -> ChainHead:
    """Verify pages, chain, rules and kept sums, and return the last head. Raises `LedgerDamagedError`."""
    transaction.check_pages()
    books = MemoryBooks()
    tip = ORIGIN
    for tip, _ in folded(transaction.entries(), books):  # noqa: B007 - the last one is wanted
        pass
    if tip == ORIGIN:
        raise LedgerDamagedError("entry 1 is missing", 1)
    if sorted(books.accounts) != transaction.account_names():
        raise LedgerDamagedError("the kept budgets are not those of the record")
    for name, account in books.accounts.items():
        kept = transaction.account(name)
        if kept is None or kept.terms != account.terms or kept.state() != account.state():
            raise LedgerDamagedError(f"the kept sums of budget {name!r} are not those of the record")
    count = 0
    for budget, identifier, reservation in transaction.reservations():
        count += 1
        if books.reservations.get((budget, identifier)) != reservation:
            raise LedgerDamagedError(
                f"reservation {identifier!r} of budget {budget!r} is not kept as recorded", reservation.sequence
            )
    if count != len(books.reservations):
        raise LedgerDamagedError("a reservation of the record is not kept")
    return tip
