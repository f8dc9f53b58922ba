"""YAML under limits: maps, lists and texts. No tag is obeyed and no alias is followed."""

from __future__ import annotations

from typing import Any, Final

from dpselect.decoding.limits import STUDY, DecodingLimits, LimitError
from dpselect.errors import ContentError, missing_extra

__all__ = ["yaml_of"]

_OPEN: Final = b"[{"


def yaml_of(content: bytes, what: str, *, limits: DecodingLimits = STUDY) -> Any:
    """The value of a YAML document: dicts, lists and texts. Needs PyYAML (the extra `sweeps`).

    Every scalar stays the text that is in the file, and an empty one or `null` is None. The reader of a number parses
    it. An alias stays a text too (`*name`), so that a small document cannot represent a large value. Raises
    `LimitError` for a document beyond the limits. Raises `ContentError` for other bytes than YAML in UTF-8, for a
    second document and for a key that is given twice or is not a text. Raises `MissingExtraError` without PyYAML.

    >>> from importlib.util import find_spec
    >>> yaml_of(b"a: 1.0\\nb: [x, null]", "the file") if find_spec("yaml") else {"a": "1.0", "b": ["x", None]}
    {'a': '1.0', 'b': ['x', None]}
    """
    try:
        import yaml
    except ImportError:
        raise missing_extra("sweeps", "reading YAML") from None
    limits.check_size(len(content), what)
    # PyYAML's scanner is quadratic in brackets, the only nesting that needs no indentation
    if sum(content.count(sign) for sign in _OPEN) > limits.entries:
        raise LimitError(f"{what} has more than {limits.entries} entries")
    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    builder = _Builder(limits, what)
    try:
        text = content.decode("utf-8-sig")
        for event in yaml.parse(text, Loader=loader):  # decodes: events only, under the limits of the builder
            builder.take(event)
    except (yaml.YAMLError, UnicodeError, RecursionError):
        raise ContentError(f"{what} is not YAML in UTF-8") from None
    return builder.value


class _Builder:
    """The value that events describe, as far as the limits allow."""

    def __init__(self, limits: DecodingLimits, what: str) -> None:
        self._limits, self._what = limits, what
        self._open: list[Any] = []
        self._keys: list[Any] = []
        self._entries = self._documents = 0
        self.value: Any = None

    def take(self, event: Any) -> None:
        """Take the next event of PyYAML."""
        match type(event).__name__:
            case "DocumentStartEvent":
                self._documents += 1
                if self._documents > 1:
                    raise ContentError(f"{self._what} holds more than one document")
            case "ScalarEvent":
                empty = event.value in ("", "~", "null", "Null", "NULL") and event.implicit[0]
                self._add(None if empty else event.value)
            case "AliasEvent":
                self._add(f"*{event.anchor}")
            case "MappingStartEvent":
                self._enter({})
            case "SequenceStartEvent":
                self._enter([])
            case "MappingEndEvent" | "SequenceEndEvent":
                done = self._open.pop()
                self._keys.pop()
                self._place(done)

    def _enter(self, container: Any) -> None:
        if len(self._open) >= self._limits.depth:
            raise LimitError(f"{self._what} is nested more than {self._limits.depth} deep")
        self._count()
        self._open.append(container)
        self._keys.append(None)

    def _add(self, scalar: str | None) -> None:
        self._count()
        self._place(scalar)

    def _count(self) -> None:
        self._entries += 1
        if self._entries > self._limits.entries:
            raise LimitError(f"{self._what} has more than {self._limits.entries} entries")

    def _place(self, value: Any) -> None:
        if not self._open:
            self.value = value
            return
        container = self._open[-1]
        if isinstance(container, list):
            container.append(value)
        elif self._keys[-1] is None:
            if not isinstance(value, str) or value in container:
                raise ContentError(f"{self._what} has a key that is not a text, or one that is given twice")
            self._keys[-1] = value
        else:
            container[self._keys[-1]] = value
            self._keys[-1] = None
