"""The chain of sealed entries of a record: each is bound to its place and to the hash of all before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dpselect.errors import StudyError
from dpselect.randomness import system_source
from dpselect.storage.keys import key_place

__all__ = ["Sealed", "Tip", "check_row", "discard_key", "new_row", "plain"]

_FORMAT: Final = 1
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


class Sealed:
    """What every record is, wherever it lies: public terms, a secret, and a chain of entries, that one key opens.

    `name` is what errors call it. Of the chain, it knows what this process has read.
    """

    def __init__(self, name: str, row: dict[str, Any]) -> None:
        key = key_place(row["key_variable"]).load(row["identifier"])
        if key is None:
            raise StudyError(f"the key of {name} is missing here; without it nothing in it can be read")
        self._name, self._row, self._cipher = name, row, AESGCM(key)
        self._read = _Read([], [_beginning(row)], b"")

    @property
    def identifier(self) -> str:
        """Random, public, fixed."""
        return str(self._row["identifier"])

    @property
    def terms(self) -> dict[str, Any]:
        """What anybody may know, once `secret` has been read without an error."""
        found: dict[str, Any] = json.loads(self._row["terms"])  # decodes: bound to the seal that `secret` opens
        return found

    def secret(self) -> bytes:
        """What never changes and nobody may know. Raises `StudyError` when it or the terms were changed."""
        return self._opened(bytes(self._row["sealed"]), _bound_to(self._row))

    @property
    def tips(self) -> list[Tip]:
        """The ends of the chain after the last entry and the one before."""
        return self._read.tips[-2:]

    @property
    def entries(self) -> list[dict[str, Any]]:
        """Those that count."""
        return list(self._read.entries)

    def forget(self) -> None:
        """Begin to read again."""
        self._read = _Read([], self._read.tips[:1], b"")

    def is_last(self, row: tuple[int, bytes]) -> bool:
        """Whether a row is the last that was read."""
        return (row[0], bytes(row[1])) == (self.tips[-1].sequence, self._read.last)

    def follow(self, rows: Iterable[tuple[int, bytes]]) -> list[Tip]:
        """Read the rows that come next; their ends. Raises `StudyError` for one that does not belong here."""
        entries, tips, last, found = self.entries, list(self._read.tips), self._read.last, []
        for sequence, sealed in rows:
            head, last = tips[-1].head, bytes(sealed)
            entry = json.loads(self._opened(last, _place(head, sequence)))  # decodes: sealed
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
        content = json.dumps(entry, default=plain).encode()
        row = _sealed(self._cipher, content, _place(tip.head, sequence))
        return row, Tip(sequence, _next_head(tip.head, sequence, row))

    def _opened(self, sealed: bytes, bound_to: bytes) -> bytes:
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], bound_to)
        except (InvalidTag, ValueError):
            raise StudyError(f"{self._name} cannot be opened: its key is another one, or it was changed") from None


def new_row(*, kind: str, terms: dict[str, Any], secret: bytes, key_variable: str | None) -> tuple[dict[str, Any], Tip]:
    """What a new record says of itself, with its sealed secret, and the beginning of its chain. Its key is kept.

    Raises `StudyError` when no key can be.
    """
    keys, identifier = key_place(key_variable), system_source().bytes(16).hex()
    keys.check()
    key = keys.create(identifier)
    row: dict[str, Any] = {
        "format": _FORMAT,
        "kind": kind,
        "identifier": identifier,
        "key_variable": key_variable,
        "terms": json.dumps(terms, sort_keys=True, default=plain),
    }
    row["sealed"] = _sealed(AESGCM(key), secret, _bound_to(row))
    return row, _beginning(row)


def discard_key(row: dict[str, Any]) -> None:
    """Of a record that was not made: what is left opens nothing. A variable is the operator's."""
    if row["key_variable"] is None:
        with suppress(OSError):
            key_place(None).destroy(row["identifier"])


def check_row(row: dict[str, Any], name: str, kind: str) -> None:
    """Raise `StudyError` for a record of a newer format or of another kind."""
    if row["format"] > _FORMAT:
        raise StudyError(f"{name} was written by a newer version of dpselect (format {row['format']})")
    if row["kind"] != kind:
        raise StudyError(f"{name} holds another thing than a {kind}")


def plain(value: Any) -> Any:
    """A NumPy number as Python's."""
    return value.item()


def _sealed(cipher: AESGCM, content: bytes, bound_to: bytes) -> bytes:
    nonce = system_source().bytes(_NONCE_BYTES)
    return nonce + cipher.encrypt(nonce, content, bound_to)


def _bound_to(row: dict[str, Any]) -> bytes:
    names = ("format", "kind", "identifier", "key_variable", "terms")
    return json.dumps(["dpselect record", *(row[name] for name in names)]).encode()


def _beginning(row: dict[str, Any]) -> Tip:
    return Tip(0, hashlib.sha256(_bound_to(row) + bytes(row["sealed"])).digest())


def _place(head: bytes, sequence: int) -> bytes:
    return head + sequence.to_bytes(8, "big")


def _next_head(head: bytes, sequence: int, sealed: bytes) -> bytes:
    return hashlib.sha256(_place(head, sequence) + sealed).digest()
