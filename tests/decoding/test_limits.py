"""Documents of others are decoded in one room, under limits: memory, processor time, depth, digits, entries."""

from __future__ import annotations

import gc
import io
import json
import re
import struct
import time
import tracemalloc
import zipfile
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dpselect.decoding.arrays import archive_headers, array_of, arrays_of, check_archive
from dpselect.decoding.json_text import JsonFeed, json_of
from dpselect.decoding.limits import DOCUMENT, MODEL, STUDY, SUBMISSION, TABLE, DecodingLimits, LimitError
from dpselect.decoding.numbers import fraction_of
from dpselect.decoding.toml_text import toml_of
from dpselect.errors import ArgumentError, ContentError

MIB = 1 << 20
SMALL = DecodingLimits(size=2 * MIB, decoded=4 * MIB, depth=20, entries=200_000)


def cost(call, size):
    """Processor seconds and bytes of memory at most; the size counts as held already."""
    gc.freeze()  # what other tests left is no part of the time
    tracemalloc.start()
    start = time.process_time()
    try:
        call()
    except ContentError:
        pass
    finally:
        seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        gc.unfreeze()
    return seconds, peak


# ---- JSON ------------------------------------------------------------------------------------------------------------

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


class _nothing(list[BaseException]):
    """Refusals pass; what else is raised does not."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        if isinstance(error, ContentError | ArgumentError):
            self.append(error)
        return bool(self)


FINITE = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**40), 10**40) | FINITE | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def depth_of(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


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


# ---- TOML ------------------------------------------------------------------------------------------------------------

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


# ---- numbers ---------------------------------------------------------------------------------------------------------


@given(st.fractions() | st.decimals(allow_nan=False, allow_infinity=False, places=5) | FINITE)
def test_exact_numbers_are_read_as_fractions(value):
    assert fraction_of(str(value)) == Fraction(str(value))


NUMBER_SIGNS = ["1", "0", "/", ".", "e", "E", "-", "+", "_", " ", "99", "inf", "٣"]


@given(st.lists(st.sampled_from(NUMBER_SIGNS), max_size=8).map("".join))
def test_any_text_is_an_exact_number_or_refused(text):
    huge = re.search(r"[eE][+-]?\d{4}", text)
    with _nothing() as refused:
        found = fraction_of(text)
    expected = None
    if text.isascii() and "_" not in text and not huge:
        with suppress(ValueError, ZeroDivisionError):
            expected = Fraction(text)
    if expected is not None:
        assert not refused
    assert refused or huge or found == expected


TOO_LONG = ["1e999999999999", "1e-99999999", "1e4301", "9" * 5000, "1/" + "9" * 5000, "." + "0" * 5000 + "1"]


@pytest.mark.parametrize("text", [*TOO_LONG, "1e" + "9" * 90])
def test_exact_numbers_are_bounded_before_they_are_made(text):
    start = time.process_time()
    with pytest.raises(LimitError):
        fraction_of(text)
    assert time.process_time() - start < 0.1


@pytest.mark.parametrize("text", ["1e4299", "1e-4299", "9" * 4300, "0." + "0" * 4297 + "11", "1/" + "9" * 4300])
def test_exact_numbers_can_be_written_again(text):
    assert Fraction(str(fraction_of(text))) == Fraction(text)


@pytest.mark.parametrize("text", ["1e4300", "1e-4300", "9" * 4300 + "e1", "." + "0" * 4299 + "1", "1" * 4000 + "e4000"])
def test_exact_numbers_that_cannot_be_written_again_are_refused(text):
    with pytest.raises(LimitError, match="more than 4300 digits when it is written out"):
        fraction_of(text)


# ---- archives and arrays ---------------------------------------------------------------------------------------------


def archive(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


@pytest.mark.parametrize("dtype", ["f8", "f4", ">i2", "u1", "?", "c16", "U3", "S4", "M8[ns]", "m8[D]", "f2"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_plain_arrays_are_read_as_by_numpy(dtype, shape, tmp_path):
    cells = np.arange(int(np.prod(shape))).reshape(shape)
    array = cells.astype("i8").astype(dtype) if dtype[0] in "Mm" else cells.astype(dtype)
    for one in (array, np.asfortranarray(array)):
        found = arrays_of(archive(a=one, b=array), MODEL, "it")
        assert found["a"].dtype == one.dtype
        np.testing.assert_array_equal(found["a"], one)
        np.save(tmp_path / "a.npy", one)
        np.testing.assert_array_equal(array_of(tmp_path / "a.npy", MODEL), one)
    assert archive_headers(archive(a=array), TABLE, "it")["a"].shape == shape


def zipped(name="a.npy", content=b"", method=zipfile.ZIP_DEFLATED, times=1):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as made:
        for number in range(times):
            made.writestr(f"{number}{name}", content)
    return file.getvalue()


def npy(header, cells=b""):
    text = header.encode() + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + cells


def plain(shape="(3,)", descr="'<f8'"):
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


HOSTILE_ARRAYS = {
    "bomb": lambda: zipped(content=npy(plain("(40000000,)"), bytes(40_000_000 * 8))[: 16 * MIB]),
    "bomb of one size": lambda: zipped(content=npy(plain(f"({2 * MIB},)"), bytes(16 * MIB))),
    "larger than its bytes": lambda: zipped(content=npy(plain("(1000000000000,)"), bytes(8))),
    "shape of zeros": lambda: zipped(content=npy(plain("(0, 99999999999999999999)"))),
    "many": lambda: zipped(content=b"", times=2000),
    "object": lambda: zipped(content=npy(plain(descr="'|O'"), bytes(24))),
    "structure": lambda: zipped(content=npy(plain(descr="[('a', '<f8')]"), bytes(24))),
    "no width": lambda: zipped(content=npy(plain("(40000000000,)", "'<U0'"))),
    "a large shape of nothing": lambda: zipped(content=npy(plain(f"(0, {2**61})"))),
    "large shapes of nothing": lambda: zipped(content=npy(plain(f"(0, {2**40}, {2**40})"))),
    "parentheses": lambda: zipped(content=npy("(" * 9000)),
    "code": lambda: zipped(content=npy("__import__('os').getcwd()")),
    "long header": lambda: zipped(content=npy(plain() + " " * 20_000, bytes(24))),
    "cut": lambda: archive(a=np.arange(1000))[:-10],
    "nothing": lambda: b"",
    "text": lambda: b"PK" * 100,
    "changed": lambda: archive(a=np.arange(100.0)).replace(np.float64(7).tobytes(), np.float64(8).tobytes()),
    "no array": lambda: zipped(content=b"hello"),
    "method": lambda: zipped(content=npy(plain(), bytes(24)), method=zipfile.ZIP_BZIP2),
    "directory": lambda: zipped(content=b"", times=20_000, method=zipfile.ZIP_STORED),
}


@pytest.mark.parametrize("kind", HOSTILE_ARRAYS)
def test_archives_take_little_memory_and_time(kind):
    content = HOSTILE_ARRAYS[kind]()
    limits = replace(MODEL, decoded=len(content))
    seconds, peak = cost(lambda: arrays_of(content, limits, "it"), len(content))
    assert seconds < 1.0
    assert peak <= 8 * len(content) + 64 * MIB
    with pytest.raises(ContentError):
        arrays_of(content, limits, "it")


@pytest.mark.parametrize(
    "header", [plain("(40000000000,)", "'<U0'"), plain(f"(0, {2**61})"), plain(f"({2**31}, {2**31})", "'|S0'")]
)
def test_an_array_that_no_bytes_stand_for_is_refused(tmp_path, header):
    path = tmp_path / "a.npy"
    path.write_bytes(npy(header))
    with pytest.raises(ContentError, match=r"shape that no array has|no width"):
        array_of(path, MODEL)
    path.write_bytes(npy(plain("(0, 3)", "'<U0'")))
    assert (array_of(path, MODEL).dtype, array_of(path, MODEL).shape) == (np.dtype("U0"), (0, 3))


def test_an_archive_that_lies_about_its_members(tmp_path):
    member = npy(plain(f"({MIB},)"), bytes(8 * MIB))
    content, size = zipped(content=member), struct.pack("<L", len(member))
    assert content.count(size) == 2  # before the member, and in the directory
    path = tmp_path / "a.npz"
    path.write_bytes(content.replace(size, struct.pack("<L", 100)))
    check_archive(path, MODEL, "it")
    assert cost(lambda: arrays_of(path, MODEL, "it"), 0)[1] < MIB
    with pytest.raises(ContentError):
        arrays_of(path, MODEL, "it")


@given(st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_changed_archives_are_read_or_refused(data):
    content = bytearray(archive(a=np.arange(20.0), b=np.array(["x", "yz"])))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content
    with _nothing():
        arrays_of(bytes(content), replace(MODEL, decoded=10_000), "it")
