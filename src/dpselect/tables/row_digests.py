"""A digest for each row, and the keyed 64-bit word of each digest, by which rows are chosen or split."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["SIZE", "Digests", "keyed_words", "numbered", "row_digest", "split_key"]

SIZE: Final = 32
"""Bytes of a digest."""


@dataclass(frozen=True, repr=False)
class Digests(Sequence[bytes]):
    """The digests of rows, one after the other. They take no more room than that."""

    joined: bytes

    def __len__(self) -> int:
        return len(self.joined) // SIZE

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        start = range(len(self))[place] * SIZE
        return self.joined[start : start + SIZE]


def row_digest(row: bytes, label: bytes) -> bytes:
    """Return the digest of one row by its content."""
    return hashlib.sha256(row + label).digest()


def numbered(digest: bytes, before: int) -> bytes:
    """Return the digest of a row with so many equal ones before it."""
    return row_digest(digest, before.to_bytes(8, "little")) if before else digest


def keyed_words(identities: Iterable[bytes], count: int, *, salt: str) -> NDArray[np.uint64]:
    """A 64-bit word for each of `count` identities: a hash of it with a key that is made of the salt."""
    key = split_key(salt)
    words = (int.from_bytes(hmac.digest(key, identity, "sha256")[:8], "little") for identity in identities)
    return np.fromiter(words, dtype=np.uint64, count=count)


def split_key(salt: str) -> bytes:
    """The public key of the hash that puts rows into parts."""
    return hashlib.sha256(b"dpselect split " + salt.encode()).digest()
