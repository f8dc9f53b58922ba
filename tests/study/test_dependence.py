"""Partial dependence: by hand, over all bins of a boosted model, from the released model alone."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.learners.boosted_trees import BoostedTreesClassification
from dpselect.study.columns.column import Column
from dpselect.study.dependence import partial_dependence, strongest
from dpselect.study.model import ReleasedModel

AGE, WARD = Column(bounds=(0, 10)), Column(categories=("a", "b", "c"))


def model_of(answer, columns, classes=(), label_bounds=(0.0, 100.0)):
    """A released model that answers by a function of the features."""
    estimator = SimpleNamespace(predict=answer, predict_proba=answer)
    return ReleasedModel(columns, classes, estimator, None if classes else label_bounds)


def test_the_mean_over_the_other_columns_by_hand():
    """3 age + 10 in ward b + age in ward c: over wards of equal weight at age a it is 3a + 10/3 + a/3."""

    def answer(features):
        age = 5.0 * (features[:, 0] + 1.0)
        return 3.0 * age + 10.0 * features[:, 2] + age * features[:, 3]

    model = model_of(answer, {"age": AGE, "ward": WARD})
    found = model.partial_dependence("age", points=3, rows=300)
    assert found.values == (0.0, 5.0, 10.0)
    np.testing.assert_allclose(found.answers, [10 / 3 + (3 + 1 / 3) * age for age in (0, 5, 10)], rtol=1e-12)
    by_ward = model.partial_dependence("ward", rows=300)
    assert by_ward.values == ("a", "b", "c")
    np.testing.assert_allclose(by_ward.answers, [15.0, 25.0, 20.0], rtol=1e-2)


def test_boosted_trees_as_by_every_bin_of_the_other_column():
    random = np.random.default_rng(1)
    X = random.uniform(-1.0, 1.0, (400, 2))
    y = ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int)
    learner = BoostedTreesClassification(
        classes=[0, 1], noise_multiplier=0.1, nominal_rows=400, max_bins=4, n_estimators=8, linear_share=0.0
    ).fit(X, y)
    columns = {"a": Column(bounds=(-1, 1)), "b": Column(bounds=(-1, 1))}
    model = ReleasedModel(columns, (0, 1), learner)
    middles = np.array([-0.75, -0.25, 0.25, 0.75])
    found = model.partial_dependence("a", points=5, rows=8)  # each bin of b twice
    for value, answers in zip(found.values, found.answers, strict=True):
        every = learner.predict_proba(np.column_stack([np.full(4, value), middles]))
        np.testing.assert_allclose(answers, every.mean(axis=0), rtol=1e-12)


def test_values_are_those_of_the_study():
    columns = {
        "day": Column(kind="date", bounds=("2020-01-01", "2020-01-11")),
        "price": Column(bounds=(1, 10_000), scale="log"),
        "none": Column(bounds=(0, 99), scale="log"),
        "ill": Column(kind="boolean"),
        "count": Column(kind="integer", bounds=(0, 2)),
        "bins": Column(bounds=(0, 1), scale="bins:4", missing="indicator"),
        "words": Column(kind="text"),
    }
    model = model_of(lambda features: features[:, 0], columns)
    assert [str(day)[:10] for day in model.partial_dependence("day", points=3).values] == [
        "2020-01-01",
        "2020-01-06",
        "2020-01-11",
    ]
    assert model.partial_dependence("price", points=5).values == (1.0, 10.0, 100.0, 1000.0, 10000.0)
    assert model.partial_dependence("none", points=3).values == (0.0, 9.0, 99.0)
    assert model.partial_dependence("ill").values == (0.0, 1.0)
    assert model.partial_dependence("count").values == (0.0, 1.0, 2.0)
    assert len(model.partial_dependence("bins", points=4).values) == 4
    with pytest.raises(ArgumentError, match="is text"):
        model.partial_dependence("words")
    with pytest.raises(ArgumentError, match="column must be one of 'day'"):
        model.partial_dependence("dai")
    with pytest.raises(ArgumentError, match="points"):
        model.partial_dependence("day", points=1)


def test_every_feature_of_a_made_up_row_is_one_that_a_study_makes():
    """No row without a category, no missing cell, numbers in [-1, 1]; the same rows in each call."""
    seen = []

    def answer(features):
        seen.append(features)
        return features[:, 0]

    columns = {"age": AGE, "ward": WARD, "gap": Column(bounds=(0, 1), missing="indicator")}
    model = model_of(answer, columns)
    for _ in range(2):
        model.partial_dependence("gap", points=2, rows=9)
    assert np.array_equal(*seen)
    age, wards, gap, absent = seen[0][:, 0], seen[0][:, 1:4], seen[0][:, 4], seen[0][:, 5]
    assert np.all(np.abs(age) <= 1.0)
    assert np.array_equal(np.sort(age[:9]), (2 * np.arange(9) + 1) / 9 - 1)
    assert wards.sum(axis=0).tolist() == [6, 6, 6]
    assert gap.tolist() == [-1.0] * 9 + [1.0] * 9
    assert not absent.any()


def test_the_strongest_columns_come_first_and_few_are_shown():
    columns = {f"c{k}": Column(bounds=(0, 1)) for k in range(8)}
    model = model_of(lambda features: features @ np.arange(8.0), columns)
    assert [each["column"] for each in strongest(model)] == ["c7", "c6", "c5", "c4", "c3", "c2"]
    assert [each["column"] for each in strongest(model_of(lambda f: f[:, 1], columns))] == ["c1"]
    assert strongest(model_of(lambda f: f[:, 1], {f"c{k}": AGE for k in range(101)})) == []
    two = model_of(lambda f: np.column_stack([f[:, 0], -f[:, 0]]) / 4 + 0.5, {"age": AGE}, classes=("no", "yes"))
    (found,) = strongest(two)
    assert found["answers"][0] == [0.25, 0.75]
    assert len(found["values"]) == len(found["answers"]) == 17


def test_many_rows_are_asked_in_blocks():
    sizes = []
    model = model_of(lambda f: sizes.append(len(f)) or f[:, 0], {"age": AGE, "ward": WARD})
    large = partial_dependence(model, "age", points=5, rows=6000)
    assert sizes == [6000] * 5
    small = partial_dependence(model, "age", points=5, rows=6)
    assert np.allclose(large.answers, small.answers)
    assert all(a <= b for a, b in itertools.pairwise(small.answers.tolist()))
    assert small.reach == pytest.approx(2.0)
