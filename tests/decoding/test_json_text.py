"""JSON, read as the standard library reads it, or refused in little memory and time."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from dpselect.decoding.json_text import JsonFeed, json_of
from dpselect.decoding.limits import DOCUMENT, SUBMISSION, DecodingLimits, LimitError
from dpselect.errors import ContentError
from tests.decoding.limits_cases import _nothing, cost, depth_of

MIB = 1 << 20
SMALL = DecodingLimits(size=2 * MIB, decoded=4 * MIB, depth=20, entries=200_000)

HOSTILE_JSON = {
    "deep": lambda n: b"[" * (n // 2) + b"]" * (n // 2),
    "deep tables": lambda n: b'{"a":' * (n // 6) + b"1" + b"}" * (n // 6),
    "tables": lambda n: b"[" + b"{}," * (n // 3) + b"0]",
    "lists": lambda n: b"[" + b"[]," * (n // 3) + b"0]",
    "lists of one list": lambda n: b"[" + b"[[]]," * (n // 5) + b"0]",
    "tables of one": lambda n: b"[" + b'{"a":1},' * (n // 8) + b"0]",
    "short texts": lambda n: b"[" + b'"ab",' * (n // 5) + b"0]",
    "names": lambda n: b"{" + b",".join(b'"%x":0' % i for i in range(n // 10)) + b"}",
    "numbers": lambda n: b"[" + b"1e1," * (n // 4) + b"0]",
    "wide text": lambda n: b'["' + b"a" * (n - 8) + '😀"]'.encode(),
    "digits": lambda n: b"9" * n,
    "quotes": lambda n: b'"\\"' * (n // 3),
    "backslashes": lambda n: b"\\" * n,
    "brackets in texts": lambda n: b"[" + b'"[[[",' * (n // 6) + b"0]",
}


@pytest.mark.parametrize("kind", HOSTILE_JSON)
def test_json_takes_little_memory_and_time(kind):
    document = HOSTILE_JSON[kind](MIB // 4)
    seconds, peak = cost(lambda: json_of(document, SUBMISSION, "it"), len(document))
    assert seconds < 2.0  # under the tracing of memory
    assert peak <= 7 * len(document) + 64 * MIB


@pytest.mark.full
@pytest.mark.parametrize("kind", HOSTILE_JSON)
def test_large_json_takes_little_memory_and_time(kind):
    document = HOSTILE_JSON[kind](12 * MIB)
    _, peak = cost(lambda: json_of(document, SUBMISSION, "it"), len(document))
    assert peak <= 7 * len(document) + 64 * MIB
    start = time.process_time()
    with _nothing():
        json_of(document, SUBMISSION, "it")
    assert time.process_time() - start < 12


FINITE = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**40), 10**40) | FINITE | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.booleans())
@settings(max_examples=30)
def test_honest_json_is_read_as_by_the_standard_library(value, ascii_only):
    text = json.dumps(value, ensure_ascii=ascii_only)
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        return
    assert json_of(raw, DOCUMENT, "it") == value
    feed = JsonFeed(DOCUMENT, "it")
    for start in range(0, len(raw), 7):
        feed.add(raw[start : start + 7])
    assert feed.value() == value


@given(VALUES)
def test_the_depth_is_counted_exactly(value):
    text, depth = json.dumps(value), depth_of(value)
    limits = replace(DOCUMENT, depth=max(depth, 1))
    assert json_of(text, limits, "it") == value
    if depth > 1:
        with pytest.raises(LimitError, match="deep"):
            json_of(text + " " * depth, replace(DOCUMENT, depth=depth - 1), "it")


SIGNS = ['"', "\\", "[", "]", "{", "}", ",", ":", "1", "1e999", "-", "a", "\\u12", "NaN", "9" * 310, "😀", "\n"]
PIECES = st.lists(st.sampled_from(SIGNS) | st.text(max_size=3), max_size=40)


@given(PIECES.map("".join))
def test_any_text_is_json_or_refused(text):
    with _nothing() as refused:
        found = json_of(text, SMALL, "it")
    if refused:
        return
    assert found == json.loads(text)
    assert depth_of(found) <= SMALL.depth


@given(st.integers(1, 60), st.integers(0, 60), st.sampled_from(["", "[", "1,"]))
def test_long_rows_of_digits_are_found_wherever_they_are(digits, before, sign):
    assert json_of(json.dumps(["7" * 100]), replace(DOCUMENT, digits=20), "it") == ["7" * 100]  # a text
    text = "[" + " " * before + sign + "7" * digits + ("]" if sign == "[" else "") + "]"
    limits = replace(DOCUMENT, digits=20)
    if digits > 20:
        with pytest.raises(LimitError, match="more than 20 digits"):
            json_of(text, limits, "it")
    else:
        json_of(text, limits, "it")


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "-1e400", "9" * 400])
def test_numbers_that_are_none_are_refused_where_that_is_asked(text):
    with pytest.raises(LimitError):
        json_of(text, DOCUMENT, "it")
    json_of(text, SUBMISSION, "it")


def test_a_name_twice_is_refused_where_that_is_asked():
    assert json_of('{"a": 1, "a": 2}', DOCUMENT, "it") == {"a": 2}
    with pytest.raises(ContentError):
        json_of('{"a": 1, "a": 2}', DOCUMENT, "it", unique=True)


def test_a_feed_refuses_before_the_end():
    feed = JsonFeed(replace(SUBMISSION, size=64 * MIB), "it")
    piece, pieces = b"{}," * 100_000, 0
    feed.add(b"[")
    with _nothing() as refused:
        for pieces in range(200):  # noqa: B007 - the last one is wanted
            feed.add(piece)
    assert (len(refused), pieces < 7) == (1, True)
    with pytest.raises(LimitError, match="values"):
        JsonFeed(replace(DOCUMENT, entries=10), "it").add(b"[1,2,3,4,5,6,7,8,9,10,11")
