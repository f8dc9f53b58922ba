"""Boosted trees on texts and other columns as a study names them."""

import pytest

from dpselect.errors import StudyError
from dpselect.learners.text_boosting import TextBoostingClassification, TextBoostingRegression
from dpselect.privacy import Adjacency
from dpselect.study import check_study, parse_study
from dpselect.study.columns.column import Column
from dpselect.study.learners import LEARNERS
from dpselect.study.learners.mapped import indicators_of, texts_of
from dpselect.study.learners.recipe import Recipe
from dpselect.study.target import Target


def test_its_noise_grows_with_its_parameter_and_nothing_else_enters_the_price():
    found = LEARNERS["text-boosting"]
    assert (found.estimator, found.regressor) == (TextBoostingClassification, TextBoostingRegression)
    assert (found.noise_name, found.inverse, found.priced) == ("noise_multiplier", False, frozenset())


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
def test_the_recipe_tells_the_learner_where_the_words_are(target):
    recipe = Recipe("text-boosting", {"n_estimators": 3}, target, 60.0, Adjacency.ADD_OR_REMOVE_ONE, COLUMNS)
    found = recipe.empty_fit(2.0, {})
    assert found.texts == texts_of(COLUMNS)
    assert found.weights_[0].shape == (8, 2)
    assert recipe.refusal({}) is None


def test_a_table_without_text_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("a,y\n1,0\n2,1\n")
    study = {
        "data": {"source": "rows.csv", "label": "y", "classes": [0, 1], "columns": {"a": {"bounds": [0, 9]}}},
        "privacy": {"epsilon": 3.0, "delta": 1e-5, "nominal_rows": 1000},
        "learner": {"name": "text-boosting"},
        "output": {"folder": "out"},
    }
    with pytest.raises(StudyError, match=r'learner\.name: learns from text: declare a column with kind = "text"'):
        check_study(parse_study(study), base_folder=tmp_path)
