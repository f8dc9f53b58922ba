"""Public facts about the label: its classes, or its bounds if it is a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ContentError
from dpselect.tables import Declared
from dpselect.tables.categories import positions

__all__ = ["Target"]


@dataclass(frozen=True)
class Target:
    """The classes of a classification, in the order of their places, or the bounds of a regression's label.

    `cells` is how its cells are read: by default those of classes as categories, and others as numbers.
    """

    classes: tuple[Any, ...] = ()
    bounds: tuple[float, float] | None = None
    cells: Declared | None = None

    @property
    def declared(self) -> Declared:
        """How its cells are read."""
        return self.cells or Declared(kind="category" if self.bounds is None else "number")

    @property
    def task(self) -> str:
        """ "classification" or "regression"."""
        return "classification" if self.bounds is None else "regression"

    @property
    def width(self) -> float:
        """The distance of the bounds."""
        assert self.bounds is not None
        return self.bounds[1] - self.bounds[0]

    def read(self, name: str, cells: Any) -> NDArray[Any]:
        """The labels in these cells, shape (cells,): positions of classes (-1: another), or numbers within the bounds.

        Raises `ContentError` that names the column for a label of a regression that is missing or no number.
        """
        declared = self.declared
        if self.bounds is None and declared.kind == "category":
            return positions(cells, self.classes, declared.category)
        try:
            numbers = declared.read(cells)
        except TypeError as error:
            raise ContentError(f"column {name!r} {error}") from None
        if self.bounds is None:
            return positions(numbers, tuple(declared.read(self.classes)))
        if np.isnan(numbers).any():
            self.refuse_lost(name)
        return np.clip(numbers, *self.bounds)

    def refuse_lost(self, name: str) -> NoReturn:
        """Raise `ContentError` for a label of a regression without a number."""
        raise ContentError(
            f"column {name!r} has a label that is missing or no {self.declared.kind}: leave such rows out of the "
            f"source, since nothing can be learnt from them{self.declared.column_kind.hint}"
        )

    def shares(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """The position of each label between the bounds, from 0 to 1, in the shape of `labels`."""
        assert self.bounds is not None
        low, high = self.bounds
        inside = np.clip(np.nan_to_num(labels, nan=high), low, high)
        return np.clip((inside / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0), 0.0, 1.0)
