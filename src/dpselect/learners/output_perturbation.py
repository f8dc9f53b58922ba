"""Logistic regression by output perturbation: train without privacy, then add noise to the weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, flag, number
from dpselect.learners.learner import Classifier
from dpselect.learners.private_intercept import choose_intercept
from dpselect.learners.rows import class_numbers, labels_of, public_classes, public_row_count, unit_rows
from dpselect.learners.strongly_convex import MOST_ROWS_PER_NOMINAL, LogisticProblem
from dpselect.mechanisms.grid import add_on_grid, grid_at_most, rounding_sensitivity
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency, Guarantee, pure_dp
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.randomness import RandomSource, resolve

__all__ = ["OutputPerturbation"]

_INTERCEPT_SHARE: Final = 0.2
"""Of epsilon. On 341 rows of breast cancer at epsilon 1.35, a share of 0.1 to 0.3 gave accuracy within 0.025."""


@dataclass(kw_only=True, eq=False, repr=False)
class OutputPerturbation(Classifier):
    """L2-regularised logistic regression with noise added to the minimiser: pure differential privacy.

    The minimiser of a strongly convex objective moves little when one row changes. `LogisticProblem.sensitivity` holds
    the proof, after Chaudhuri, Monteleoni and Sarwate 2011, "Differentially private empirical risk minimization",
    Algorithm 1. Noise of density proportional to exp(-|b| * epsilon / sensitivity) on all weights together then gives
    epsilon-differential privacy. The reason is that the densities at a point for two centres differ by a factor of at
    most exp(epsilon * distance / sensitivity). Two classes share one weight vector. More are learnt jointly (softmax).
    One row moves all C vectors together by sqrt(2) units, and the noise a vector is about sqrt(2/C) of what splitting
    epsilon over C one-against-the-rest problems would need.

    The intercept is then chosen again, at `intercept_share` of `epsilon`: by the exponential mechanism, the intercept
    that answers most rows correctly (`private_intercept` holds the proof). Constant answers are among the candidates.
    So noise can cost a model its ranking, and it still is about as good as the best constant answer.

    How `fit` treats the data. It divides each row alone by `row_norm` and scales it into the unit ball. A cell that is
    missing, infinite or not a number counts as zero. A row whose label is not in `classes` contributes nothing. It
    never fails on a value. Weights apply to the scaled rows, with the constant 1 appended when `fit_intercept`.

    Args:
        epsilon: the price of one fit, above 0.
        regularization: the factor of |W|^2/2 against the mean loss, above 0.
        row_norm: a public bound on the rows' L2 norm; longer rows are scaled down.
        fit_intercept: append a constant 1 (it counts in the norm, and is regularised).
        intercept_share: the part of `epsilon` that pays for the choice of the intercept, from 0 to 0.9. 0 leaves the
            intercept as noise on all weights made it. None: 0.2, and 0 without `fit_intercept`.
        classes: the class labels, public. None takes them from y, with a `DataDependentClassesWarning`.
        nominal_rows: a public guess of the number of rows, the normaliser of the loss. None: the number of rows, which
            is public under `replace_one`; under `add_or_remove_one` a `PublicRowCountWarning` says what that assumes.
        adjacency: "add_or_remove_one" or "replace_one".
        random: a `RandomSource`, or None for the system's entropy. Each fit draws from it again.

    Attributes:
        classes_, n_features_in_: as in scikit-learn.
        weights_: one array of shape (features [+ 1], 1 for two classes, else classes).
        guarantee_: what the fit promises; the same as `guarantee()`.

    Raises at `fit`, before the data is looked at: `ArgumentError` or `TypeError` naming a parameter. Afterwards only
    for a container (shape, complex numbers), and for more than 16 rows a nominal row: the caller
    must ensure that this is not so.

    Not covered: the noise is computed in float64. The weights are released on a grid of 2**-20 sensitivities, so they
    carry no low-order bits of the data. The distributions of the radius (a sum of logarithms of 53-bit uniforms) and
    of the direction are approximations, not exact discrete distributions.

    >>> from dpselect.learners import OutputPerturbationClassifier
    >>> from dpselect.randomness import keyed_source
    >>> model = OutputPerturbationClassifier(epsilon=5.0, classes=[0, 1], nominal_rows=200, random=keyed_source(1))
    >>> X = np.repeat([[0.9, 0.1], [-0.9, 0.2]], 100, axis=0)
    >>> model.fit(X, np.repeat([1, 0], 100)).predict([[1.0, 0.0], [-1.0, 0.0]])
    array([1, 0])
    >>> model.guarantee_.pure_epsilon
    5.0
    """

    epsilon: float = 1.0
    regularization: float = 0.01
    row_norm: float = 1.0
    fit_intercept: bool = True
    intercept_share: float | None = None
    classes: Sequence[Any] | NDArray[Any] | None = None
    nominal_rows: float | None = None
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE.value
    random: RandomSource | None = None

    def guarantee(self) -> Guarantee:
        """The guarantee of one `fit`, from the parameters alone, before there is data.

        >>> from dpselect.learners import OutputPerturbationClassifier
        >>> OutputPerturbationClassifier(epsilon=0.5, adjacency="replace_one").guarantee().epsilon(delta=0)
        0.5
        """
        epsilon = number("epsilon", self.epsilon, at_least=1e-6, at_most=1e6, rounding="down")
        return pure_dp(epsilon=epsilon, adjacency=parse_adjacency(self.adjacency))

    def checked(self) -> tuple[float, float, float | None, bool]:
        """Regularization, row norm, nominal rows, whether there is an intercept. Raises as `fit` does for them."""
        return (
            number("regularization", self.regularization, at_least=1e-9, at_most=1e9),
            number("row_norm", self.row_norm, above=0.0),
            None if self.nominal_rows is None else number("nominal_rows", self.nominal_rows, at_least=1.0),
            flag("fit_intercept", self.fit_intercept),
        )

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X of shape (rows, features) and labels y of shape (rows,)."""
        guarantee = self.guarantee()
        for_weights, for_intercept = self._parts(guarantee.pure_epsilon)
        regularization, row_norm, nominal, self._intercept = self.checked()
        random = resolve(self.random)

        count, features = self._prepare(X)
        labels = labels_of(y, count)
        nominal = public_row_count(nominal, count, guarantee.adjacency)
        if count > MOST_ROWS_PER_NOMINAL * nominal:
            raise ArgumentError(f"X must have at most {MOST_ROWS_PER_NOMINAL} times nominal_rows rows")
        classes = public_classes(self.classes, labels)
        numbers = class_numbers(labels, classes)
        rows = unit_rows(X, row_norm, intercept=self._intercept)

        problem = LogisticProblem(
            features=features + self._intercept,
            classes=len(classes),
            nominal_rows=nominal,
            regularization=regularization,
            row_norm=math.sqrt(1.0 + self._intercept),
        )
        weights = problem.minimise(rows[numbers >= 0], numbers[numbers >= 0])
        sensitivity = problem.sensitivity(replace=guarantee.adjacency is Adjacency.REPLACE_ONE)
        weights = _add_spherical_noise(weights, sensitivity, for_weights, random)
        if for_intercept:
            known = numbers >= 0
            weights = choose_intercept(weights, rows[known], numbers[known], for_intercept, guarantee.adjacency, random)
        self.weights_ = (weights,)
        self.classes_ = classes
        self.guarantee_ = guarantee
        return self

    def _parts(self, epsilon: float) -> tuple[float, float]:
        """The costs of the weights and of the choice of the intercept. Their sum is at most `epsilon`."""
        asked = _INTERCEPT_SHARE if self.intercept_share is None else self.intercept_share
        share = number("intercept_share", asked, at_least=0.0, at_most=0.9)
        if share == 0.0 or not self.fit_intercept:
            return epsilon, 0.0
        return epsilon * (1.0 - share) * (1.0 - 2.0**-50), epsilon * share * (1.0 - 2.0**-50)

    def _scores(self, X: Any) -> Array:
        found = super()._scores(X)
        # one weight vector serves two classes: the first class scores zero
        return np.hstack([np.zeros_like(found), found]) if len(self.classes_) == 2 else found


def _add_spherical_noise(value: Array, sensitivity: float, epsilon: float, random: RandomSource) -> Array:
    """Noise of density proportional to exp(-|b|/scale) on a grid: a uniform direction, a Gamma(dimension) radius."""
    dimension = value.size
    granularity = grid_at_most(sensitivity * 2.0**-20 / math.sqrt(dimension))
    scale = (sensitivity + rounding_sensitivity(dimension, granularity)) / epsilon * (1.0 + 2.0**-48)
    direction = random.normal(value.shape)
    radius = random.gamma(dimension, 1)[0] * scale
    return add_on_grid(value, direction * (radius / np.linalg.norm(direction)), granularity)
