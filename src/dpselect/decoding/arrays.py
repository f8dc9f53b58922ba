"""NumPy's files (.npz, .npy) under limits. Nothing is unpickled; a shape counts only with its bytes."""

from __future__ import annotations

import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.decoding.limits import DecodingLimits, LimitError, shown_bytes
from dpselect.errors import ContentError

__all__ = ["Header", "archive_headers", "array_of", "arrays_of", "check_archive"]

_MAGIC: Final = b"\x93NUMPY"
_HEADER: Final = re.compile(
    r"\{'descr': '([<>|=]?[biufcSUmM?]\d{0,9}(?:\[\d{0,9}[A-Za-z]{1,2}\])?)', 'fortran_order': (True|False), "
    r"'shape': \(((?:\d{1,19}, ?)*(?:\d{1,19})?)\), \}\s*"
)
_LONGEST_HEADER: Final = 10_000
_DIRECTORY: Final = b"PK\x05\x06"
_END: Final = 22
_ENTRY: Final = 400
"""Bytes of the directory for one member, at most: of a name of some length and of further fields."""
_CHUNK: Final = 1 << 20
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGED: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    struct.error,
)
"""What `zipfile` raises for an archive that is none; of the limits nothing is among them."""


@dataclass(frozen=True)
class Header:
    """What the first bytes of an array say of it."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    columns_first: bool

    @property
    def size(self) -> int:
        """Bytes of its cells."""
        return math.prod(self.shape) * self.dtype.itemsize


def archive_headers(source: Path | bytes, limits: DecodingLimits, what: str) -> dict[str, Header]:
    """The type and shape of each array of an `.npz` archive, by its name; no cell is read.

    Raises `LimitError`, `OSError`, and `ContentError` for what is no archive of plain arrays.
    """
    with _opened(source, limits, what) as archive:
        return {
            info.filename.removesuffix(".npy"): _member(archive, info, limits, what)[0] for info in archive.infolist()
        }


def arrays_of(
    source: Path | bytes, limits: DecodingLimits, what: str, *, names: Iterable[str] | None = None
) -> dict[str, NDArray[Any]]:
    """The arrays of an `.npz` archive by their names, or those of these names. Raises as `archive_headers` does.

    >>> import io, numpy
    >>> from dpselect.decoding.limits import MODEL
    >>> file = io.BytesIO()
    >>> numpy.savez(file, a=numpy.arange(3))
    >>> arrays_of(file.getvalue(), MODEL, "the model")["a"].tolist()
    [0, 1, 2]
    """
    wanted = None if names is None else set(names)
    with _opened(source, limits, what) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        return {
            name: _member(archive, info, limits, what, cells=True)[1]
            for name, info in members.items()
            if wanted is None or name in wanted
        }


def array_of(path: Path, limits: DecodingLimits) -> NDArray[Any]:
    """The array of an `.npy` file. Raises as `archive_headers` does."""
    size = path.stat().st_size
    limits.check_size(size, path.name)
    with path.open("rb") as file:
        header, begin = _header(file, path.name)
        return _cells(file, header, size - begin, limits, path.name)


def check_archive(source: Path | bytes, limits: DecodingLimits, what: str) -> None:
    """Raise `LimitError` or `ContentError` unless an archive (zip) unpacks to what the limits take."""
    _opened(source, limits, what).close()


def _opened(source: Path | bytes, limits: DecodingLimits, what: str) -> zipfile.ZipFile:
    """An archive whose directory is as small as its members are few, and whose members are as small as they say."""
    file: IO[bytes] = io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")
    with file:
        size = file.seek(0, io.SEEK_END)
        limits.check_size(size, what)
        _check_directory(file, size, limits, what)
    try:
        archive = zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source)  # decodes: checked above
    except _DAMAGED:
        raise ContentError(f"{what} is no archive, or is damaged") from None
    try:
        _check_members(archive.infolist(), limits, what)
    except ContentError:
        archive.close()
        raise
    return archive


def _check_members(members: list[zipfile.ZipInfo], limits: DecodingLimits, what: str) -> None:
    if len(members) > limits.entries:
        raise LimitError(f"{what} has more than {limits.entries} members")
    if len({info.filename.removesuffix(".npy") for info in members}) != len(members):
        raise ContentError(f"{what} has two members of one name")
    if any(info.compress_type not in _METHODS or info.flag_bits & 1 for info in members):
        raise ContentError(f"{what} is packed by a method that is not read, or encrypted")
    if sum(info.file_size for info in members) > limits.decoded:
        raise LimitError(f"{what} unpacks to more than {shown_bytes(limits.decoded)}")


def _check_directory(file: IO[bytes], size: int, limits: DecodingLimits, what: str) -> None:
    """The directory is read as a whole, several times its own size in memory."""
    file.seek(max(0, size - _END - (1 << 16)))
    tail = file.read()
    at = len(tail) - _END
    if tail[at : at + 4] != _DIRECTORY or tail[-2:] != b"\0\0":
        at = tail.rfind(_DIRECTORY)
    if at < 0 or at + _END > len(tail):
        raise ContentError(f"{what} is no archive, or is damaged")
    (length,) = struct.unpack("<L", tail[at + 12 : at + 16])
    if length > limits.entries * _ENTRY and length < 0xFFFFFFFF:
        raise LimitError(f"{what} has more than {limits.entries} members")


def _member(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, limits: DecodingLimits, what: str, *, cells: bool = False
) -> tuple[Header, Any]:
    shown = f"an array of {what}"
    try:
        with archive.open(info) as file:
            header, begin = _header(file, shown)
            if header.size != info.file_size - begin:
                raise ContentError(f"{shown} has another size than its shape says")
            return header, _cells(file, header, info.file_size - begin, limits, shown) if cells else None
    except ContentError:
        raise
    except _DAMAGED:
        raise ContentError(f"{what} is no archive of plain arrays, or is damaged") from None


def _header(file: IO[bytes], what: str) -> tuple[Header, int]:
    """The header, and how many bytes it takes."""
    start = file.read(8)
    version = start[6:]
    if start[:6] != _MAGIC or version not in (b"\1\0", b"\2\0", b"\3\0"):
        raise ContentError(f"{what} is no plain array")
    width = 2 if version == b"\1\0" else 4
    length = int.from_bytes(file.read(width), "little")
    found = _HEADER.fullmatch(file.read(length).decode("latin-1")) if length <= _LONGEST_HEADER else None
    if found is None:
        raise ContentError(f"{what} is no plain array: of numbers, text, booleans or dates")
    try:
        dtype = np.dtype(found[1])
    except (TypeError, ValueError):
        raise ContentError(f"{what} has a type that is not known") from None
    shape = tuple(int(part) for part in found[3].split(",") if part.strip())
    if len(shape) > 32 or math.prod(part or 1 for part in shape) * max(1, dtype.itemsize) >= 1 << 62:
        raise ContentError(f"{what} has a shape that no array has")
    if not dtype.itemsize and all(shape):  # as many as anyone writes, out of no bytes
        raise ContentError(f"{what} has cells of no width")
    return Header(dtype, shape, found[2] == "True"), 8 + width + length


def _cells(file: IO[bytes], header: Header, size: int, limits: DecodingLimits, what: str) -> NDArray[Any]:
    """The cells, piece by piece, so that no more memory is taken than there are bytes."""
    if header.size > limits.decoded:
        raise LimitError(f"{what} takes more than {shown_bytes(limits.decoded)}")
    if header.size != size:
        raise ContentError(f"{what} has another size than its shape says")
    content = bytearray()
    while len(content) <= size and (piece := file.read(min(_CHUNK, size + 1 - len(content)))):
        content += piece
    if len(content) != size:
        raise ContentError(f"{what} is truncated")
    if not size:
        return np.ndarray(header.shape, dtype=header.dtype)
    flat: NDArray[Any] = np.frombuffer(content, dtype=header.dtype)
    return flat.reshape(header.shape, order="F" if header.columns_first else "C")
