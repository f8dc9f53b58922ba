"""The columns of a study in a database: numbers by an expression, categories by the cells that name them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["CategoryField", "NumberField"]


@dataclass(frozen=True)
class NumberField:
    """A column of numbers, or a label that is a number.

    Attributes:
        number: SQL for the number of a cell, a float64, or NULL if the cell has none.
        bounds: numbers beyond are clipped.
        fill: the number that stands for a missing one.
        bins: how many intervals it becomes indicators of. 0 for the number itself.
        indicated: whether a further feature shows that the number is missing.
    """

    number: str
    bounds: tuple[float, float]
    fill: float
    bins: int = 0
    indicated: bool = False

    @property
    def width(self) -> int:
        """How many features it becomes."""
        return max(self.bins, 1) + self.indicated


@dataclass(frozen=True)
class CategoryField:
    """A column of categories, or a label that is a class.

    Attributes:
        text: SQL for the text or the integer of a cell, compared byte by byte.
        width: how many features it becomes, or how many classes there are.
        spellings: the cells that name a category, by its place.
        empty: the place of a cell without a value. -1 for none.
        unlisted: the place of other cells. -1 for none.
    """

    text: str
    width: int
    spellings: Mapping[int, list[Any]]
    empty: int
    unlisted: int
