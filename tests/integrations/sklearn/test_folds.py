"""The models of the folds as one model: probabilities and votes by class, means of numbers."""

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

from dpselect.integrations.sklearn.folds import FoldClassifier, FoldRegressor, average_of_folds


def test_models_of_folds_average_by_class():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    models = [LogisticRegression().fit(X, y) for y in (["a", "a", "b", "b"], ["b", "b", "c", "c"])]
    both = FoldClassifier(models)
    probabilities = both.predict_proba(X)
    assert both.classes_.tolist() == ["a", "b", "c"]
    assert np.allclose(probabilities.sum(axis=1), 1.0)
    assert np.allclose(probabilities[:, 0], models[0].predict_proba(X)[:, 0] / 2)
    assert both.predict(X).shape == (4,)


def test_votes_are_counted_if_one_model_has_no_probabilities():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    silent = LinearSVC().fit(X, ["a", "a", "b", "b"])
    found = FoldClassifier([silent, silent, LogisticRegression().fit(X, ["b", "b", "b", "c"])])
    assert not hasattr(found, "predict_proba")
    assert found.fit(X, None).predict(X[[0, 3]]).tolist() == ["a", "b"]


def test_regressors_average():
    X = np.array([[0.0], [1.0]])
    models = [LinearRegression().fit(X, y) for y in ([0.0, 1.0], [3.0, 7.0])]
    found = average_of_folds(models)
    assert isinstance(found, FoldRegressor)
    np.testing.assert_allclose(found.predict([[0.0], [2.0]]), [1.5, 6.5])
    assert isinstance(average_of_folds([LogisticRegression().fit(X, [0, 1])]), FoldClassifier)
