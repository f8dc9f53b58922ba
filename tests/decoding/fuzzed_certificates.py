"""The verifier of a gate's certificates, fuzzed with documents whose claim and signature fit."""

from __future__ import annotations

import json
from contextlib import suppress
from fractions import Fraction

import jsonschema

from dpselect.decoding.json_text import json_of
from dpselect.decoding.limits import DOCUMENT
from dpselect.holdout.gate.certificates import public_part, signed, verify_certificate
from dpselect.holdout.gate.terms import GateTerms
from tests.decoding.decoder_fuzz import Decoder
from tests.root import ROOT

WORDS = [b'"', b"\\u12", b",", b":", b"1e999", b"NaN", b"null", b'"a":', b"[]", b"{}", b"\xef\xbb\xbf", b"\xff", b" "]
SECRET = "07" * 32
TERMS = {
    "tasks": 60,
    "units": 60,
    "repeats": 1,
    "test": "sign",
    "margin": 0.0,
    "regraded": False,
    "consultations": 20,
    "failure_probability": 0.0625,
    "bound_failure_probability": None,
    "answer_seconds": 0.0,
    "id_column": "id",
    "outcome_columns": ["outcome"],
    "public_key": public_part(SECRET),
}
ASKS = [
    {"stake": "1/64", "candidate": "ab" * 32, "verdict": "accepted"},
    {"stake": "1/128", "candidate": None, "verdict": "rejected"},
]
BODY = {"format": 1, "gate": "0a" * 16, "terms": TERMS, "claim": GateTerms.parse(TERMS).claim, "restored": 0}
CERTIFICATE = json.dumps({**BODY, "retired": False, "asks": ASKS, "purse": "1/128"}).encode()
ODD = [None, True, 0, 1, -1, 1.0, 2**70, 0.3, 1e308, [], {}, ["a"], ASKS, "9" * 5000, "1/" + "9" * 4000, ""]
ODD += ["1/3", "0", "1", "1e9", "x"]


def re_signed(parts, draw):
    """A certificate with a value or two changed, and a claim and a signature that fit; sometimes they do not."""
    body = json.loads(CERTIFICATE)
    with suppress(ValueError, RecursionError, UnicodeDecodeError):
        body = json.loads(parts[0])
    if not isinstance(body, dict):
        return parts[0]
    for _ in range(draw.choice((0, 1, 1, 2))):
        table = body
        while table:
            place = draw.choice(list(table) if isinstance(table, dict) else range(len(table)))
            if isinstance(table[place], (dict, list)) and draw.random() < 0.8:
                table = table[place]
                continue
            table[place] = draw.choice(ODD)
            break
    with suppress(Exception):  # of no form
        left = Fraction(body["terms"]["failure_probability"])
        for ask in body["asks"]:
            ask["stake"] = str(min(Fraction(ask["stake"]), left))
            left = Fraction(ask["stake"]) if ask["verdict"] == "accepted" else left - Fraction(ask["stake"])
        body["purse"] = draw.choice((str(left), body["purse"]))
    with suppress(Exception):
        body["claim"] = GateTerms.parse(body["terms"]).claim
    with suppress(Exception):
        return json.dumps(signed(body, SECRET) if draw.random() < 0.95 else body).encode()
    return parts[0]


SCHEMA = jsonschema.Draft202012Validator(json.loads((ROOT / "docs" / "gate.schema.json").read_text()))


def read_certificate(document):
    found = json_of(document, DOCUMENT, "the certificate")
    verify_certificate(found, public_key=public_part(SECRET))
    return found


def plain_certificate(document):
    """The published form, and the arithmetic of its purse."""
    found = json.loads(document)
    if not SCHEMA.is_valid(found):
        return "not of the published form"
    left = Fraction(found["terms"]["failure_probability"])
    for stake, verdict in ((Fraction(ask["stake"]), ask["verdict"]) for ask in found["asks"]):
        if not 0 < stake <= left:
            return "a stake was not in the purse"
        left = stake if verdict == "accepted" else left - stake
    return found if Fraction(found["purse"]) <= (0 if found["retired"] else left) else "too much is left"


CERTIFICATES = Decoder([(CERTIFICATE,)], WORDS, read_certificate, plain_certificate, re_signed)
