"""Linear regression whose bound on gradients and whose steps follow private releases."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from dpselect.errors import integer, number
from dpselect.learners.adaptive_descent import AdaptiveDescent
from dpselect.learners.batches import Batches
from dpselect.learners.learner import OneGaussian, Regressor
from dpselect.learners.rows import public_bounds, public_row_count, targets_of
from dpselect.privacy import Adjacency
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.randomness import resolve

__all__ = ["LeastSquares"]

_STEPS: Final = (60, 400)
_STEPS_A_ROOT: Final = 16.0
"""Steps for each root of a column."""
_CLIPPED_ROWS: Final = 100.0
"""So many rows times noise may be clipped: noise falls with the bound as bias grows."""
_CLIPPED_SHARES: Final = (0.01, 0.5)


@dataclass(kw_only=True, eq=False, repr=False)
class LeastSquares(OneGaussian, Regressor):
    """Least squares by noisy sums of clipped gradients. The bound on a gradient and the steps adapt privately.

    Labels are clipped at their bounds and scaled to [-1, 1]. First the noisy X'X is released. Then each step releases
    the noisy sum of all clipped gradients, multiplies it by the inverse of the noisy X'X and adds it to the weights.
    Each step also releases the noisy number of gradients that were clipped, and the next bound follows it. So the fit
    is of the mean, with no more noise than the errors need. All releases together are one Gaussian mechanism of noise
    multiplier `noise_multiplier` (docs/theory/least-squares.md has the theorem and its proof).

    It needs no rate and no bound on gradients. Compared with `DPSGDRegressor`, its predictions follow the mean of
    skewed labels, and more columns or columns of unlike variance hurt it less. Compared with `PrivateRidge`, it has
    less noise where errors are smaller than the bounds of the label.

    How `fit` treats the data. It divides each row alone by `row_norm`, scales it into the unit ball and appends the
    constant `intercept_scale`. A cell that is missing, infinite or not a number counts as zero. A row whose label is
    not a number contributes nothing. It never fails on a value, and no row is a table too.

    Args:
        label_bounds: the least and the largest label, public; labels beyond are clipped, and so are answers.
        noise_multiplier: one over the Gaussian differential privacy parameter mu of one fit, from 0.05 to 100,000.
        steps: the number of steps, up to 10,000. None: 60 to 400, 16 times the root of the number of columns.
        gram_share: the part of mu squared that pays for X'X, from 0.01 to 0.9.
        count_share: the part of the rest that pays for the counts of clipped gradients, from 0.001 to 0.9.
        row_norm: a public bound on the rows' L2 norm; longer rows are scaled down.
        intercept_scale: the constant that is appended to each row, above 0 and up to 1. It counts in the norm.
        nominal_rows: a public guess of the number of rows. None takes the number itself, with a
            `PublicRowCountWarning` under "add_or_remove_one".
        adjacency: "add_or_remove_one" or "replace_one".
        random: a `RandomSource`, or None for the system's entropy. Each fit draws from it again.

    Attributes:
        n_features_in_: as in scikit-learn.
        weights_: one array of shape (features + 1, 1), for rows divided by `row_norm` and labels in [-1, 1].
        guarantee_: what the fit promises; the same as `guarantee()`.

    Raises at `fit`, before the data is looked at: `ArgumentError` or `TypeError` naming a parameter. Afterwards only
    for a container: shape, complex, or a column whose type says that it holds no numbers, such as dates.

    >>> from dpselect.learners import PrivateLeastSquares
    >>> from dpselect.randomness import keyed_source
    >>> X = np.repeat([[0.9, 0.1], [-0.9, 0.2]], 500, axis=0)
    >>> model = PrivateLeastSquares(label_bounds=(0, 10), nominal_rows=1000, random=keyed_source(1))
    >>> model.fit(X, np.repeat([8.0, 3.0], 500)).predict([[0.9, 0.1], [-0.9, 0.2]]).round()
    array([8., 3.])
    """

    label_bounds: tuple[float, float] | None = None
    steps: int | None = None
    gram_share: float = 0.1
    count_share: float = 0.03
    row_norm: float = 1.0
    intercept_scale: float = 0.3
    nominal_rows: float | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X of shape (rows, features) and numbers y of shape (rows,)."""
        guarantee, bounds, random = self.guarantee(), public_bounds(self.label_bounds), resolve(self.random)
        row_norm = number("row_norm", self.row_norm, above=0.0)
        nominal = None if self.nominal_rows is None else number("nominal_rows", self.nominal_rows, at_least=1.0)
        self._descent(1.0, 1)
        count, features = self._prepare(X)
        targets = targets_of(y, count, bounds)
        descent = self._descent(public_row_count(nominal, count, guarantee.adjacency), features + 1)
        known = ~np.isnan(targets)
        self._intercept = float(self.intercept_scale)
        rows = Batches.of_table(X, known, row_norm, self._intercept)
        self.weights_ = (descent.run(rows, targets[known], random),)
        self._bounds, self.guarantee_ = bounds, guarantee
        return self

    def _descent(self, rows: float, columns: int) -> AdaptiveDescent:
        intercept = number("intercept_scale", self.intercept_scale, above=0.0, at_most=1.0)
        by_rule = min(max(math.ceil(_STEPS_A_ROOT * math.sqrt(columns)), _STEPS[0]), _STEPS[1])
        noise = float(self.noise_multiplier)
        return AdaptiveDescent(
            noise_multiplier=noise,
            steps=by_rule if self.steps is None else integer("steps", self.steps, at_least=1, at_most=10_000),
            gram_share=number("gram_share", self.gram_share, at_least=0.01, at_most=0.9),
            count_share=number("count_share", self.count_share, at_least=0.001, at_most=0.9),
            row_norm=math.sqrt(1.0 + intercept * intercept) * (1.0 + 2.0**-50),
            clipped_share=min(max(_CLIPPED_ROWS * noise / rows, _CLIPPED_SHARES[0]), _CLIPPED_SHARES[1]),
            rows=rows,
            replace=parse_adjacency(self.adjacency) is Adjacency.REPLACE_ONE,
        )
