"""The answers of a gate as a document that others can check: key, signature, arithmetic of what is left, verdicts.

Signatures are Ed25519 (RFC 8032) over the JSON text with sorted keys. Anyone can sign a certificate with a key that
they made, so that none is valid without a key that is trusted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dpselect.decoding.limits import DecodingLimits, LimitError
from dpselect.decoding.numbers import fraction_of
from dpselect.errors import ArgumentError, ContentError
from dpselect.holdout.gate.error_budget import ErrorBudget
from dpselect.holdout.gate.terms import GateTerms
from dpselect.records.chain import canonical
from dpselect.storage.durable import write_atomically
from dpselect.storage.keys import state_folder

__all__ = [
    "NO_KEY",
    "UntrustedError",
    "parse_key",
    "pin_key",
    "pinned_key",
    "public_part",
    "signed",
    "verify_certificate",
    "well_signed",
]

NO_KEY: Final = "no trusted key"
_FRACTIONS: Final = DecodingLimits(size=1 << 20, digits=4300, exponent=0)
"""Python writes integers of no more digits, so that no gate has longer ones."""
_BITS: Final = 14_300
_PINNED: Final = "gate-keys"

_Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Whole = Annotated[int, Field(ge=1)]
_Fraction = Annotated[str, Field(pattern="^[0-9]+(/[1-9][0-9]*)?$")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _Terms(_Part):
    tasks: _Whole
    units: _Whole
    repeats: _Whole
    test: Literal["sign", "bet", "wins"]
    margin: Annotated[float, Field(ge=0.0, lt=1.0)]
    regraded: bool
    consultations: _Whole
    failure_probability: Annotated[float, Field(gt=0.0, lt=1.0)]
    bound_failure_probability: float | None
    answer_seconds: Annotated[float, Field(ge=0.0)]
    id_column: str
    outcome_columns: Annotated[list[str], Field(min_length=1)]
    public_key: _Hash


class _Ask(_Part):
    stake: _Fraction
    candidate: _Hash | None
    verdict: Literal["accepted", "rejected", "interrupted"]


class _Certificate(_Part):
    """The published form, docs/gate.schema.json."""

    format: Annotated[int, Field(ge=1, le=1)]  # not Literal[1], which takes true
    gate: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    terms: _Terms
    claim: str
    restored: Annotated[int, Field(ge=0)]
    retired: bool
    asks: list[_Ask]
    purse: _Fraction
    signature: Annotated[str, Field(pattern="^[0-9a-f]{128}$")]


class UntrustedError(ContentError):
    """A certificate may hold together, but no key says that its gate made it."""


def public_part(key: str) -> str:
    """The public key that goes with a secret one, 32 random bytes, both as hexadecimal text."""
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(key)).public_key().public_bytes_raw().hex()


def signed(body: dict[str, Any], key: str) -> dict[str, Any]:
    """The body with its signature.

    >>> key = "07" * 32
    >>> well_signed(signed({"a": 1}, key), public_part(key)), well_signed({"a": 2, "signature": "00"}, public_part(key))
    (True, False)
    """
    secret = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(key))
    return {**body, "signature": secret.sign(canonical(body).encode()).hex()}


def well_signed(document: Mapping[str, Any], public_key: str) -> bool:
    """Whether the rest of a document is what its signature was made for."""
    try:
        signature, key = bytes.fromhex(document["signature"]), bytes.fromhex(public_key)
        body = {name: value for name, value in document.items() if name != "signature"}
        Ed25519PublicKey.from_public_bytes(key).verify(signature, canonical(body).encode())
    except (InvalidSignature, ValueError, TypeError, KeyError):
        return False
    return True


def verify_certificate(document: Mapping[str, Any], *, public_key: str | None) -> GateTerms:
    """The terms of a certificate that holds. Raises `ContentError`, which names the part that does not.

    Checked: the published form, the key, the signature by it, and that each stake was left and that they leave what is
    said. Not checked, since no one without the tasks can: that verdicts are what the tasks say.

    Args:
        document: the certificate, as JSON was decoded.
        public_key: the gate's key, from someone who is trusted. With None everything else is checked, and then
            `UntrustedError` raised: a key that a certificate names itself says nothing of who made it.

    >>> verify_certificate({"format": 1}, public_key="00" * 32)
    Traceback (most recent call last):
    dpselect.errors.ContentError: the certificate is not of the published form: gate
    """
    try:
        form = _Certificate.model_validate(document)
        terms = GateTerms.parse(form.terms.model_dump())
    except ValidationError as error:
        where = ".".join(map(str, error.errors(include_input=False)[0]["loc"]))
        raise ContentError(f"the certificate is not of the published form: {where}") from None
    except (TypeError, ValueError, RecursionError):
        raise ContentError("the certificate is not of the published form") from None
    if form.claim != terms.claim:
        raise ContentError("the certificate is not of the published form: claim")
    if public_key is not None and terms.public_key != public_key:
        raise ContentError("the certificate is of another gate")
    if not well_signed(document, terms.public_key):
        raise ContentError("the certificate was changed, or its signature is not by the gate that it names")
    _check_asks(form, terms)
    if public_key is None:
        raise UntrustedError(NO_KEY)
    return terms


def _check_asks(form: _Certificate, terms: GateTerms) -> None:
    """Raise `ContentError` unless each stake was left, and what is left follows."""
    budget, left = ErrorBudget(Fraction(terms.failure_probability), terms.consultations), _exact(form.purse)
    for ask in form.asks:
        stake = _exact(ask.stake)
        if not 0 < stake <= budget.left:
            raise ContentError("the certificate has a stake that its error budget did not hold")
        budget = budget.after(stake, accepted=ask.verdict == "accepted")
        if budget.left.denominator.bit_length() > _BITS:
            raise LimitError("the certificate has stakes that leave a fraction of too many digits")
    expected = Fraction(0) if form.retired else budget.left
    if left > expected or (left < expected and not form.restored):
        raise ContentError("the certificate states another error budget than its asks leave")


def _exact(text: str) -> Fraction:
    return fraction_of(text, what="a stake or the error budget of the certificate", limits=_FRACTIONS)


def parse_key(text: str) -> str:
    """A public key as hexadecimal text, or the path of a file that holds one. Raises `ArgumentError`."""
    found = text.strip().lower()
    if not _is_key(found):
        try:
            with Path(text).open("rb") as file:
                found = file.read(200).decode("ascii").strip().lower()
        except (OSError, ValueError):
            found = ""
    if not _is_key(found):
        raise ArgumentError("--key: must be a public key of 64 hexadecimal digits, or a file that holds one")
    return found


def _is_key(text: str) -> bool:
    return re.fullmatch("[0-9a-f]{64}", text) is not None


def pin_key(gate: str, public_key: str) -> None:
    """Keep the key of a gate in the per-user state folder. Raises `ContentError` where another one is kept."""
    known = pinned_key(gate)
    if known not in (None, public_key):
        raise ContentError("another key is pinned for this gate")
    folder = state_folder() / _PINNED
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(folder / gate, public_key.encode())


def pinned_key(gate: Any) -> str | None:
    """The key that was pinned for a gate, or None."""
    if not isinstance(gate, str) or not re.fullmatch("[0-9a-f]{32}", gate):
        return None
    try:
        return parse_key(str(state_folder() / _PINNED / gate))
    except ArgumentError:
        return None
