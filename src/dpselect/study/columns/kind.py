"""The kinds of cells stand in `dpselect.tables.kinds`, for every package; studies know them by these names too."""

from __future__ import annotations

from dpselect.tables import KINDS, ColumnKind

__all__ = ["KINDS", "ColumnKind"]
