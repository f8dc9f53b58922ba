"""Where hashed words are among the columns of a study, and what boosted trees make of them."""

import pytest

from dpselect.learners.boosted_trees import BoostedTreesClassification
from dpselect.learners.text_boosting import TextBoostingClassification, TextBoostingRegression
from dpselect.privacy import Adjacency
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
