"""The seal: only its key opens it, with the bytes that it is bound to."""

from __future__ import annotations

import pytest

from dpselect.records.seal import EXTRA_BYTES, BrokenSealError, Seal

KEY, OTHER = bytes(range(32)), bytes(32)


def test_only_the_key_and_the_bound_bytes_open_a_seal():
    sealed = Seal(KEY).close(b"secret", b"place")
    assert Seal(KEY).open(sealed, b"place") == b"secret"
    assert len(sealed) == len(b"secret") + EXTRA_BYTES
    assert sealed != Seal(KEY).close(b"secret", b"place"), "a fresh nonce"
    changed = [sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :] for at in range(len(sealed))]
    cases = [(KEY, sealed, b"other"), (OTHER, sealed, b"place"), *((KEY, one, b"place") for one in changed)]
    cases += [(KEY, sealed[:length], b"place") for length in (0, 5, 12, 20, len(sealed) - 1)]
    for key, content, bound_to in cases:
        with pytest.raises(BrokenSealError):
            Seal(key).open(content, bound_to)
