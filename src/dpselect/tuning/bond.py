"""The ties of a search to its reservation: a commitment to its draws, its rows, and the hash of its release.

Readers of a ledger see the commitment and the hash. Both are keyed with 32 secret random bytes, the `blinding`, so
nothing that they are of can be read from them, or guessed and compared.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Final

from dpselect.errors import StudyError
from dpselect.randomness import system_source
from dpselect.tuning.machine import Bond, Search

__all__ = ["bond_of", "fresh_claim", "new_master", "release_hash", "rows_digest"]

_CLAIM_BYTES: Final = 16
_BLINDING_BYTES: Final = 32
_NO_ROWS: Final = bytes(32)
_DRAWS: Final = struct.Struct(">QQ32s32s")
_WINNER: Final = struct.Struct(">?Qd")


def fresh_claim() -> bytes:
    """A claim that no one has made before."""
    return system_source().bytes(_CLAIM_BYTES)


def rows_digest(master: bytes, rows: bytes | None) -> bytes:
    """A digest of the private rows that tells nothing without the master key, zeros if the rows are not known."""
    return _NO_ROWS if rows is None else _keyed(master, b"rows", rows)


def bond_of(identifier: str, *, counted: int, executed: int, master: bytes, rows: bytes | None) -> Bond:
    """The bond of fresh draws, with a first claim.

    Nothing of the draws can be read from the binding if HMAC-SHA-256 under a fresh 256-bit key is a pseudorandom
    function. The key is used for this and for one hash of the release alone.
    """
    blinding, digest = system_source().bytes(_BLINDING_BYTES), rows_digest(master, rows)
    draws = _DRAWS.pack(counted, executed, master, digest)
    binding = _keyed(blinding, b"binding", draws + identifier.encode())
    return Bond(blinding=blinding, binding=binding, rows=digest, claim=fresh_claim())


def new_master(search: Search, rows: bytes | None) -> tuple[bytes, bytes] | None:
    """The master key and the digest of a search that finds other rows than before, None if they are the same.

    A key that was used with some rows is never used with others. Raises `StudyError` if the search began with a digest
    of its rows and gets none now.
    """
    if rows is None and search.bond.rows != _NO_ROWS:
        raise StudyError("rows_digest: this search was begun with one; give it again")
    digest = rows_digest(search.master, rows)
    if rows is None or hmac.compare_digest(digest, search.bond.rows):
        return None
    master = _keyed(search.master, b"other rows", digest)
    return master, rows_digest(master, rows)


def release_hash(search: Search) -> str:
    """A hash of all that the release follows from: what won, and the key from which its parameters are drawn."""
    best = search.best
    winner = _WINNER.pack(False, 0, 0.0) if best is None else _WINNER.pack(True, best.index, best.score) + best.payload
    return _keyed(search.bond.blinding, b"release", search.master + search.history + winner).hex()


def _keyed(key: bytes, purpose: bytes, content: bytes) -> bytes:
    return hmac.new(key, b"dpselect " + purpose + b"\0" + content, hashlib.sha256).digest()
