"""Ridge regression and classification from noisy sufficient statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, number
from dpselect.learners.fixed_point import STEP, truncate
from dpselect.learners.learner import Classifier, OneGaussian, Regressor
from dpselect.learners.rows import (
    MOST_ROWS,
    class_numbers,
    labels_of,
    public_bounds,
    public_classes,
    public_weights,
    targets_of,
    unit_rows,
)
from dpselect.learners.sufficient_statistics import RowSums, SufficientStatistics, solve
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.randomness import RandomSource, resolve

__all__ = ["RidgeClassification", "RidgeRegression"]

_MOST_CLASSES: Final = 128
_MOST_COLUMNS: Final = 2**13
_EXACT_CLASSES: Final = 16
"""Up to so many classes weighted targets are multiples of `STEP`, and of more beyond, so that sums stay exact."""


@dataclass(kw_only=True, eq=False, repr=False)
class _Ridge(OneGaussian):
    """The parameters of the release that both learners share, and the weights from it."""

    floor: float = 0.3
    gram_share: float = 0.35
    row_norm: float = 1.0
    intercept_scale: float = 0.3

    def _release(self, target_norm: float, target_step: float) -> SufficientStatistics:
        intercept = number("intercept_scale", self.intercept_scale, at_least=0.0, at_most=1.0)
        number("row_norm", self.row_norm, above=0.0)
        number("floor", self.floor, above=0.0, at_most=1e6)
        return SufficientStatistics(
            noise_multiplier=float(self.noise_multiplier),
            gram_share=number("gram_share", self.gram_share, at_least=0.01, at_most=0.99),
            row_norm=math.sqrt(1.0 + intercept * intercept) * (1.0 + 2.0**-50),
            target_norm=target_norm * (1.0 + 2.0**-50),
            target_step=target_step,
            replace=parse_adjacency(self.adjacency) is Adjacency.REPLACE_ONE,
        )

    def _prepare(self, X: Any) -> tuple[int, int]:
        count, columns = super()._prepare(X)
        if columns + 1 > _MOST_COLUMNS:
            raise ArgumentError(f"X must have fewer than {_MOST_COLUMNS} columns, got {columns}")
        self._intercept = float(self.intercept_scale)
        return count, columns

    def _weights(self, release: SufficientStatistics, rows: Array, targets: Array, random: RandomSource) -> Array:
        return self._solved(release, *release.release(rows, targets, random))

    def _weights_of_sums(self, release: SufficientStatistics, sums: RowSums, random: RandomSource) -> Array:
        """The weights that `fit` gives for the rows of these sums. Raises `ArgumentError` for another `row_norm`."""
        if sums.row_norm != float(self.row_norm):
            raise ArgumentError(f"row_norm must be {sums.row_norm}, by which the rows of the sums were divided")
        if sums.count > MOST_ROWS:
            raise ArgumentError(f"the sums must be of at most {MOST_ROWS} rows")
        self._prepare(np.zeros((0, len(sums.totals))))
        gram, moments = sums.with_constant(int(truncate(np.array(self._intercept)) / STEP))
        return self._solved(release, *release.release_sums(gram, moments, random))

    def _solved(self, release: SufficientStatistics, gram: Array, moments: Array) -> Array:
        return solve(gram, moments, float(self.floor) * release.gram_deviation * math.sqrt(2.0 * len(gram)))


@dataclass(kw_only=True, eq=False, repr=False)
class RidgeRegression(_Ridge, Regressor):
    """Least squares from X'X and X'y with Gaussian noise: one release, no matter what is done with it afterwards.

    Rows are divided by `row_norm` and scaled into the unit ball, a constant is appended, labels are clipped at their
    bounds and scaled to [-1, 1]. X'X and X'y get noise (`dpselect.learners.sufficient_statistics` holds the theorem,
    its proof and the source, Wang 2018). The eigenvalues of the noisy X'X are raised to `floor` times the size that the
    noise alone gives them. No number of rows enters, and `floor` does not enter the guarantee.

    It is the better the more rows there are for each column. With few, `DPSGDRegressor` is better.

    How `fit` treats the data. It looks at each row alone. A cell that is missing, infinite or not a number counts as
    zero. A row whose label is not a number contributes nothing. It never fails on a value, and no row is a table too.

    Args:
        label_bounds: the least and the largest label, public; labels beyond are clipped, and so are answers.
        noise_multiplier: one over the Gaussian differential privacy parameter mu of one fit, from 0.05 to 100,000.
        floor: what eigenvalues are raised to, in units of s sqrt(2 p): s the noise on the diagonal, p the columns.
        gram_share: the part of mu squared that pays for X'X, from 0.01 to 0.99; the rest pays for X'y.
        row_norm: a public bound on the rows' L2 norm; longer rows are scaled down.
        intercept_scale: the constant that is appended to each row, from 0 (none) to 1. It counts in the norm.
        adjacency: "add_or_remove_one" or "replace_one".
        random: a `RandomSource`, or None for the system's entropy. Each fit draws from it again.

    Attributes:
        n_features_in_: as in scikit-learn.
        weights_: one array of shape (features [+ 1], 1), for rows divided by `row_norm` and labels in [-1, 1].
        guarantee_: what the fit promises; the same as `guarantee()`.

    Raises at `fit`, before the data is looked at: `ArgumentError` or `TypeError` naming a parameter. Afterwards only
    for a container: shape, complex numbers, or a column whose type says that it holds no numbers, such as dates.

    >>> from dpselect.learners import PrivateRidge
    >>> from dpselect.randomness import keyed_source
    >>> X = np.repeat([[0.9, 0.1], [-0.9, 0.2]], 500, axis=0)
    >>> model = PrivateRidge(label_bounds=(0, 10), noise_multiplier=1.0, random=keyed_source(1))
    >>> model.fit(X, np.repeat([8.0, 3.0], 500)).predict([[0.9, 0.1], [-0.9, 0.2]]).round()
    array([8., 3.])
    """

    label_bounds: tuple[float, float] | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X of shape (rows, features) and numbers y of shape (rows,)."""
        guarantee, release = self.guarantee(), self._release(1.0, STEP)
        bounds, random = public_bounds(self.label_bounds), resolve(self.random)
        count, _ = self._prepare(X)
        targets = targets_of(y, count, bounds)
        known = ~np.isnan(targets)
        rows = unit_rows(X, float(self.row_norm), intercept=self._intercept)[known]
        self.weights_ = (self._weights(release, rows, targets[known, None], random),)
        self._bounds, self.guarantee_ = bounds, guarantee
        return self

    def fit_sums(self, sums: RowSums) -> Self:
        """The same from the exact sums over the rows and their targets, to the bit for the same source."""
        guarantee, release = self.guarantee(), self._release(1.0, STEP)
        bounds, random = public_bounds(self.label_bounds), resolve(self.random)
        self.weights_ = (self._weights_of_sums(release, sums, random),)
        self._bounds, self.guarantee_ = bounds, guarantee
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class RidgeClassification(_Ridge, Classifier):
    """Least squares on the classes, from X'X and X'y with Gaussian noise: one release for all classes together.

    As `PrivateRidge`, with a target for each of the K classes: K - 1 for the class of the row and -1 for the others,
    which has the smallest norm, sqrt(K (K - 1)), among those that tell classes equally well. A row of class c counts
    `class_weights[c]`, the largest weight being taken for 1, so that no row can do more than without weights.

    It is the better the more rows there are for each column: with `dpselect.preprocessing.PublicBins` on tables of tens
    of thousands of rows.

    How `fit` treats the data. It looks at each row alone. A cell that is missing, infinite or not a number counts as
    zero. A row whose label is not in `classes` contributes nothing. It never fails on a value.

    Args:
        noise_multiplier: one over the Gaussian differential privacy parameter mu of one fit, from 0.05 to 100,000.
        floor: what eigenvalues are raised to, in units of s sqrt(2 p): s the noise on the diagonal, p the columns.
        gram_share: the part of mu squared that pays for X'X, from 0.01 to 0.99; the rest pays for X'y.
        row_norm: a public bound on the rows' L2 norm; longer rows are scaled down.
        intercept_scale: the constant that is appended to each row, from 0 (none) to 1. It counts in the norm.
        classes: the class labels, public, 2 to 128. None takes them from y, with a `DataDependentClassesWarning`.
        class_weights: what rows of a class count, for classes that are to count more or less than 1; public.
        adjacency: "add_or_remove_one" or "replace_one".
        random: a `RandomSource`, or None for the system's entropy. Each fit draws from it again.

    Attributes:
        classes_, n_features_in_: as in scikit-learn.
        weights_: one array of shape (features [+ 1], classes), for rows divided by `row_norm`.
        guarantee_: what the fit promises; the same as `guarantee()`.

    Raises at `fit`, before the data is looked at: `ArgumentError` or `TypeError` naming a parameter. Afterwards only
    for a container: shape, complex numbers, or a column whose type says that it holds no numbers, such as dates.

    >>> from dpselect.learners import PrivateRidgeClassifier
    >>> from dpselect.randomness import keyed_source
    >>> X = np.repeat([[0.9, 0.1], [-0.9, 0.2]], 500, axis=0)
    >>> model = PrivateRidgeClassifier(classes=["a", "b"], noise_multiplier=1.0, random=keyed_source(1))
    >>> model.fit(X, np.repeat(["b", "a"], 500)).predict([[1.0, 0.0], [-1.0, 0.0]]).tolist()
    ['b', 'a']
    """

    classes: Sequence[Any] | NDArray[Any] | None = None
    class_weights: Mapping[Any, float] | Sequence[float] | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X of shape (rows, features) and labels y of shape (rows,)."""
        guarantee, random = self.guarantee(), resolve(self.random)
        self._release(1.0, 1.0)
        count, _ = self._prepare(X)
        labels = labels_of(y, count)
        classes = public_classes(self.classes, labels)
        if len(classes) > _MOST_CLASSES:
            raise ArgumentError(f"classes must be at most {_MOST_CLASSES}, got {len(classes)}")
        weights = public_weights(self.class_weights, classes)
        numbers = class_numbers(labels, classes)
        known = numbers >= 0
        rows = unit_rows(X, float(self.row_norm), intercept=self._intercept)[known]
        targets, step = len(classes) * np.eye(len(classes))[numbers[known]] - 1.0, 1.0
        if np.any(
            weights != 1.0
        ):  # weighted least squares: a row and its target are multiplied by the root of a weight
            roots = np.sqrt(weights[numbers[known], None])
            step = STEP * 2.0 ** max(0, math.ceil(math.log2(len(classes) / _EXACT_CLASSES)))
            rows, targets = truncate(rows * roots), truncate(targets * roots, step)
        self.weights_ = (self._weights(self._release_for(classes, step), rows, targets, random),)
        self.classes_, self.guarantee_ = classes, guarantee
        return self

    def fit_sums(self, sums: RowSums) -> Self:
        """The same from the exact sums over the rows and their targets, to the bit for the same source.

        A target is the number of classes less 1 for the class of a row and -1 for others. There must be `classes`, and
        no `class_weights`. Raises `ArgumentError` otherwise.
        """
        guarantee, random = self.guarantee(), resolve(self.random)
        if self.classes is None or self.class_weights is not None:
            raise ArgumentError("classes must be given, and class_weights not, for sums over rows")
        classes = public_classes(self.classes, None)
        if sums.moments.shape[1:] != classes.shape or len(classes) > _MOST_CLASSES:
            raise ArgumentError(f"the sums must have a target for each of at most {_MOST_CLASSES} classes")
        self.weights_ = (self._weights_of_sums(self._release_for(classes, 1.0), sums, random),)
        self.classes_, self.guarantee_ = classes, guarantee
        return self

    def _release_for(self, classes: NDArray[Any], step: float) -> SufficientStatistics:
        return self._release(math.sqrt(max(len(classes) * (len(classes) - 1), 1)), step)
