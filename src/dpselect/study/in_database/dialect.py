"""The words of each engine in the statements over the rows of a study.

All arithmetic is that of float64 and 64-bit integers, one operation at a time. So each engine rounds as NumPy does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dpselect.privacy import Adjacency
from dpselect.study.row_parts import key_digests, split_limit, validation_mask
from dpselect.tables.row_digests import split_key

__all__ = ["DIALECTS", "Dialect", "Split"]

_BLOCK: Final = 64
"""Bytes of a block of SHA-256."""
_ARGUMENTS: Final = 50
"""So many arguments a function of SQLite takes at least."""
_REVERSED: Final = "".join(f"\\{place}" for place in range(8, 0, -1))
Bound = Callable[[Any], str]


@dataclass(frozen=True)
class Split:
    """The rows that are held out: by a keyed hash of a column, as `validation_mask` has it."""

    column: str
    fraction: float
    salt: str

    def held_out(self, cell: Any, encoding: str | None = None) -> int:
        """1 for a row with this key that is held out, else 0. A text comes as bytes in its encoding."""
        cell = cell if encoding is None else cell.decode(encoding, "replace")
        adjacency = Adjacency.ADD_OR_REMOVE_ONE
        mask = validation_mask(key_digests([cell]), fraction=self.fraction, adjacency=adjacency, salt=self.salt)
        return int(mask[0])


@dataclass(frozen=True)
class Dialect:
    """An engine's words. `fence` follows a subselect, so that its expressions are computed once a row.

    `integer` and `root` have `{0}` for a float64: its integer part, and its square root. `largest` is the function of
    the largest of several numbers. `held_out` makes the condition that a key's row is held out.
    """

    fence: str
    integer: str
    root: str
    largest: str
    held_out: Callable[[str, Split, Bound], str]

    def greatest(self, numbers: Sequence[str]) -> str:
        """The largest of these numbers."""
        found = list(numbers)
        while len(found) > 1:
            parts = [found[start : start + _ARGUMENTS] for start in range(0, len(found), _ARGUMENTS)]
            found = [part[0] if len(part) == 1 else f"{self.largest}({', '.join(part)})" for part in parts]
        return found[0]

    def functions(self, split: Split | None) -> dict[str, Callable[..., Any]]:
        """The functions that SQLite lacks."""
        found: dict[str, Callable[..., Any]] = {"dpselect_root": math.sqrt}
        return found if split is None else {**found, "dpselect_held_out": split.held_out}


def _pads(split: Split) -> tuple[bytes, bytes]:
    """The blocks before the inner and the outer text of HMAC."""
    key = split_key(split.salt).ljust(_BLOCK, b"\0")
    return bytes(byte ^ 0x36 for byte in key), bytes(byte ^ 0x5C for byte in key)


def _sqlite(column: str, split: Split, bound: Bound) -> str:  # noqa: ARG001
    # Python fails for a text that is not valid, before its function is called, so text goes as bytes
    text = f"typeof({column}) = 'text'"
    cell = f"CASE WHEN {text} THEN CAST({column} AS BLOB) ELSE {column} END"
    return f"dpselect_held_out({cell}, CASE WHEN {text} THEN (SELECT encoding FROM pragma_encoding) END) = 1"


def _duckdb(column: str, split: Split, bound: Bound) -> str:
    inner, outer = map(bound, _pads(split))
    digest = f"unhex(sha256(encode(coalesce(CAST({column} AS VARCHAR), ''))))"
    return _less(f"sha256({outer} || unhex(sha256({inner} || {digest})))", split, bound)


def _postgresql(column: str, split: Split, bound: Bound) -> str:
    inner, outer = map(bound, _pads(split))
    digest = f"sha256(convert_to(coalesce(CAST({column} AS TEXT), ''), 'UTF8'))"
    return _less(f"encode(sha256({outer} || sha256({inner} || {digest})), 'hex') COLLATE \"C\"", split, bound)


def _less(digits: str, split: Split, bound: Bound) -> str:
    """Whether the first eight bytes of these hexadecimal digits, the last byte first, are below the limit."""
    word = f"regexp_replace(left({digits}, 16), '{'(..)' * 8}', '{_REVERSED}')"
    return f"{word} < {bound(f'{split_limit(split.fraction):016x}')}"


_ROUNDED: Final = "CAST(trunc({0}) AS BIGINT)"
DIALECTS: Final = {
    "sqlite": Dialect(" LIMIT -1 OFFSET 0", "CAST({0} AS INTEGER)", "dpselect_root({0})", "max", _sqlite),
    "duckdb": Dialect("", _ROUNDED, "sqrt({0})", "greatest", _duckdb),
    "postgresql": Dialect(" OFFSET 0", _ROUNDED, "sqrt({0})", "greatest", _postgresql),
}
"""By the name of the engine."""
