"""What a gate has answered, as a document that others can check: signature, arithmetic of the purse, verdicts.

Signatures are Ed25519 (RFC 8032) over the JSON text with sorted keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dpselect.errors import ContentError
from dpselect.holdout.gate.purse import Purse
from dpselect.holdout.gate.terms import GateTerms

__all__ = ["public_part", "signed", "verify_certificate", "well_signed"]


def public_part(key: str) -> str:
    """The public key that goes with a secret one, 32 random bytes; both as hexadecimal text."""
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(key)).public_key().public_bytes_raw().hex()


def signed(body: dict[str, Any], key: str) -> dict[str, Any]:
    """The body with its signature.

    >>> key = "07" * 32
    >>> well_signed(signed({"a": 1}, key), public_part(key)), well_signed({"a": 2, "signature": "00"}, public_part(key))
    (True, False)
    """
    return {**body, "signature": Ed25519PrivateKey.from_private_bytes(bytes.fromhex(key)).sign(_text(body)).hex()}


def well_signed(document: Mapping[str, Any], public_key: str) -> bool:
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


def verify_certificate(document: Mapping[str, Any], *, public_key: str | None = None) -> GateTerms:
    """The terms of a certificate that holds together; raises `ContentError`, which says what does not.

    Checked: the form, the signature by the key that the terms name (and that it is `public_key`, where given: whoever
    knows the gate knows its key), and that the stakes were in the purse and leave what is said. Not checked, since
    nobody without the tasks can: that verdicts are what the tasks say.

    >>> verify_certificate({"format": 1})
    Traceback (most recent call last):
    dpselect.errors.ContentError: the certificate is not of the published form
    """
    try:
        terms = GateTerms.parse(dict(document["terms"]))
        asks = [(Fraction(ask["stake"]), str(ask["verdict"])) for ask in document["asks"]]
        left, restored = Fraction(document["purse"]), int(document["restored"])
        retired, purse = bool(document["retired"]), Purse(Fraction(terms.failure_probability), terms.consultations)
        well_formed = document["format"] == 1 and document["claim"] == terms.claim
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        well_formed = False
    if not well_formed:
        raise ContentError("the certificate is not of the published form")
    if public_key is not None and terms.public_key != public_key:
        raise ContentError("the certificate is of another gate")
    if not well_signed(document, terms.public_key):
        raise ContentError("the certificate was changed, or its signature is not by the gate that it names")
    for stake, verdict in asks:
        if verdict not in ("accepted", "rejected", "interrupted") or not 0 < stake <= purse.left:
            raise ContentError("the certificate has a stake that was not in the purse, or an unknown verdict")
        purse = purse.after(stake, accepted=verdict == "accepted")
    expected = Fraction(0) if retired else purse.left
    if left > expected or (left < expected and not restored):
        raise ContentError("the certificate says that something else is left in the purse than its asks leave")
    return terms
