"""`PrivateLeastSquares`: price, what it learns, refused parameters, odd rows, scikit-learn's conventions."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from dpselect.errors import ArgumentError
from dpselect.learners import DPSGDRegressor, PrivateLeastSquares
from dpselect.learners.scikit_learn_checks import EXPECTED_FAILED_REGRESSOR_CHECKS
from dpselect.privacy import gaussian
from dpselect.randomness import keyed_source


@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
def test_the_price_is_that_of_one_gaussian_mechanism_regardless_of_the_rest(adjacency):
    model = PrivateLeastSquares(noise_multiplier=3.0, adjacency=adjacency, gram_share=0.5, count_share=0.3, steps=7)
    expected = gaussian(noise_multiplier=3.0, adjacency=adjacency)
    assert model.guarantee().epsilon(delta=1e-6) == expected.epsilon(delta=1e-6)
    assert model.guarantee().adjacency is expected.adjacency


@pytest.mark.parametrize(("features", "steps"), [(1, 60), (39, 102), (410, 325), (5000, 400)])
def test_steps_follow_the_columns_and_clipped_rows_the_noise(features, steps):
    model = PrivateLeastSquares(noise_multiplier=5.0)
    assert model._descent(1000.0, features + 1).steps == steps
    shares = [model._descent(rows, 9).clipped_share for rows in (10.0, 10_000.0, 1e7)]
    assert shares == [0.5, pytest.approx(0.05), 0.01]
    assert model.set_params(steps=9)._descent(1.0, 50).steps == 9


def skewed(count, seed):
    """A label whose errors are exponential: its median is below its mean."""
    random = np.random.default_rng(seed)
    X = random.uniform(-0.5, 0.5, (count, 3))
    return X, 3 + X @ [4.0, -2.0, 0.0] + 3 * (random.exponential(size=count) - 1)


def test_it_fits_the_mean_of_skewed_labels():
    """A fixed small bound predicts too little on average where errors are skewed, with much noise or with little."""
    X, y = skewed(4000, 1)
    public = {"label_bounds": (-3, 27), "nominal_rows": 4000}
    found = []
    for noise, kind in ((0.3, PrivateLeastSquares), (5.0, DPSGDRegressor)):
        models = [kind(noise_multiplier=noise, random=keyed_source(seed), **public).fit(X, y) for seed in range(3)]
        found.append(np.mean([model.predict(X) for model in models]) - y.mean())
    assert abs(found[0]) < 0.06
    assert found[1] < -0.4


def test_more_rows_than_the_nominal_number_do_no_harm():
    X, y = skewed(6000, 2)
    model = PrivateLeastSquares(label_bounds=(-3, 27), nominal_rows=100, noise_multiplier=1.0, random=keyed_source(1))
    assert model.fit(X, y).score(X, y) > 0.1


def test_no_row_and_no_number_are_tables_too():
    for X, y in ((np.zeros((0, 2)), []), ([[1.0, 2.0]], [None]), ([[math.nan, "x"]], ["9"])):
        model = PrivateLeastSquares(label_bounds=(0, 1), nominal_rows=5).fit(X, y)
        assert np.all(np.isfinite(model.weights_[0]))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"noise_multiplier": 0.01}, "noise_multiplier"),
        ({"steps": 0}, "steps"),
        ({"steps": 10_001}, "steps"),
        ({"gram_share": 0.0}, "gram_share"),
        ({"count_share": 0.95}, "count_share"),
        ({"row_norm": 0.0}, "row_norm"),
        ({"intercept_scale": 0.0}, "intercept_scale"),
        ({"nominal_rows": 0}, "nominal_rows"),
        ({"adjacency": "swap"}, "adjacency"),
        ({"label_bounds": (1, 1)}, "label_bounds"),
        ({"label_bounds": None}, "label_bounds"),
    ],
)
def test_parameters_are_refused_by_name(options, named):
    model = PrivateLeastSquares(**{"label_bounds": (0, 1), "nominal_rows": 3, **options})
    with pytest.raises((ArgumentError, TypeError), match=named):
        model.fit(np.zeros((3, 2)), [0, 1, 1])


@pytest.mark.full
def test_only_the_listed_conventions_of_scikit_learn_are_broken():
    model = PrivateLeastSquares(label_bounds=(-4, 4), row_norm=4, noise_multiplier=0.05)
    with warnings.catch_warnings(action="ignore"):
        results = check_estimator(
            model, expected_failed_checks=EXPECTED_FAILED_REGRESSOR_CHECKS, on_fail=None, on_skip=None
        )
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert sum(r["status"] == "passed" for r in results) > 35
