"""A request for one column of a source."""

from __future__ import annotations

from dataclasses import dataclass

from dpselect.ordered.sources.columns import Progress
from dpselect.tables import Declared, Written

__all__ = ["ColumnRequest"]


@dataclass(frozen=True, kw_only=True)
class ColumnRequest:
    """A request for a column, see `open_column`. `declared` is None if nothing is declared about its cells.

    `kind` is the kind that was declared, None if it was not.
    """

    column: str
    table: str | None = None
    progress: Progress | None = None
    text: bool = False
    look: bool = False
    declared: Declared | None = None
    form: Written | None = None
    by: str | None = None
    kind: str | None = None
    person: str | None = None

    @property
    def dates(self) -> bool:
        """Whether the cells are declared to be moments."""
        return self.declared is not None and self.declared.kind in ("date", "timestamp")
