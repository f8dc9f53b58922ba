"""A table whose names of columns are known and whose rows are not read yet, and the registry of what gives one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dpselect.errors import StudyError
from dpselect.registry import Registry

__all__ = ["SOURCES", "Opener", "Table", "open_table"]


@dataclass(frozen=True)
class Table:
    """The names of the columns, and how to read them: one array of shape (rows,) for each name."""

    columns: tuple[str, ...]
    read: Callable[[], dict[str, Any]]


Opener = Callable[[str, Path, str], Table]
"""From what a study says (`source`), the study's folder and the key of the study file (`key`, for errors) to a table.

It looks at names alone. `read` may raise `ContentError` that names a column at most, never a value, a row or a count.
"""

SOURCES: Final = Registry[Opener]("source", room="dpselect.study.sources")
"""What opens a source, by the end of its path (".csv") or the begin of its name ("sklearn:")."""


def open_table(source: str, folder: Path, key: str = "data.source") -> Table:
    """Find a source and its column names. Paths are relative to the study's folder.

    Raises `StudyError` that names the study's `key`.
    """
    known = [name for name in SOURCES if _names(name, source)]
    if not known:
        ends = ", ".join(name for name in SOURCES if name.startswith("."))
        begins = ", ".join(f"{name}NAME" for name in SOURCES if name.endswith(":"))
        raise StudyError(f"{key} {source!r} must be {begins} or a path ending in {ends}")
    try:
        table = SOURCES[max(known, key=len)](source, folder, key)
    except OSError as error:
        raise StudyError(f"cannot read {key} {source!r}: {error.strerror or 'not readable'}") from None
    twice = sorted({name for name in table.columns if table.columns.count(name) > 1})
    if twice:
        raise StudyError(f"{key} {source!r} has more than one column {', '.join(map(repr, twice))}")
    return table


def _names(name: str, source: str) -> bool:
    return source.startswith(name) if name.endswith(":") else source.lower().endswith(name)
