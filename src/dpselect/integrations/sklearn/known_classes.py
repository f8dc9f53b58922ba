"""diffprivlib's logistic regression with public classes, and nothing released beside its weights."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from dpselect.learners.rows import class_numbers, labels_of

__all__ = ["KnownClasses"]


class KnownClasses(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A logistic regression without intercept, fitted so that its classes are public.

    By itself it takes its classes from its rows, so that the only row of a class decides the shape of the weights, and
    whether there are any. Here a row of zeros is added for each class: without intercept its loss is a constant, which
    moves no minimum. A row of another class becomes a row of zeros, and so does one that a scaler before it
    made infinite, on which every fit would fail. All this leaves neighbours neighbours.

    The number of iterations that the solver took is no function of the released weights, and is taken away.
    """

    def __init__(self, model: Any, classes: Any) -> None:
        self.model = model
        self.classes = classes

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model to rows X, shape (rows, features), with labels y, shape (rows,)."""
        classes = np.asarray(self.classes)
        table = np.array(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        places = class_numbers(labels_of(y, len(table)), classes)
        table[(places < 0) | ~np.all(np.isfinite(table), axis=1)] = 0.0
        rows: Any = np.vstack([table, np.zeros((len(classes), table.shape[1]))])
        if hasattr(X, "iloc"):
            rows = type(X)(rows, columns=X.columns)
        self.model.fit(rows, np.concatenate([classes[np.maximum(places, 0)], classes]))
        del self.model.n_iter_
        return self
