"""The decoders that are fuzzed: valid documents, words of each format, and what the plain library reads."""

from __future__ import annotations

import csv
import gzip
import hashlib
import importlib.util
import io
import json
import operator
import sys
import tempfile
import tomllib
import warnings
import zipfile
import zlib
from dataclasses import replace
from fractions import Fraction
from itertools import dropwhile
from pathlib import Path

import numpy as np

from dpselect.decoding.arrays import archive_headers, array_of, arrays_of, check_archive
from dpselect.decoding.files import lines_of, unpacked
from dpselect.decoding.json_text import JsonFeed, json_of
from dpselect.decoding.limits import DOCUMENT, MODEL, STUDY, SUBMISSION, DecodingLimits
from dpselect.decoding.numbers import fraction_of
from dpselect.decoding.toml_text import toml_of
from dpselect.errors import ContentError
from dpselect.tables.csv_text import CsvForm, csv_header, csv_rows
from tests.decoding.decoder_fuzz import MIB, NOTHING, Decoder
from tests.decoding.fuzzed_certificates import CERTIFICATES
from tests.decoding.fuzzed_records import SWEEP_RECORDS

FOLDER = tempfile.TemporaryDirectory(prefix="dpselect-fuzz-")
PLACE = Path(FOLDER.name)
SMALL = DecodingLimits(size=2 * MIB, decoded=16 * MIB, line=4096, depth=6, digits=20, exponent=30, entries=60)


def limited(document, usual):
    """The usual limits, or narrow ones; the same for the same document."""
    return SMALL if zlib.crc32(document) % 4 == 0 else replace(usual, decoded=min(usual.decoded, 16 * MIB))


def written(document, name):
    path = PLACE / name
    path.write_bytes(document)
    return path


def or_nothing(*refusals):
    """What a plain library reads; NOTHING for what it refuses."""

    def wrap(read):
        def plain(document):
            try:
                return read(document)
            except (*refusals, ValueError, RecursionError):
                return NOTHING

        return plain

    return wrap


# ---- JSON ------------------------------------------------------------------------------------------------------------

