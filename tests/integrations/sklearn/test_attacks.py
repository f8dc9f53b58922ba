"""Ways around the price of PrivateSearchCV that were found by trying: each was open once, and is shut here.

A row that makes every run fail, or that moves other rows' answers, is seen through any noise; a copy of a search whose
ledger stays behind pays nothing.
"""

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder, PolynomialFeatures

from dpselect.errors import ArgumentError, BudgetError, NothingFoundWarning
from dpselect.integrations.sklearn import PrivateSearchCV, PublicTransformer, RowScore
from dpselect.integrations.sklearn.scoring import scoring_of
from dpselect.integrations.sklearn.trial import TrialRows
from dpselect.learners import DPSGDRegressor, OutputPerturbationClassifier, PublicRowCountWarning
from dpselect.ledger import Ledger
from dpselect.privacy import Adjacency, pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed
from dpselect.study.metrics import ScoreNoise
from dpselect.tuning import IntegerUniform

X = keyed_source("rows").uniform((120, 3))
Y = (X[:, 0] > 0.5).astype(int)
LEARNER = OutputPerturbationClassifier(epsilon=2.0)


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


class Constant(ClassifierMixin, BaseEstimator):
    """A private classifier of someone's that fails, as most do, on what is no finite number."""

    def __init__(self, random=None):
        self.random = random

    def fit(self, X, y):
        np.asarray_chkfinite(X, dtype=np.float64)
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X):
        np.asarray_chkfinite(X, dtype=np.float64)
        return np.ones(len(X), dtype=int)

    def guarantee(self):
        return pure_dp(epsilon=1.0)


class Unnoised(Constant):
    def __init__(self):
        pass


def search(estimator=LEARNER, space=None, **options):
    defaults = {
        "repetitions": Fixed(count=1),
        "score_epsilon": 0.5,
        "nominal_rows": 120,
        "classes": [0, 1],
        "random": keyed_source(1),
    }
    return PrivateSearchCV(estimator, space or {}, **{**defaults, **options})


# copies and their ledgers


def test_a_clone_shares_the_ledger_and_a_pickled_copy_does_not_search_unpaid(tmp_path):
    budget = Ledger.open(tmp_path / "budget.db").create_budget("b", epsilon=100, delta=1e-6)
    paid = search(ledger=budget)
    assert clone(paid).ledger is budget
    clone(paid).fit(X, Y)
    spent = budget.spent().epsilon
    assert spent > 0
    for copied in (pickle.loads(pickle.dumps(paid)), copy.deepcopy(paid), clone(copy.copy(paid))):
        with pytest.raises(BudgetError, match="ledger stayed behind"):
            copied.fit(X, Y)
        assert copied.set_params(ledger=None).fit(X, Y).best_estimator_ is not None
    assert budget.spent().epsilon == spent
    assert pickle.loads(pickle.dumps(search())).ledger is None


def test_cross_validation_pays_for_every_search(tmp_path):
    budget = Ledger.open(tmp_path / "budget.db").create_budget("b", epsilon=100, delta=1e-6)
    paid = search(ledger=budget, random=None)
    cross_val_score(paid, X, Y, cv=2, error_score="raise")
    assert float(budget.spent().epsilon) == pytest.approx(2 * paid.guarantee().epsilon(0), rel=1e-9)


def test_a_clone_keeps_requests_of_metadata_and_copies_the_rest():
    first = search(space={"regularization": [0.1, 1.0]})
    again = clone(first)
    assert again.estimator is not first.estimator
    assert again.param_distributions == first.param_distributions
    assert again.param_distributions is not first.param_distributions
    assert not hasattr(clone(first.fit(X, Y)), "guarantee_")


# rows on which every run would fail


def refused(make, table, told, tmp_path):
    budget = Ledger.open(tmp_path / "budget.db").create_budget("b", epsilon=100, delta=1e-6)
    with pytest.raises(ArgumentError, match=told):
        make(ledger=budget).fit(table, Y)
    assert budget.spent().epsilon == 0


class Seen(Constant):
    """Keeps what it was trained on, which no private learner may."""

    def fit(self, X, y):
        super().fit(X, y)
        self.seen_ = np.asarray(X, dtype=np.float64), np.asarray(y)
        assert self.seen_[1].dtype.kind == "i"
        return self

    def guarantee(self):
        return pure_dp(epsilon=1.0, adjacency=getattr(self, "adjacency", "add_or_remove_one"))


class SeenReplaceOne(Seen):
    adjacency = "replace_one"


def seen(kind, table, labels, **options):
    """The rows that train, each beside its label, in order."""
    warnings.simplefilter("error", NothingFoundWarning)
    rows, y = (
        search(kind(), validation_fraction=None, public_validation=(X, Y), **options)
        .fit(table, labels)
        .best_estimator_.seen_
    )
    return np.column_stack([rows, y]).tolist()


CELLS = ["SECRET", None, 1e300, float("nan"), float("inf")]
LABELS = ["SECRET", 2, None, float("nan")]
ALL = np.column_stack([X, Y]).tolist()


