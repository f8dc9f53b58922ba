"""Another name of `dpselect.tables`, for one version: where sources were registered before they were every door's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpselect import tables

__all__ = ["Table"]


def __getattr__(name: str) -> Any:
    if name not in ("SOURCES", "Form", "Origin", "open_table", "source_name", "without_password"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _warn(f"import {'Written' if name == 'Form' else name} from dpselect.tables")
    return tables.__getattr__("Written" if name == "Form" else name)


def Table(
    columns: Sequence[str], read: Callable[[Sequence[str]], dict[str, Any]], types: Mapping[str, str] | None = None
) -> tables.Table:
    """Return a table that `read` gives whole, as openers of version 0.2 made it."""
    _warn("return a dpselect.tables.Table, which is read in chunks")
    return tables.Table(tuple(columns), lambda names, _: iter([read(names)]), types or {})


def _warn(what: str) -> None:
    warnings.warn(f"dpselect.study.sources will go: {what}", FutureWarning, stacklevel=3)
