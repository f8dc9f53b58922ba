"""TOML under limits: nesting, dotted keys, digits and entries are counted before it is decoded.

Python's decoder is recursive in values, quadratic in the parts of a dotted key, and unbounded in the digits of a
number.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

import numpy as np

from dpselect.decoding.limits import STUDY, DecodingLimits, LimitError
from dpselect.errors import ContentError

__all__ = ["toml_of"]

_TEXTS: Final = re.compile(
    r'"""(?:[^\\"]|\\.|"(?!""))*+"{3,5}'
    r"|'''(?:[^']|'(?!''))*+'{3,5}"
    r'|"(?:[^\\"\n]|\\.)*+"'
    r"|'[^'\n]*+'"
    r"|\#[^\n]*+",
    re.DOTALL,
)
_SIGNS: Final = frozenset(map(ord, "[]{},.=\n"))
_OTHER: Final = bytes(set(range(256)) - _SIGNS)
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")


def toml_of(content: bytes, what: str, *, limits: DecodingLimits = STUDY) -> dict[str, Any]:
    """The tables of a TOML document.

    Raises `LimitError` for a document beyond the limits and `ContentError`, with the line, for what is not TOML in
    UTF-8.

    >>> toml_of(b'a.b = [1, "x"]', "the study")
    {'a': {'b': [1, 'x']}}
    """
    limits.check_size(len(content), what)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise ContentError(f"{what} is not UTF-8 text") from None
    _check(text.replace("\r\n", "\n"), limits, what)
    try:
        return tomllib.loads(text)  # decodes: after the checks above
    except tomllib.TOMLDecodeError as error:
        raise ContentError(f"{what} is not valid TOML: {error}{_quoted(text, error)}") from None
    except (ValueError, RecursionError, OverflowError):
        raise ContentError(f"{what} is not valid TOML") from None


def _quoted(text: str, error: tomllib.TOMLDecodeError) -> str:
    """The end of an error for a line such as `name = people` or `name: people`: the same as TOML writes it."""
    number = re.search(r"at line (\d+)", str(error))
    line = text.splitlines()[int(number[1]) - 1] if number else ""
    found = re.fullmatch(r"\s*([\w-]{1,40})\s*[:=]\s*[\"']?([\w ./-]{1,40}?)[\"']?\s*", line)
    return f'. Write {found[1]} = "{found[2]}"' if found else ""


def _check(text: str, limits: DecodingLimits, what: str) -> None:
    bare = _TEXTS.sub('""', text)  # texts and comments are gone: what is left are keys, numbers and signs
    if re.search(rf"(?<![0-9A-Fa-f])[0-9A-Fa-f]{{{limits.digits + 1}}}", bare.replace("_", "")):
        raise LimitError(f"{what} has a number of more than {limits.digits} digits")
    signs = bare.encode().translate(None, _OTHER)
    if b"." * limits.depth in signs:
        raise LimitError(f"{what} has a key of more than {limits.depth} parts")
    if signs.count(b"=") + signs.count(b",") + signs.count(b"[") > limits.entries:
        raise LimitError(f"{what} has more than {limits.entries} entries")
    steps = np.frombuffer(signs.translate(_STEPS, b".,=\n"), dtype=np.int8)
    if len(steps) and steps.cumsum(dtype=np.int64).max() > limits.depth:
        raise LimitError(f"{what} is nested more than {limits.depth} deep")
