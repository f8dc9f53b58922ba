"""Outcomes of tasks from files, such as CSV with a header, or one JSON object a line (`.jsonl`, `.ndjson`).

A task that stands in several rows has several repeats, and several columns are several graders. Errors name a file or a
column, never a value or a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from dpselect.decoding.limits import SUBMISSION, DecodingLimits
from dpselect.errors import ContentError
from dpselect.holdout.files import read_cells, texts, unique_ids
from dpselect.tables import Written

__all__ = ["read_groups", "read_outcomes"]

_AS_IT_IS: Final = Written()


def read_outcomes(
    path: Path,
    id_column: str,
    outcome_columns: Sequence[str],
    *,
    form: Written = _AS_IT_IS,
    limits: DecodingLimits = SUBMISSION,
    own: bool = False,
) -> dict[str, list[Any]]:
    """The outcomes of each task, as they stand there. Raises `ContentError` for a file that is not of this form.

    `own`: see `read_columns`.
    """
    found: dict[str, list[Any]] = {}
    for name, *values in _rows(path, [id_column, *outcome_columns], form, limits, own=own):
        found.setdefault(name, []).extend(values)
    unique_ids(list(found), id_column)
    return found


def read_groups(path: Path, id_column: str, cluster_column: str, *, form: Written = _AS_IT_IS) -> dict[str, str]:
    """The cluster of each task. Raises `ContentError` where a task has two, or none."""
    found: dict[str, str] = {}
    for name, cluster in _rows(path, [id_column, cluster_column], form, SUBMISSION, own=True):
        if not (group := texts([cluster])[0]) or found.setdefault(name, group) != group:
            raise ContentError(f"column {cluster_column!r} must have one cluster for each task")
    return found


def _rows(path: Path, columns: Sequence[str], form: Written, limits: DecodingLimits, *, own: bool) -> list[list[Any]]:
    rows = zip(*read_cells(path, columns, form=form, limits=limits, own=own), strict=True)
    return [[texts([name])[0].strip(), *_flat(values)] for name, *values in rows]


def _flat(values: Sequence[Any]) -> list[Any]:
    """A list in a field is its repeats. A list or a table in it is no outcome, and is not kept."""
    if not any(isinstance(value, (list, dict)) for value in values):
        return list(values)
    flat = (one for value in values for one in (value if isinstance(value, list) else [value]))
    return [None if isinstance(one, (list, dict)) else one for one in flat]
