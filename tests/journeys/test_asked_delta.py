"""The delta that a caller asks for is the delta that a ledger is charged, wherever a delta can be asked for."""

from fractions import Fraction

import pytest

from dpselect.holdout import Holdout, HoldoutLabels, HoldoutRequest
from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.learners import DPSGDClassifier, PrivateRectangleClassifier
from dpselect.ledger import Ledger
from dpselect.ordered import quantiles
from dpselect.privacy import gaussian
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed
from dpselect.tuning import Categorical, tune

X = keyed_source("rows").uniform((60, 2))
Y = (X[:, 0] > 0.5).astype(int)
ASKED = Fraction(1, 10**6)


def searched(budget, **options):
    learner = DPSGDClassifier(steps=3, noise_multiplier=4.0)
    search = PrivateSearchCV(
        learner, {}, epsilon=1.0, delta=1e-6, nominal_rows=60, classes=[0, 1], ledger=budget, **options
    )
    search.fit(X, Y)


def tuned(budget, **options):
    tune(
        lambda params, random: (random.laplace(1)[0], params),
        space={"x": Categorical([1])},
        base=gaussian(noise_multiplier=8.0),
        ledger=budget,
        **options,
    )


CHARGES = {
    "PrivateSearchCV": lambda budget: searched(budget, repetitions=Fixed(count=1), score_epsilon=0.01),
    "PrivateSearchCV, refit": lambda budget: searched(budget, repetitions=Fixed(count=1), refit=True),
    "PrivateSearchCV, one run": lambda budget: searched(budget, design="one-run"),
    "tune": lambda budget: tuned(budget, epsilon=3.0, delta=1e-6, max_runs=2),
    "rectangles": lambda budget: PrivateRectangleClassifier(
        epsilon=1.0, delta=1e-6, lower=0.0, upper=1.0, spender=budget, random=keyed_source(1)
    ).fit(X, Y),
    "quantiles": lambda budget: quantiles(
        X[:, 0], qs=[0.2, 0.7], lower=0, upper=1, epsilon=1.0, method="slice", delta=1e-6, spender=budget
    ),
}


@pytest.mark.parametrize("what", CHARGES)
def test_the_delta_that_is_asked_for_is_charged(what, tmp_path):
    budget = Ledger.open(tmp_path / "ledger.db").create_budget("b", epsilon=4, delta=1e-5)
    CHARGES[what](budget)
    assert budget.spent().delta <= ASKED
    assert 0 < budget.spent().epsilon <= 4


def test_a_holdout_is_charged_at_its_own_delta(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.db")
    budget = ledger.create_budget("b", epsilon=4, delta=1e-5, adjacency="replace_one")
    labels = HoldoutLabels(ids=range(500), labels=[0, 1] * 250)
    request = HoldoutRequest(
        metric="accuracy", questions=10, answers=2, failure_probability=0.05, epsilon=3.0, delta=1e-6
    )
    Holdout.create(tmp_path / "l.holdout", labels, request, spender=budget)
    assert budget.spent().delta == ASKED
    assert 0 < budget.spent().epsilon <= 3


def test_a_budget_that_is_a_filter_counts_as_before(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.db")
    budget = ledger.create_budget("b", epsilon=4, delta=1e-5, accounting="renyi")
    tuned(budget, epsilon=3.0, delta=1e-6, max_runs=2)
    assert 0 < budget.spent().epsilon < 4


def test_without_a_delta_the_budget_has_its_own(tmp_path):
    budget = Ledger.open(tmp_path / "ledger.db").create_budget("b", epsilon=4, delta=1e-5)
    tuned(budget, repetitions=Fixed(count=1))
    assert budget.spent().delta == Fraction(1, 10**5)
