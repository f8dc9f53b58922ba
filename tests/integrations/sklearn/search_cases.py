"""A search over 500 rows of the classes "no" and "yes"."""

import numpy as np
from scipy import stats

from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.learners import OutputPerturbationClassifier
from dpselect.randomness import keyed_source
from dpselect.repetitions import Harmonic

RATES = {"regularization": stats.loguniform(1e-3, 1.0)}
LEARNER = OutputPerturbationClassifier(epsilon=2.0)
X = keyed_source("rows").uniform((500, 3))
Y = np.where(X[:, 0] > 0.5, "yes", "no")


def search(estimator=LEARNER, space=RATES, *, key=1, **options):
    defaults = {
        "repetitions": Harmonic(limit=4),
        "nominal_rows": 500,
        "classes": ["no", "yes"],
        "random": keyed_source(key),
    }
    return PrivateSearchCV(estimator, space, **{**defaults, **options})


def fit(estimator=LEARNER, space=RATES, X=X, Y=Y, **options):
    return search(estimator, space, **options).fit(X, Y)
