"""What is public about the label: the classes it may have, or the bounds of the number that it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ContentError
from dpselect.study.columns.kind import KINDS
from dpselect.tables import positions

__all__ = ["Target"]


@dataclass(frozen=True)
class Target:
    """The classes of a classification, in the order of their places, or the bounds of a regression's label."""

    classes: tuple[Any, ...] = ()
    bounds: tuple[float, float] | None = None

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
        """The labels in these cells, shape (cells,): places of classes, -1 for another; or numbers within the bounds.

        Raises `ContentError` that names the column for a label of a regression that is missing or no number.
        """
        if self.bounds is None:
            return positions(cells, self.classes)
        kind = KINDS["number"]
        try:
            numbers = kind.read(cells, None)
        except TypeError as error:
            raise ContentError(f"column {name!r} {error}") from None
        if np.isnan(numbers).any():
            raise ContentError(
                f"column {name!r} has a label that is missing or no number: leave such rows out of the source, since "
                f"nothing can be learnt from them{kind.hint}"
            )
        return np.clip(numbers, *self.bounds)

    def shares(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where labels stand between the bounds: from 0 to 1, each from its own label; shape as that of `labels`."""
        assert self.bounds is not None
        low, high = self.bounds
        inside = np.clip(np.nan_to_num(labels, nan=high), low, high)
        return np.clip((inside / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0), 0.0, 1.0)
