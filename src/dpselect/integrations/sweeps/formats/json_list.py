"""JSON: a list of runs (Weights & Biases, pandas), or lists of one column each (`cv_results_`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpselect.decoding.json_text import json_file
from dpselect.decoding.limits import SWEEP
from dpselect.errors import ContentError
from dpselect.integrations.sweeps.rows import sweep_of_rows
from dpselect.integrations.sweeps.sweep import RecordedSweep, Scalar, flat_values, refuse_part, sweep_format

__all__ = ["read_json_list"]


def _matches(source: str) -> bool:
    path = Path(source)
    return path.suffix.lower() == ".json" and path.is_file()


@sweep_format("json", matches=_matches)
def read_json_list(source: str, part: str | None) -> RecordedSweep:
    """A list of objects, an object of lists, or an object of objects by row, as `DataFrame.to_json` writes it."""
    refuse_part(part, "a JSON file")
    path = Path(source)
    found = json_file(path, SWEEP, unique=True)
    rows = _rows(found)
    if rows is None:
        raise ContentError(f"{path.name} is no list of runs, and no object whose lists are columns")
    return sweep_of_rows("json", path.name, rows)


def _rows(found: Any) -> list[dict[str, Scalar]] | None:
    if isinstance(found, list) and all(isinstance(row, Mapping) for row in found):
        return [dict(flat_values(row)) for row in found]
    if not isinstance(found, Mapping):
        return None
    for name in ("runs", "data"):
        if set(found) == {name}:
            return _rows(found[name])
    keys = _row_keys(list(found.values()))
    if keys is None:
        return None
    return [dict(flat_values({name: column[key] for name, column in found.items()})) for key in keys]


def _row_keys(columns: list[Any]) -> list[Any] | None:
    """The positions or keys of the rows in columns that all have the same ones, or None if these are no columns."""
    if columns and all(isinstance(column, list) for column in columns):
        every = [list(range(len(column))) for column in columns]
    elif columns and all(isinstance(column, Mapping) for column in columns):
        every = [list(column) for column in columns]
    else:
        return None
    return every[0] if all(keys == every[0] for keys in every) else None
