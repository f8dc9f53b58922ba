"""The price of a search before it runs: the largest part, folds, further runs, calibrated noise, adjacency."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from dpselect.accounting import best_of
from dpselect.errors import AdjacencyError, ArgumentError, BudgetError
from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.learners import DPSGDClassifier, OutputPerturbationClassifier
from dpselect.mechanisms import NoisyCount
from dpselect.privacy import Adjacency, approximate_dp, compose, gaussian, pure_dp, worst_of
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Harmonic
from tests.integrations.sklearn import attacks_cases as attacks
from tests.integrations.sklearn.plan_cases import LAW, plan

ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE


def declared(guarantee, **options):
    return plan(LogisticRegression(), {}, base=guarantee, **options)


# prices


def test_one_split_costs_the_larger_of_training_and_scoring():
    for training, score in ((1.0, 0.1), (0.1, 1.0)):
        total = declared(pure_dp(epsilon=training), score_epsilon=score).guarantee
        assert total.epsilon(0) == best_of(pure_dp(epsilon=1.0), LAW).epsilon(0)


@pytest.mark.full
@pytest.mark.parametrize("folds", [2, 3, 5])
def test_with_folds_a_row_pays_for_the_other_folds_models_and_for_the_score(folds):
    found = declared(gaussian(noise_multiplier=3.0), cv=folds, delta=1e-5)
    once = compose(*[gaussian(noise_multiplier=3.0)] * (folds - 1), NoisyCount(epsilon=0.1).guarantee)
    assert found.parts[0].epsilon(1e-5) == once.epsilon(1e-5)
    assert found.guarantee.epsilon(1e-5) == best_of(once, LAW).epsilon(1e-5)


@pytest.mark.full
@pytest.mark.parametrize(
    ("base", "delta"),
    [(pure_dp(epsilon=1.0), 0.0), pytest.param(gaussian(noise_multiplier=3.0), 1e-5, marks=pytest.mark.slow)],
)
def test_a_refit_is_composed(base, delta):
    """The rows that score are public, so that there is one part; both sides are computed by the same calculus."""
    found = declared(base, refit=True, delta=delta, public_validation=([[0.0]], [0]))
    assert found.final.terms == base.terms
    assert found.guarantee.epsilon(delta) == compose(best_of(base, LAW), base).epsilon(delta)


@pytest.mark.slow
def test_noise_chosen_by_the_quick_price_is_close_to_the_least():
    """With a further run the noise is calibrated by bounds that compose quickly; the promise is the sharp price."""
    learner = DPSGDClassifier(sampling_rate=0.1, steps=20)
    found = plan(learner, {}, epsilon=2.0, delta=1e-5, refit=True, score_epsilon=None)
    assert 0.95 * 2.0 < found.guarantee.epsilon(1e-5) <= 2.0


def test_a_refit_after_a_searched_epsilon_pays_for_the_largest():
    learner = OutputPerturbationClassifier()
    found = plan(learner, {"epsilon": [0.5, 1.0]}, refit=True)
    assert found.final.pure_epsilon == 1.0


@pytest.mark.full
def test_epsilon_with_a_law_chooses_the_noise_and_alone_the_law():
    learner = DPSGDClassifier(noise_multiplier=8.0, sampling_rate=0.1, steps=10)
    chosen = plan(learner, {}, epsilon=1.0, delta=1e-5, score_epsilon=None)
    assert 0.99 < chosen.guarantee.epsilon(1e-5) <= 1.0
    assert chosen.noise is not None
    law = plan(OutputPerturbationClassifier(epsilon=0.5), {}, epsilon=0.8, repetitions=None, score_epsilon=None)
    assert law.noise is None
    assert law.guarantee.epsilon(0) <= 0.8
    limit = law.repetitions.limit
    assert 1 < limit < 100
    assert best_of(pure_dp(epsilon=0.5), Harmonic(limit=limit + 1)).epsilon(0) > 0.8


@pytest.mark.parametrize("shape", [{"cv": 3}, pytest.param({"refit": True}, marks=pytest.mark.slow), {}])
def test_the_total_is_kept(shape):
    found = plan(OutputPerturbationClassifier(), {}, epsilon=2.0, score_epsilon=None, **shape)
    assert 1.9 < found.guarantee.epsilon(0) <= 2.0


def test_a_total_that_cannot_be_met_is_refused():
    with pytest.raises(BudgetError):
        plan(OutputPerturbationClassifier(), {}, epsilon=0.1, score_epsilon=1.0)
    with pytest.raises(BudgetError):
        plan(OutputPerturbationClassifier(epsilon=2.0), {}, epsilon=1.0, repetitions=None)
    with pytest.raises(ArgumentError, match="delta"):
        plan(DPSGDClassifier(steps=100), {}, score_epsilon=None)
    with pytest.raises(ArgumentError, match="neither noise_multiplier nor epsilon"):
        declared(pure_dp(epsilon=1.0), epsilon=2.0)
    with pytest.raises(ArgumentError, match="is the noise"):
        plan(OutputPerturbationClassifier(), {"epsilon": [1.0]}, epsilon=2.0)


@pytest.mark.full
def test_the_model_that_is_released_promises_what_was_planned():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(3000, 2)), random.integers(0, 2, 3000)
    for own, options in (({}, {"nominal_rows": 100_000}), ({"steps": 40}, {})):
        found = PrivateSearchCV(
            DPSGDClassifier(classes=[0, 1], **own),
            {},
            repetitions=Fixed(count=1),
            score_epsilon=0.1,
            delta=1e-6,
            random=keyed_source(1),
            **options,
        )
        with warnings.catch_warnings(action="ignore"):
            fitted = found.fit(X, y)
        assert fitted.best_estimator_.guarantee_.epsilon(1e-6) == found.plan().parts[0].epsilon(1e-6)


def test_adjacency_is_set_where_it_can_be_and_else_never_converted():
    assert plan(OutputPerturbationClassifier(), {}, adjacency="replace_one").guarantee.adjacency is REPLACE
    with pytest.raises(AdjacencyError):
        declared(pure_dp(epsilon=1.0), adjacency="replace_one")
    trained = plan(DPSGDClassifier(nominal_rows=100), {}, adjacency="replace_one", delta=1e-5)
    assert trained.guarantee.adjacency is REPLACE


@pytest.mark.full
def test_the_parts_are_what_tune_would_charge():
    found = declared(approximate_dp(epsilon=1.0, delta=1e-7), delta=1e-5)
    assert found.guarantee.epsilon(1e-5) == worst_of(*[best_of(p, LAW) for p in found.parts]).epsilon(1e-5)


@pytest.mark.parametrize(
    ("searched", "said"),
    [
        ({"learning_rate": [0.1, 1.0], "momentum": [0.0, 0.9]}, True),
        ({"learning_rate": [0.1, 1.0], "hidden_units": [0, 8]}, False),
        ({"row_norm": [1.0, 2.0]}, False),
    ],
)
def test_a_search_of_what_a_rule_chooses_says_what_one_run_would_have(searched, said):
    search = PrivateSearchCV(
        DPSGDClassifier(classes=[0, 1], steps=50),
        searched,
        epsilon=2.0,
        delta=1e-5,
        repetitions=Fixed(count=1),
        nominal_rows=500,
    )
    note = search.plan().note
    assert (note is not None) == said
    if said:
        assert "would have all of 2" in note


class PricedByRows(ClassifierMixin, BaseEstimator):
    def __init__(self, nominal_rows=None, classes=None, random=None):
        self.nominal_rows, self.classes, self.random = nominal_rows, classes, random

    def fit(self, X, y):
        return self

    def guarantee(self):
        return pure_dp(epsilon=self.nominal_rows / 1000)


def test_a_further_run_on_all_rows_is_priced_for_all_rows():
    plan = attacks.search(PricedByRows(), nominal_rows=1000, refit=True).plan()
    assert plan.parts[0].pure_epsilon == 0.8
    assert plan.final.pure_epsilon == 1.0
