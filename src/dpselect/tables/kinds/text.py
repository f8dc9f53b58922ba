"""Free text, which has no order and no categories: studies make features of its words."""

from __future__ import annotations

from typing import Any

from dpselect.numerics.search import Array
from dpselect.tables.kinds.declared import KINDS, ColumnKind, Declared

__all__: list[str] = []


def _read(cells: Any, declared: Declared) -> Array:  # noqa: ARG001
    raise TypeError("holds text, which is no numbers: declare categories, or kind = text in a study")


KINDS.register("text")(ColumnKind(_read))
