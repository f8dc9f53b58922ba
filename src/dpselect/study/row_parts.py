"""Which rows train and which validate: decided row by row, never by permuting the table.

Under add_or_remove_one a row's part is a keyed hash of its key column when the study names one, else of its content and
of how many equal rows stand before it. A row that is added or removed then changes one part by one row: with a key it
moves no other row. Without one, m equal rows have the parts of their content's numbers 0 to m - 1, whichever of them
stands where; one more row adds the part of the number m. Equal rows are the same to anyone who reads them, so the
parts, as collections without an order, differ by that row. (By the content alone all equal rows would share a part,
and of a table with few distinct rows a part may hold hardly anything.) Under replace_one it is a keyed hash of the
row's position, so that a replaced row stays in its part. Either way a row pays for one part only.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.privacy import Adjacency
from dpselect.tables.categories import is_missing
from dpselect.tables.row_digests import SIZE, Digests, keyed_words, numbered, row_digest

__all__ = [
    "SPLIT",
    "content_digests",
    "key_digests",
    "plain_digests",
    "split_limit",
    "split_words",
    "validation_mask",
]

SPLIT: Final = 2
"""The number of this way to split: a search is not resumed with another, as a row would train here and score there."""

_CHUNK: Final = 2**14


def content_digests(rows: NDArray[np.float64], labels: NDArray[Any]) -> Digests:
    """What stands for each row: the bytes of its features and label, and how many equal rows stand before it.

    These must be equal only where a learner and a metric cannot tell the rows apart.
    """
    found = bytearray(plain_digests(rows, labels).joined)
    before: Counter[bytes] = Counter()
    for place in _repeated(np.frombuffer(bytes(found), dtype=np.uint64)[:: SIZE // 8]):
        digest = bytes(found[place * SIZE : (place + 1) * SIZE])
        found[place * SIZE : (place + 1) * SIZE] = numbered(digest, before[digest])
        before[digest] += 1
    return Digests(bytes(found))


def plain_digests(rows: NDArray[np.float64], labels: NDArray[Any]) -> Digests:
    """A digest of each row's features and label alone: equal rows have equal ones."""
    found = bytearray()
    for start in range(0, len(rows), _CHUNK):
        parts = [np.ascontiguousarray(part[start : start + _CHUNK]) for part in (rows, labels)]
        told = np.hstack([part.view(np.uint8).reshape(len(part), -1) for part in parts])
        size, content = told.shape[1], told.tobytes()
        found += b"".join(hashlib.sha256(content[at : at + size]).digest() for at in range(0, len(content), size))
    return Digests(bytes(found))


def _repeated(words: NDArray[np.uint64]) -> list[int]:
    """The places of words that occur more than once: the rows that others may be equal to, mostly few of many."""
    inorder = np.sort(words)
    twice = np.unique(inorder[1:][inorder[1:] == inorder[:-1]])
    return np.flatnonzero(np.isin(words, twice)).tolist()


def key_digests(keys: Any) -> Digests:
    """The parts of rows that a column tells apart. A missing key is one text, for every type of column."""
    texts = ("" if is_missing(key) else str(key) for key in keys)
    return Digests(b"".join(row_digest(text.encode("utf-8", "surrogatepass"), b"") for text in texts))


def split_words(digests: Sequence[bytes], *, adjacency: Adjacency, salt: str) -> NDArray[np.uint64]:
    """A 64-bit word for each row, by which it is put into a part: a hash of the row, or of its position."""
    by_position = adjacency is Adjacency.REPLACE_ONE
    identities = (i.to_bytes(8, "little") for i in range(len(digests))) if by_position else iter(digests)
    return keyed_words(identities, len(digests), salt=salt)


def split_limit(fraction: float) -> int:
    """Rows whose word is less validate."""
    return int(fraction * 2.0**64)


def validation_mask(digests: Sequence[bytes], *, fraction: float, adjacency: Adjacency, salt: str) -> NDArray[np.bool_]:
    """True for the rows that validate; each with probability `fraction` over the salt (public)."""
    return split_words(digests, adjacency=adjacency, salt=salt) < np.uint64(split_limit(fraction))
