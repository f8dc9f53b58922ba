"""The hash chain of a record."""

from __future__ import annotations

import hashlib

import pytest

from dpselect.records.chain import BYTES, LINES, ChainHead


@pytest.mark.parametrize(("chain", "number"), [(LINES, b"8\n"), (BYTES, bytes([0, 0, 0, 0, 0, 0, 0, 8]))])
def test_a_head_is_the_hash_of_head_number_and_content(chain, number):
    before = ChainHead(7, "ab" * 32)
    content = bytes([0xAB] * 32) + number + b"entry"
    assert chain.next_head(before, b"entry") == ChainHead(8, hashlib.sha256(content).hexdigest())
    assert chain.place_after(before) == bytes([0xAB] * 32) + number
