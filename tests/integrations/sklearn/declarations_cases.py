"""A search over 60 rows."""

from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.learners import (
    OutputPerturbationClassifier,
)
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed

ROWS = 60
LEARNER = OutputPerturbationClassifier(epsilon=2.0)


def search(estimator=LEARNER, **options):
    defaults = {"repetitions": Fixed(count=1), "score_epsilon": 0.1, "nominal_rows": ROWS, "classes": [0, 1]}
    return PrivateSearchCV(estimator, {}, random=keyed_source(1), **{**defaults, **options})
