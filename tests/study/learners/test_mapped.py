"""Rows go through a public map before they train: the units of the columns, and what a study may set."""

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.study.columns.column import Column
from dpselect.study.learners.mapped import MappedLearner, Units, map_for, map_parameters


class Doubled:
    def fit(self, X):
        return self

    def transform(self, X):
        return 2.0 * X


class Kept:
    def fit(self, X, y):
        self.weights_ = (X,)

    def predict(self, X):
        return X


def test_rows_are_in_the_units_of_their_columns_when_they_reach_the_map():
    learner = MappedLearner(Doubled(), Units(np.array([-1.0, 0.0]), np.array([50.0, 1.0])), Kept())
    assert learner.fit(np.array([[0.0, 1.0]]), None) is learner
    assert learner.weights_[0].tolist() == [[100.0, 2.0]]
    assert learner.predict(np.array([[1.0, 0.0]])).tolist() == [[200.0, 0.0]]


def test_units_follow_from_the_columns():
    columns = {"age": Column(bounds=(0.0, 100.0)), "grade": Column(categories=("low", "high"))}
    made, units = map_for("bins", columns, {"other": 3})
    assert units.zeros.tolist() == [-1.0, 0.0, 0.0]
    assert units.sizes.tolist() == [50.0, 1.0, 1.0]
    assert list(made.bounds) == [(0.0, 100.0)]
    assert made.indicators == [[1, 2]]


def test_parameters_that_follow_from_the_columns_are_not_a_study_s_to_set():
    assert "bounds" not in map_parameters("bins")
    assert map_parameters("bins", "cos4") >= map_parameters("bins")
    with pytest.raises(ArgumentError, match="unknown"):
        map_parameters("no such map")
