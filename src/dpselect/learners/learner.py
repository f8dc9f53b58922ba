"""The base of the private learners: rows by name and shape, predictions from weights, copies without a source.

Nothing here needs scikit-learn. `estimators` makes the public estimators of these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from dpselect.errors import number
from dpselect.learners.fixed_point import exact_products
from dpselect.learners.parameters import Parameterised
from dpselect.learners.rows import column_names, number_table, same_names, unit_rows
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency, Guarantee, gaussian
from dpselect.randomness import RandomSource

__all__ = ["Classifier", "OneGaussian", "PrivateLearner", "Regressor"]


class PrivateLearner(Parameterised, ABC):
    """Released weights for rows in the unit ball. Predicting is free for the training data: it uses the weights only.

    A pickled copy leaves its `random` source behind and draws from the system's entropy where it arrives: a source
    that repeated its draws in two places would break the guarantee.
    """

    row_norm: float
    weights_: tuple[Array, ...]
    guarantee_: Guarantee
    _intercept: float
    _column_names: list[Any] | None = None
    _row_norm: float

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {**state, "random": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # a fitted model of a version that kept no row_norm of the fit has the parameter's
        fitted = any(name.endswith("_") for name in state)
        vars(self).update({"_row_norm": state.get("row_norm"), **state} if fitted else state)

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The guarantee of one `fit`, from the parameters alone."""

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X of shape (rows, features) and labels y of shape (rows,)."""

    def fit_nothing(self, features: int) -> Self:
        """Fit to no rows, in little time: the shape that a fit to so many features leaves, made without data."""
        if "steps" in self.get_params():
            self.set_params(steps=1)
        return self.fit(np.zeros((0, features)), np.zeros(0, dtype=np.int64))

    def _unit_rows(self, X: Any) -> Array:
        """The rows of X as the weights take them."""
        number_table(X)
        same_names(self._column_names, X)
        return unit_rows(X, self._row_norm, intercept=self._intercept)

    def _prepare(self, X: Any) -> tuple[int, int]:
        """Record how rows are read, and return the table's shape. Raises for a container that cannot be used.

        A parameter that is set after a fit changes the next fit, and no prediction of this one.
        """
        shape = number_table(X)
        self._column_names, self._row_norm = column_names(X), self.row_norm
        return shape


@dataclass(kw_only=True, eq=False, repr=False)
class OneGaussian(PrivateLearner):
    """A learner whose whole fit is one Gaussian mechanism, of a noise multiplier that is a parameter."""

    noise_multiplier: float = 4.0
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE.value
    random: RandomSource | None = None

    def guarantee(self) -> Guarantee:
        """The guarantee of one `fit`, from the parameters alone, before there is data: one Gaussian mechanism.

        >>> from dpselect.learners import PrivateRidge
        >>> round(PrivateRidge(noise_multiplier=4.0).guarantee().epsilon(delta=1e-6), 4)
        1.0607
        """
        return gaussian(noise_multiplier=self._noise(), adjacency=self.adjacency)

    def _noise(self) -> float:
        return number("noise_multiplier", self.noise_multiplier, at_least=0.05, at_most=1e5, rounding="down")


class Classifier(PrivateLearner):
    """Classes by their scores."""

    classes_: NDArray[Any]

    def _scores(self, X: Any) -> Array:
        """One real score a class, shape (rows, classes)."""
        return exact_products(self._unit_rows(X), self.weights_[0])

    def decision_function(self, X: Any) -> Array:
        """Scores, shape (rows,) for two classes (positive: the second) and (rows, classes) otherwise."""
        scores = self._scores(X)
        return np.asarray(scores[:, 1] - scores[:, 0]) if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> Array:
        """The softmax of the scores, shape (rows, classes)."""
        return np.asarray(softmax(self._scores(X), axis=1))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest score, shape (rows,)."""
        best = np.argmax(self._scores(X), axis=1)
        return np.asarray(self.classes_[best])


class Regressor(PrivateLearner):
    """Answers between the public bounds of the labels, by weights of shape (features [+ 1], 1)."""

    _bounds: tuple[float, float]

    def predict(self, X: Any) -> Array:
        """The expected label of each row, between the bounds, shape (rows,)."""
        return self._in_units(exact_products(self._unit_rows(X), self.weights_[0])[:, 0])

    def _in_units(self, place: Array) -> Array:
        """Answers in the units of the label, of places from -1 to 1 between its bounds, shape (rows,)."""
        low, high = self._bounds
        place = np.clip(place, -1.0, 1.0)
        return np.asarray(np.clip((low / 2.0 + high / 2.0) + place * (high / 2.0 - low / 2.0), low, high))
