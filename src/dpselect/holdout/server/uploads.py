"""The body of a submission: a CSV file, JSON lines or one JSON object. Errors name columns and fields only."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from dpselect.decoding.json_text import JsonFeed
from dpselect.decoding.limits import SUBMISSION, LimitError
from dpselect.errors import ArgumentError, ContentError, public_text
from dpselect.holdout.files import read_columns, submitted
from dpselect.holdout.gate.files import read_outcomes

__all__ = ["MEDIA", "Feed", "Upload", "feed_of"]

_Read = TypeVar("_Read")
MEDIA: Final = {"text/csv": ".csv", "application/x-ndjson": ".jsonl", "application/json": ".json"}
"""What bodies are taken, and how a file with the same content would be called."""


class Feed:
    """A body that arrives in pieces. A JSON body is refused as soon as what has come would take too much memory.

    >>> feed = feed_of("text/csv")
    >>> feed.add(b"id,")
    >>> feed.add(b"prediction")
    >>> feed.size, feed.content()
    (13, b'id,prediction')
    """

    def __init__(self, json: JsonFeed | None) -> None:
        self._json, self._table, self.size = json, bytearray(), 0

    def add(self, piece: bytes) -> None:
        """Take the next piece. Raises `LimitError`."""
        self.size += len(piece)
        if self._json is None:
            self._table += piece
        else:
            self._json.add(piece)

    def content(self) -> Any:
        """The value of a JSON body, the bytes of another one. It can be read once. Raises `ContentError`."""
        if self._json is not None:
            return self._json.value()
        content = bytes(self._table)
        self.close()
        return content

    def close(self) -> None:
        """Let go of what has come."""
        self._json, self._table = None, bytearray()


def feed_of(media: str) -> Feed:
    """A feed for a body of this kind."""
    return Feed(JsonFeed(SUBMISSION, "the body", unique=True) if MEDIA[media] == ".json" else None)


class Upload:
    """One body with the options beside it: in the query, or in a JSON object itself, where null is none."""

    def __init__(self, body: bytes | Feed, media: str, query: Mapping[str, str]) -> None:
        self._suffix = MEDIA[media]
        if isinstance(body, bytes):
            whole, body = body, feed_of(media)
            body.add(whole)
        self._table: bytes | None = None
        self._options: dict[str, Any] = dict(query)
        if self._suffix == ".json":
            fields = {name: value for name, value in _object(body).items() if value is not None}
            if not query.keys().isdisjoint(fields):
                raise ArgumentError("an option stands both in the query and in the body")
            self._options |= fields
        else:
            self._table = body.content()

    def predictions(self, id_column: str, rows: int) -> tuple[list[str], list[str]]:
        """Ids and predictions, from the columns of these names or from the field "predictions"."""
        if self._table is None:
            given = self._mapping("predictions")
            if given is None:
                raise ContentError('the field "predictions" must hold an object: a prediction for each id')
            if not all(isinstance(value, (str, int, float)) for value in given.values()):
                raise ContentError('the field "predictions" must hold a text or a number for each id')
            ids, values = list(given), [str(value) for value in given.values()]
        elif self._suffix == ".csv":
            columns = [id_column, "prediction"]
            ids, values = self._read(lambda path: read_columns(path, columns, limits=submitted(rows)))
        else:
            raise ContentError("predictions must be a CSV file or a JSON object")
        with suppress(UnicodeEncodeError):
            "".join((*ids, *values)).encode()
            return ids, values
        # raised here, so that no traceback shows the text
        raise ContentError("ids and predictions must be text that can be written in UTF-8")

    def outcomes(self, field: str, id_column: str, columns: Sequence[str], rows: int) -> Mapping[str, Any] | None:
        """Outcomes by id, from a field, or those of the candidate from the columns of these names."""
        if self._table is None:
            given = self._mapping(field)
            if given is None and field == "outcomes":
                raise ContentError(
                    'the field "outcomes" must hold an object: an outcome, or a list of them, for each id'
                )
            return given
        if field != "outcomes":
            return None
        return self._read(lambda path: read_outcomes(path, id_column, columns, limits=submitted(rows)))

    def number(self, option: str) -> float | None:
        """A finite number, or None where the option is absent."""
        given = self._options.pop(option, None)
        if given is None:
            return None
        found = math.nan
        if isinstance(given, (str, int, float)) and not isinstance(given, bool) and "_" not in str(given):
            with suppress(ValueError, OverflowError):
                found = float(given)
        if not math.isfinite(found):
            raise ArgumentError(f"{option} must be a finite number")
        return found

    def stake(self) -> float | str | None:
        """A number or "all", or None."""
        return self._options.pop("stake") if self._options.get("stake") == "all" else self.number("stake")

    def text(self, option: str) -> str | None:
        """A short printable text, or None."""
        given = self._options.pop(option, None)
        if given is not None and not isinstance(given, str):
            raise ArgumentError(f"{option} must be text")
        return None if given is None else public_text(option, given)

    def check_taken(self) -> None:
        """Raise `ArgumentError` for an option that no one has asked for."""
        if self._options:
            raise ArgumentError("the submission has an option or a field that is not taken here")

    def _mapping(self, field: str) -> dict[str, Any] | None:
        given = self._options.pop(field, None)
        if given is not None and not isinstance(given, dict):
            raise ContentError(f'the field "{field}" must hold an object with a value for each id')
        return given

    def _read(self, read: Callable[[Path], _Read]) -> _Read:
        """By what reads files."""
        with tempfile.TemporaryDirectory(prefix="dpselect-") as folder:
            path = Path(folder, f"submission{self._suffix}")
            path.write_bytes(self._table or b"")
            return read(path)


def _object(body: Feed) -> dict[str, Any]:
    found: Any = None
    try:
        found = body.content()
    except LimitError:
        raise  # which names a limit, and no content
    except ContentError:
        pass
    if not isinstance(found, dict):  # raised here, so that no traceback shows the text
        raise ContentError("the body must be a JSON object in UTF-8, no name in it twice")
    return found
