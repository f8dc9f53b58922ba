"""The dry run on synthetic rows: answers and scores that depend on other rows are found, as are failing scorers."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, scale

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn import PublicTransformer, RowScore
from dpselect.learners import DPSGDClassifier
from tests.integrations.sklearn.attacks_cases import LEARNER, X, Y, search

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


def test_a_scorer_that_gives_no_number_is_found_before_it_makes_every_run_fail():
    with pytest.raises(TypeError, match="dict") as caught:
        search(public_validation=(X, Y), scoring=lambda model, X, y: {"accuracy": 1.0}).fit(X, Y)
    assert "synthetic rows" in caught.value.__notes__[0]


def test_a_row_score_that_one_row_alone_changes_is_found_on_made_up_rows():
    whole = RowScore(lambda y, answers: np.ones(len(y)) if len(y) > 1 else np.zeros(1))
    with pytest.raises(ArgumentError, match="alone"):
        search(scoring=whole).fit(X, Y)


@pytest.mark.parametrize("values", [["relu", "soft", "tanh"], ["relu", "tanh", "soft"], ["soft"]])
def test_each_listed_word_is_tried(values):
    """Not the ends of the list alone: the one in the middle may be misspelt."""
    with pytest.raises(ArgumentError, match="activation") as caught:
        search(DPSGDClassifier(steps=2, hidden_units=2), {"activation": values}, delta=1e-5).fit(X, Y)
    assert "'soft'" in caught.value.__notes__[0]
