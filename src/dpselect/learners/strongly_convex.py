"""The minimiser of a regularised logistic loss, to a certified distance. Deterministic, not private by itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from dpselect.numerics.search import Array

__all__ = ["MOST_ROWS_PER_NOMINAL", "LogisticProblem"]

MOST_ROWS_PER_NOMINAL = 16
"""The certificate is proved for at most this many times the nominal number of rows."""

_CHUNK = 4096


@dataclass(frozen=True)
class LogisticProblem:
    """J(W) = (1/N) * sum over rows of loss(W; row) + (regularization/2) * |W|^2, with N = nominal_rows public.

    Two classes have one weight vector and the logistic loss. More have one a class and the softmax cross-entropy. Rows
    have norm at most `row_norm`. Symbols: L bounds the norm of one row's loss gradient (`lipschitz`), C the classes.
    """

    features: int
    classes: int
    nominal_rows: float
    regularization: float
    row_norm: float

    @property
    def outputs(self) -> int:
        """The number of weight vectors."""
        return 1 if self.classes == 2 else self.classes

    @property
    def lipschitz(self) -> float:
        """L: the loss gradient is (p - e) x^T with |p - e| <= 1 for one sigmoid and <= sqrt(2) for softmax."""
        return self.row_norm * (1.0 if self.classes == 2 else math.sqrt(2.0)) * (1.0 + 2.0**-50)

    @property
    def tolerance(self) -> float:
        """The gradient norm that `minimise` certifies, a public number: 0.1 % of L/N where doubles allow it."""
        rows = MOST_ROWS_PER_NOMINAL * self.nominal_rows
        # the loss at zero is log C a row and J >= 0, hence |W*|^2 <= 2 (n/N) log(C) / regularization
        norm = math.sqrt(2.0 * MOST_ROWS_PER_NOMINAL * math.log(max(self.classes, 2)) / self.regularization)
        return max(1e-3 * self.lipschitz / self.nominal_rows, 2.0 * self._rounding(rows, 1.0 + 2.0 * norm))

    def sensitivity(self, *, replace: bool) -> float:
        """A bound on the L2 distance between what `minimise` returns for two neighbouring tables.

        Claim: (L/N)/lambda for the exact minimisers when a row is added or removed, twice that when one is replaced.
        The solver adds 2*tolerance/lambda. Here lambda = `regularization`.

        Source: Chaudhuri, Monteleoni, Sarwate 2011, Lemma 7. Proof. Let J and J' differ by one row's loss l, so that
        J' = J + l/N: the normaliser N is a public constant, not the number of rows. Let w, w' be their minimisers. J
        is lambda-strongly convex, so lambda*|w - w'| <= |grad J(w) - grad J(w')| = |grad J(w')|, as grad J(w) = 0. And
        0 = grad J'(w') = grad J(w') + grad l(w')/N gives |grad J(w')| <= L/N. Replacing a row is a removal and an
        addition. The same inequality with a point v of |grad J(v)| <= tolerance in the place of w' gives
        |v - w| <= tolerance/lambda, once for each of the two tables.
        """
        exact = (2.0 if replace else 1.0) * self.lipschitz / self.nominal_rows
        return (exact + 2.0 * self.tolerance) / self.regularization * (1.0 + 2.0**-48)

    def _rounding(self, rows: float, norm: float) -> float:
        """A bound on the floating-point error of `_gradient` at weights of this norm, rounded up.

        Each of the `rows` terms has norm at most 2*row_norm. Its scores are off by (features + 2) roundings of
        row_norm*norm, softmax included with a factor 4. Each entry is summed in chunks, then over chunks.
        """
        depth = self.features + self.classes + min(rows, _CHUNK) + rows / _CHUNK + 16
        size = rows / self.nominal_rows * self.row_norm * (1.0 + self.row_norm * norm) + self.regularization * norm
        return 8.0 * 2.0**-52 * depth * size

    def _gradient(self, weights: Array, rows: Array, numbers: NDArray[np.intp]) -> Array:
        total = np.zeros_like(weights)
        for start in range(0, len(rows), _CHUNK):
            part, labels = rows[start : start + _CHUNK], numbers[start : start + _CHUNK]
            scores = part @ weights
            if self.classes == 2:
                errors = expit(scores) - labels[:, None]
            else:
                errors = softmax(scores, axis=1)
                errors[np.arange(len(labels)), labels] -= 1.0
            total += part.T @ errors
        return total / self.nominal_rows + self.regularization * weights

    def minimise(self, rows: Array, numbers: NDArray[np.intp]) -> Array:
        """Weights of shape (features, outputs) at which the gradient norm is at most `tolerance`, rounding included.

        Nesterov's constant-momentum method from zero (Nesterov 2018, Theorem 2.2.3). Let beta be a bound on the largest
        curvature, kappa = beta/lambda and gap = J(0) - min J + (lambda/2)*|w|^2 <= |grad J(0)|^2/lambda. After k steps
        J(x_k) - min J <= gap*(1 - 1/sqrt(kappa))^k. The point y_k where the gradient is taken is within
        3*sqrt(2*J-gap(x_{k-1})/lambda) of the minimiser, so its gradient norm is at most beta times that. The number of
        steps that makes this half the tolerance is computed from the data, doubled for rounding, and ends the loop. The
        loop ends sooner at the first point that passes. The other half of the tolerance covers the rounding of the
        gradient itself for every table of at most 16*nominal_rows rows. So the loop always ends with a point that
        passes, and the last line is not reached. If it were reached by an accident of arithmetic, a fixed vector is
        what can be said without the certificate.
        """
        weights = previous = np.zeros((self.features, self.outputs))
        # a bound on the largest eigenvalue of the loss curvature: 1/4 or 1/2 times that of rows^T rows
        gram = float(np.linalg.norm(rows.T @ rows)) * (1.0 + 1e-9)
        beta = self.regularization + (0.25 if self.classes == 2 else 0.5) * gram / self.nominal_rows
        root = math.sqrt(beta / self.regularization)
        momentum = (root - 1.0) / (root + 1.0)
        gradient = self._gradient(weights, rows, numbers)
        start = float(np.linalg.norm(gradient)) / self.regularization
        least = 3.0 * math.sqrt(2.0) * beta * start / (0.5 * self.tolerance)
        steps = 1 + math.ceil(2.0 * 2.0 * root * math.log(max(least, 1.0)))
        point = weights
        for _ in range(steps + 1):
            size = float(np.linalg.norm(gradient)) * (1.0 + 2.0**-40)
            if size + self._rounding(len(rows), float(np.linalg.norm(point))) <= self.tolerance:
                return point
            weights = point - gradient / beta
            point = weights + momentum * (weights - previous)
            previous = weights
            gradient = self._gradient(point, rows, numbers)
        return np.zeros((self.features, self.outputs))
