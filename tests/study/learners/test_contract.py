"""Every learner that a study can name keeps the contract; and the contract sees what would break it."""

import dataclasses

import numpy as np
import pytest

import dpselect.study.refit
from dpselect.learners import DPSGDClassifier
from dpselect.study.learners import LEARNERS
from dpselect.study.target import Target
from dpselect.testing import learner_contract
from dpselect.testing.learner_contract import LearnerContract
from dpselect.testing.loaded_predictions import check_folder


class TestLearners(LearnerContract):
    @pytest.mark.full
    def test_what_is_loaded_is_what_was_trained(self, tmp_path):
        super().test_what_is_loaded_is_what_was_trained(tmp_path)


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def found_wrong(folder, table=learner_contract.narrow):
    learner_contract._study(table(), "dp-sgd", folder)
    return check_folder(folder)["wrong"]


def with_columns(settings, columns):
    return {**settings, "recipe": dataclasses.replace(settings["recipe"], columns=columns)}


def sorted_columns(settings):
    return with_columns(settings, dict(sorted(settings["recipe"].columns.items())))


def shuffled_weights(settings):
    first, *others = settings["weights"]
    return {**settings, "weights": (first[np.random.default_rng(1).permutation(len(first))], *others)}


def sorted_classes(settings):
    recipe = settings["recipe"]
    return {**settings, "recipe": dataclasses.replace(recipe, target=Target(tuple(sorted(recipe.target.classes))))}


def sorted_categories(settings):
    columns = {
        name: column.model_copy(update={"categories": column.categories and tuple(sorted(column.categories, key=str))})
        for name, column in settings["recipe"].columns.items()
    }
    return with_columns(settings, columns)


@pytest.mark.full
@pytest.mark.parametrize("change", [sorted_columns, shuffled_weights, sorted_classes, sorted_categories])
def test_a_file_that_scrambles_anything_is_seen(change, tmp_path, monkeypatch):
    original = dpselect.study.refit.model_bytes
    monkeypatch.setattr(
        dpselect.study.refit, "model_bytes", lambda recipe, **rest: original(**change({"recipe": recipe, **rest}))
    )
    assert found_wrong(tmp_path)


@pytest.mark.full
def test_a_file_that_scrambles_nothing_is_not(tmp_path):
    assert not found_wrong(tmp_path)


class _StateBesideItsWeights(DPSGDClassifier):
    """A learner to come, part of which would not be in the file."""

    def fit(self, X, y):
        super().fit(X, y)
        self._shift = float(len(np.asarray(X)))
        return self

    def predict_proba(self, X):
        return super().predict_proba(np.asarray(X) * self._shift)


@pytest.mark.full
def test_a_learner_that_keeps_something_beside_its_weights_is_seen(tmp_path, monkeypatch):
    kind = dataclasses.replace(LEARNERS["dp-sgd"], estimator=_StateBesideItsWeights)
    monkeypatch.setitem(LEARNERS._things, "dp-sgd", kind)
    assert found_wrong(tmp_path)
