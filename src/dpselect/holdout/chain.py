"""The chain of sealed entries of a record: each is bound to its place and to the hash of all before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dpselect.errors import StudyError
from dpselect.randomness import system_source
from dpselect.storage import KeyPlace

__all__ = ["FORMAT", "Chain", "Tip", "about", "plain"]

FORMAT: Final = 1
_NONCE_BYTES: Final = 12


@dataclass(frozen=True)
class Tip:
    """The end of a chain."""

    sequence: int
    head: bytes


@dataclass(frozen=True)
class _Read:
    """What a process has read: the entries that count, the chain's beginning and its last ends, the last row."""

    entries: list[dict[str, Any]]
    tips: list[Tip]
    last: bytes


class Chain:
    """The entries of one record as this process has read them. `name` is what errors call the record."""

    def __init__(self, name: str, row: dict[str, Any], key: bytes) -> None:
        self._name, self._row, self._cipher = name, row, AESGCM(key)
        self._read = _Read([], [_beginning(row)], b"")

    @property
    def tips(self) -> list[Tip]:
        """The ends after the last entry and the one before."""
        return self._read.tips[-2:]

    @property
    def entries(self) -> list[dict[str, Any]]:
        """Those that count."""
        return list(self._read.entries)

    def forget(self) -> None:
        """Begin again."""
        self._read = _Read([], self._read.tips[:1], b"")

    def is_last(self, row: tuple[int, bytes]) -> bool:
        """Whether a row is the last that was read."""
        return (row[0], bytes(row[1])) == (self.tips[-1].sequence, self._read.last)

    def follow(self, rows: Iterable[tuple[int, bytes]]) -> list[Tip]:
        """Read the rows that come next; their ends. Raises `StudyError` for one that does not belong here."""
        entries, tips, last, found = self.entries, list(self._read.tips), self._read.last, []
        for sequence, sealed in rows:
            head, last = tips[-1].head, bytes(sealed)
            entry = json.loads(self._opened(last, _place(head, sequence)))
            if "lost" in entry and entries and "lost" not in entries[-1]:
                entries.pop()
            entries.append(entry)
            found.append(Tip(sequence, _next_head(head, sequence, last)))
            tips = [tips[0], *tips[-1:], found[-1]]
        self._read = _Read(entries, tips, last)
        return found

    def sealed(self, tip: Tip, entry: dict[str, Any]) -> tuple[bytes, Tip]:
        """The row after an end, and its own end."""
        sequence = tip.sequence + 1
        nonce = system_source().bytes(_NONCE_BYTES)
        content = json.dumps(entry, default=plain).encode()
        row = nonce + self._cipher.encrypt(nonce, content, _place(tip.head, sequence))
        return row, Tip(sequence, _next_head(tip.head, sequence, row))

    def secret(self) -> bytes:
        """What never changes and nobody may know. Raises `StudyError` when it or the terms were changed."""
        return self._opened(bytes(self._row["sealed"]), _bound_to(self._row))

    def _opened(self, sealed: bytes, bound_to: bytes) -> bytes:
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], bound_to)
        except (InvalidTag, ValueError):
            raise StudyError(f"{self._name} cannot be opened: its key is another one, or it was changed") from None


class Sealed:
    """What every record is, wherever it lies: public terms, a secret, and a chain of entries, that one key opens."""

    def __init__(self, name: str, row: dict[str, Any], keys: KeyPlace) -> None:
        key = keys.load(row["identifier"])
        if key is None:
            raise StudyError(f"the key of {name} is missing here; without it nothing in it can be read")
        self._row, self._chain = row, Chain(name, row, key)

    @property
    def identifier(self) -> str:
        """Random, public, fixed."""
        return str(self._row["identifier"])

    @property
    def terms(self) -> dict[str, Any]:
        """What anybody may know, once `secret` has been read without an error."""
        found: dict[str, Any] = json.loads(self._row["terms"])
        return found

    def secret(self) -> bytes:
        """What never changes and nobody may know. Raises `StudyError` when it or the terms were changed."""
        return self._chain.secret()


def about(
    *, kind: str, identifier: str, key_variable: str | None, terms: dict[str, Any], secret: bytes, key: bytes
) -> tuple[dict[str, Any], Tip]:
    """What a new record says of itself, with its sealed secret, and the beginning of its chain."""
    row: dict[str, Any] = {
        "format": FORMAT,
        "kind": kind,
        "identifier": identifier,
        "key_variable": key_variable,
        "terms": json.dumps(terms, sort_keys=True, default=plain),
    }
    nonce = system_source().bytes(_NONCE_BYTES)
    row["sealed"] = nonce + AESGCM(key).encrypt(nonce, secret, _bound_to(row))
    return row, _beginning(row)


def plain(value: Any) -> Any:
    """A NumPy number as Python's."""
    return value.item()


def _bound_to(row: dict[str, Any]) -> bytes:
    names = ("format", "kind", "identifier", "key_variable", "terms")
    return json.dumps(["dpselect record", *(row[name] for name in names)]).encode()


def _beginning(row: dict[str, Any]) -> Tip:
    return Tip(0, hashlib.sha256(_bound_to(row) + bytes(row["sealed"])).digest())


def _place(head: bytes, sequence: int) -> bytes:
    return head + sequence.to_bytes(8, "big")


def _next_head(head: bytes, sequence: int, sealed: bytes) -> bytes:
    return hashlib.sha256(_place(head, sequence) + sealed).digest()
