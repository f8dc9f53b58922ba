"""The released model: it predicts for rows as they stand in the study's source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError
from dpselect.numerics.search import Array
from dpselect.public_api import answer_attributes
from dpselect.study.columns.column import Column
from dpselect.study.containers import table_columns
from dpselect.study.data import encode_columns
from dpselect.study.dependence import PartialDependence, partial_dependence

__all__ = ["ReleasedModel", "labels_of"]


def labels_of(classes: tuple[Any, ...]) -> NDArray[Any]:
    """Classes as an array, shape (classes,)."""
    alike = len({type(label) for label in classes}) == 1
    return np.array(classes, dtype=None if alike else object)  # NumPy would turn 1 beside "a" into text


@answer_attributes
@dataclass(frozen=True, repr=False)
class ReleasedModel:
    """A released classifier or regression for rows as they stand in the study's source.

    Rows are a pandas or polars data frame, an Arrow table or a dictionary from names to sequences, with the columns of
    the source in any order (further ones, such as the label, are left alone); or an array of shape (rows, columns) with
    exactly the columns of `columns`, in that order. What a cell says counts, not how it is stored: 1, 1.0, "1" and True
    are one category, as they are in training.

    Attributes:
        columns: the names of the feature columns in the order of the source, with the public facts that encode them.
        classes: the classes in the order in which the study declares them; none for a regression.
        estimator: the estimator of encoded rows; the classes of a classifier are places in `classes`.
        label_bounds: between what the answers of a regression lie; None for a classification.

    All methods raise `ArgumentError` for what is no such table and `ContentError` for a column that cannot be read.
    """

    columns: Mapping[str, Column]
    classes: tuple[Any, ...]
    estimator: Any
    label_bounds: tuple[float, float] | None = None

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row, or for a regression its number in the units of the label; shape (rows,)."""
        places = self.estimator.predict(self.encode(X))
        if self.label_bounds is not None:
            return np.asarray(places, dtype=np.float64)
        return labels_of(self.classes)[places]

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes in the order of `classes`, shape (rows, classes); `ArgumentError` for none."""
        if self.label_bounds is not None:
            raise ArgumentError("this model predicts a number: it has no classes, and so no probabilities")
        return np.asarray(self.estimator.predict_proba(self.encode(X)))

    def encode(self, X: Any) -> Array:
        """The rows as `estimator` takes them, shape (rows, features)."""
        return encode_columns(table_columns(X, list(self.columns)), self.columns)

    def partial_dependence(self, column: str, *, points: int = 33, rows: int = 1024) -> PartialDependence:
        """The mean answer of the model at each value of a column, over rows made up from public facts.

        It uses the released model and the declared columns alone, so it costs nothing. The synthetic rows have
        independent columns, numbers uniform between their bounds (by their logarithm, if the scale is "log") and
        equally likely categories. Real rows are of another distribution, which is private.

        Args:
            column: the name of a column, other than text.
            points: the number of values of a column of numbers, from one bound to the other, 2 to 1,000.
            rows: the number of synthetic rows, up to 1,000,000.

        Returns:
            The `PartialDependence`: `values`, and `answers` of shape (values,), or of classes (values, classes).

        Raises:
            ArgumentError: for a column that the model does not have, or of text, and for numbers out of range.
        """
        return partial_dependence(self, column, points=points, rows=rows)

    def __repr__(self) -> str:
        return f"<ReleasedModel {type(self.estimator).__name__}, {len(self.columns)} columns>"
