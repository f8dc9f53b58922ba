"""The plan of a search, and a learner of others whose guarantee reads its parameters."""

from sklearn.base import BaseEstimator, ClassifierMixin

from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.privacy import pure_dp
from dpselect.repetitions import Harmonic

LAW = Harmonic(limit=3)


def plan(estimator, space, *, columns=None, **options):
    return PrivateSearchCV(estimator, space, **{"repetitions": LAW, "score_epsilon": 0.1, **options}).plan(columns)


class Owned(ClassifierMixin, BaseEstimator):
    """A learner of someone's, whose guarantee looks at its parameters in ways that are hard to follow."""

    def __init__(self, size=None, flag=False, random=None):
        self.size = size
        self.flag = flag
        self.random = random

    def fit(self, X, y):
        return self

    def guarantee(self):
        if self.size is None or self.flag:
            return pure_dp(epsilon=3.0)
        return pure_dp(epsilon=1.0) if self.size > 2 else pure_dp(epsilon=2.0)
