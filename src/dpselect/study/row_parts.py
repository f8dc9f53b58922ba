"""Which rows train and which validate: decided row by row, never by permuting the table.

Under add_or_remove_one a row's part is a keyed hash of that row alone (of its key column when the study names one), so
a row that is added or removed changes one part and moves no other row. Under replace_one it is a keyed hash of the
row's position, so that a replaced row stays in its part. Either way a row pays for one part only.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpselect.privacy import Adjacency

__all__ = ["row_digest", "split_words", "validation_mask"]


class _Digested(Protocol):
    @property
    def digests(self) -> list[bytes]: ...


def row_digest(row: bytes, label: bytes) -> bytes:
    """What stands for one row when rows are told apart by their content."""
    return hashlib.sha256(row + label).digest()


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
