"""The chain of hashes of a record. The head after entry n binds it to its number and to all entries before it:

head_n = SHA-256(head_{n-1} || n || content of entry n)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["BYTES", "LINES", "Chain", "ChainHead", "canonical"]


def canonical(content: Mapping[str, Any]) -> str:
    """The one text of a JSON object that is hashed or signed: sorted keys, no spaces, ASCII, no NaN."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


@dataclass(frozen=True)
class ChainHead:
    """The number of the last entry and the hash of the chain up to it, in hexadecimal."""

    sequence: int
    head: str


@dataclass(frozen=True)
class Chain:
    """A chain of one format: how it writes the number of an entry."""

    number: Callable[[int], bytes]

    def place_after(self, before: ChainHead) -> bytes:
        """The bytes that bind the next entry to its place."""
        return bytes.fromhex(before.head) + self.number(before.sequence + 1)

    def next_head(self, before: ChainHead, content: bytes) -> ChainHead:
        """The head after the next entry."""
        digest = hashlib.sha256(self.place_after(before) + content)
        return ChainHead(before.sequence + 1, digest.hexdigest())


LINES: Final = Chain(lambda sequence: f"{sequence}\n".encode("ascii"))
"""The chain of a ledger, whose entries are lines of text."""

BYTES: Final = Chain(lambda sequence: sequence.to_bytes(8, "big"))
"""The chain of sealed entries."""
