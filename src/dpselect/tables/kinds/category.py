"""Categories: texts and numbers that are compared, and have no order of their own."""

from __future__ import annotations

from typing import Any

from dpselect.numerics.search import Array
from dpselect.tables.kinds.declared import KINDS, ColumnKind, Declared

__all__: list[str] = []


def _read(cells: Any, declared: Declared) -> Array:  # noqa: ARG001
    raise TypeError("holds categories, which are not numbers: give categories in place of bounds")


KINDS.register("category")(ColumnKind(_read, keys=frozenset({"unicode"})))
