"""Where hashed words are among the columns of a study, and what boosted trees make of them."""

import numpy as np
import pytest

from dpselect.learners.boosted_trees import BoostedTreesClassification
from dpselect.learners.text_boosting import TextBoostingClassification, TextBoostingRegression
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source
from dpselect.study import load_model, parse_study, run_study
from dpselect.study.columns.column import Column
from dpselect.study.learners.mapped import indicators_of, texts_of
from dpselect.study.learners.recipe import Recipe
from dpselect.study.target import Target

COLUMNS = {
    "age": Column(bounds=(0, 9)),
    "note": Column(kind="text", n_features=4, missing="indicator"),
    "job": Column(categories=("a", "b")),
    "title": Column(kind="text", n_features=3),
}


def test_the_words_of_texts_are_told_apart_from_indicators():
    assert texts_of(COLUMNS) == [[1, 2, 3, 4], [8, 9, 10]]
    assert indicators_of(COLUMNS, of_texts=False) == [[5], [6, 7]]
    assert indicators_of(COLUMNS) == [[1, 2, 3, 4, 5], [6, 7], [8, 9, 10]]


@pytest.mark.parametrize("target", [Target(("x", "y")), Target((), (0.0, 9.0))], ids=["classes", "number"])
def test_boosted_trees_are_told_where_the_words_are(target):
    recipe = Recipe("boosted-trees", {"n_estimators": 3}, target, 60.0, Adjacency.ADD_OR_REMOVE_ONE, COLUMNS)
    found = recipe.empty_fit(2.0, {})
    assert isinstance(found, (TextBoostingClassification, TextBoostingRegression))
    assert found.texts == texts_of(COLUMNS)
    assert found.weights_[0].shape == (8, 2)
    assert recipe.refusal({}) is None


def test_without_text_boosted_trees_are_as_before():
    columns = {name: column for name, column in COLUMNS.items() if column.n_features is None}
    recipe = Recipe("boosted-trees", {}, Target(("x", "y")), 60.0, Adjacency.ADD_OR_REMOVE_ONE, columns)
    assert type(recipe.empty_fit(2.0, {})) is BoostedTreesClassification


def notes(rows=400):
    """A table of notes, ages and jobs. A young person's label follows from the note, an old one's from the job."""
    random = np.random.default_rng(3)
    kind, job, age = random.integers(0, 2, rows), random.choice(["a", "b"], rows), random.uniform(0, 9, rows)
    words = np.array([["good", "fine", "glad"], ["bad", "poor", "sad"]])
    cells = [" ".join(random.choice(words[one], 4)) for one in kind]
    return {"age": age, "note": np.array(cells), "job": job, "label": np.where(age < 6, kind, job == "b").astype(int)}


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
def test_a_study_of_texts_and_other_columns_is_trained_scored_and_loaded(tmp_path, monkeypatch, task, adjacency):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    np.savez(tmp_path / "rows.npz", **notes())
    label = {"classes": [0, 1]} if task == "classification" else {"label_bounds": [0, 1]}
    columns = {"age": {"bounds": [0, 9]}, "note": {"kind": "text", "n_features": 32}, "job": {"categories": ["a", "b"]}}
    privacy = {"epsilon": 20.0, "delta": 1e-5, "adjacency": adjacency}
    if adjacency == "add_or_remove_one":
        privacy["nominal_rows"] = 400
    study = parse_study(
        {
            "data": {"source": "rows.npz", "label": "label", "task": task, "columns": columns, **label},
            "privacy": privacy,
            "validation": {"fraction": 0.2},
            "runs": {"executor": "inline"},
            "output": {"folder": "out"},
        }
    )
    found = run_study(study, base_folder=tmp_path, folder=tmp_path / "out", random=keyed_source(1)).release
    model, others = load_model(tmp_path / "out" / "model.npz"), notes(100)
    answers = model.predict({name: others[name] for name in columns})
    assert found["learner"] == "boosted-trees"
    assert np.mean((answers - others["label"]) ** 2) < 0.2
