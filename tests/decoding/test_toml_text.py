"""TOML: its limits are exact, and what is beyond them is refused in little memory and time."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from dpselect.decoding.limits import STUDY, LimitError
from dpselect.decoding.toml_text import toml_of
from dpselect.errors import ContentError
from tests.decoding.limits_cases import _nothing, cost, depth_of

MIB = 1 << 20

HOSTILE_TOML = {
    "lists": lambda n: b"a = " + b"[" * (n // 2) + b"]" * (n // 2),
    "tables": lambda n: b"a = " + b"{a=" * (n // 4) + b"1" + b"}" * (n // 4),
    "dotted": lambda n: b".".join([b"a"] * (n // 2)) + b" = 1",
    "dotted header": lambda n: b"[" + b" . ".join([b'"a"'] * (n // 6)) + b"]",
    "digits": lambda n: b"a = " + b"9" * n,
    "digits in parts": lambda n: b"a = " + b"9_" * (n // 2) + b"9",
    "hexadecimal": lambda n: b"a = 0x" + b"f" * n,
    "keys": lambda n: b"".join(b"k%x = 1\n" % i for i in range(n // 10)),
    "headers": lambda n: b"".join(b"[k%x]\n" % i for i in range(n // 9)),
    "entries": lambda n: b"a = [" + b"1," * (n // 2) + b"]",
    "quotes": lambda n: b'a = """' + b'""\\' * (n // 3),
    "open text": lambda n: b'a = "' + b"a" * n,
    "apostrophes": lambda n: b"'" * n,
    "comment": lambda n: b"#" * n,
    "a key": lambda n: b"a" * n + b" = 1",
}


@pytest.mark.parametrize("kind", HOSTILE_TOML)
def test_toml_takes_little_memory_and_time(kind):
    document = HOSTILE_TOML[kind](120_000)
    seconds, peak = cost(lambda: toml_of(document, "it"), len(document))
    assert seconds < 1.0
    assert peak <= 7 * len(document) + 64 * MIB
    if kind not in ("headers", "keys", "comment", "a key"):
        with pytest.raises(ContentError):
            toml_of(document, "it")


def test_limits_of_toml_are_exact():
    assert toml_of(b"a = " + b"[" * 32 + b"]" * 32, "it")
    with pytest.raises(LimitError, match="nested more than 32"):
        toml_of(b"a = " + b"[" * 33 + b"]" * 33, "it")
    assert toml_of(b".".join([b"a"] * 32) + b" = 1", "it")
    with pytest.raises(LimitError, match="more than 32 parts"):
        toml_of(b".".join([b"a"] * 33) + b" = 1", "it")
    assert toml_of(b"a = " + b"9" * 300, "it")["a"] == 10**300 - 1
    with pytest.raises(LimitError, match="300 digits"):
        toml_of(b"a = " + b"9" * 301, "it")


def test_texts_and_comments_of_toml_are_not_counted():
    text = "x = '''" + "[" * 50 + "''''\ny = \"\"\"" + "{" * 50 + '\\"""""\n'
    text += 'z = "' + "." * 50 + "9" * 400 + '" # ' + "[" * 50 + "\n"
    found = toml_of(text.encode(), "it")
    assert found == {"x": "[" * 50 + "'", "y": "{" * 50 + '"""'[:1] + '"', "z": "." * 50 + "9" * 400}


TOML_SIGNS = ["a", ".", "=", " ", "\n", *"[]{},1#_\\", "1.5", '"', "'", '"""', "'''", "0x", "true"]
TOML_PIECES = st.lists(st.sampled_from(TOML_SIGNS) | st.text(max_size=2), max_size=40)


@given(TOML_PIECES.map("".join))
def test_any_text_is_toml_or_refused(text):
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        return
    with _nothing():
        assert depth_of(toml_of(raw, "it")) <= 3 * STUDY.depth
