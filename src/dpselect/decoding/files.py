"""Bytes of files under limits: whole, in lines, and unpacked."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from dpselect.decoding.limits import DecodingLimits, LimitError, shown_bytes
from dpselect.errors import ContentError, missing_extra

__all__ = ["lines_of", "read_content", "unpacked"]

_CHUNK = 1 << 16
_UNPACKS = "unpacks to more than"


def read_content(path: Path, limits: DecodingLimits) -> bytes:
    """The bytes of a file. Raises `LimitError` for more than the limit, and `OSError`."""
    with path.open("rb") as file:
        content = file.read(limits.size + 1)
    limits.check_size(len(content), path.name)
    return content


def lines_of(path: Path, limits: DecodingLimits) -> Iterator[bytes]:
    """The lines of a file one by one, without their ends, blank ones too. Raises `LimitError` and `OSError`."""
    size, most, longest = 0, limits.size, limits.line
    with path.open("rb") as file:
        read = partial(file.readline, longest + 2)
        for line in iter(read, b""):
            size += len(line)
            if size > most:
                limits.check_size(size, path.name)
            line = line.rstrip(b"\r\n")
            if len(line) > longest:
                raise LimitError(f"{path.name} has a line of more than {shown_bytes(longest)}")
            yield line


def unpacked(path: Path, limits: DecodingLimits | None = None) -> IO[bytes]:
    """A file's content, decompressed when its name ends in `.gz`, or in `.zst`, which needs pyarrow.

    With limits, reading on raises `LimitError` as soon as the file or what is unpacked of it is larger, and
    `ContentError` for what is no such archive. Without, that raises `EOFError`, `zlib.error` and `OSError`, as `gzip`
    does.
    """
    if path.suffix.lower() == ".zst":
        file = cast(BinaryIO, io.BufferedReader(_Zstandard(path), _CHUNK))
        if limits is None:
            return file
        limits.check_size(path.stat().st_size, path.name)
        return cast(IO[bytes], io.BufferedReader(_Counted(file, limits.decoded, path.name, _UNPACKS), _CHUNK))
    packed = path.suffix.lower() == ".gz"
    if packed and limits is None:
        return cast(IO[bytes], gzip.open(path, "rb"))  # decodes: private rows, of which no size may make it fail
    file = path.open("rb")
    if limits is not None:
        file = cast(BinaryIO, io.BufferedReader(_Counted(file, limits.size, path.name, "is larger than"), _CHUNK))
    if not packed or limits is None:
        return file
    opened = cast(BinaryIO, gzip.GzipFile(fileobj=file, mode="rb"))  # decodes: read under the limits
    counted = _Counted(opened, limits.decoded, path.name, _UNPACKS, below=file)
    return cast(IO[bytes], io.BufferedReader(counted, _CHUNK))


class _Zstandard(io.RawIOBase):
    """Return the content of a Zstandard archive. One that is damaged or ends early raises `EOFError`, as gzip's do."""

    def __init__(self, path: Path) -> None:
        try:
            import pyarrow
        except ImportError:
            raise missing_extra("parquet", "reading .zst") from None
        path.stat()  # for an error that names it
        self._stream = pyarrow.input_stream(str(path), compression="zstd")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = None
        with suppress(OSError):  # whose words are not passed on
            piece = self._stream.read(len(buffer))
        if piece is None:
            raise EOFError
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


class _Counted(io.RawIOBase):
    """A stream that refuses to give more than so many bytes."""

    def __init__(self, stream: BinaryIO, limit: int, name: str, says: str, *, below: BinaryIO | None = None) -> None:
        self._stream, self._below, self._left = stream, below, limit
        self._name = name
        self._refusal = f"{name} {says} {shown_bytes(limit)}"

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            count = self._stream.readinto(buffer)  # type: ignore[attr-defined]
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise ContentError(f"{self._name} is no archive of its kind, or is damaged") from None
        self._left -= count
        if self._left < 0:
            raise LimitError(self._refusal)
        return int(count)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            if self._below is not None:
                self._below.close()
        super().close()
