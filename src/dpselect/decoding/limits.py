"""The limits that a caller states for a document, and the named ones."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final

from dpselect.errors import ContentError

__all__ = [
    "ACCOUNTANT",
    "AUDITED",
    "DOCUMENT",
    "ENTRY",
    "EXPORT",
    "MODEL",
    "STUDY",
    "SUBMISSION",
    "SWEEP",
    "TABLE",
    "DecodingLimits",
    "LimitError",
]

MIB: Final = 1 << 20
UNLIMITED: Final = sys.maxsize


class LimitError(ContentError):
    """A document is larger, deeper or longer than its reader takes. The message names the limit and no content."""


@dataclass(frozen=True, kw_only=True)
class DecodingLimits:
    """The limits of one document. It is refused before the part beyond a limit is decoded.

    Args:
        size: bytes of the document as it is stored.
        decoded: bytes that are unpacked from it (gzip, zip).
        line: bytes of one line, or characters of one record of a table.
        depth: how deeply lists and tables are nested; also the parts of a dotted key.
        digits: digits of one number in text.
        exponent: largest decimal exponent of an exact number in text, in either direction.
        entries: values of a document, rows of a table, members of an archive.
        finite: whether infinities and NaN are refused; numbers beyond the range of float64 are infinities.

    >>> DecodingLimits(size=1000, depth=8).depth
    8
    """

    size: int
    decoded: int = 64 * MIB
    line: int = MIB
    depth: int = 64
    digits: int = 4300
    exponent: int = 4300
    entries: int = 2_000_000
    finite: bool = True

    def check_size(self, size: int, what: str) -> None:
        """Raise `LimitError` for a document of more bytes."""
        if size > self.size:
            raise LimitError(f"{what} is larger than {shown_bytes(self.size)}")


def shown_bytes(count: int) -> str:
    """A number of bytes for people.

    >>> shown_bytes(16 << 20), shown_bytes(1000)
    ('16 MiB', '1000 bytes')
    """
    return f"{count // MIB} MiB" if count >= MIB else f"{count} bytes"


DOCUMENT: Final = DecodingLimits(size=32 * MIB)
"""A release, its facts, a receipt, a certificate, an answer of a server."""
ENTRY: Final = DecodingLimits(size=16 * MIB)
"""One entry of a record."""
EXPORT: Final = DecodingLimits(size=UNLIMITED, line=16 * MIB)
"""The lines of a record that was exported; no more than one is held at a time."""
STUDY: Final = DecodingLimits(size=4 * MIB, depth=32, digits=300, entries=40_000)
MODEL: Final = DecodingLimits(size=1024 * MIB, decoded=1024 * MIB, entries=1000)
SUBMISSION: Final = DecodingLimits(size=512 * MIB, decoded=512 * MIB, entries=20_000_000, finite=False)
"""Predictions, outcomes or labels in a file."""
AUDITED: Final = DecodingLimits(size=1024 * MIB, decoded=1024 * MIB, finite=False)
"""Data sets and scores that an audit is given."""
ACCOUNTANT: Final = DecodingLimits(size=4096 * MIB, decoded=4096 * MIB, entries=1_000_000, finite=False)
"""A checkpoint, or the past searches of another library."""
SWEEP: Final = DecodingLimits(size=256 * MIB, decoded=256 * MIB, entries=1_000_000, finite=False)
"""A file of the record that another tool left of a sweep, or that many files of one."""
TABLE: Final = DecodingLimits(size=UNLIMITED, decoded=UNLIMITED, line=4 * MIB, entries=1_000_000)
"""A table of private rows. Only its public header is limited (`line`, some 600,000 names of columns): a refusal must
not depend on what the rows are."""
