"""A data dictionary: what is public about the columns of a table, in a CSV file that people keep beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import shorten
from typing import Final

from dpselect.decoding.limits import STUDY
from dpselect.errors import ArgumentError, ContentError
from dpselect.study.draft import DraftedColumn, Facts
from dpselect.tables.csv_text import csv_header, csv_rows
from dpselect.tables.header import absent

__all__ = ["described_columns", "described_label", "read_dictionary"]

_LONGEST: Final = 120
"""Characters of a description that stand in the draft, on the line of its column."""

_NAMES: Final = {
    "name": ("name", "variable", "column", "field"),
    "kind": ("kind", "type"),
    "description": ("description", "label"),
    "low": ("low", "min", "minimum"),
    "high": ("high", "max", "maximum"),
    "categories": ("categories", "values", "levels"),
}
"""The columns of a dictionary, each by the names that it may have."""
_KINDS: Final = {
    "number": ("number", "numeric", "integer", "int", "float", "double", "decimal", "real"),
    "boolean": ("boolean", "bool", "logical", "binary"),
    "category": ("category", "categorical", "factor", "nominal", "ordinal", "enum"),
    "date": ("date", "datetime", "timestamp", "time stamp"),
    "duration": ("duration", "interval", "timedelta", "difftime"),
    "text": ("text", "free text", "comment"),
    "none": ("none", "id", "identifier", "key"),
}
"""The kinds of a draft, each by the words that mean it; "string" may be a category or a text, and means neither."""


def read_dictionary(path: Path) -> dict[str, DraftedColumn]:
    """The dictionary's facts of each column, by name.

    A row describes one column: its `name`, and if they are known its `kind`, `description`, `low` and `high`, and
    its `categories` with `|` between them. Raises `ArgumentError` that names the row and the column of the file: all of
    it is public.
    """
    try:
        header = [name.lower() for name in csv_header(path, limits=STUDY)]
        rows = list(csv_rows(path, limits=STUDY))
    except OSError as error:
        raise ArgumentError(f"--dictionary: {str(path)!r} cannot be read: {error.strerror}") from None
    except ContentError as error:
        raise ArgumentError(f"--dictionary: {error}") from None
    places = {
        key: next((header.index(name) for name in names if name in header), None) for key, names in _NAMES.items()
    }
    if places["name"] is None:
        raise ArgumentError(f"--dictionary: {path.name} needs a column name: {absent(['name'], header)}")
    found: dict[str, DraftedColumn] = {}
    for row in filter(None, rows):
        cells = {key: "" if place is None or place >= len(row) else row[place].strip() for key, place in places.items()}
        if cells["name"] in found:
            raise ArgumentError(f"--dictionary: {path.name} describes {cells['name']!r} more than once")
        found[cells["name"]] = _described(cells, path)
    return found


def _described(cells: Mapping[str, str], path: Path) -> DraftedColumn:
    name, word = cells["name"], cells["kind"].lower()
    kind = next((kind for kind, words in _KINDS.items() if word in words), "")
    if word and word != "string" and not kind:
        raise ArgumentError(
            f"--dictionary: {path.name}, row {name!r}: kind {cells['kind']!r} is none of {', '.join(_KINDS)}"
        )
    bounds = (cells["low"], cells["high"])
    if any(bounds) and not all(bounds):
        raise ArgumentError(f"--dictionary: {path.name}, row {name!r}: give both low and high, or neither")
    categories = tuple(word.strip() for word in cells["categories"].split("|")) if cells["categories"] else ()
    if not kind:
        kind = "category" if categories else "number" if all(bounds) else ""
    why = shorten("".join(letter if letter.isprintable() else " " for letter in cells["description"]), _LONGEST)
    return DraftedColumn(name, kind, why, bounds if all(bounds) else (), categories)


def described_columns(columns: Sequence[DraftedColumn], dictionary: Mapping[str, DraftedColumn]) -> list[DraftedColumn]:
    """The columns as the dictionary describes them. Facts that it does not state stay as they were."""
    found = []
    for column in columns:
        described = dictionary.get(column.name)
        if described is not None:
            why = described.why or ("by the dictionary" if described.kind else column.why)
            column = replace(described, kind=described.kind or column.kind, why=why)
        found.append(column)
    return found


def described_label(facts: Facts, described: DraftedColumn | None) -> Facts:
    """The facts with what the dictionary says of the label: its classes, or its bounds for a regression."""
    if described is None:
        return facts
    if described.categories and facts.task != "regression":
        return replace(facts, task="classification", classes=described.categories)
    if described.bounds and facts.task != "classification":
        return replace(facts, task="regression", label_bounds=described.bounds)
    return facts
