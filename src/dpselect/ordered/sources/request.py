"""What is asked of a source of columns."""

from __future__ import annotations

from dataclasses import dataclass

from dpselect.ordered.sources.columns import Progress
from dpselect.tables import Written

__all__ = ["ColumnRequest"]


@dataclass(frozen=True, kw_only=True)
class ColumnRequest:
    """What is asked of a source: see `open_column`."""

    column: str
    table: str | None = None
    progress: Progress | None = None
    text: bool = False
    look: bool = False
    dates: bool = False
    form: Written | None = None
