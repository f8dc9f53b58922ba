"""Maps in a search and in a study: what they cost, and the same images when a model is loaded."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from dpselect.errors import StudyError
from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.learners import OutputPerturbationClassifier
from dpselect.preprocessing import (
    MAPS,
    CenteredScale,
    RowDirection,
    RowStandardization,
)
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed
from dpselect.study import load_model, parse_study, run_study
from dpselect.study.learners.recipe import recipe_of
from dpselect.testing import learner_contract
from dpselect.testing.learner_contract import unpriced


def test_a_search_over_maps_costs_what_a_search_over_nothing_costs():
    random = np.random.default_rng(2)
    X = np.concatenate([random.normal(8.0, 1.0, (60, 3)), random.normal(5.0, 1.0, (60, 3))])
    y = np.repeat(["late", "early"], 60)
    learner = OutputPerturbationClassifier(epsilon=20.0, classes=["early", "late"], nominal_rows=100)
    options = {"repetitions": Fixed(count=2), "score_epsilon": 1.0, "nominal_rows": 120, "random": keyed_source(1)}
    maps = [RowDirection(bounds=(0, 13)), CenteredScale(bounds=(0, 13)), RowStandardization()]
    searched = PrivateSearchCV(make_pipeline(maps[0], learner), {"rowdirection": maps}, **options)
    plain = PrivateSearchCV(learner, {}, **options)
    assert searched.plan(X).guarantee.epsilon(0.0) == plain.plan(X).guarantee.epsilon(0.0)
    X[0, 0] = math.nan
    found = searched.fit(X, y)
    assert found.best_params_["rowdirection"] in maps
    assert found.best_estimator_.predict(X[:1]).shape == (1,)


# in a study


def study(table, folder, *, learner, space):
    import csv

    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.cells)
        writer.writerows(zip(*table.cells.values(), strict=True))
    facts = {"label": "label", "classes": list(table.classes), "columns": dict(table.columns)}
    return parse_study(
        {
            "data": {"source": "rows.csv", **facts},
            "privacy": {"nominal_rows": 90, "epsilon": 8.0, "delta": 1e-5},
            "learner": {"name": "output-perturbation", **learner},
            "space": space,
            "repetitions": {"law": "fixed", "count": 2},
            "runs": {"executor": "inline"},
            "output": {"folder": "out"},
        }
    )


MAPPED = {
    "shared": ({"map": "cos4", "waves": 3}, {"regularization": {"law": "uniform", "low": 0.01, "high": 0.1}}),
    "searched": ({"bins": 3}, {"map": {"law": "categorical", "choices": ["log", "bins", "joint"]}}),
}


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", MAPPED)
@pytest.mark.parametrize("table", [learner_contract.narrow, learner_contract.wide])
def test_the_model_that_is_loaded_goes_through_the_map_that_it_was_trained_behind(kind, table, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made, (learner, space) = table(), MAPPED[kind]
    asked = study(made, tmp_path, learner=learner, space=space)
    trained, original = [], learner_contract.Recipe.estimator

    def keeping(self, *arguments):
        trained.append(original(self, *arguments))
        return trained[-1]

    monkeypatch.setattr(learner_contract.Recipe, "estimator", keeping)
    with unpriced():
        found = run_study(asked, base_folder=tmp_path, folder=tmp_path / "out", random=keyed_source(7)).release
    name = found["parameters"].get("map", "cos4")
    model = load_model(tmp_path / "out" / "model.npz")
    assert type(model.estimator.rows_map) is MAPS[name]
    same = [
        m
        for m in trained
        if hasattr(m, "weights_") and len(m.weights_[0]) and np.array_equal(m.weights_[0], model.estimator.weights_[0])
    ]
    encoded = model.encode(made.features)
    assert same
    assert all(np.array_equal(m.predict_proba(encoded), model.predict_proba(made.features)) for m in same)


@pytest.mark.parametrize(
    ("learner", "space", "named"),
    [
        ({"map": "cosines"}, {}, "learner.map: no such map; one of bins"),
        ({"map": 3}, {}, "learner.map"),
        ({"map": "cos4", "bins": 3}, {}, "learner.bins"),
        ({"waves": 3}, {}, "learner.waves"),
        ({"map": "cos4", "bounds": [0, 1]}, {}, "learner.bounds"),
        ({"map": "cos4"}, {"map": {"law": "categorical", "choices": ["bins"]}}, "space.map"),
        ({}, {"map": {"law": "uniform", "low": 0, "high": 1}}, "space.map"),
        ({}, {"map": {"law": "categorical", "choices": ["bins", "worse"]}}, "space.map"),
        ({"map": "cos4"}, {"waves": {"law": "uniform", "low": 1, "high": 3}}, "space.waves"),
    ],
)
def test_a_study_names_maps_that_there_are(learner, space, named, tmp_path):
    asked = study(learner_contract.narrow(), tmp_path, learner=learner, space=space)
    with pytest.raises(StudyError, match=named):
        recipe_of(asked, nominal_rows=60.0, columns=asked.data.columns)


def test_images_of_another_shape_are_refused_before_a_row_is_read(tmp_path):
    learner = {"map": "oriented-gradients", "image_shape": [5, 5]}
    asked = study(learner_contract.narrow(), tmp_path, learner=learner, space={})
    with pytest.raises(StudyError, match="image_shape"):
        run_study(asked, base_folder=tmp_path, folder=tmp_path / "out")
    assert not (tmp_path / "out").exists()
