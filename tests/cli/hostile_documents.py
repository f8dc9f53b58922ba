"""Malformed documents, made when they are wanted: by their kind, and the findings' own."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import zipfile

import numpy as np

MIB = 1 << 20


def _archive(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _bomb(name, size):
    """Zeros that a thousandth of their size stands for."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({size // 8},), }}\n".encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made, made.open(name, "w", force_zip64=True) as member:
        member.write(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header)
        for _ in range(size // MIB):
            member.write(bytes(MIB))
    return file.getvalue()


def _described(text):
    return _archive(description=np.frombuffer(text.encode(), dtype=np.uint8), weights_0=np.zeros(3))


ANY = {
    "nothing": lambda: b"",
    "zeros": lambda: bytes(5000),
    "bytes": lambda: bytes(range(256)) * 20,
    "a mark": lambda: b"\xff\xfe\0a",
    "escapes": lambda: b"\x1b[31m\x07",
    "a database": lambda: b"SQLite format 3\0" + b"\xff" * 2000,
    "an archive": lambda: b"PK\3\4" + b"\0" * 100 + b"PK\5\6" + b"\xff" * 18,
}

JSON = {
    "deep": lambda: b'{"a":' * 50_000,
    "deep lists": lambda: b"[" * 100_000 + b"]" * 100_000,
    "digits": lambda: b'{"sequence":' + b"9" * 5000 + b', "head": "a"}',
    "infinity": lambda: b'{"history": [[Infinity, -Infinity, NaN]], "guarantee": {"epsilon": Infinity}}',
    "huge": lambda: b'{"history": [[1e999, 1e999, 1]], "found": 1e999}',
    "large": lambda: b'{"history": [[' + b"9" * 400 + b", 0.1, 1]]}",
    "another form": lambda: b'{"history": {"a": 1}, "sequence": [], "format": 1, "terms": 5}',
    "null": lambda: b"null",
    "a list": lambda: b"[[[1]], {}]",
    "surrogates": lambda: b'{"\\ud800": "\\udfff", "id": "\\ud800", "outcome": 1}',
    "cut": lambda: b'{"a": [1, 2',
}

TOML = {
    "deep": lambda: b"a = " + b"[" * 5000 + b"]" * 5000,
    "deep tables": lambda: b"a = " + b"{a=" * 5000 + b"1" + b"}" * 5000,
    "dotted": lambda: b".".join([b"a"] * 20_000) + b" = 1\n",
    "digits": lambda: b"[privacy]\nepsilon = " + b"9" * 5000,
    "digits in groups": lambda: b"[privacy]\nepsilon = " + b"9_" * 3000 + b"9",
    "no float64": lambda: b"[privacy]\nepsilon = " + b"9" * 299 + b"\nnominal_rows = " + b"9" * 299 + b"\ndelta = 1e-6",
    "infinities": lambda: b"[privacy]\nepsilon = inf\ndelta = nan\n[data]\nlabel_bounds = [-inf, inf]\ncolumns = {}\n",
    "unknown keys": lambda: b"".join(b"k%d = 1\n" % i for i in range(200_000)),
    "fewer unknown keys": lambda: b"".join(b"k%d = 1\n" % i for i in range(4_000)),
    "dates": lambda: b"name = 9999-12-31T23:59:60\n[data]\nlabel_bounds = [0001-01-01, 9999-12-31]\n",
    "another form": lambda: b"data = 1\nprivacy = []\nspace = 'x'\nlearner = {}\noutput = [{}]\n",
}

CSV = {
    "no rows": lambda: b"id,outcome,prediction,label\n",
    "uneven": lambda: b"id,outcome,prediction,label\n1,2\n",
    "a cell": lambda: b'id,outcome,prediction,label\n"' + b"a" * (2 * MIB),
    "quotes": lambda: b'"' * 200_001,
    "a header": lambda: b"a," * 200_000,
    "a long header": lambda: b"a" * (5 * MIB),
}

PACKED = {
    "bomb": lambda: gzip.compress(b"id,outcome,prediction,label\n" + b"a" * (64 * MIB), 1),
    "bomb of rows": lambda: gzip.compress(b"id,outcome,prediction,label\n" + b"1,1,1,1\n" * MIB, 1),
    "no archive": lambda: b"hello",
    "cut": lambda: gzip.compress(b"id,outcome,prediction,label\n" + b"1,1,1,1\n" * 1000)[:-20],
    "damaged": lambda: gzip.compress(bytes(range(256)) * 50)[:60] + b"\xff" * 100,
}

ARRAYS = {
    "bomb": lambda: _bomb("description.npy", 256 * MIB),
    "bomb of weights": lambda: _bomb("weights_0.npy", 256 * MIB),
    "description": lambda: _described("{}"),
    "deep": lambda: _described("[" * 100_000),
    "digits": lambda: _described('{"format": ' + "9" * 5000 + "}"),
    "infinity": lambda: _described('{"format": 3, "noise": Infinity}'),
    "huge": lambda: _described(json.dumps({"format": 3, "noise": 10**300, "nominal_rows": 10**300, "columns": []})),
    "objects": lambda: _archive(description=np.zeros(3)),
    "nothing": lambda: _archive(),
}


def database(path):
    """An SQLite file of another program."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE entry (sequence, head, body)")
        connection.execute("INSERT INTO entry VALUES ('x', X'00ff', 1e999)")
    connection.close()
