"""The base of the classifiers that release a rule: the class of each row, labels of no class, clones and copies."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dpselect.errors import ArgumentError
from dpselect.learners.rule_classifier import RuleClassifier
from dpselect.privacy import Release, pure_dp
from dpselect.randomness import keyed_source


class Positive(RuleClassifier):
    """The second class where the first cell is above 0."""

    def guarantee(self):
        return pure_dp(epsilon=0.5)

    def fit(self, X, y):
        self.read_ = self._read(X, y)
        return self._learnt(Release(value="rule", guarantee=self.guarantee()))

    def _positive(self, table):
        return table[:, 0] > 0.0


class Spends:
    def reserve(self, *_, **__):
        raise AssertionError("nothing is reserved here")

    settle = reserve


def test_rows_and_labels_become_doubles_and_numbers_of_classes():
    model = Positive(classes=["no", "yes"]).fit([[1, "x"], [-1, None], [2, 3]], ["yes", "no", "maybe"])
    table, numbers = model.read_
    np.testing.assert_array_equal(table, [[1.0, np.nan], [-1.0, np.nan], [2.0, 3.0]])
    assert numbers.tolist() == [1, 0, -1]
    assert (model.rule_, model.guarantee_.pure_epsilon, model.receipt_) == ("rule", 0.5, None)
    assert model.predict([[0.5, 0], [0.0, 0], [-3, 0]]).tolist() == ["yes", "no", "no"]


def test_one_class_is_every_answer_and_three_are_refused():
    assert Positive(classes=[7]).fit([[1.0]], [7]).predict([[1.0], [-1.0]]).tolist() == [7, 7]
    with pytest.raises(ArgumentError, match="classes must be two labels, got 3"):
        Positive(classes=[0, 1, 2]).fit([[1.0]], [0])
    with pytest.raises(NotFittedError):
        Positive(classes=[0, 1]).predict([[1.0]])


def test_a_clone_shares_source_and_spender_and_a_copy_has_neither():
    model = Positive(random=keyed_source(1), spender=Spends(), classes=[0, 1])
    assert clone(model).random is model.random
    assert clone(model).spender is model.spender
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert (copied.random, copied.spender, copied.classes) == (None, None, [0, 1])
