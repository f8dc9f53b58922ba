"""Which rows train and which validate: decided row by row, never by permuting the table.

Under add_or_remove_one a row's part is a keyed hash of its key column when the study names one, else of its content and
of how many equal rows stand before it. A row that is added or removed then changes one part by one row: with a key it
moves no other row. Without one, m equal rows have the parts of their content's numbers 0 to m - 1, whichever of them
stands where; one more row adds the part of the number m. Equal rows are the same to whoever reads them, so the parts,
as collections without an order, differ by that row. (By the content alone all equal rows would share a part, and of a
table with few distinct rows a part may hold hardly anything.) Under replace_one it is a keyed hash of the row's
position, so that a replaced row stays in its part. Either way a row pays for one part only.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dpselect.privacy import Adjacency

__all__ = ["SPLIT", "content_digests", "row_digest", "split_words", "validation_mask"]

SPLIT: Final = 2
"""The number of this way to split: a search is not resumed with another, as a row would train here and score there."""


class _Digested(Protocol):
    @property
    def digests(self) -> list[bytes]: ...


def row_digest(row: bytes, label: bytes) -> bytes:
    """What stands for one row when rows are told apart by their content."""
    return hashlib.sha256(row + label).digest()


def content_digests(contents: Iterable[bytes]) -> list[bytes]:
    """What stands for each row: its content, and how many equal ones stand before it.

    Contents must be equal only where a learner and a metric cannot tell the rows apart.
    """
    before: Counter[bytes] = Counter()
    digests = []
    for content in contents:
        digest = hashlib.sha256(content).digest()
        digests.append(row_digest(digest, before[digest].to_bytes(8, "little")) if before[digest] else digest)
        before[digest] += 1
    return digests


def split_words(digests: Sequence[bytes], *, adjacency: Adjacency, salt: str) -> NDArray[np.uint64]:
    """A 64-bit word for each row, by which it is put into a part: a hash of the row, or of its position."""
    key = hashlib.sha256(b"dpselect split " + salt.encode()).digest()
    by_position = adjacency is Adjacency.REPLACE_ONE
    identities = (i.to_bytes(8, "little") for i in range(len(digests))) if by_position else iter(digests)
    words = [int.from_bytes(hmac.digest(key, identity, "sha256")[:8], "little") for identity in identities]
    return np.array(words, dtype=np.uint64)


def validation_mask(rows: _Digested, *, fraction: float, adjacency: Adjacency, salt: str) -> NDArray[np.bool_]:
    """True for the rows that validate; each with probability `fraction` over the salt (public)."""
    return split_words(rows.digests, adjacency=adjacency, salt=salt) < np.uint64(int(fraction * 2.0**64))
