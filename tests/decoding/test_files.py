"""Files of others, whole, in lines, packed and as tables, read under limits."""

from __future__ import annotations

import gzip
import tracemalloc
from dataclasses import replace

import pytest

from dpselect.decoding.files import lines_of, read_content, unpacked
from dpselect.decoding.limits import DecodingLimits, LimitError
from dpselect.errors import ContentError
from dpselect.tables.csv_text import csv_header, csv_rows
from tests.decoding.limits_cases import cost

MIB = 1 << 20
SMALL = DecodingLimits(size=2 * MIB, decoded=4 * MIB, depth=20, entries=200_000)


def test_packed_files_are_read_under_limits(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" * (2 * MIB)))
    seconds, peak = cost(lambda: sum(1 for _ in csv_rows(path, limits=replace(SMALL, decoded=MIB // 2))), 0)
    assert (seconds < 3, peak < 16 * MIB) == (True, True)
    with pytest.raises(LimitError, match="rows"):
        list(csv_rows(path, limits=replace(SMALL, entries=10)))
    with unpacked(path, SMALL) as file, pytest.raises(LimitError, match="unpacks to more than 4 MiB"):
        file.read()
    path.write_bytes(gzip.compress(b"a,b\n" + b"a" * (3 * MIB)))
    with pytest.raises(LimitError, match="row of more"):
        list(csv_rows(path, limits=SMALL))
    path.write_bytes(gzip.compress(b'a,b\n"' + b"a\n" * (2 * MIB)))
    with pytest.raises(LimitError, match="row of more"):
        list(csv_rows(path, limits=SMALL))
    assert sum(1 for _ in csv_rows(path)) == 1  # private rows: no content makes it fail
    for damaged in (gzip.compress(b"a,b\n" * 1000)[:-9], b"no archive", gzip.compress(b"a" * 1000)[:20] + b"x" * 30):
        path.write_bytes(damaged)
        with pytest.raises(ContentError, match="damaged"):
            list(csv_rows(path, limits=SMALL))


LONG_HEADERS = {
    "a name": b"a" * MIB * 5,
    "a quote": b'"' + (b"a" * 99 + b"\n") * (MIB // 20),
    "names": b"ab," * 2 * MIB,
}


@pytest.mark.cases(2)
@pytest.mark.parametrize("kind", LONG_HEADERS)
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_the_header_of_private_rows_is_bounded(tmp_path, name, kind):
    path, content = tmp_path / name, LONG_HEADERS[kind] + b"\n1,2\n"
    path.write_bytes(gzip.compress(content, 1) if name.endswith("gz") else content)
    tracemalloc.start()
    with pytest.raises(LimitError, match="header of more than 4194304 characters"):
        csv_header(path)
    assert tracemalloc.get_traced_memory()[1] <= 8 * (4 * MIB) + 64 * MIB
    tracemalloc.stop()


@pytest.mark.full
def test_many_columns_are_read_in_little_memory(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b",".join(b"%x" % column for column in range(600_000)) + b"\n")
    tracemalloc.start()
    assert len(csv_header(path)) == 600_000
    assert tracemalloc.get_traced_memory()[1] <= 8 * path.stat().st_size + 64 * MIB
    tracemalloc.stop()


def test_files_and_lines_are_read_under_limits(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\r\n\nb")
    assert list(lines_of(path, SMALL)) == [b"a", b"", b"b"]
    assert read_content(path, SMALL) == b"a\r\n\nb"
    with pytest.raises(LimitError):
        read_content(path, replace(SMALL, size=4))
    with pytest.raises(LimitError, match="larger"):
        list(lines_of(path, replace(SMALL, size=4)))
    path.write_bytes(b"a" * 11)
    with pytest.raises(LimitError, match="line"):
        list(lines_of(path, replace(SMALL, line=10)))
