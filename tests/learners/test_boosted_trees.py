"""Boosted trees: attacks on their price, what they learn, refused parameters, conventions."""

from __future__ import annotations

import numpy as np

from dpselect.learners import PrivateBoostingClassifier
from dpselect.randomness import keyed_source


def table(rows=60, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(-1.0, 1.0, (rows, 2))
    return X, (X[:, 0] > X[:, 1]).astype(int)


def same(first, second):
    return [np.array_equal(*pair) for pair in zip(first, second, strict=True)]


def test_a_second_fit_with_one_source_draws_new_noise():
    """Noise that is drawn twice is subtracted: two fits on neighbours would show the row."""
    model = PrivateBoostingClassifier(
        noise_multiplier=1.0, n_estimators=3, classes=[0, 1], nominal_rows=60, random=keyed_source(1)
    )
    first = model.fit(*table()).weights_
    assert not any(same(first, model.fit(*table()).weights_))
    model.set_params(random=keyed_source(1))
    assert all(same(first, model.fit(*table()).weights_))
