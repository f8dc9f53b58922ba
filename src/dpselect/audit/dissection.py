"""One output taken apart into named features: types, keys, order, lengths, text and the numbers within.

A mechanism can leak in any part of what it returns. `dissect` names the parts, and an audit looks for an event in each.
A feature is a number, or a text that stands for a value without an order. All of them are functions of the one output.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePath
from typing import Any, Final

import numpy as np

from dpselect.audit.outputs import Exact, as_plain_numbers
from dpselect.capabilities import field_values

__all__ = ["Feature", "Raised", "dissect"]

Feature = tuple[str, float | str]

_DEEPEST: Final = 6  # levels of nesting
_MOST: Final = 600  # features of one output; what comes later is left to its `repr`
_ITEMS: Final = 24  # of a sequence or mapping, one by one; the others count in sums and extremes
_LONGEST_ORDER: Final = 8  # a longer order is told by whether it rises or falls
_FIRST, _LAST, _IN_TEXT, _WORDS, _TOKENS = 12, 6, 8, 16, 40
_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WORD: Final = re.compile(r"[^\W\d_]+")
_CLASSES: Final = tuple(
    map(re.compile, (r"[a-z]", r"[A-Z]", r"[0-9]", r"[ ]", r"[\t\r\n]", r"[^\w\s]", r"[^\x00-\x7f]"))
)


@dataclass(frozen=True)
class Raised:
    """An output: the call ended in an exception of this type. The message is not looked at."""

    type_name: str

    def __repr__(self) -> str:
        return f"raised {self.type_name}"

    __str__ = __repr__


def dissect(value: Any) -> list[Feature]:
    """Return the features of an output, as pairs of a name and a value.

    >>> found = dict(dissect((2.5, {"b": "x7"})))
    >>> found["output[0]"], found["output[1]['b']"], found["number 0 in output[1]['b']"]
    (2.5, 'x7', 7.0)
    """
    found: list[Feature] = []
    try:
        _whole(value, found)
    except Exception:  # an output of some class that does not let itself be looked at: what was found so far counts
        found.append(("structure of output", "not readable"))
    return found[:_MOST]


def _whole(value: Any, found: list[Feature]) -> None:
    if isinstance(value, Exact):
        structure = _part(value.value, "output", 0, found)
    elif (numbers := as_plain_numbers(value)) is not None:  # NumPy may have made one type of several
        structure = _part(numbers, "output", 0, found)
    else:
        if isinstance(value, str):  # NumPy fills up with zeros
            value = value.rstrip("\0")
        elif isinstance(value, bytes):
            value = value.rstrip(b"\0")
        structure = _part(tuple(value) if isinstance(value, list) else value, "output", 0, found)
    found.append(("structure of output", structure))
    found.append(("depth of output", float(_depth(structure))))


@lru_cache(maxsize=1024)
def _depth(structure: str) -> int:
    deepest = depth = 0
    for letter in structure:
        depth += (letter == "(") - (letter == ")")
        deepest = max(deepest, depth)
    return deepest


def _part(value: Any, name: str, depth: int, found: list[Feature]) -> str:
    """Append the features of one part, and return its structure: the tree of its types."""
    kind = type(value).__name__
    found.append((f"type of {name}", kind))
    if len(found) >= _MOST or depth > _DEEPEST:
        return kind
    if value is None or isinstance(value, (bool, np.bool_)):
        found.append((name, str(value)))
    elif isinstance(value, Enum):
        found.append((name, value.name))
    elif isinstance(value, (int, float, np.integer, np.floating, Decimal, Fraction)):
        _number(value, name, found)
    elif isinstance(value, (complex, np.complexfloating)):
        _number(value.real, f"{name}.real", found)
        _number(value.imag, f"{name}.imag", found)
    elif isinstance(value, str):
        _text(value, name, depth, found)
    elif isinstance(value, (bytes, bytearray, memoryview)):
        _text(bytes(value).decode("latin-1"), name, depth, found)
    elif isinstance(value, np.ndarray):
        _array(value, name, depth, found)
    elif isinstance(value, BaseException):
        _text(str(value), f"message of {name}", depth, found)
    elif isinstance(value, Raised):
        found.append((name, value.type_name))
    elif isinstance(value, (datetime, date, time, timedelta, np.datetime64, np.timedelta64, PurePath)):
        _text(str(value), name, depth, found)
    elif (named := _attributes(value)) is not None:
        inner = [f"{key}:{_part(part, f'{name}.{key}', depth + 1, found)}" for key, part in named.items()]
        return f"{kind}({','.join(inner)})"
    elif isinstance(value, Mapping):
        return f"{kind}({_mapping(value, name, depth, found)})"
    elif isinstance(value, (set, frozenset)):
        return f"{kind}({_set(value, name, depth, found)})"
    elif isinstance(value, Sequence):
        return f"{kind}({_sequence(value, name, depth, found)})"
    else:
        _other(value, name, depth, found)
    return kind


def _number(value: Any, name: str, found: list[Feature]) -> None:
    """Its size, its written form (decimals, sign of zero, kind of NaN) and its last digit."""
    number = _as_float(value)
    found.append((name, number))
    if math.isnan(number):
        found.append((f"form of {name}", f"nan {struct.pack('>d', number).hex()}"))
        return
    if isinstance(value, np.generic):
        value = value.item()
    if number == 0.0 or math.isinf(number):
        found.append((f"form of {name}", str(number)))
        return
    written = str(value) if abs(number) < 2.0**200 else repr(number)  # no more digits than a float shows
    whole, _, decimals = written.partition(".")
    found.append((f"form of {name}", f"{len(decimals)} decimals{' e' * ('e' in written)}"))
    found.append((f"last digit of {name}", written[-1]))
    if not decimals and abs(number) >= 2.0**53:
        found.append((f"digits of {name}", whole[-6:]))


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except (OverflowError, ValueError):
        return math.inf if value > 0 else -math.inf


def _text(text: str, name: str, depth: int, found: list[Feature]) -> None:
    """The text, its length, its shape without digits, its first and last characters, words, tokens and numbers."""
    found.append((name, text))
    found.append((f"length of {name}", float(len(text))))
    found.append((f"characters of {name}", "".join("01"[bool(kind.search(text))] for kind in _CLASSES)))
    found.append((f"shape of {name}", re.sub(r"\d+", "0", text)))
    found.append((f"lines of {name}", float(text.count("\n"))))
    for place, letter in enumerate(text[:_FIRST]):
        found.append((f"character {place} of {name}", letter))
    for place in range(1, min(_LAST, len(text)) + 1):
        found.append((f"character -{place} of {name}", text[-place]))
    numbers = _NUMBER.findall(text)
    found.append((f"numbers in {name}", float(len(numbers))))
    for place, number in enumerate(numbers[:_IN_TEXT]):
        found.append((f"number {place} in {name}", float(number)))
        whole, point, decimals = number.partition(".")
        sign, digits = whole.rstrip("0123456789"), whole.lstrip("+-")
        padded = "0" * (len(digits) > 1 and digits[0] == "0")
        found.append((f"form of number {place} in {name}", f"{sign}{padded}{point}{len(decimals)}"))
        found.append((f"last digit of number {place} in {name}", number[-1]))
    for word in sorted(set(_WORD.findall(text)))[:_WORDS]:
        found.append((f"word {word!r} in {name}", "yes"))
    tokens = text.split()
    for place, token in enumerate(tokens[:_TOKENS] if len(tokens) > 1 else ()):
        found.append((f"token {place} of {name}", token))
    if text[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            parsed = json.loads(text)  # decodes: an output of the audited mechanism, in the auditor's own process
            _part(parsed, f"JSON of {name}", depth + 1, found)


def _mapping(value: Mapping[Any, Any], name: str, depth: int, found: list[Feature]) -> str:
    keys = [repr(key) for key in value]
    found.append((f"length of {name}", float(len(keys))))
    found.append((f"keys of {name}", ",".join(sorted(keys))))
    found.append((f"order of keys of {name}", ",".join(keys)))
    _order([*value], f"keys of {name}", found)
    _totals([*value], f"keys of {name}", found)
    _order([*value.values()], f"values of {name}", found)
    _totals([*value.values()], f"values of {name}", found)
    inner = []
    for key, part in zip(keys[:_ITEMS], value.values(), strict=False):
        inner.append(f"{key}:{_part(part, f'{name}[{key}]', depth + 1, found)}")
    return ",".join(sorted(inner))


def _sequence(value: Sequence[Any], name: str, depth: int, found: list[Feature]) -> str:
    if isinstance(value, deque) and value.maxlen is not None:
        found.append((f"greatest length of {name}", float(value.maxlen)))
    value = list(value)  # not all of them have slices
    found.append((f"length of {name}", float(len(value))))
    _order(value, name, found)
    _totals(value, name, found)
    _members(value, name, found)
    inner = {_part(part, f"{name}[{place}]", depth + 1, found) for place, part in enumerate(value[:_ITEMS])}
    if len(value) > 1:
        _part(value[-1], f"{name}[-1]", depth + 1, found)
    return ",".join(sorted(inner))


def _set(value: Iterable[Any], name: str, depth: int, found: list[Feature]) -> str:
    items = list(value)
    found.append((f"length of {name}", float(len(items))))
    _members(items, name, found)
    _totals(items, name, found)
    inner: list[Feature] = []
    return ",".join(sorted({_part(part, name, depth + 1, inner) for part in items[:_ITEMS]}))


def _members(items: Sequence[Any], name: str, found: list[Feature]) -> None:
    """The labels that occur, how often the most frequent one does, and how many items repeat another."""
    shown = [repr(item) for item in items]
    distinct = set(shown)
    found.append((f"repeats in {name}", float(len(shown) - len(distinct))))
    if len(shown) <= _LONGEST_ORDER:
        found.append((f"members of {name}", ",".join(sorted(shown))))
        found.append((f"order of members of {name}", ",".join(shown)))
    labels = {text for text, item in zip(shown, items, strict=True) if not isinstance(item, (float, np.floating))}
    for text in sorted(labels)[:_ITEMS]:
        if len(text) <= 60:
            found.append((f"{text} in {name}", "yes"))


def _order(items: Sequence[Any], name: str, found: list[Feature]) -> None:
    """Whether it rises or falls, and the ranks of a short one."""
    if len(items) < 2:
        return
    try:
        steps = [(one < other) - (one > other) for one, other in pairwise(items)]
        signs = {int(step) for step in steps}
        ranks = sorted(range(len(items)), key=items.__getitem__) if len(items) <= _LONGEST_ORDER else []
    except (TypeError, ValueError):  # not comparable
        return
    found.append((f"order of {name}", ",".join(map(str, sorted(signs)))))
    if ranks:
        found.append((f"ranks of {name}", ",".join(map(str, ranks))))


def _totals(items: Sequence[Any], name: str, found: list[Feature]) -> None:
    numbers = [_as_float(item) for item in items if isinstance(item, (int, float, np.number)) and item is not True]
    if numbers and not any(map(math.isnan, numbers)):
        with suppress(ValueError):  # inf - inf
            found.append((f"sum of {name}", math.fsum(numbers) if all(map(math.isfinite, numbers)) else sum(numbers)))
        found.append((f"least of {name}", min(numbers)))
        found.append((f"greatest of {name}", max(numbers)))
    found.append((f"numbers in {name}", float(len(numbers))))


def _array(value: np.ndarray[Any, Any], name: str, depth: int, found: list[Feature]) -> None:
    found.append((f"dtype of {name}", str(value.dtype)))
    found.append((f"shape of {name}", str(value.shape)))
    found.append((f"size of {name}", float(value.size)))
    flags = value.flags
    found.append((f"layout of {name}", f"{flags.c_contiguous} {flags.f_contiguous} {flags.writeable}"))
    flat = value.ravel()
    if value.dtype.kind in "biuf" and value.size:
        numbers = flat.astype(np.float64)
        found.append((f"NaN in {name}", float(np.isnan(numbers).sum())))
        with np.errstate(all="ignore"):
            for how, total in (("sum", numbers.sum()), ("least", numbers.min()), ("greatest", numbers.max())):
                found.append((f"{how} of {name}", float(total)))
        steps = np.diff(numbers)
        found.append((f"order of {name}", f"{bool((steps >= 0).all())} {bool((steps <= 0).all())}"))
    for place, part in enumerate(flat[:_ITEMS].tolist()):
        if isinstance(part, (int, float)):
            _number(part, f"{name}[{place}]", found)
        else:
            _part(part, f"{name}[{place}]", depth + 1, found)


def _attributes(value: Any) -> dict[str, Any] | None:
    """The public attributes of a dataclass, a named tuple or a plain object."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: part for name, part in field_values(value).items() if not name.startswith("_")}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True))
    if isinstance(value, (Mapping, Sequence, set, frozenset, type)) or callable(value):
        return None
    held = getattr(value, "__dict__", None)
    public = {key: part for key, part in held.items() if not key.startswith("_")} if held else {}
    if not public and callable(table := getattr(value, "to_dict", None)):  # a data frame
        public = {"table": table()}
    return public or None


def _other(value: Any, name: str, depth: int, found: list[Feature]) -> None:
    shown = repr(value)
    if " at 0x" not in shown:  # where earlier draws left room in memory is no part of an output
        _text(shown, name, depth, found)
