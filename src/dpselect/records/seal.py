"""Sealing of secrets with AES-GCM. Only their key opens them, and only with the bytes that they are bound to."""

from __future__ import annotations

from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dpselect.randomness import system_source

__all__ = ["EXTRA_BYTES", "BrokenSealError", "Seal"]

_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16

EXTRA_BYTES: Final = _NONCE_BYTES + _TAG_BYTES
"""How much longer sealed content is."""


class BrokenSealError(ValueError):
    """The key is another one, or the sealed bytes or those they are bound to were changed."""


class Seal:
    """Seals and opens with one key of 32 bytes."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def close(self, content: bytes, bound_to: bytes) -> bytes:
        """Encrypt under a fresh nonce."""
        nonce = system_source().bytes(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, content, bound_to)

    def open(self, sealed: bytes, bound_to: bytes) -> bytes:
        """Decrypt. Raises `BrokenSealError`."""
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], bound_to)
        except (InvalidTag, ValueError):
            raise BrokenSealError from None
