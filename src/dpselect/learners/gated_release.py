"""Train privately, test privately, release the model only if its error is small enough, else None for less."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from dpselect.accounting import gated
from dpselect.accounting.stopping.gate import logistic_error_shift
from dpselect.errors import ArgumentError, expect, flag, integer, number
from dpselect.learners.containers import is_sparse
from dpselect.learners.estimators import OutputPerturbationClassifier
from dpselect.learners.fixed_point import exact_products
from dpselect.learners.rows import class_numbers, labels_of, number_table, public_classes, unit_rows
from dpselect.learners.strongly_convex import LogisticProblem
from dpselect.mechanisms import Mechanism, discrete_laplace
from dpselect.mechanisms.grid import grid_at_most
from dpselect.privacy import Adjacency, Guarantee, OutputGuarantee, Release
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.privacy.boundary import run_confined
from dpselect.privacy.output.amounts import noise_epsilon
from dpselect.randomness import RandomSource

__all__ = ["GatedLogisticRegression", "GatedRelease"]

_ERROR_STEP = 2.0**-30
_ROUNDING = 2.0**-48
_FAILED: Final[Any] = object()
"""What stands for a run that failed: no neighbouring run need fail, so it costs as much as a model."""


@dataclass(frozen=True, kw_only=True)
class GatedRelease(Mechanism):
    """A model, `train(random)`, that is released if `error(model)` plus noise is at most `max_error`, and else None.

    `guarantee` is `gated` of the other parameters (Hartmann et al. 2022, Theorem 17 and its proof for other models).
    See `gated` for what you must ensure of the shifts and of `disjoint`. The error is rounded to a public grid of a
    millionth of the noise. The noise is an integer number of its steps, drawn exactly. The shifts are charged with that
    rounding.

    With a `spender` the worst case is reserved before `train` is called and settled at the price of the outcome.
    Nothing that `train` and `error` print, warn, log or raise leaves them. If either raises, or the model cannot be
    copied, the value is None at the price of a model. You must ensure that `training` covers that.

    A withheld model is a release too, and asking again is another run at another price. The release's guarantee is that
    of the run, regardless of the outcome. Its `realised` price is that of the outcome, which counts only if a ledger
    reserved the worst case.

    Args:
        training: the guarantee of training alone. Public, like all parameters here.
        max_error: the largest error plus noise at which the model is released, in units of the error.
        test_epsilon: the epsilon of the test. The scale of its noise is the larger shift / `test_epsilon`.
        test_shift: how far the error of a fixed model moves when one test row changes, above 0.
        train_shift: how far the error moves between two models trained on neighbouring data under a coupling, at least
            0. None if there is no such coupling: then None as an outcome costs as much as a model.
        disjoint: whether the test rows are apart from the training rows by a rule on a single row. False: both see all
            rows.
        delta: the delta of the result, needed if `training` is not purely private.

    Raises:
        ArgumentError: for parameters out of range, or if `training` has no finite epsilon at `delta`.
        PromiseError: (an `ArgumentError` and a `TypeError`) if `training` is not a `Guarantee`.

    >>> from dpselect.privacy import pure_dp
    >>> gate = GatedRelease(training=pure_dp(epsilon=1), max_error=0.1, test_epsilon=0.1, test_shift=0.001,
    ...                     train_shift=0.001)
    >>> release = gate(lambda random: "model", lambda model: 0.9)
    >>> release.value is None, release.guarantee.epsilon(delta=0), round(release.realised.epsilon(delta=0), 6)
    (True, 1.0, 0.1)
    """

    training: Guarantee
    max_error: float
    test_epsilon: float
    test_shift: float
    train_shift: float | None = None
    disjoint: bool = True
    delta: float = 0.0

    def __post_init__(self) -> None:
        self._parsed(
            max_error=number("max_error", self.max_error),
            test_shift=number("test_shift", self.test_shift, above=0.0, rounding="up"),
        )
        if self.train_shift is not None:
            self._parsed(train_shift=number("train_shift", self.train_shift, at_least=0.0, rounding="up"))
        flag("disjoint", self.disjoint)
        _ = self.guarantee  # checks the rest

    @property
    def _grid(self) -> float:
        return grid_at_most(max(self.test_shift, self.train_shift or 0.0) * 2.0**-20)

    def _steps(self, shift: float) -> int:
        """How many steps of the grid two rounded numbers can be apart."""
        return math.floor(Fraction(shift) / Fraction(self._grid)) + 1

    @property
    def guarantee(self) -> OutputGuarantee:
        """The price of None and of a model."""
        return gated(
            self.training,
            test_epsilon=self.test_epsilon,
            test_shift=self._steps(self.test_shift) * self._grid,
            train_shift=None if self.train_shift is None else self._steps(self.train_shift) * self._grid,
            disjoint=self.disjoint,
            delta=self.delta,
        )

    def prepared(
        self, train: Callable[[RandomSource], Any], error: Callable[[Any], float]
    ) -> Callable[[RandomSource], Any]:
        """The training and the test of its model."""
        if not (callable(train) and callable(error)):
            raise TypeError("train and error must be callables: train(random) -> model, error(model) -> number")
        grid = self._grid
        most = max(self._steps(self.test_shift), 0 if self.train_shift is None else self._steps(self.train_shift))
        scale = most / noise_epsilon(float(self.test_epsilon))

        def run(random: RandomSource) -> Any:
            model = run_confined(lambda: copy.deepcopy(train(random)), _FAILED)
            if model is _FAILED:
                return _FAILED
            # the test gets a copy: it sees rows that what is released must not depend on
            found = run_confined(lambda: _on_grid(error(copy.deepcopy(model)), grid), _FAILED)
            if found is _FAILED:
                return _FAILED
            passed = found + discrete_laplace(scale, random) <= math.floor(Fraction(self.max_error) / Fraction(grid))
            return model if passed else None

        return run

    def form(self, *data: Any) -> Callable[..., Release]:  # noqa: ARG002
        """A run that failed releases None."""
        return _released


def _released(value: Any, **paid_for: Any) -> Release:
    return Release(value=None if value is _FAILED else value, **paid_for)


def _on_grid(value: float, grid: float) -> int:
    """The nearest step. A value that is not finite counts as a very large error, without a warning."""
    return round(Fraction(float(value)) / Fraction(grid)) if math.isfinite(value) else 1 << 60


@dataclass(frozen=True, kw_only=True)
class GatedLogisticRegression(Mechanism):
    """A logistic regression by output perturbation that is released only if it does well on held-out private rows.

    Hartmann et al. (2022), Algorithm 5, with the tanh constant of `logistic_error_shift`. Its error is the mean of
    |tanh(score/2) - label| over `nominal_test_rows` places, with labels -1 and 1. That is twice the mean probability
    given to the wrong class, from 0 to 2. The share of wrong predictions would not do: a small change of the model may
    turn all of them. Rows past `nominal_test_rows` are not used. A missing row, or one whose label is no class, counts
    as 2.

    A model costs the `epsilon` of `model` (or the test's price for one test row, if larger), None costs about
    `test_epsilon`: a failed test gives the difference back. The rest of the price is the held-out rows, which the
    training does not see.

    No one may be in both tables. You must fix sizes, threshold and parameters without the data.

    Args:
        model: an `OutputPerturbationClassifier` for two classes, with public `classes` and `nominal_rows`. A copy of it
            is fitted with `intercept_share=0`, and draws from the run's source.
        features: the number of columns.
        nominal_test_rows: a public number of test rows, best at most their true number.
        test_epsilon: the price of a failed test; the noise on the mean error has scale
            max(2/nominal_test_rows, shift of the error by the training rows) / test_epsilon.
        max_error: released when error + noise is at most this.

    A call on X, y, X_test, y_test gives a `Release` whose value is the fitted classifier or None, with the guarantee of
    the run and the realised price. Raises `ArgumentError` or `TypeError` for parameters, before there is data.

    >>> from dpselect.randomness import keyed_source
    >>> X, y = np.repeat([[0.9, 0.1], [-0.9, 0.2]], 300, axis=0), np.repeat([1, 0], 300)
    >>> model = OutputPerturbationClassifier(epsilon=2.0, classes=[0, 1], nominal_rows=300)
    >>> gate = GatedLogisticRegression(model=model, features=2, nominal_test_rows=300, test_epsilon=0.5, max_error=1.2)
    >>> release = gate(X[::2], y[::2], X[1::2], y[1::2], random=keyed_source(1))
    >>> release.value.predict([[1.0, 0.0]]), release.guarantee.pure_epsilon
    (array([1]), 2.0)
    """

    model: OutputPerturbationClassifier
    features: int
    nominal_test_rows: int
    test_epsilon: float
    max_error: float

    def __post_init__(self) -> None:
        expect("model", self.model, OutputPerturbationClassifier)
        if self.model.classes is None or len(public_classes(self.model.classes, None)) != 2:
            raise ArgumentError("classes must be two: the test's noise is proved for one weight vector")
        if self.model.nominal_rows is None:
            raise ArgumentError("nominal_rows of the model must be given: the error's shift depends on it")
        self._parsed(
            features=integer("features", self.features, at_least=1, at_most=2**20),
            nominal_test_rows=integer("nominal_test_rows", self.nominal_test_rows, at_least=1, at_most=2**27),
        )
        self.model.checked()
        if self.model.intercept_share:
            raise ArgumentError(
                f"intercept_share must be 0 or None here, got {self.model.intercept_share!r}: the proof needs the "
                "minimiser plus noise, which a chosen intercept is not"
            )
        _ = self.gate  # checks the rest

    @property
    def gate(self) -> GatedRelease:
        """The gate, with the shifts that the theorem gives for this model."""
        margin = _score_margin(self.model, self.features + self.model.fit_intercept)
        return GatedRelease(
            training=self.model.guarantee(),
            max_error=self.max_error,
            test_epsilon=self.test_epsilon,
            test_shift=2.0 / self.nominal_test_rows + _ROUNDING,
            train_shift=logistic_error_shift(margin) + _ERROR_STEP + _ROUNDING,
        )

    @property
    def guarantee(self) -> OutputGuarantee:
        """The price of None and of a model."""
        return self.gate.guarantee

    def prepared(self, X: Any, y: Any, X_test: Any, y_test: Any) -> Callable[[RandomSource], Any]:
        """Training on X and y, and the test on the other rows."""
        for name, table in (("X", X), ("X_test", X_test)):
            if number_table(table)[1] != self.features:
                raise ArgumentError(f"{name} must have as many columns as features says")
        named, places = public_classes(self.model.classes, None), self.nominal_test_rows
        labels = labels_of(y_test, len(X_test))
        held_out = _HeldOut(X_test, labels, named, places, float(self.model.row_norm), bool(self.model.fit_intercept))
        return self.gate.prepared(lambda random: self._trained(X, y, random), held_out)

    def _trained(self, X: Any, y: Any, random: RandomSource) -> Any:
        """The model as the theorem couples it: the minimiser plus noise, without a choice of the intercept."""
        return clone(self.model).set_params(random=random, intercept_share=0.0).fit(X, y)

    def form(self, *data: Any) -> Callable[..., Release]:  # noqa: ARG002
        """A run that failed releases None."""
        return _released


def _score_margin(model: OutputPerturbationClassifier, features: int) -> float:
    """How far one row's score moves at most between the weights from neighbouring tables under the same noise.

    The minimisers are within the problem's sensitivity, with the solver's tolerance. Two roundings are added: to the
    grid of the noise, and of the weights before they meet the rows. Source: Hartmann et al. 2022, Theorem 16.
    """
    size = math.sqrt(1.0 + model.fit_intercept)
    problem = LogisticProblem(features, 2, float(model.nominal_rows or 1.0), model.regularization, size)
    replace = parse_adjacency(model.adjacency) is Adjacency.REPLACE_ONE
    largest = math.sqrt(features) + 1.0  # a bound on the sum of a row's absolute values, as of `exact_products`
    # twice half a step of `round_weights`, which is at most twice the quotient under its logarithm
    rounding = 2.0 * 2.0**12 * largest * 2.0**16 / 2.0**53 * largest
    return (problem.sensitivity(replace=replace) * (1.0 + 2.0**-19) * size + rounding) * (1.0 + 2.0**-40)


class _HeldOut:
    """The mean error of a model over a fixed number of places, an exact sum of terms that each depend on one row."""

    def __init__(
        self, X: Any, labels: NDArray[Any], classes: NDArray[Any], places: int, row_norm: float, intercept: bool
    ) -> None:
        numbers = class_numbers(labels[:places], classes)
        self._rows = unit_rows((X.tocsr() if is_sparse(X) else X)[:places], row_norm, intercept=intercept)[numbers >= 0]
        self._signs = 2.0 * numbers[numbers >= 0] - 1.0
        self._places = places

    def __call__(self, model: OutputPerturbationClassifier) -> float:
        scores = exact_products(self._rows, model.weights_[0])[:, 0]
        terms = np.floor(np.abs(np.tanh(scores / 2.0) - self._signs) / _ERROR_STEP).astype(np.int64)
        missing = (self._places - len(self._rows)) * int(2.0 / _ERROR_STEP)
        return float(Fraction(int(terms.sum()) + missing) * Fraction(_ERROR_STEP) / self._places)
