"""A search for a total budget over 500 rows."""

from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.learners import DPSGDClassifier
from dpselect.randomness import keyed_source

TOTAL = {"epsilon": 3.0, "delta": 1e-6, "nominal_rows": 500, "classes": [0, 1]}
FULL = {"steps": 40}


def search(space, estimator=None, **options):
    return PrivateSearchCV(DPSGDClassifier(**FULL) if estimator is None else estimator, space, **{**TOTAL, **options})


def rows(count=200):
    X = keyed_source("rows").uniform((count, 2)) - 0.5
    return X, (X[:, 0] > 0).astype(int)
