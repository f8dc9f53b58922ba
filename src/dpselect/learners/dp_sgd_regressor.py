"""Linear regression by noisy gradients of full batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from dpselect.errors import number
from dpselect.learners.batches import Batches
from dpselect.learners.clipped_gradients import LinearRegression
from dpselect.learners.dp_sgd import NoisyGradients, initial_from
from dpselect.learners.learner import Regressor
from dpselect.learners.rows import public_bounds, public_row_count, targets_of
from dpselect.learners.training_rules import REGRESSION
from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee
from dpselect.randomness import resolve

__all__ = ["DPSGDRegression"]


@dataclass(kw_only=True, eq=False, repr=False)
class DPSGDRegression(NoisyGradients, Regressor):
    """A linear regression trained by noisy sums of clipped gradients over all rows, as `DPSGDClassifier` trains.

    Labels are clipped at their bounds and scaled to [-1, 1]. The loss is half the square of the error. At each step the
    gradient of each row is scaled to norm at most `clip_norm`, and all are summed exactly. Gaussian noise of standard
    deviation `noise_multiplier * clip_norm` is added to the sum. `guarantee()` is exact: T steps are one Gaussian
    mechanism of noise multiplier `noise_multiplier`/sqrt(T) under adding or removing a row, and of half as much under
    replacing one. By default the steps, the
    bound on gradients and the rate follow from the public number of rows and from the noise (`training_rules`).

    How `fit` treats the data. It divides each row alone by `row_norm`, scales it into the unit ball and appends the
    constant `intercept_scale`. A cell that is missing, infinite or not a number counts as zero. A row whose label is
    not a number contributes nothing. It never fails on a value, and no row is a table too.

    Args:
        label_bounds: the least and the largest label, public; labels beyond are clipped, and so are answers.
        noise_multiplier: the standard deviation of a step's noise in units of `clip_norm`, at least 0.01. With
            `steps=None` up to 1.3 % more is taken, as the number of steps is rounded up.
        steps: the number of steps. None: 40 to 300, the more the more rows and the less noise.
        clip_norm: the bound on one row's gradient norm. None: 0.1, or 1 where there is a `learning_rate`.
        learning_rate: the factor of the mean gradient. None: such that all steps together reach far enough.
        averaged_share: the share of the steps, counted from the end, whose weights are averaged; 0 is the last alone.
        row_norm: a public bound on the rows' L2 norm; longer rows are scaled down.
        intercept_scale: the constant that is appended to each row, up to 1. None: 0.3, or 1 where there is a
            `learning_rate`.
        nominal_rows: a public guess of the number of rows. None takes the number itself, with a
            `PublicRowCountWarning`, and steps as for a thousand rows.
        adjacency: "add_or_remove_one" or "replace_one".
        random: a `RandomSource`, or None for the system's entropy. Each fit draws from it again.

    Attributes:
        n_features_in_: as in scikit-learn.
        weights_: one array of shape (features + 1, 1), for rows divided by `row_norm` and labels in [-1, 1].
        guarantee_: what the fit promises; the same as `guarantee()`.

    Raises at `fit`, before the data is looked at: `ArgumentError` (`AdjacencyError` for the adjacency) or `TypeError`
    naming a parameter. Afterwards only for a container: shape, complex numbers, or
    a column whose type says that it holds no numbers, such as dates or categories.

    >>> from dpselect.learners import DPSGDRegressor
    >>> from dpselect.randomness import keyed_source
    >>> X = np.repeat([[0.9, 0.1], [-0.9, 0.2]], 500, axis=0)
    >>> model = DPSGDRegressor(label_bounds=(0, 10), nominal_rows=1000, random=keyed_source(1))
    >>> model.fit(X, np.repeat([8.0, 3.0], 500)).predict([[0.9, 0.1], [-0.9, 0.2]]).round()
    array([8., 3.])
    """

    _rule = REGRESSION

    label_bounds: tuple[float, float] | None = None

    def guarantee(self) -> Guarantee:
        """The guarantee of one `fit`, from the parameters alone, before there is data.

        >>> from dpselect.learners import DPSGDRegressor
        >>> round(DPSGDRegressor(noise_multiplier=40.0, steps=100).guarantee().epsilon(delta=1e-6), 4)
        1.0607
        """
        return self._work(self._steps())

    def fit(self, X: Any, y: Any, *, initial_weights: Sequence[Array] | None = None) -> Self:
        """Learn from rows X of shape (rows, features) and numbers y of shape (rows,).

        `initial_weights` are the `weights_` to start from, as another fit left them, in place of zeros. The caller must
        ensure that they are public, or that what found them is private and paid for.
        """
        initial = initial_from(initial_weights)
        guarantee, bounds, random = self.guarantee(), public_bounds(self.label_bounds), resolve(self.random)
        row_norm = number("row_norm", self.row_norm, above=0.0)
        intercept, nominal = self._appended(), self._rows()
        self._schedule(1.0)
        count, features = self._prepare(X)
        targets = targets_of(y, count, bounds)
        schedule = replace(self._schedule(public_row_count(nominal, count, guarantee.adjacency)), initial=initial)
        known = ~np.isnan(targets)
        rows = Batches.of_table(X, known, row_norm, intercept)
        self.weights_ = schedule.run(LinearRegression(features + 1), rows, targets[known], random)
        self._bounds, self._intercept, self.guarantee_ = bounds, intercept, guarantee
        return self
