"""The columns of a table that the parts of a `ColumnTransformer` take, by name, place and type, and by no cell."""

from __future__ import annotations

from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.utils import _safe_indexing
from sklearn.utils._indexing import _get_column_indices

__all__ = ["chosen_places", "passed_through"]


def chosen_places(columns: Any, X: Any, count: int) -> list[int]:
    """The places that a column transformer's choice means. An unknown name has none, and is refused at its fit."""
    try:
        if callable(columns):
            columns = columns(_safe_indexing(X, []))
        return [place for place in _get_column_indices(X, columns) if place < count]
    except (ValueError, TypeError, KeyError, AttributeError):
        return []


def passed_through(step: ColumnTransformer, X: Any, count: int) -> set[int]:
    """The places of the columns that the step hands on unchanged, among the `count` columns of X."""
    chosen = [(part, chosen_places(columns, X, count)) for _, part, columns in step.transformers]
    unchanged = {place for part, places in chosen if _is_passthrough(part) for place in places}
    rest = set(range(count)) - {place for _, places in chosen for place in places}
    return unchanged | (rest if _is_passthrough(step.remainder) else set())


def _is_passthrough(part: Any) -> bool:
    return isinstance(part, str) and part == "passthrough"
