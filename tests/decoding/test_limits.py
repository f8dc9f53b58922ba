"""Limits of documents: they count exactly, and the named ones are what they are documented to be."""

from __future__ import annotations

import pytest

from dpselect.decoding.limits import (
    ACCOUNTANT,
    DOCUMENT,
    ENTRY,
    EXPORT,
    SUBMISSION,
    TABLE,
    DecodingLimits,
    LimitError,
    shown_bytes,
)
from dpselect.errors import ContentError

MIB = 1 << 20


def test_a_document_may_be_as_large_as_its_limit():
    limits = DecodingLimits(size=3 * MIB)
    limits.check_size(3 * MIB, "a file")
    with pytest.raises(LimitError, match=r"^a file is larger than 3 MiB$"):
        limits.check_size(3 * MIB + 1, "a file")
    assert issubclass(LimitError, ContentError)


def test_sizes_are_shown_in_units_of_people():
    assert [shown_bytes(count) for count in (0, MIB - 1, MIB, 2 * MIB - 1)] == [
        "0 bytes",
        "1048575 bytes",
        "1 MiB",
        "1 MiB",
    ]


def test_named_limits():
    assert (DOCUMENT.size, ENTRY.size, EXPORT.line) == (32 * MIB, 16 * MIB, 16 * MIB)
    assert (SUBMISSION.decoded, SUBMISSION.entries, ACCOUNTANT.entries) == (512 * MIB, 20_000_000, 1_000_000)
    assert [one.finite for one in (DOCUMENT, ENTRY, SUBMISSION, ACCOUNTANT)] == [True, True, False, False]
    # no row of a private table may decide whether it is read, so its header alone is limited
    assert TABLE.size == TABLE.decoded > 1 << 60
    assert TABLE.line == 4 * MIB
