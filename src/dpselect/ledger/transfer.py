"""The record as JSON lines: one entry a line, with its number and head.

An export is the whole record. Importing it gives a copy with the same heads. Two copies can both be spent from: after a
move retire the old one. Anyone who reads an export sees the cells that occurred.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from dpselect.decoding.json_text import json_of
from dpselect.decoding.limits import ENTRY, LimitError
from dpselect.errors import ArgumentError
from dpselect.ledger.entries import canonical
from dpselect.ledger.fold import MemoryBooks
from dpselect.ledger.ledger import Ledger
from dpselect.ledger.locations import WitnessPlace
from dpselect.ledger.refusals import LedgerDamagedError
from dpselect.ledger.store import Store
from dpselect.ledger.transaction import Transaction
from dpselect.ledger.verification import folded

__all__ = ["export_lines", "import_lines"]


def export_lines(ledger: Ledger) -> Iterator[str]:
    """Every entry as a line of JSON, without line ends."""
    for sequence, head, body in ledger.entries():
        yield canonical({"sequence": sequence, "head": head, "body": body})


def import_lines(
    lines: Iterable[str | bytes], where: str | os.PathLike[str], *, timeout: float = 30.0, witness: WitnessPlace = True
) -> Ledger:
    """A new ledger with these entries, checked like a record that is verified: all of them or none.

    Raises `LedgerDamagedError` with the first bad entry, `StaleRecordError` when the witness knows a later one, and
    `ArgumentError` when there is a ledger already.
    """

    def begin(transaction: Transaction) -> None:
        books = MemoryBooks()
        transaction.write_whole(_checked(lines, books), books)

    store = Store(where, timeout=timeout, witness=witness)
    try:
        if not (store.missing and store.create(begin)):
            raise ArgumentError(f"{store.name} holds a ledger already: import into a new one")
    except BaseException:
        store.close()
        raise
    return Ledger(store)


def _checked(lines: Iterable[str | bytes], books: MemoryBooks) -> Iterator[tuple[int, str, str]]:
    for head, text in folded(_parsed(lines), books):
        yield head.sequence, head.head, text
    if not books.seen:
        raise ArgumentError("there is no entry to import")


def _parsed(lines: Iterable[str | bytes]) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json_of(line, ENTRY, f"line {number}")
            yield int(record["sequence"]), str(record["head"]), canonical(record["body"])
        except LimitError as error:
            raise LedgerDamagedError(str(error), number) from None
        except (ValueError, KeyError, TypeError, OverflowError):
            raise LedgerDamagedError(f"line {number} is not an entry", number) from None
