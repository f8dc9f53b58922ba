"""Steps around the private ones: rows that they fail on train nothing, each value is tried, overflow is refused."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder, PolynomialFeatures

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn import PublicTransformer
from dpselect.learners import (
    OutputPerturbationClassifier,
)
from dpselect.ledger import Ledger
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.tuning import IntegerUniform
from tests.integrations.sklearn.attacks_cases import LEARNER, Seen, X, Y, search


def holed(value):
    table = X.copy()
    table[3, 1] = value
    return table


# a row that a step fails on would make every run fail, and no noise would hide that


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("rehearse", [True, False])
@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
def test_a_row_that_a_stateless_step_cannot_take_is_no_row_of_the_others(value, rehearse, adjacency):
    """The model is the same anything that is in that row."""

    def weights(table, labels):
        options = {"rehearse": rehearse, "adjacency": adjacency, "payload_bytes": 9999, "random": keyed_source(7)}
        return search(make_pipeline(Normalizer(), LEARNER), **options).fit(table, labels).best_estimator_[-1].weights_

    found, other = weights(holed(value), Y), holed(value)
    other[3] = [value, 1.0, 2.0]
    assert np.array_equal(weights(other, Y), found)
    if adjacency == "add_or_remove_one":
        assert np.array_equal(weights(np.delete(X, 3, axis=0), np.delete(Y, 3)), found)


def test_an_unknown_category_trains_nothing_whether_the_encoder_is_searched_or_fixed():
    narrow, wide = (
        PublicTransformer(OneHotEncoder(sparse_output=False).fit(np.array(list(letters), dtype=object)[:, None]))
        for letters in ("ab", "abc")
    )
    table = np.array(["a", "b", "c"] * 40, dtype=object)[:, None]
    assert search(make_pipeline(wide, LEARNER)).fit(table, Y).best_estimator_ is not None
    for estimator, space in (
        (make_pipeline(narrow, LEARNER), {}),
        (make_pipeline(wide, LEARNER), {"publictransformer": [wide, narrow]}),
        (make_pipeline(wide, LEARNER), [{"publictransformer": [wide]}, {"publictransformer": [narrow]}]),
    ):
        assert search(estimator, space, rehearse=table[:2]).fit(table, Y).best_estimator_ is not None


def test_numbers_that_a_step_turns_into_infinity_raise_nothing():
    from sklearn.linear_model import LogisticRegression

    squares = PolynomialFeatures(2)
    foreign = search(make_pipeline(squares, LogisticRegression()), base=pure_dp(epsilon=1.0))
    assert foreign.fit(holed(1e200), Y).best_estimator_ is not None
    assert search(make_pipeline(squares, LEARNER)).fit(holed(1e200), Y).best_estimator_ is not None


class Mean(TransformerMixin, BaseEstimator):
    """A private transformer of someone's, with noise so large that what it adds does not matter here."""

    def __init__(self, random=None):
        self.random = random

    def fit(self, X, y=None):
        self.n_features_in_ = np.shape(X)[1]
        return self

    def transform(self, X):
        return np.asarray(X, dtype=np.float64)

    def guarantee(self):
        return pure_dp(epsilon=1.0)


# rows on which every run would fail


def refused(make, table, told, tmp_path):
    budget = Ledger.open(tmp_path / "budget.db").create_budget("b", epsilon=100, delta=1e-6)
    with pytest.raises(ArgumentError, match=told):
        make(ledger=budget).fit(table, Y)
    assert budget.spent().epsilon == 0


def test_an_unknown_category_beside_a_private_step_trains_nothing():
    letters = np.array(list("ab"), dtype=object)[:, None]
    encoder = PublicTransformer(OneHotEncoder(sparse_output=False).fit(letters))
    columns = ColumnTransformer([("letter", encoder, [2]), ("mean", Mean(), [0, 1])])
    estimator = Pipeline([("columns", columns), ("learner", Seen())])
    table = np.hstack([X[:, :2].astype(object), letters[np.arange(120) % 2]])
    table[5, 2] = "SECRET"
    table[90, 2] = None
    options = {"validation_fraction": None, "public_validation": (table[:4], Y[:4])}
    rows, _ = search(estimator, **options).fit(table, Y).best_estimator_["learner"].seen_
    assert np.array_equal(rows[:, 2:], np.delete(X, [5, 90], axis=0)[:, :2])


def test_steps_behind_a_private_one_in_a_column_are_not_tried_on_raw_rows():
    """A private projection would change the number of columns that they see: the caller must ensure what they take."""
    narrow = PublicTransformer(OneHotEncoder(sparse_output=False).fit([[0.0]]))
    inner = Pipeline([("mean", Mean()), ("narrow", narrow)])
    estimator = Pipeline([("columns", ColumnTransformer([("inner", inner, [0, 1])])), ("learner", LEARNER)])
    assert search(estimator, rehearse=False).fit(X, Y).best_estimator_ is None


def test_values_searched_together_are_tried_together():
    """Squares of squares overflow, though neither squares alone do."""
    estimator = Pipeline(
        [("first", PolynomialFeatures(1)), ("second", PolynomialFeatures(1)), ("norm", Normalizer()), ("end", Seen())]
    )
    space = {"first__degree": [1, 2], "second__degree": [1, 2]}
    table = X.copy()
    table[3, 1] = 1e100
    options = {"validation_fraction": None, "public_validation": (X, Y)}
    for tried, rows in (({"first__degree": [1, 2]}, 120), ({"second__degree": [1, 2]}, 120), (space, 119)):
        assert len(search(estimator, tried, **options).fit(table, Y).best_estimator_["end"].seen_[1]) == rows


@pytest.mark.parametrize(
    ("estimator", "space", "told"),
    [
        (make_pipeline(Mean(), PolynomialFeatures(2), LEARNER), {}, "behind a private step"),
        (
            make_pipeline(PolynomialFeatures(2), LEARNER),
            {"polynomialfeatures__degree": IntegerUniform(1, 9, log=True)},
            "must be a list",
        ),
        (
            make_pipeline(PolynomialFeatures(1), LEARNER),
            {"polynomialfeatures__degree": [1] * 20, "polynomialfeatures__order": ["C"] * 20},
            "256 settings",
        ),
    ],
)
def test_overflow_that_cannot_be_seen_beforehand_is_refused(estimator, space, told, tmp_path):
    refused(lambda **more: search(estimator, space, **more), X, told, tmp_path)


@pytest.mark.parametrize("space", [{}, {"nominal_rows": [120, 6]}])
def test_more_rows_than_a_learner_takes_are_refused_and_do_not_fail_every_run(space, tmp_path):
    learner = OutputPerturbationClassifier(nominal_rows=120 if space else 6)
    refused(lambda **more: search(learner, space, **more), X, "16 times", tmp_path)
