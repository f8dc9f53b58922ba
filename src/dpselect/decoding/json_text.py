"""JSON under limits: what a document stands for is estimated by counting bytes, before it is decoded.

Python's decoder makes 44 bytes out of one at worst (lists of one list), so that a document of a megabyte is safe as it
is. Of a larger one the values are counted first.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpselect.decoding.files import read_content
from dpselect.decoding.limits import MIB, DecodingLimits, LimitError
from dpselect.errors import ContentError

__all__ = ["JsonFeed", "json_file", "json_of"]

_MARK: Final = b"\xef\xbb\xbf"
_SAFE: Final = MIB
_SHORT: Final = 4096
"""Bytes of a line, of which counting brackets is quicker than nesting them."""
_MEMORY_FACTOR: Final = 8
_MEMORY: Final = 64 * MIB
"""Bytes that any document may take, beside `_MEMORY_FACTOR` for each of its own."""
_LIST, _MEMBER, _TEXT, _VALUE = 120, 112, 64, 40
"""Bytes that one takes in memory: a list or a table, a place in a table, a text and a number in a list."""
_PLAIN: Final = json.JSONDecoder()  # decodes: what `json_of` has checked
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b'[]{}"'))
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")


def json_of(content: str | bytes, limits: DecodingLimits, what: str, *, unique: bool = False) -> Any:
    """The value of a JSON document.

    `what` is what errors call it. With `unique`, a table with one name twice is refused. Raises `LimitError` for a
    document beyond the limits, and `ContentError` for what is not JSON in UTF-8.

    >>> from dpselect.decoding.limits import DOCUMENT
    >>> json_of('{"a": [1, 2.5]}', DOCUMENT, "the release")
    {'a': [1, 2.5]}
    """
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    size = len(raw)
    if size > limits.size:
        limits.check_size(size, what)
    if size > _SHORT or size > limits.entries or raw.count(b"[") + raw.count(b"{") > limits.depth:
        _check(raw, limits, what)
    try:
        text = content if isinstance(content, str) else str(raw.removeprefix(_MARK), "utf-8")
        if size > _SAFE:
            _check_memory(_weight(raw), size, sys.getsizeof(text), what)
        long = size > limits.digits and _long_digits(raw, limits.digits + 1)  # of a number, or within a text
        if limits.finite or long or unique:
            return json.loads(text, **_hooks(limits, what, long=long, unique=unique))  # decodes: after the checks above
        return _PLAIN.decode(text)
    except LimitError:
        raise
    except (ValueError, RecursionError):
        pass
    raise ContentError(f"{what} is not JSON in UTF-8")  # here, so that no traceback shows the content


def json_file(path: Path, limits: DecodingLimits, *, unique: bool = False) -> Any:
    """The value of a JSON file. Raises as `json_of` does, and `OSError`."""
    return json_of(read_content(path, limits), limits, path.name, unique=unique)


class JsonFeed:
    """A JSON document that arrives in pieces, and is refused as soon as what has come is beyond the limits.

    >>> from dpselect.decoding.limits import DOCUMENT
    >>> feed = JsonFeed(DOCUMENT, "the body")
    >>> feed.add(b'{"a":')
    >>> feed.add(b" 1}")
    >>> feed.value()
    {'a': 1}
    """

    def __init__(self, limits: DecodingLimits, what: str, *, unique: bool = False) -> None:
        self._limits, self._what, self._unique = limits, what, unique
        self._content, self._weight, self._entries = bytearray(), 0, 0

    def add(self, piece: bytes) -> None:
        """Take the next piece. Raises `LimitError`."""
        self._limits.check_size(len(self._content) + len(piece), self._what)
        self._content += piece
        self._weight += _weight(piece)
        self._entries += _entries(piece)
        _check_memory(self._weight, len(self._content), len(self._content), self._what)
        _check_entries(self._entries, self._limits, self._what)

    def value(self) -> Any:
        """The value, once all has come. Raises as `json_of` does."""
        content, self._content = bytes(self._content), bytearray()
        return json_of(content, self._limits, self._what, unique=self._unique)


def _check(raw: bytes, limits: DecodingLimits, what: str) -> None:
    """Depth and entries; a line of a file is mostly too short for both."""
    if _depth(raw) > limits.depth:
        raise LimitError(f"{what} is nested more than {limits.depth} deep")
    if len(raw) > limits.entries:
        _check_entries(_entries(raw), limits, what)


def _check_entries(entries: int, limits: DecodingLimits, what: str) -> None:
    if entries > limits.entries:
        raise LimitError(f"{what} has more than {limits.entries} values")


def _check_memory(weight: int, size: int, text: int, what: str) -> None:
    if weight + text > _MEMORY_FACTOR * size + _MEMORY:
        raise LimitError(f"{what} holds too many small values for its size: it would take {weight // MIB} MiB")


def _entries(raw: bytes) -> int:
    """Values of lists and tables, at most: commas within texts count too."""
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{")


def _weight(raw: bytes) -> int:
    """Bytes of memory that the values take, at most: signs within texts count too."""
    lists = raw.count(b"[") + raw.count(b"{")
    return lists * _LIST + raw.count(b":") * _MEMBER + raw.count(b'"') // 2 * _TEXT + raw.count(b",") * _VALUE


def _depth(raw: bytes) -> int:
    """How deeply lists and tables are nested."""
    if b"\\" in raw:  # pairs from the left, as they are read
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    # a text without brackets leaves two quotes; without two that touch, all others still open or close a text
    left = raw.translate(None, _NO_BRACKETS).replace(b'""', b"")
    if b'"' in left:
        left = b"".join(left.split(b'"')[::2])
    steps, now, most = np.frombuffer(left.translate(_STEPS), dtype=np.int8), 0, 0
    for start in range(0, len(steps), _SAFE):
        levels = steps[start : start + _SAFE].cumsum(dtype=np.int64)
        most, now = max(most, now + int(levels.max())), now + int(levels[-1])
    return most


def _long_digits(raw: bytes, count: int) -> bool:
    """Whether there are so many digits in a row: every row of them has one at a multiple of `count`."""
    at = count - 1
    while at < len(raw):
        if not 48 <= raw[at] <= 57:
            at += count
            continue
        first = at
        while first > 0 and 48 <= raw[first - 1] <= 57 and at - first < count:
            first -= 1
        last = at
        while last + 1 < len(raw) and 48 <= raw[last + 1] <= 57 and last - first < count:
            last += 1
        if last - first + 1 >= count:
            return True
        at = last + count
    return False


def _hooks(limits: DecodingLimits, what: str, *, long: bool, unique: bool) -> dict[str, Any]:
    """What the decoder calls for numbers and for tables; nothing where it may take them as they are."""
    hooks: dict[str, Any] = {"object_pairs_hook": _once} if unique else {}
    if limits.finite:
        hooks |= {"parse_float": _finite, "parse_constant": _finite, "parse_int": _whole}
    if long:
        whole = hooks.get("parse_int", int)

        def bounded(text: str) -> int:
            if len(text) > limits.digits:
                raise LimitError(f"{what} has a number of more than {limits.digits} digits")
            return int(whole(text))

        hooks["parse_int"] = bounded
    return hooks


def _finite(text: str) -> float:
    found = float(text)
    if not math.isfinite(found):
        raise LimitError("a number of the document is not finite, or beyond the range of float64")
    return found


def _whole(text: str) -> int:
    _finite(text)
    return int(text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found
