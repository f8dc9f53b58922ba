"""The chain of sealed entries of a record: each is bound to its place and to the hash of all before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from dpselect.errors import StudyError
from dpselect.randomness import system_source
from dpselect.records.chain import BYTES, ChainHead
from dpselect.records.seal import BrokenSealError, Seal
from dpselect.storage.keys import key_place

__all__ = ["SealedRecord", "check_row", "discard_key", "new_row", "plain"]

_FORMAT: Final = 1


@dataclass(frozen=True)
class _Read:
    """The part that was read: the entries that count, the chain's beginning and its last ends, the last row."""

    entries: list[dict[str, Any]]
    tips: list[ChainHead]
    last: bytes


class SealedRecord:
    """Public terms, a secret and a chain of entries that one key opens, in a file or a database.

    Errors call it `name`. It keeps the entries that this process has read.
    """

    def __init__(self, name: str, row: dict[str, Any]) -> None:
        key = key_place(row["key_variable"]).load(row["identifier"])
        if key is None:
            raise StudyError(f"the key of {name} is missing here; without it nothing in it can be read")
        self._name, self._row, self._seal = name, row, Seal(key)
        self._read = _Read([], [_beginning(row)], b"")

    @property
    def identifier(self) -> str:
        """Random, public, fixed."""
        return str(self._row["identifier"])

    @property
    def terms(self) -> dict[str, Any]:
        """Public, and authentic once `secret` has been read without an error."""
        found: dict[str, Any] = json.loads(self._row["terms"])  # decodes: bound to the seal that `secret` opens
        return found

    def secret(self) -> bytes:
        """Never changes. Raises `StudyError` when it or the terms were changed."""
        return self._opened(bytes(self._row["sealed"]), _bound_to(self._row))

    @property
    def tips(self) -> list[ChainHead]:
        """The ends of the chain after the last entry and the one before."""
        return self._read.tips[-2:]

    @property
    def entries(self) -> list[dict[str, Any]]:
        """The entries that count."""
        return list(self._read.entries)

    def forget(self) -> None:
        """Forget what was read, so that the next reading begins again."""
        self._read = _Read([], self._read.tips[:1], b"")

    def continues(self, rows: list[tuple[int, bytes]]) -> bool:
        """Whether rows begin with the last row that was read, which is removed. True when none was read."""
        tip = self.tips[-1]
        if not tip.sequence:
            return True
        first = rows.pop(0) if rows else (0, b"")
        return (first[0], bytes(first[1])) == (tip.sequence, self._read.last)

    def follow(self, rows: Iterable[tuple[int, bytes]]) -> list[ChainHead]:
        """Read the next rows and return their heads. Raises `StudyError` for a row that does not belong here."""
        entries, tips, last, found = self.entries, list(self._read.tips), self._read.last, []
        for sequence, sealed in rows:
            before, last = ChainHead(sequence - 1, tips[-1].head), bytes(sealed)
            entry = json.loads(self._opened(last, BYTES.place_after(before)))  # decodes: sealed
            if "lost" in entry and entries and "lost" not in entries[-1]:
                entries.pop()
            entries.append(entry)
            found.append(BYTES.next_head(before, last))
            tips = [tips[0], *tips[-1:], found[-1]]
        self._read = _Read(entries, tips, last)
        return found

    def sealed(self, tip: ChainHead, entry: dict[str, Any]) -> tuple[bytes, ChainHead]:
        """Seal the next entry: its row, and the head after it."""
        row = self._seal.close(json.dumps(entry, default=plain).encode(), BYTES.place_after(tip))
        return row, BYTES.next_head(tip, row)

    def _opened(self, sealed: bytes, bound_to: bytes) -> bytes:
        try:
            return self._seal.open(sealed, bound_to)
        except BrokenSealError:
            raise StudyError(f"{self._name} cannot be opened: its key is another one, or it was changed") from None


def new_row(
    *, kind: str, terms: dict[str, Any], secret: bytes, key_variable: str | None
) -> tuple[dict[str, Any], ChainHead]:
    """The row of a new record, with its sealed secret, and the beginning of its chain. Its key is kept.

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
    row["sealed"] = Seal(key).close(secret, _bound_to(row))
    return row, _beginning(row)


def discard_key(row: dict[str, Any]) -> None:
    """Destroy the key of a record that was not made. A key in a variable belongs to the operator."""
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


def _bound_to(row: dict[str, Any]) -> bytes:
    names = ("format", "kind", "identifier", "key_variable", "terms")
    return json.dumps(["dpselect record", *(row[name] for name in names)]).encode()


def _beginning(row: dict[str, Any]) -> ChainHead:
    return ChainHead(0, hashlib.sha256(_bound_to(row) + bytes(row["sealed"])).hexdigest())
