"""Digests of rows and their words: the same for the same salt, and others for another one."""

from __future__ import annotations

import hashlib
import hmac

from dpselect.tables.row_digests import SIZE, Digests, keyed_words, numbered, row_digest, split_key


def test_digests_are_a_sequence_of_equal_parts():
    parts = [row_digest(bytes([i]), b"") for i in range(4)]
    found = Digests(b"".join(parts))
    assert [*found] == parts
    assert (found[-1], found[1:3]) == (parts[-1], parts[1:3])
    assert len(parts[0]) == SIZE


def test_the_first_of_equal_rows_has_its_own_digest_and_each_other_one_another():
    digest = row_digest(b"row", b"label")
    found = [numbered(digest, before) for before in range(5)]
    assert found[0] == digest
    assert len({*found}) == 5


def test_words_are_a_keyed_hash_of_each_identity_alone():
    identities = [b"a", b"b", b"c"]
    words = keyed_words(identities, 3, salt="s")
    expected = int.from_bytes(hmac.digest(hashlib.sha256(b"dpselect split s").digest(), b"b", "sha256")[:8], "little")
    assert int(words[1]) == expected
    assert keyed_words(reversed(identities), 3, salt="s").tolist() == words.tolist()[::-1]
    assert not {*keyed_words(identities, 3, salt="t").tolist()} & {*words.tolist()}
    assert split_key("s") != split_key("t")
