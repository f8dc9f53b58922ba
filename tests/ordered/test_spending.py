"""Ordered functions pay before they look: reserved durably first, settled after, refused without a look at the data."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from dpselect.errors import BudgetError, ContentError
from dpselect.learners import PrivateRectangleClassifier, PrivateThresholdClassifier
from dpselect.ledger import Ledger
from dpselect.ordered import interior_point, learn_rectangle, learn_threshold
from dpselect.ordered.interior_points import RisingAndFalling, ScoreRuns, maximize_quasi_concave
from dpselect.ordered.interior_points.optimisation_reduction import QuasiConcaveByInteriorPoint
from dpselect.ordered.slices import Ordered, ReorderSliceCompute
from dpselect.privacy import pure_dp
from dpselect.privacy.release import Receipt
from dpselect.randomness import keyed_source


class Recorder:
    """Keeps what was asked of it; refuses everything after `limit` reservations."""

    def __init__(self, limit=None):
        self.limit, self.reserved, self.settled = limit, [], []

    def reserve(self, guarantee, *, label, identifier):
        if self.limit is not None and len(self.reserved) >= self.limit:
            raise BudgetError("nothing left")
        self.reserved.append((label, identifier, guarantee))
        return Receipt(account="test", identifier=identifier, charged={})

    def settle(self, identifier, *, cell=None):
        self.settled.append(identifier)
        return Receipt(account="test", identifier=identifier, charged={})


X = np.random.default_rng(1).uniform(0, 1, (900, 2))
Y = (X[:, 0] < 0.5).astype(int)
SCORE = RisingAndFalling(lambda z: z, lambda z: 900 - z)
RUNS = ScoreRuns([0, 5], [1, 2], upper=9)
SMALL = {"epsilon": 0.5, "random": keyed_source(1)}

CALLS = {
    "interior-point": lambda values=X[:, 0], **more: interior_point(values, lower=0.0, upper=1.0, **SMALL, **more),
    "threshold": lambda values=X[:, 0], **more: learn_threshold(values, Y, lower=0, upper=1, **SMALL, **more),
    "rectangle": lambda values=X, **more: learn_rectangle(values, Y, lower=0, upper=1, **SMALL, **more),
    "quasi-concave": lambda score=SCORE, **more: maximize_quasi_concave(score, lower=0, upper=10**6, **SMALL, **more),
    "runs": lambda **more: maximize_quasi_concave(RUNS, **SMALL, **more),
    "reduction": lambda **more: QuasiConcaveByInteriorPoint(epsilon=0.5)(RUNS, random=keyed_source(1), **more),
    "cumulative": lambda **more: QuasiConcaveByInteriorPoint(epsilon=0.5, delta=1e-6, method="cumulative")(
        RUNS, random=keyed_source(1), **more
    ),
    "slices": lambda **more: ReorderSliceCompute(
        [1, 2], slice_epsilon=0.1, computation=pure_dp(epsilon=0.1), slices=2, **more
    ).release(7),
}


@pytest.mark.parametrize("name", CALLS)
def test_each_call_is_reserved_and_settled_once_under_its_own_identifier(name):
    spender = Recorder()
    one, two = CALLS[name](spender=spender, label="mine"), CALLS[name](spender=spender, label="mine")
    labels, identifiers, guarantees = zip(*spender.reserved, strict=True)
    assert labels == ("mine", "mine")
    assert spender.settled == list(identifiers)
    assert len(set(identifiers)) == 2
    assert [one.receipt.identifier, two.receipt.identifier] == list(identifiers)
    for release, guarantee in ((one, guarantees[0]), (two, guarantees[1])):
        assert guarantee.epsilon(1e-6) == release.guarantee.epsilon(1e-6)
    assert CALLS[name]().receipt is None
    default = Recorder()
    CALLS[name](spender=default)
    assert default.reserved[0][0]


@pytest.mark.parametrize("name", CALLS)
def test_a_refusal_is_not_settled(name):
    spender = Recorder(limit=0)
    with pytest.raises(BudgetError):
        CALLS[name](spender=spender)
    assert spender.settled == []


class Untouchable:
    """A column that fails when a value is looked at, after its length and type were asked for."""

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return (self for _ in range(len(self.values)))

    def __index__(self):
        raise AssertionError("a value was looked at")


def test_nothing_is_looked_at_before_it_is_paid_for():
    """A refused call never asks the score, and never converts a value; a paid one that then fails stays charged."""

    def forbidden(z):
        raise AssertionError("the score was asked for")

    for spender, error in ((Recorder(limit=0), BudgetError), (Recorder(), AssertionError)):
        with pytest.raises(error):
            CALLS["quasi-concave"](score=RisingAndFalling(forbidden, forbidden), spender=spender)
        with pytest.raises(error):
            maximize_quasi_concave(forbidden, lower=0, upper=9, epsilon=1, spender=spender)
        with pytest.raises(error):
            interior_point(Untouchable([1, 2]), domain_size=2**300, epsilon=1, spender=spender)
        assert len(spender.reserved) == (0 if spender.limit == 0 else 3)
        assert spender.settled == []


def test_wrong_parameters_and_shapes_cost_nothing():
    spender = Recorder()
    for wrong in ({"epsilon": 0}, {"lower": 1.0}, {"values": np.zeros((2, 2))}):
        with pytest.raises((ValueError, ContentError)):
            interior_point(**{"values": [0.5], "lower": 0.0, "upper": 0.5, "epsilon": 1, "spender": spender} | wrong)
    with pytest.raises(ValueError, match="y"):
        learn_threshold([1.0], [1, 0], lower=0, upper=1, epsilon=1, spender=spender)
    with pytest.raises(ValueError, match="lower"):
        learn_rectangle([[1.0]], [1], lower=2, upper=1, epsilon=1, spender=spender)
    with pytest.raises(ValueError, match="peak"):
        maximize_quasi_concave(float, lower=0, upper=2**40, epsilon=1, spender=spender)
    assert spender.reserved == []


def test_a_budget_of_a_ledger(tmp_path):
    """0.5 each until the budget of 2 is spent; the record holds the labels and what is left."""
    with Ledger.open(tmp_path / "budget.db") as ledger:
        budget = ledger.create_budget("ordered", epsilon=2)
        for name in ("interior-point", "threshold", "quasi-concave", "runs"):
            receipt = CALLS[name](spender=budget, label=name).receipt
            assert float(receipt.charged["epsilon"]) == pytest.approx(0.5)
        assert Fraction(str(budget.spent().epsilon)) <= 2
        with pytest.raises(BudgetError):
            CALLS["threshold"](spender=budget, label="one too many")


@pytest.mark.parametrize("kind", [PrivateThresholdClassifier, PrivateRectangleClassifier])
def test_classifiers_pay_for_each_fit(kind):
    spender = Recorder(limit=2)
    model = kind(epsilon=0.5, classes=[0, 1], spender=spender, label="fit", random=keyed_source(2))
    model.fit(X, Y)
    first = model.receipt_
    model.fit(X, Y)
    assert [first.identifier, model.receipt_.identifier] == spender.settled
    assert [label for label, _, _ in spender.reserved] == ["fit", "fit"]
    with pytest.raises(BudgetError):
        model.fit(X, Y)
    assert clone(kind(epsilon=0.5)).fit(X, Y).receipt_ is None
    # a copy of a released model carries no budget
    assert pickle.loads(pickle.dumps(model)).spender is None
    assert (copy.deepcopy(model).predict(X) == model.predict(X)).all()


def test_clones_pay_from_the_same_budget(tmp_path):
    """Cross-validation clones the model for every fold: each fit is charged where it belongs."""
    with Ledger.open(tmp_path / "budget.db") as ledger:
        budget = ledger.create_budget("folds", epsilon=2)
        model = PrivateThresholdClassifier(epsilon=0.5, classes=[0, 1], spender=budget, random=keyed_source(3))
        assert clone(model).random is model.random
        cross_val_score(model, X, Y, cv=3)
        assert float(budget.spent().epsilon) == pytest.approx(1.5)
        with pytest.raises(BudgetError):
            cross_val_score(model, X, Y, cv=2, error_score="raise")


def test_a_session_is_paid_before_it_begins_and_settled_at_its_release():
    spender = Recorder()
    session = ReorderSliceCompute(
        range(90), slice_epsilon=0.1, computation=pure_dp(epsilon=0.1), slices=2, spender=spender, label="peel"
    )
    assert [label for label, _, _ in spender.reserved] == ["peel"]
    assert spender.reserved[0][2].epsilon(1e-6) == session.guarantee.epsilon(1e-6)
    session.slice_and_compute(3, Ordered(), lambda rows: 1)
    assert spender.settled == []
    assert session.release(1).receipt == session.release(2).receipt
    assert set(spender.settled) == {spender.reserved[0][1]}
