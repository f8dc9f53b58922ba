"""The maps as scikit-learn's transformers: conventions, copies, and which of them are free in a search."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn.guarantee import is_free, private_steps
from dpselect.learners import OutputPerturbationClassifier
from dpselect.preprocessing import (
    MAPS,
    CenteredScale,
)
from dpselect.preprocessing.transformers import EXPECTED_FAILED_CHECKS, is_known_map
from tests.preprocessing.maps_cases import ALL, rows


def test_every_map_is_tried_here():
    assert set(ALL) == set(MAPS)
    assert all(isinstance(ALL[name], MAPS[name]) and is_known_map(ALL[name]) for name in MAPS)


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", ALL)
def test_only_the_listed_conventions_are_broken(name):
    with warnings.catch_warnings(action="ignore"):
        results = check_estimator(
            type(ALL[name])(), expected_failed_checks=EXPECTED_FAILED_CHECKS, on_fail=None, on_skip=None
        )
    failed = [r for r in results if r["status"] == "failed"]
    if name == "oriented-gradients":  # scikit-learn makes tables of 1, 2, 3, 5 and 10 columns, which are no images
        failed = [r for r in failed if "image" not in str(r["exception"]) and "sparse" not in r["check_name"]]
    assert [r["check_name"] for r in failed] == []
    # of images three checks more need tables of another width: those of sparse tables
    assert sum(r["status"] == "passed" for r in results) > (17 if name == "oriented-gradients" else 20)


@pytest.mark.parametrize("name", ALL)
def test_copies_are_alike(name):
    table, rows_map = rows(8, 20), ALL[name]
    images = rows_map.fit_transform(table)
    for other in (clone(rows_map).fit(table), copy.deepcopy(rows_map), pickle.loads(pickle.dumps(rows_map))):
        assert np.array_equal(other.transform(table), images)
    assert len(rows_map.get_feature_names_out()) == images.shape[1]


# in a search


def test_a_map_is_free_and_what_inherits_from_one_is_not():
    class Peeking(CenteredScale):
        def fit(self, X, y=None):
            self.bounds = (np.min(X), np.max(X))
            return super().fit(X)

    assert all(is_free(ALL[name]) for name in ALL)
    assert not is_free(Peeking())
    with pytest.raises(ArgumentError, match="learns from the data"):
        private_steps(make_pipeline(Peeking(), OutputPerturbationClassifier()))


def test_a_registered_map_of_ones_own_is_free(monkeypatch):
    class Halved(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return np.asarray(X) / 2

    assert not is_free(Halved())
    monkeypatch.setattr(MAPS, "_things", dict(MAPS._things))
    monkeypatch.setattr(MAPS, "_facts", dict(MAPS._facts))
    MAPS.register("halved")(Halved)
    assert is_free(Halved())
