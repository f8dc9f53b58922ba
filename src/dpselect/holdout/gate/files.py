"""Outcomes of tasks from files: CSV with a header, or one JSON object a line (`.jsonl`, `.ndjson`).

A task that stands in several rows has several repeats, and several columns are several graders. Errors name a file or a
column, never a value or a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpselect.decoding import DecodingLimits, LimitError, json_of, lines_of
from dpselect.decoding.limits import SUBMISSION
from dpselect.errors import ContentError
from dpselect.holdout.files import FORM, read_columns, texts, unique_ids
from dpselect.tables import CsvForm

__all__ = ["read_groups", "read_outcomes"]


def read_outcomes(
    path: Path,
    id_column: str,
    outcome_columns: Sequence[str],
    *,
    form: CsvForm = FORM,
    limits: DecodingLimits = SUBMISSION,
) -> dict[str, list[Any]]:
    """The outcomes of each task, as they stand there. Raises `ContentError` for a file that is not of this form."""
    found: dict[str, list[Any]] = {}
    for name, *values in _rows(path, [id_column, *outcome_columns], form, limits):
        found.setdefault(name, []).extend(values)
    unique_ids(list(found), id_column)
    return found


def read_groups(path: Path, id_column: str, cluster_column: str, *, form: CsvForm = FORM) -> dict[str, str]:
    """The cluster of each task. Raises `ContentError` where a task has two, or none."""
    found: dict[str, str] = {}
    for name, cluster in _rows(path, [id_column, cluster_column], form, SUBMISSION):
        if not (group := texts([cluster])[0]) or found.setdefault(name, group) != group:
            raise ContentError(f"column {cluster_column!r} must have one cluster for each task")
    return found


def _rows(path: Path, columns: Sequence[str], form: CsvForm, limits: DecodingLimits) -> list[list[Any]]:
    if path.suffix.lower() not in (".jsonl", ".ndjson"):
        return [list(row) for row in zip(*read_columns(path, columns, form=form, limits=limits), strict=True)]
    rows: list[list[Any]] = []
    for line in lines_of(path, limits):
        if len(rows) >= limits.entries:
            raise LimitError(f"{path.name} has more than {limits.entries} rows")
        if line and line.strip(b" \t\xef\xbb\xbf"):
            rows.append(_fields(line, path, columns))
    if not rows:
        raise ContentError(f"{path.name} has no rows")
    return [[texts([name])[0].strip(), *_flat(values)] for name, *values in rows]


def _flat(values: Sequence[Any]) -> list[Any]:
    """A list in a field is its repeats. A list or a table in it is no outcome, and is not kept."""
    if not any(isinstance(value, (list, dict)) for value in values):
        return list(values)
    flat = (one for value in values for one in (value if isinstance(value, list) else [value]))
    return [None if isinstance(one, (list, dict)) else one for one in flat]


def _fields(line: bytes, path: Path, columns: Sequence[str]) -> list[Any]:
    fields = json_of(line, SUBMISSION, "a line of the file")
    if not isinstance(fields, dict):
        raise ContentError(f"{path.name} must hold one JSON object in each line")
    for column in columns:
        if column not in fields:
            raise ContentError(f"{path.name} must have the field {column!r} in each line")
    return [fields[column] for column in columns]
