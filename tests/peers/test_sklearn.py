"""scikit-learn 1.9.1: what its `model_selection/tests/test_search.py` asserts of a search, of `PrivateSearchCV`.

Its results for each candidate are secret here, so tests of `cv_results_` have no counterpart.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from dpselect.integrations.sklearn import PrivateSearchCV
from tests.integrations.sklearn.search_cases import LEARNER, RATES, X, Y, fit, search

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def fitted():
    return fit()


def test_a_fitted_search(compare, fitted):
    """`test_grid_search`, `test_classes__property`, `test_n_features_in`, `test_refit`: it is the best estimator."""
    with compare("scikit-learn") as peer:
        best = fitted.best_estimator_
        peer.holds(isinstance(best, type(LEARNER)) and set(fitted.best_params_) == set(RATES))
        peer.holds(best.get_params()["regularization"] == fitted.best_params_["regularization"])
        peer.holds(list(fitted.classes_) == ["no", "yes"] == list(best.classes_))
        peer.holds(fitted.n_features_in_ == 3 == best.n_features_in_)
        peer.holds(is_classifier(fitted))
        for method in ("predict", "predict_proba", "decision_function", "predict_log_proba"):
            if hasattr(best, method):
                peer.holds(np.array_equal(getattr(fitted, method)(X), getattr(best, method)(X)), method)
            else:
                peer.refuses(AttributeError, lambda m=method: getattr(fitted, m), method)
        peer.holds(np.isfinite(fitted.score(X, Y)) and fitted.score(X, Y) == best.score(X, Y))
        peer.holds(fitted.score(X, Y) > 0.6, "learned")


def test_before_it_is_fitted(compare):
    """`test_no_refit`, `test_grid_search_score_method`: what needs a model says so."""
    with compare("scikit-learn") as peer:
        fresh = search()
        for method in ("predict", "predict_proba", "decision_function"):
            if hasattr(LEARNER, method):
                peer.refuses((NotFittedError, AttributeError), lambda m=method: getattr(fresh, m)(X), method)
        peer.refuses((NotFittedError, AttributeError), lambda: fresh.score(X, Y))
        peer.refuses(NotFittedError, lambda: check_is_fitted(fresh))
        for name in ("best_estimator_", "best_params_", "classes_", "n_features_in_"):
            peer.holds(not hasattr(fresh, name), name)


def test_it_is_an_estimator(compare, fitted):
    """`test_pickle`, `test_search_estimator_param`, and what `clone` needs."""
    with compare("scikit-learn") as peer:
        other = pickle.loads(pickle.dumps(fitted))
        peer.holds(np.array_equal(other.predict(X), fitted.predict(X)))
        fresh = clone(search())
        peer.holds(not hasattr(fresh, "best_estimator_"))
        peer.holds(fresh.get_params()["estimator"].get_params() == LEARNER.get_params())
        peer.holds(fresh.set_params(cv=3).cv == 3)
        peer.holds(fresh.set_params(estimator__regularization=0.5).estimator.regularization == 0.5)
        peer.holds(LEARNER.get_params() == clone(LEARNER).get_params(), "the search changes no estimator of the caller")
        peer.refuses(ValueError, lambda: fresh.set_params(no_such=1))
        shared = {"estimator", "scoring", "n_jobs", "refit", "cv", "verbose"}
        peer.holds(shared <= set(PrivateSearchCV(LEARNER, RATES).get_params()))
        theirs = set(RandomizedSearchCV(LEARNER, RATES).get_params(deep=False))
        peer.holds({"param_distributions"} <= theirs & set(fresh.get_params(deep=False)))
        peer.holds("PrivateSearchCV" in repr(fitted) and "<" in fitted._repr_html_())


def test_containers(compare, fitted):
    """`test_X_as_list`, `test_y_as_list`, `test_pandas_input`: the same model from the same numbers."""
    with compare("scikit-learn") as peer:
        expected = fitted.predict(X)
        for rows, labels in ((X.tolist(), Y), (X, Y.tolist()), (X.tolist(), Y.tolist()), (X.astype(object), Y)):
            peer.holds(np.array_equal(fit(X=rows, Y=labels).predict(X), expected), type(rows), type(labels))
        pandas = pytest.importorskip("pandas")
        frame, series = pandas.DataFrame(X, columns=["a", "b", "c"]), pandas.Series(Y)
        found = fit(X=frame, Y=series)
        peer.holds(np.array_equal(found.predict(frame), expected))
        peer.holds(list(found.feature_names_in_) == ["a", "b", "c"])


def test_spaces(compare):
    """`test_grid_search_one_grid_point`, `..._includes_range`, `..._bad_param_grid`, `test_param_sampler`."""
    with compare("scikit-learn") as peer:
        one = fit(space={"regularization": [0.5]})
        peer.holds(one.best_params_ == {"regularization": 0.5} == one.best_params_)
        ranged = fit(space={"regularization": range(1, 4)})
        peer.holds(ranged.best_params_["regularization"] in (1, 2, 3))
        several = fit(space=[{"regularization": [0.25]}, {"regularization": [0.75]}])
        peer.holds(several.best_params_["regularization"] in (0.25, 0.75))
        peer.holds(fit(space={"regularization": np.array([0.5, 0.25])}).best_params_["regularization"] in (0.5, 0.25))
        for wrong in ({"regularization": 0}, {"regularization": []}, {"no_such": [1]}, "x", {"regularization": "ab"}):
            peer.refuses((ValueError, TypeError), lambda w=wrong: fit(space=w), wrong)
            with_grid = GridSearchCV(LEARNER, wrong) if isinstance(wrong, dict) else None
            if with_grid is not None:
                peer.refuses((ValueError, TypeError), lambda g=with_grid: g.fit(X, Y), wrong)


class NoFit(BaseEstimator):
    """An estimator without any method."""


class NoScore(BaseEstimator):
    """An estimator without `score`."""

    def fit(self, X, y=None):
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_wrong_arguments(compare):
    """`test_validate_parameter_input`, `test_grid_search_no_score`, `test_random_search_bad_cv` and others.

    A `KFold` is fine there. Here folds are a number, since a split of others may look at the rows.
    """
    with compare("scikit-learn") as peer:
        for estimator in (NoFit(), NoScore(), LEARNER.__class__, None, 3):
            peer.refuses((ValueError, TypeError), lambda e=estimator: fit(estimator=e), estimator)
        peer.refuses(ValueError, lambda: fit(Y=Y[:-1]))
        for folds in (KFold(3), 1, 0, -1, "x", 1.5):
            peer.refuses((ValueError, TypeError), lambda c=folds: fit(cv=c), folds)
        for scoring in ("no_such", "foo", 3):
            peer.refuses((ValueError, TypeError), lambda s=scoring: fit(scoring=s), scoring)
        for jobs in (0, 1.5, "x"):
            peer.refuses((ValueError, TypeError), lambda n=jobs: fit(n_jobs=n), jobs)


def test_searches_inside_others(compare):
    """`test_grid_search_pipeline_steps` and nested searches: it takes pipelines, and is taken by `cross_val_score`."""
    with compare("scikit-learn") as peer:
        piped = fit(estimator=Pipeline([("model", LEARNER)]), space={"model__regularization": [0.25, 0.5]})
        peer.holds(piped.best_params_["model__regularization"] in (0.25, 0.5))
        peer.holds(isinstance(piped.best_estimator_, Pipeline))
        scores = cross_val_score(search(nominal_rows=333), X, Y, cv=3)
        peer.holds(len(scores) == 3 and bool(np.all(np.isfinite(scores))))
        peer.holds(np.array_equal(fit(key=7).predict(X), fit(key=7).predict(X)), "same random source")
        plain = fit(cv=3)
        peer.holds(plain.predict(X).shape == (len(X),))
