"""`DPSGDRegressor`: what one row can move, labels that are not numbers, refused parameters, scikit-learn's checks."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from dpselect.errors import ArgumentError
from dpselect.learners import DPSGDRegressor
from dpselect.learners.clipped_gradients import LinearRegression, clipped_gradient_sum
from dpselect.learners.fixed_point import STEP
from dpselect.learners.rows import targets_of, unit_rows
from dpselect.learners.scikit_learn_checks import EXPECTED_FAILED_REGRESSOR_CHECKS
from dpselect.randomness import keyed_source

# regression


def test_one_row_moves_a_regression_gradient_by_at_most_the_bound_exactly():
    random = np.random.default_rng(2)
    rows = unit_rows(random.normal(size=(50, 3)) * 10.0 ** random.integers(-2, 3, (50, 1)), 1.0, intercept=0.3)
    targets = targets_of(random.normal(size=50) * 3, 50, (-2, 2))
    model, step = LinearRegression(4), 2.0**-20
    for weights in (np.zeros((4, 1)), random.normal(size=(4, 1)), np.full((4, 1), 1e9)):
        (whole,) = clipped_gradient_sum(model.layers((weights,), rows, targets), 0.1, step)
        single = []
        for k in range(50):
            (part,) = clipped_gradient_sum(model.layers((weights,), rows[k : k + 1], targets[k : k + 1]), 0.1, step)
            assert math.fsum((float(v) * STEP * step) ** 2 for v in part.ravel()) <= 0.01
            single.append(part)
        assert np.array_equal(sum(single), whole)


def test_labels_that_are_no_numbers_leave_their_rows_out():
    fixed = {"label_bounds": (0, 1), "nominal_rows": 3, "steps": 2, "noise_multiplier": 1.0}
    X = [[0.5, 0.1], [0.2, 0.2], [0.9, 0.9], [0.3, 0.1]]
    for odd in (None, math.nan, "x"):
        labels = np.array([0.3, odd, 1.0, 0.5], dtype=object)
        found = DPSGDRegressor(**fixed, random=keyed_source(1)).fit(X, labels).weights_[0]
        kept = DPSGDRegressor(**fixed, random=keyed_source(1)).fit([X[0], *X[2:]], [0.3, 1.0, 0.5]).weights_[0]
        assert np.array_equal(found, kept)


@pytest.mark.full
def test_only_the_listed_conventions_of_scikit_learn_are_broken():
    model = DPSGDRegressor(label_bounds=(-4, 4), row_norm=4, noise_multiplier=0.5)
    with warnings.catch_warnings(action="ignore"):
        found = check_estimator(
            model, expected_failed_checks=EXPECTED_FAILED_REGRESSOR_CHECKS, on_fail=None, on_skip=None
        )
    assert [r["check_name"] for r in found if r["status"] == "failed"] == []


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"label_bounds": None}, "label_bounds"),
        ({"steps": 0}, "steps"),
        ({"intercept_scale": 2}, "intercept_scale"),
        ({"nominal_rows": 0}, "nominal_rows"),
        ({"nominal_rows": -5, "steps": 2, "learning_rate": 1.0}, "nominal_rows"),
        ({"nominal_rows": -5, "steps": 2}, "nominal_rows"),
    ],
)
def test_parameters_are_refused_by_name(options, named):
    with pytest.raises((ArgumentError, TypeError), match=named):
        DPSGDRegressor(**{"label_bounds": (0, 1), **options}).fit(np.zeros((3, 2)), [0, 1, 1])
