"""The kinds of cells are in `dpselect.tables.kinds`. This is their place of 0.2."""  # mirrors: holds no code

from __future__ import annotations

from dpselect.tables import KINDS, ColumnKind

__all__ = ["KINDS", "ColumnKind"]
