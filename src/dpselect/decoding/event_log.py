"""The event log of an offline Weights & Biases run: records in blocks, each a message of Protocol Buffers.

The blocks are those of LevelDB's log, with a header of seven bytes before the first. Only the wire format is read, so
a field that a later version adds is one more number.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from dpselect.decoding.files import read_content
from dpselect.decoding.limits import DecodingLimits, LimitError
from dpselect.errors import ContentError

__all__ = ["EVENT_LOG", "Message", "event_records", "message_of"]

Message = dict[int, list[int | bytes]]
"""The values of each field by its number: integers, and bytes for texts and inner messages."""

EVENT_LOG: Final = b":W&B"
"""The first bytes of a file."""
_HEADER: Final = 7
_BLOCK: Final = 1 << 15
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_WIDTHS: Final = {1: 8, 5: 4}
"""Bytes of the wire types of fixed width."""


def event_records(path: Path, limits: DecodingLimits) -> Iterator[bytes]:
    """The records of a log. A last one whose writing stopped is left out.

    Raises `LimitError` for a file beyond the limits, `ContentError` for one that is damaged, and `OSError`.
    """
    content = read_content(path, limits)
    if not content.startswith(EVENT_LOG) or len(content) < _HEADER:
        raise ContentError(f"{path.name} is not the log of a Weights & Biases run")
    at, parts = _HEADER, list[bytes]()
    for number in count():
        if number > limits.entries:
            raise LimitError(f"{path.name} has more than {limits.entries} records")
        left = _BLOCK - at % _BLOCK
        if left < _HEADER:
            at += left
        head = content[at : at + _HEADER]
        size, kind = int.from_bytes(head[4:6], "little"), head[6:]
        data = content[at + _HEADER : at + _HEADER + size]
        if len(head) < _HEADER or len(data) < size:
            return
        if zlib.crc32(kind + data) != int.from_bytes(head[:4], "little"):
            raise ContentError(f"{path.name} is damaged: a record has another checksum")
        at += _HEADER + size
        if kind[0] not in (_WHOLE, _FIRST, _MIDDLE, _LAST) or (kind[0] in (_WHOLE, _FIRST)) == bool(parts):
            raise ContentError(f"{path.name} is damaged: its records are out of order")
        parts.append(data)
        if kind[0] in (_WHOLE, _LAST):
            yield b"".join(parts)
            parts = []


def message_of(content: bytes, limits: DecodingLimits, what: str) -> Message:
    """The fields of a message. Raises `LimitError` and `ContentError`.

    >>> from dpselect.decoding.limits import DOCUMENT
    >>> message_of(bytes([8, 150, 1, 18, 2, 104, 105]), DOCUMENT, "the message")
    {1: [150], 2: [b'hi']}
    """
    found: Message = {}
    at, fields = 0, 0
    while at < len(content):
        fields += 1
        if fields > limits.entries:
            raise LimitError(f"{what} has more than {limits.entries} fields")
        tag, at = _integer(content, at, what)
        kind = tag & 7
        value: int | bytes
        if kind == 0:
            value, at = _integer(content, at, what)
        else:
            if kind == 2:
                size, at = _integer(content, at, what)
            elif kind in _WIDTHS:
                size = _WIDTHS[kind]
            else:
                raise ContentError(f"{what} is no message of Protocol Buffers")
            value = content[at : at + size]
            if len(value) < size:
                raise ContentError(f"{what} is truncated")
            at += size
        found.setdefault(tag >> 3, []).append(value)
    return found


def _integer(content: bytes, at: int, what: str) -> tuple[int, int]:
    """The integer at a position, of ten bytes at most, and the position behind it."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(content):
            raise ContentError(f"{what} is truncated")
        byte = content[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
    raise ContentError(f"{what} is no message of Protocol Buffers")