@pytest.mark.parametrize(("cell", "label"), [*((cell, 0) for cell in CELLS), *((0.5, label) for label in LABELS)])
def test_a_row_that_a_learner_of_others_cannot_take_trains_nothing_and_raises_nothing(cell, label):
    """Text in one row makes the whole table one of objects."""
    table, labels = X.tolist(), Y.tolist()
    table[3][1], labels[3] = cell, label
    assert seen(Seen, table, labels) == ALL[:3] + ALL[4:]
    other = seen(SeenReplaceOne, table, labels)
    assert other[:3] + other[4:] == ALL[:3] + ALL[4:]
    # a public row in its place: the same regardless of the row, and at another place
    table[3], labels[3] = [float("nan")] * 3, 1
    assert seen(SeenReplaceOne, table, labels) == other
    assert search().fit(table, labels).best_estimator_ is not None


@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
def test_a_public_row_stands_in_whatever_the_container(kind):
    table = X.copy()
    table[[3, 7], 1] = np.nan
    if kind != "array":
        names = ["a", "b", "c"]
        module = pytest.importorskip(kind)
        table = module.DataFrame(dict(zip(names, table.T, strict=True)))
    found = seen(SeenReplaceOne, table, Y)
    assert len(found) == len(Y)
    assert found[3] == found[7]
    assert np.all(np.isfinite(found))
    assert [row for place, row in enumerate(found) if place not in (3, 7)] == [
        row for place, row in enumerate(ALL) if place not in (3, 7)
    ]


def test_a_row_that_nothing_can_be_trained_on_counts_as_answered_wrongly():
    scored = scoring_of(
        Constant(), "accuracy", noise=ScoreNoise(1e6, Adjacency.ADD_OR_REMOVE_ONE), rows=4, classes=np.array([0, 1])
    )
    table = np.array([[0.0], [np.nan], [1.0], [2.0]])
    rows = TrialRows(table, np.array([1, 1, 1, 5]), {}, usable=np.array([True, False, True, False]))
    sums = sum(scored.total(Constant(), *part) for part in rows.scored(np.arange(4)))
    assert scored.score(sums) == 0.5


def test_every_label_of_a_regression_is_taken():
    target = X @ [1.0, 2.0, 3.0]
    holed = [*target[:-1].tolist(), "SECRET"]
    options = {
        "classes": None,
        "validation_fraction": None,
        "public_validation": (X, target),
        "random": keyed_source(2),
    }
    own = DPSGDRegressor(noise_multiplier=4.0, steps=2, label_bounds=(0, 6))
    assert search(own, scoring="r2", score_epsilon=None, **options).fit(X, holed).best_estimator_ is not None
    model = (
        search(Ridge(), base=pure_dp(epsilon=1.0), scoring="r2", score_epsilon=None, **options)
        .fit(X, holed)
        .best_estimator_
    )
    assert np.allclose(model.coef_, Ridge().fit(X[:-1], target[:-1]).coef_)


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


def test_without_a_public_count_a_part_has_its_share_of_the_rows_and_not_its_own_count():
    with pytest.warns(PublicRowCountWarning):
        fitted = search(nominal_rows=None).fit(X, Y)
    assert fitted.best_estimator_.nominal_rows == pytest.approx(0.8 * 120)


# scores


@pytest.mark.parametrize("rule", [None, RowScore(lambda y, answers: y == answers)])
def test_a_scoring_row_on_which_the_model_fails_changes_no_other(rule):
    """Otherwise one row among those put aside makes every run fail."""
    scoring = scoring_of(Constant(), rule or "accuracy", noise=None, rows=1.0, classes=np.unique(Y))
    model = Constant().fit(X, Y)
    ruined = X.copy()
    ruined[7] = np.inf
    expected = scoring.total(model, np.delete(X, 7, axis=0), np.delete(Y, 7))
    worst = scoring.metric.lost(Y[7:8])
    assert expected[0] > 0
    np.testing.assert_array_equal(scoring.total(model, ruined, Y), expected + worst)


def test_a_row_score_that_one_row_alone_changes_is_found_on_made_up_rows():
    whole = RowScore(lambda y, answers: np.ones(len(y)) if len(y) > 1 else np.zeros(1))
    with pytest.raises(ArgumentError, match="alone"):
        search(scoring=whole).fit(X, Y)


# learners


def test_a_learner_whose_noise_a_run_cannot_set_is_refused_unless_declared():
    """Worker processes made by fork share NumPy's own generator: all runs would draw the same noise."""
    with pytest.raises(ArgumentError, match="no parameter random"):
        search(Unnoised()).plan()
    assert search(Unnoised(), base=pure_dp(epsilon=1.0)).plan().parts[0].pure_epsilon == 1.0


def test_what_inherits_from_a_public_transformer_is_not_public():
    class Learning(PublicTransformer):
        def fit(self, X, y=None):
            self.mean_ = np.mean(X)
            return self

    with pytest.raises(ArgumentError, match="learns from the data"):
        search(make_pipeline(Learning(Normalizer()), LEARNER)).plan()
