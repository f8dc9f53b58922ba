"""Signatures of certificates: Ed25519 (RFC 8032) over the JSON text with sorted keys."""

from __future__ import annotations

import json
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dpselect.randomness import system_source

__all__ = ["new_key", "public_part", "signed", "well_signed"]


def new_key() -> str:
    """A secret key, as a text."""
    return system_source().bytes(32).hex()


def public_part(key: str) -> str:
    """The public key that goes with a secret one."""
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(key)).public_key().public_bytes_raw().hex()


def signed(body: dict[str, Any], key: str) -> dict[str, Any]:
    """The body with its signature.

    >>> key = new_key()
    >>> well_signed(signed({"a": 1}, key), public_part(key)), well_signed({"a": 2, "signature": "00"}, public_part(key))
    (True, False)
    """
    return {**body, "signature": Ed25519PrivateKey.from_private_bytes(bytes.fromhex(key)).sign(_text(body)).hex()}


def well_signed(document: dict[str, Any], public_key: str) -> bool:
    """Whether the rest of a document is what its signature was made for."""
    try:
        signature, key = bytes.fromhex(document["signature"]), bytes.fromhex(public_key)
        body = {name: value for name, value in document.items() if name != "signature"}
        Ed25519PublicKey.from_public_bytes(key).verify(signature, _text(body))
    except (InvalidSignature, ValueError, TypeError, KeyError):
        return False
    return True


def _text(body: dict[str, Any]) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
