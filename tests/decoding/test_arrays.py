"""Arrays and archives of NumPy: read as NumPy reads them, and refused in little memory and time."""

from __future__ import annotations

import io
import struct
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dpselect.decoding.arrays import archive_headers, array_of, arrays_of, check_archive
from dpselect.decoding.limits import MODEL, TABLE
from dpselect.errors import ContentError
from tests.decoding.limits_cases import _nothing, cost

MIB = 1 << 20


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
