"""Entries: what is hashed, how, and what each kind holds.

An entry is one JSON object in canonical form (sorted keys, no spaces, ASCII). The head after entry n is

    head_n = SHA-256(head_{n-1} || decimal n || newline || canonical body),   head_0 = 32 zero bytes,

in hexadecimal. Entries hold no time. At most the date of a reservation, when the ledger was created so.

Under `books` every entry has the hash of all budgets as they are after it, terms and sums. So the sums that are kept
beside the record for speed can be checked against its last entry, however long the record is.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any

from dpselect.decoding.json_text import json_of
from dpselect.decoding.limits import ENTRY, LimitError
from dpselect.decoding.numbers import fraction_of
from dpselect.errors import ArgumentError
from dpselect.ledger.refusals import LedgerDamagedError
from dpselect.records.chain import LINES, ChainHead, canonical

__all__ = [
    "BOOKS",
    "ORIGIN",
    "Body",
    "ChainHead",
    "amounts_from_text",
    "amounts_to_text",
    "canonical",
    "cell_text",
    "exact",
    "followed",
    "next_head",
    "without_books",
]

BOOKS = "books"

Body = dict[str, Any]


ORIGIN = ChainHead(0, "0" * 64)


def next_head(tip: ChainHead, text: str) -> ChainHead:
    """The head after appending an entry with this canonical text."""
    return LINES.next_head(tip, f"{text}".encode("ascii"))


def followed(before: ChainHead, head: ChainHead, text: str) -> Body:
    """The body of an entry. Raises `LedgerDamagedError` unless it leads from one head to the next."""
    if head.sequence != before.sequence + 1:
        raise LedgerDamagedError(f"entry {before.sequence + 1} is missing", before.sequence + 1)
    try:
        fits = next_head(before, text) == head
        body: Body = json_of(text, ENTRY, "an entry")
    except (ValueError, TypeError):
        raise LedgerDamagedError(f"entry {head.sequence} cannot be read", head.sequence) from None
    if not fits:
        raise LedgerDamagedError(f"entry {head.sequence} does not fit the chain of hashes", head.sequence)
    return body


def without_books(body: Mapping[str, Any]) -> Body:
    """The body of an entry without the digest of the sums after it."""
    return {key: value for key, value in body.items() if key != BOOKS}


def amounts_to_text(amounts: Mapping[str, Fraction]) -> dict[str, str]:
    """Exact amounts as text, such as "3/10". Raises `LimitError` for a sum of more digits than are read back."""
    try:
        return {unit: str(amount) for unit, amount in amounts.items()}
    except ValueError:  # Python writes no longer ones
        raise LimitError("a sum of the record would have too many digits") from None


def amounts_from_text(amounts: Mapping[str, str]) -> dict[str, Fraction]:
    """Amounts read back."""
    return {unit: exact(amount) for unit, amount in amounts.items()}


def exact(amount: str) -> Fraction:
    """One amount read back. Raises `ArgumentError` for what is none, and for digits that nothing recorded has."""
    if not isinstance(amount, str):
        raise ArgumentError("an amount of the record must be a text")
    return fraction_of(amount, what="an amount of the record")


def cell_text(cell: Hashable) -> str:
    """A cell as it stands in the record: readers of a ledger see the cells that occurred.

    Raises `ArgumentError`, without quoting the cell, unless it is text, an integer, a boolean, None, or a
    tuple of these.

    >>> cell_text(("answers", 3)), cell_text(True)
    ('["answers",3]', 'true')
    """
    return json.dumps(_plain(cell), separators=(",", ":"), ensure_ascii=True)


def _plain(cell: Any) -> Any:
    if cell is None or isinstance(cell, bool):
        return cell
    if isinstance(cell, str):
        return str(cell)
    if isinstance(cell, int):
        return int(cell)
    if isinstance(cell, tuple):
        return [_plain(part) for part in cell]
    raise ArgumentError("a cell in a ledger must be text, an integer, a boolean, None, or a tuple of these")
