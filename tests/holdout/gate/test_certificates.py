"""Certificates of gates: signatures, keys, and the arithmetic of what the asks leave."""

from __future__ import annotations

import pytest

from dpselect.errors import ArgumentError, ContentError
from dpselect.holdout.gate.certificates import (
    UntrustedError,
    parse_key,
    pin_key,
    pinned_key,
    public_part,
    signed,
    verify_certificate,
    well_signed,
)
from dpselect.holdout.gate.rules import CLAIMS

SECRET, OTHER = "07" * 32, "08" * 32
KEY, GATE = public_part(SECRET), "ab" * 16
TERMS = {
    "tasks": 200,
    "units": 200,
    "repeats": 1,
    "test": "sign",
    "margin": 0.0,
    "regraded": False,
    "consultations": 4,
    "failure_probability": 0.0625,
    "bound_failure_probability": None,
    "answer_seconds": 1.0,
    "id_column": "id",
    "outcome_columns": ["outcome"],
    "public_key": KEY,
}
ASKS = (("1/64", "rejected"), ("1/64", "accepted"), ("1/128", "interrupted"))
"""Of 1/16: 3/64 is left, then 1/64, then 1/128."""


def document(*asks, left="1/128", secret=SECRET, **changes):
    body = {
        "format": 1,
        "gate": GATE,
        "terms": {**TERMS, "public_key": public_part(secret)},
        "claim": CLAIMS["sign"],
        "restored": 0,
        "retired": False,
        "asks": [{"stake": stake, "candidate": None, "verdict": verdict} for stake, verdict in asks or ASKS],
        "purse": left,
    }
    return signed({**body, **changes}, secret)


def test_a_certificate_that_adds_up_holds_for_its_key_alone():
    terms = verify_certificate(document(), public_key=KEY)
    assert (terms.consultations, terms.outcome_columns, terms.public_key) == (4, ("outcome",), KEY)
    with pytest.raises(UntrustedError, match="no trusted key"):
        verify_certificate(document(), public_key=None)
    with pytest.raises(ContentError, match="another gate"):
        verify_certificate(document(), public_key=public_part(OTHER))
    with pytest.raises(ContentError, match="was changed"):
        verify_certificate({**document(), "restored": 1}, public_key=KEY)


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({"left": "1/127"}, False),
        ({"left": "1/129"}, False),
        ({"left": "1/129", "restored": 1}, True),
        ({"left": "1/127", "restored": 1}, False),
        ({"left": "0", "retired": True}, True),
        ({"left": "1/128", "retired": True}, False),
    ],
)
def test_what_is_left_is_what_the_asks_leave(changes, holds):
    if holds:
        verify_certificate(document(**changes), public_key=KEY)
    else:
        with pytest.raises(ContentError, match="asks leave"):
            verify_certificate(document(**changes), public_key=KEY)


@pytest.mark.parametrize(("stake", "holds"), [("1/16", True), ("17/256", False), ("0", False)])
def test_a_stake_is_at_most_what_was_left(stake, holds):
    certificate = document((stake, "accepted"), left=stake)
    if holds:
        verify_certificate(certificate, public_key=KEY)
    else:
        with pytest.raises(ContentError, match="a stake that its"):
            verify_certificate(certificate, public_key=KEY)


@pytest.mark.parametrize(
    "changes",
    [{"format": 2}, {"format": True}, {"gate": "x"}, {"claim": CLAIMS["bet"]}, {"left": "0.1"}, {"restored": -1}],
)
def test_another_form_is_refused(changes):
    with pytest.raises(ContentError, match="not of the published form"):
        verify_certificate(document(**changes), public_key=KEY)


def test_a_signature_is_of_all_else_and_by_its_key():
    certificate = document()
    assert well_signed(certificate, KEY)
    assert not well_signed(certificate, public_part(OTHER))
    assert not well_signed({**certificate, "more": 1}, KEY)
    for signature in (None, "", "00" * 64, "no hexadecimal text"):
        assert not well_signed({**certificate, "signature": signature}, KEY)
    assert not well_signed({}, KEY)
    assert not well_signed(certificate, "00")


def test_a_key_is_64_digits_or_a_file_of_them(tmp_path):
    assert parse_key(f" {KEY.upper()}\n") == KEY
    (tmp_path / "key").write_text(f"{KEY}\n")
    assert parse_key(str(tmp_path / "key")) == KEY
    (tmp_path / "long").write_text(KEY + "0")
    for wrong in (KEY[1:], "g" * 64, str(tmp_path / "long"), str(tmp_path), str(tmp_path / "none")):
        with pytest.raises(ArgumentError, match="64 hexadecimal digits"):
            parse_key(wrong)


def test_a_pinned_key_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert pinned_key(GATE) is None
    pin_key(GATE, KEY)
    pin_key(GATE, KEY)
    assert pinned_key(GATE) == KEY
    with pytest.raises(ContentError, match="another key is pinned"):
        pin_key(GATE, public_part(OTHER))
    assert [pinned_key(gate) for gate in ("../" + GATE, "ab", None, "cd" * 16)] == [None] * 4
