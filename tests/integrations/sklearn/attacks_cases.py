"""A search over 120 rows, and estimators of others: one that fails on odd numbers, one that keeps what it saw."""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from dpselect.errors import NothingFoundWarning
from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.learners import OutputPerturbationClassifier
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed

X = keyed_source("rows").uniform((120, 3))
Y = (X[:, 0] > 0.5).astype(int)
LEARNER = OutputPerturbationClassifier(epsilon=2.0)


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


def search(estimator=LEARNER, space=None, **options):
    defaults = {
        "repetitions": Fixed(count=1),
        "score_epsilon": 0.5,
        "nominal_rows": 120,
        "classes": [0, 1],
        "random": keyed_source(1),
    }
    return PrivateSearchCV(estimator, space or {}, **{**defaults, **options})


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
