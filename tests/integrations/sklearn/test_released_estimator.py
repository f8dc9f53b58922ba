"""A finished search: its copies and clones, the methods of its model, and attributes that it cannot have."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dpselect.errors import BudgetError
from dpselect.ledger import Ledger
from dpselect.repetitions import Poisson
from tests.integrations.sklearn import attacks_cases as attacks
from tests.integrations.sklearn.search_cases import X, Y, fit, search

# copies and their ledgers


def test_a_clone_shares_the_ledger_and_a_pickled_copy_does_not_search_unpaid(tmp_path):
    budget = Ledger.open(tmp_path / "budget.db").create_budget("b", epsilon=100, delta=1e-6)
    paid = attacks.search(ledger=budget)
    assert clone(paid).ledger is budget
    clone(paid).fit(attacks.X, attacks.Y)
    spent = budget.spent().epsilon
    assert spent > 0
    for copied in (pickle.loads(pickle.dumps(paid)), copy.deepcopy(paid), clone(copy.copy(paid))):
        with pytest.raises(BudgetError, match="ledger stayed behind"):
            copied.fit(attacks.X, attacks.Y)
        assert copied.set_params(ledger=None).fit(attacks.X, attacks.Y).best_estimator_ is not None
    assert budget.spent().epsilon == spent
    assert pickle.loads(pickle.dumps(attacks.search())).ledger is None


def test_a_clone_keeps_requests_of_metadata_and_copies_the_rest():
    first = attacks.search(space={"regularization": [0.1, 1.0]})
    again = clone(first)
    assert again.estimator is not first.estimator
    assert again.param_distributions == first.param_distributions
    assert again.param_distributions is not first.param_distributions
    assert not hasattr(clone(first.fit(attacks.X, attacks.Y)), "guarantee_")


@pytest.mark.parametrize("name", ["cv_results_", "best_score_", "best_index_", "n_splits_", "refit_time_"])
def test_what_is_missing_says_why(name):
    fitted = search().fit(X, Y)
    assert not hasattr(fitted, name)
    with pytest.raises(AttributeError, match=r"secret|one split|times"):
        getattr(fitted, name)


def test_clone_set_params_and_pickle():
    first = search()
    again = clone(first).set_params(estimator__epsilon=1.0, max_runs=7)
    assert first.get_params()["estimator__epsilon"] == 2.0
    assert again.guarantee().epsilon(0) < first.guarantee().epsilon(0)
    fitted = again.fit(X, Y)
    copy = pickle.loads(pickle.dumps(fitted))
    assert copy.random is None
    assert np.array_equal(copy.predict(X), fitted.predict(X))
    assert again.fit(X, Y) is again  # a second search, at a second price


def test_an_unfitted_search_and_one_that_found_nothing_predict_nothing():
    with pytest.raises(NotFittedError, match="not fitted"):
        search().predict(X)
    nothing = fit(repetitions=Poisson(mean=1e-9))
    assert nothing.best_estimator_ is None
    assert nothing.best_params_ is None
    with pytest.raises(NotFittedError, match="found nothing"):
        nothing.predict(X)


class Embeds(attacks.Constant):
    """A private model of someone's that scores and transforms rows too."""

    def score_samples(self, X):
        return -np.sum(np.asarray(X) ** 2, axis=1)

    def transform(self, X):
        return 2.0 * np.asarray(X)

    def inverse_transform(self, X):
        return np.asarray(X) / 2.0


@pytest.mark.parametrize("name", ["score_samples", "transform", "inverse_transform"])
def test_methods_are_there_where_the_released_model_has_them(name):
    made = attacks.search(Embeds())
    assert hasattr(made, name)
    fitted = made.fit(attacks.X, attacks.Y)
    assert np.array_equal(getattr(fitted, name)(attacks.X), getattr(fitted.best_estimator_, name)(attacks.X))
    assert not hasattr(attacks.search(), name)
    assert not hasattr(attacks.search().fit(attacks.X, attacks.Y), name)
    with pytest.raises(NotFittedError):
        getattr(attacks.search(Embeds()), name)(attacks.X)


@pytest.mark.parametrize("name", ["score_samples", "transform"])
def test_methods_refuse_rows_of_other_columns(name):
    fitted = attacks.search(Embeds()).fit(attacks.X, attacks.Y)
    with pytest.raises(ValueError, match="features"):
        getattr(fitted, name)(attacks.X[:, :2])
