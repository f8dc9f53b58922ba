"""The methods of estimators of others: whether there is one, and what it answers."""

from __future__ import annotations

from typing import Any

__all__ = ["answers", "has_method"]


def has_method(thing: Any, name: str) -> bool:
    """Whether a thing has this method. For an estimator that depends on its parameters, and on its parts."""
    return callable(getattr(thing, name, None))


def answers(model: Any, method: str, X: Any) -> Any:
    """The answers of this method of a model for rows X. Raises `AttributeError` if there is none."""
    return getattr(model, method)(X)
