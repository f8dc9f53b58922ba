"""PrivateSearchCV and what surrounds a private learner: rows that a step fails on, answers by batch, kept facts."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, PolynomialFeatures, scale

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn import PrivateSearchCV, PublicTransformer, RowScore
from dpselect.integrations.sklearn.guarantee import dense
from dpselect.integrations.sklearn.scoring import scoring_of
from dpselect.integrations.sklearn.split import rows_to_parts
from dpselect.learners import OutputPerturbationClassifier, PrivateThresholdClassifier
from dpselect.privacy import Adjacency, pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed

X = keyed_source("rows").uniform((120, 3))
Y = (X[:, 0] > 0.5).astype(int)
LEARNER = OutputPerturbationClassifier(epsilon=2.0)


def search(estimator=LEARNER, space=None, **options):
    defaults = {
        "repetitions": Fixed(count=1),
        "score_epsilon": 0.1,
        "nominal_rows": 120,
        "classes": [0, 1],
        "random": keyed_source(1),
    }
    return PrivateSearchCV(estimator, space or {}, **{**defaults, **options})


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


# one row must move the score by its own share only


def test_a_function_of_the_whole_table_that_is_declared_public_is_found_on_made_up_rows():
    for function, refused in ((scale, True), (np.tanh, False)):
        model = make_pipeline(PublicTransformer(FunctionTransformer(function)), LEARNER)
        if refused:
            with pytest.raises(ArgumentError, match="the rows beside it"):
                search(model).fit(X, Y)
        else:
            assert search(model).fit(X, Y).best_estimator_ is not None


def share_of_all(y, answers):
    return np.full(len(y), np.mean(y == answers))


class Remembering:
    """Scores a row by what was scored before."""

    def __init__(self):
        self.calls = 0

    def __call__(self, y, answers):
        self.calls += 1
        return (y == answers) / self.calls


MIXING_SCORES = {
    "share of all": share_of_all,
    "cumulated": lambda y, answers: np.cumsum(y == answers) / 100.0,
    "first row": lambda y, answers: np.full(len(y), float(y[0] == answers[0])),
    "row before": lambda y, answers: np.r_[y[:1] == answers[:1], y[:-1] == answers[:-1]].astype(float),
    "ranked": lambda y, answers: (y == answers) * np.arange(len(y)) / 100.0,
    "reversed": lambda y, answers: (y == answers)[::-1].astype(float),
    "remembered": Remembering(),
}


@pytest.mark.parametrize(
    "rule", [pytest.param(name, marks=() if name == "cumulated" else pytest.mark.full) for name in MIXING_SCORES]
)
def test_a_row_score_that_depends_on_other_rows_is_found_on_made_up_rows(rule):
    with pytest.raises(ArgumentError, match="its own label and answer alone"):
        search(scoring=RowScore(MIXING_SCORES[rule])).fit(X, Y)


@pytest.mark.parametrize("mixed", [np.cumsum, lambda table, axis: table + table[:1], lambda table, axis: table[::-1]])
def test_a_transformer_that_only_later_rows_can_see_is_found_on_made_up_rows(mixed):
    """The first rows alone are as they are in company."""
    model = make_pipeline(PublicTransformer(FunctionTransformer(mixed, kw_args={"axis": 0})), LEARNER)
    with pytest.raises(ArgumentError, match="the rows beside it"):
        search(model).fit(X, Y)


def chance_of_the_label(y, answers):
    return answers[np.arange(len(y)), y]


def test_a_label_that_a_row_score_does_not_know_costs_that_row_and_no_other():
    labels = Y.copy()
    labels[::10] = 7
    probability = RowScore(chance_of_the_label, response="predict_proba")
    model = LEARNER.__class__(classes=[0, 1], nominal_rows=120, random=keyed_source(2)).fit(X, Y)
    known = labels != 7
    rule = scoring_of(model, probability, noise=None, rows=120.0)
    good, bad = rule.total(model, X, labels)
    assert good == rule.total(model, X[known], labels[known])[0] > 0
    assert good + bad == 120 * 2**20
    with pytest.raises(IndexError):
        probability(model, X, labels)
    assert search(scoring=probability).fit(X, labels).best_estimator_ is not None


def test_a_scorer_that_gives_no_number_is_found_before_it_makes_every_run_fail():
    with pytest.raises(TypeError, match="dict") as caught:
        search(public_validation=(X, Y), scoring=lambda model, X, y: {"accuracy": 1.0}).fit(X, Y)
    assert "synthetic rows" in caught.value.__notes__[0]


# what steps may see and keep


def wide_columns(table):
    return np.flatnonzero(np.std(table, axis=0) > 0.1)


def test_columns_chosen_by_a_function_of_the_rows_are_refused_and_by_type_are_not():
    with pytest.raises(ArgumentError, match="sees the rows"):
        search(make_pipeline(ColumnTransformer([("a", Normalizer(), wide_columns)]), LEARNER)).plan()
    by_type = make_column_selector(dtype_include="number")
    assert search(make_pipeline(ColumnTransformer([("a", Normalizer(), by_type)]), LEARNER)).plan().noise is None


class PeekingPipeline(Pipeline):
    """What a subclass does with the rows between its steps, no one has looked at."""


def test_a_pipeline_of_another_kind_is_refused():
    with pytest.raises(ArgumentError, match="PeekingPipeline has no guarantee"):
        search(PeekingPipeline([("model", LEARNER)])).plan()


def test_whether_the_output_is_sparse_is_not_decided_by_the_rows():
    """Three quarters zeros: by itself a ColumnTransformer gives, and remembers, sparse or dense by that share."""
    encoder = PublicTransformer(OneHotEncoder(handle_unknown="ignore").fit([[0], [1], [2]]))
    table = np.array([[0], [1], [2], [3]] * 30)
    model = make_pipeline(ColumnTransformer([("a", encoder, [0])]), LEARNER)
    by_itself = ColumnTransformer([("a", encoder, [0])])
    assert by_itself.fit(table).sparse_output_
    assert not by_itself.fit(table[:3]).sparse_output_
    found = search(model).fit(table, Y).best_estimator_
    assert not found[0].sparse_output_
    assert dense(model) is model


class CountingSpender:
    def __init__(self):
        self.calls = 0

    def reserve(self, *_, **__):
        self.calls += 1

    settle = reserve


def test_a_learner_that_would_charge_a_ledger_itself_in_every_run_is_refused():
    spender = CountingSpender()
    with pytest.raises(ArgumentError, match="spender"):
        search(PrivateThresholdClassifier(spender=spender)).fit(X, Y)
    assert spender.calls == 0


class PricedByRows(ClassifierMixin, BaseEstimator):
    def __init__(self, nominal_rows=None, classes=None, random=None):
        self.nominal_rows, self.classes, self.random = nominal_rows, classes, random

    def fit(self, X, y):
        return self

    def guarantee(self):
        return pure_dp(epsilon=self.nominal_rows / 1000)


def test_a_further_run_on_all_rows_is_priced_for_all_rows():
    plan = search(PricedByRows(), nominal_rows=1000, refit=True).plan()
    assert plan.parts[0].pure_epsilon == 0.8
    assert plan.final.pure_epsilon == 1.0


def test_none_beside_numbers_and_beside_text_is_in_one_part():
    """pandas turns None into NaN in a column of numbers, and keeps it where one row has text."""
    numbers = np.array([[float(k), np.nan] for k in range(50)])
    mixed = np.array([[float(k), None] for k in range(50)] + [[50.0, "text"]], dtype=object)
    options = {"adjacency": Adjacency.ADD_OR_REMOVE_ONE, "salt": "s", "fraction": 0.5, "folds": None}
    alone = rows_to_parts(numbers, np.zeros(50), **options)[0][1]
    beside = rows_to_parts(mixed, np.zeros(51), **options)[0][1]
    assert beside[beside < 50].tolist() == alone.tolist()