VALUES = [
    {"a": [1, -2.5, 1e-300, True, None, 'x"\\\u00e9\U0001f600\ud800'], "b": {"c": {"d": [[], {}, [[0]]]}}},
    [{"id": str(i), "outcome": i % 2, "prediction": i / 7} for i in range(20)],
    {"history": [[1.1, 0.01, 100]], "guarantee": {"epsilon": 1, "delta": "1e-6"}, "": [10**40]},
]
JSON_WORDS = rb'" \ \u12 \ud83d , : 1e999 - NaN -Infinity null "a": 1E-5 {} [] [[]],'.split()
JSON_WORDS += [b"\n", b" ", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\0"]
DUMPED = [json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") for value in VALUES]


def read_json(document):
    limits = limited(document, DOCUMENT if len(document) % 2 else SUBMISSION)
    feed, refusal, whole = JsonFeed(limits, "it"), None, NOTHING
    try:
        for at in range(0, len(document), 999):
            feed.add(document[at : at + 999])
        found = feed.value()
    except ContentError as error:
        found, refusal = NOTHING, error
    try:
        whole = json_of(document, limits, "it")
    finally:
        assert found is NOTHING or repr(found) == repr(whole)
    if refusal is not None:  # it counts as much, a piece at a time
        raise refusal
    assert deep(whole) <= limits.depth
    return whole


def deep(value):
    """How deeply lists and tables are nested."""
    level, depth = [value], -1
    while level:
        level = [
            inner
            for one in level
            if isinstance(one, (dict, list))
            for inner in (one.values() if isinstance(one, dict) else one or [None])
        ] + [None for one in level if one == {}]
        depth += 1
    return depth


@or_nothing()
def plain_json(document):
    return json.loads(document)


JSON = Decoder([(text,) for text in DUMPED], JSON_WORDS, read_json, plain_json)


# ---- JSON lines ------------------------------------------------------------------------------------------------------


def read_lines(document):
    limits = limited(document, SUBMISSION)
    lines = lines_of(written(document, "a.jsonl"), limits)
    return [json_of(line, limits, "a line") for line in lines if line.strip(b" \t")]


@or_nothing()
def plain_lines(document):
    return [json.loads(line) for line in document.split(b"\n") if line.strip(b" \t\r")]


LINES = [b"\n".join(json.dumps(row).encode() for row in VALUES[1]), b'{"id": 1}\r\n\r\n{"id": "2"}\n\xef\xbb\xbf[1]\n']
JSON_LINES = Decoder([(text,) for text in LINES], [*JSON_WORDS, b"\r\n", b"\n\n", b"\r"], read_lines, plain_lines)


# ---- TOML ------------------------------------------------------------------------------------------------------------

STUDY_TEXT = b"""name = "income" # a comment [[[
[data]
train = 'adult.csv'
columns = ["age", 'hours', \"\"\"a
b\"\"\", '''c''']
label_bounds = [-1.5, +0x1f]
since = 1979-05-27T07:32:00.5-07:00
[privacy]
epsilon = 1_0.5e-2
nested = {a.b = 1, "c d" = [[1, 2], {e = inf}]}
[[search.trials]]
x.y."z.w" = 0b101
"""
TOML_WORDS = rb"[ ] [[ ]] { } = . , # ' ''' \ a= a.b. 1.5 0x nan 1979-05-27 07:32:00 true _ \u00e9".split()
TOML_WORDS += [b'"', b'"""', b"\n", b"\r\n", b"\0", b"\xff", b" "]


def read_toml(document):
    limits = limited(document, STUDY)
    found = toml_of(document, "it", limits=limits)
    assert deep(found) <= 3 * limits.depth
    return found


@or_nothing()
def plain_toml(document):
    return tomllib.loads(document.decode())


TOML = Decoder([(STUDY_TEXT,), (b"a = 1\n",), (b"[a.b]\nc = [1, {d = 2}]",)], TOML_WORDS, read_toml, plain_toml)


# ---- CSV and gzip ----------------------------------------------------------------------------------------------------

CSV_WORDS = [
    b",",
    b'"',
    b'""',
    b'"a\nb"',
    b"\n",
    b"\r",
    b"\r\n",
    b" ",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xc3\xa9",
]
TABLES = [
    b"id,outcome,prediction\n" + b"".join(b"%d,1,0.5\n" % row for row in range(50)),
    b'\xef\xbb\xbfa, b\r\n"x""y",2\r\n',
]


def form_of(document):
    return CsvForm(delimiter=";" if zlib.crc32(document) % 9 == 0 else ",")


def digest_of(rows):
    """How many rows, and a digest of them, so that no more than one is held."""
    digest, count = hashlib.sha256(), 0
    for count, row in enumerate(rows, 1):  # noqa: B007 - the last one is wanted
        digest.update(repr(row).encode("utf-8", "surrogatepass"))
    return count, digest.hexdigest()


def read_csv(document):
    form, limits = form_of(document), limited(document, SUBMISSION)
    path = written(document, "a.csv")
    header = csv_header(path, form, limits=limits)
    return header, digest_of(csv_rows(path, form, limits=limits))


@or_nothing(csv.Error)
def plain_csv(document):
    form = form_of(document)
    csv.field_size_limit(sys.maxsize)
    text = io.TextIOWrapper(io.BytesIO(document), encoding="utf-8-sig", newline="")
    rows = dropwhile(operator.not_, csv.reader(text, delimiter=form.delimiter, skipinitialspace=True))
    return [name.strip() for name in next(rows, [])], digest_of(rows)


CSV = Decoder([(table,) for table in TABLES], CSV_WORDS, read_csv, plain_csv)


def read_gzip(document):
    with unpacked(written(document, "a.gz"), limited(document, SUBMISSION)) as file:
        return b"".join(iter(lambda: file.read(70_000), b""))


@or_nothing(OSError, EOFError, zlib.error)
def plain_gzip(document):
    return gzip.decompress(document)


def packed(parts, draw):
    """Members one after the other, of several levels, some with a name, zeros or something else behind them."""
    made = b""
    for part in parts:
        file = io.BytesIO()
        with gzip.GzipFile("a" * draw.randrange(2), "wb", draw.randrange(10), file, mtime=0) as member:
            size = draw.choice((1, 1000, 40 * MIB)) if draw.random() < 0.05 else 1
            member.write(part * max(1, min(size, 40 * MIB // (len(part) + 1))))
        made += file.getvalue()
    return made + draw.choice((b"", b"", b"", b"\0" * 9, b"x"))


GZIP_WORDS = [b"\x1f\x8b", b"\x1f\x8b\x08\x04", b"\xff\xff", b"\0\0\0\0", b"\x03\x00"]
GZIP = Decoder([(table,) for table in TABLES], GZIP_WORDS, read_gzip, plain_gzip, packed)


def read_zstandard(document):
    with unpacked(written(document, "a.zst"), limited(document, SUBMISSION)) as file:
        return b"".join(iter(lambda: file.read(70_000), b""))


@or_nothing(OSError)
def plain_zstandard(document):
    pyarrow = importlib.import_module("pyarrow")
    return pyarrow.input_stream(pyarrow.BufferReader(document), compression="zstd").read()


def packed_by_zstandard(parts, draw):
    """Frames one after the other, of several levels, something else behind them."""
    pyarrow = importlib.import_module("pyarrow")
    made = b""
    for part in parts:
        codec = pyarrow.Codec("zstd", compression_level=draw.randrange(1, 9))
        size = draw.choice((1, 1000, 40 * MIB)) if draw.random() < 0.05 else 1
        made += codec.compress(part * max(1, min(size, 40 * MIB // (len(part) + 1))), asbytes=True)
    return made + draw.choice((b"", b"", b"", b"\0" * 9, b"x"))


ZSTANDARD_WORDS = [b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18\4\0\0\0", b"\xff\xff", b"\0\0\0\0"]
ZSTANDARD = Decoder(
    [(table,) for table in TABLES], ZSTANDARD_WORDS, read_zstandard, plain_zstandard, packed_by_zstandard
)


# ---- NumPy's files ---------------------------------------------------------------------------------------------------


def npy(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()


TYPES = ["f8", "f4", ">i2", "u1", "?", "c16", "U3", "S4", "M8[ns]", "m8[25s]", "f2", "U0"]
ARRAYS = [
    npy(np.zeros(shape, "i8", order=order).astype(dtype))
    for dtype in TYPES
    for shape in ((), (0,), (3,), (2, 3))
    for order in "CF"
]
NPY_WORDS = b"'descr':~'<f8'~'|O'~'<i4'~'|V8'~True~False~(3,)~(),~'shape':~-1~}~ ~[('a', '<f8')]".split(b"~")
NPY_WORDS += [
    b"(99999999999999999999,)",
    b"(0, 2305843009213693951)",
    b"(4000000000,)",
    b"'<U0'",
    b"\x93NUMPY",
    b"\1\0",
    b"\2\0",
    b"\3\0",
    b"\n",
    b"\xff\xff",
]


PLAIN_ERRORS = (EOFError, SyntaxError, TypeError, MemoryError, OverflowError)


def shown(array):
    return array.dtype.str, array.shape, array.tobytes()


def read_npy(document):
    return shown(array_of(written(document, "a.npy"), limited(document, MODEL)))


@or_nothing(*PLAIN_ERRORS)
def plain_npy(document):
    return shown(np.lib.format.read_array(io.BytesIO(document), allow_pickle=False))


NPY = Decoder([(array,) for array in ARRAYS], NPY_WORDS, read_npy, plain_npy)


def read_npz(document):
    limits = limited(document, MODEL)
    path = written(document, "a.npz")
    check_archive(path, limits, "it")
    headers = archive_headers(document, limits, "it")
    arrays = arrays_of(document, limits, "it")
    assert {name: (each.dtype, each.shape) for name, each in headers.items()} == {
        name: (each.dtype, each.shape) for name, each in arrays.items()
    }
    return {name: shown(array) for name, array in arrays.items()}


@or_nothing(*PLAIN_ERRORS, OSError, zlib.error, KeyError, zipfile.BadZipFile)
def plain_npz(document):
    with np.load(io.BytesIO(document), allow_pickle=False) as archive:
        found = {name: archive[name] for name in archive.files}
    if not all(isinstance(array, np.ndarray) for array in found.values()):
        return NOTHING
    return {name: shown(array) for name, array in found.items()}


NAMES = ["a.npy", "b.npy", "a", "description.npy", "../c.npy", "é.npy", "x" * 300, ""]


def zipped(parts, draw):
    """An archive of the members, packed by several methods, some with zeros without end behind them."""
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w") as made:
        warnings.simplefilter("ignore")  # of two members of one name
        for number, part in enumerate(parts):
            name = draw.choice(NAMES) if draw.random() < 0.05 else f"{number}.npy"
            method = draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
            method = zipfile.ZIP_BZIP2 if draw.random() < 0.02 else method
            more = bytes(draw.choice((1, 1000, 30 * MIB))) if draw.random() < 0.006 else b""
            made.writestr(zipfile.ZipInfo(name), part + more, method)
    return file.getvalue()


ZIP_WORDS = [*NPY_WORDS, b"PK\1\2", b"PK\3\4", b"PK\5\6", b"PK\6\6", b"PK\6\7", b"\0\0", b"\x08\0", b"\xff" * 4]
MEMBERS = [(ARRAYS[0],), tuple(ARRAYS[:9]), (ARRAYS[3], ARRAYS[-3])]
NPZ = Decoder(MEMBERS, ZIP_WORDS, read_npz, plain_npz, zipped)


# ---- exact numbers ---------------------------------------------------------------------------------------------------


def read_fraction(document):
    text = document.decode("latin-1") if len(document) % 2 else document.decode("utf-8", "replace")
    found = fraction_of(text, limits=limited(document, DOCUMENT))
    assert text.strip().isascii()
    return str(found)


@or_nothing(ZeroDivisionError)
def plain_fraction(document):
    return str(Fraction(document.decode("latin-1") if len(document) % 2 else document.decode("utf-8", "replace")))


FRACTIONS = [b"0.1", b"1/3", b"-12.50e-7", b"+7", b".5", b"5."]
FRACTION_WORDS = [*b"/ . e E- - + _ 1 0 99 inf nan 4300 4301".split(), b" ", b"\xd9\xa3", b"\n"]
FRACTION = Decoder([(text,) for text in FRACTIONS], FRACTION_WORDS, read_fraction, plain_fraction)


DECODERS = {
    "json": JSON,
    "json lines": JSON_LINES,
    "toml": TOML,
    "csv": CSV,
    "gzip": GZIP,
    **({"zstandard": ZSTANDARD} if importlib.util.find_spec("pyarrow") else {}),
    "npy": NPY,
    "npz": NPZ,
    "exact numbers": FRACTION,
    "certificates": CERTIFICATES,
    **SWEEP_RECORDS,
}
