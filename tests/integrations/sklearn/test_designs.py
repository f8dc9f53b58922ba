"""Designs of `PrivateSearchCV`: one run, a portfolio and two stages cost and draw what the same studies do."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer

from dpselect.accounting import best_of
from dpselect.accounting.planning.portfolio import CHOICE, PortfolioPrice, covering, portfolio_of
from dpselect.errors import AdjacencyError
from dpselect.integrations.sklearn import RowScore
from dpselect.integrations.sklearn.designs import PortfolioRun, _beginning, agreement_of
from dpselect.integrations.sklearn.trial import Settings, TrialRows, unpack
from dpselect.learners import DPSGDClassifier, DPSGDRegressor
from dpselect.mechanisms import ExponentialMechanism
from dpselect.privacy import Adjacency, compose, pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Harmonic
from dpselect.searching.portfolio import TrialModel
from dpselect.study.portfolio import the_choice
from dpselect.tuning import LogUniform
from tests.audits.score_laws import exponential_law
from tests.integrations.sklearn.designs_cases import FULL, rows, search

RATES = {"learning_rate": LogUniform(0.5, 8.0)}
SCALES = {"intercept_scale": [0.3, 1.0]}


# The price


def test_one_run_has_all_rows_and_all_of_the_total():
    found = search({}, design="one-run").plan()
    assert found.score_epsilon is None
    assert 0.999 * 3.0 <= found.guarantee.epsilon(1e-6) <= 3.0
    alone = DPSGDClassifier(**FULL, noise_multiplier=found.noise, nominal_rows=500, classes=[0, 1])
    assert found.guarantee.epsilon(1e-6) == pytest.approx(alone.guarantee().epsilon(1e-6), rel=1e-9)


@pytest.mark.full
def test_a_portfolio_costs_the_composition_of_trials_choice_and_last_run():
    found = search(SCALES, design="portfolio").plan()
    assert found.candidates == ({"intercept_scale": 0.3}, {"intercept_scale": 1.0})
    parts = found.portfolio
    whole = compose(*parts.training, parts.choice.guarantee, parts.last)
    assert found.guarantee.epsilon(1e-6) == pytest.approx(whole.epsilon(1e-6), rel=1e-3)
    assert 0.999 * 3.0 <= found.guarantee.epsilon(1e-6) <= 3.0
    assert parts.choice.epsilon == 3.0 / CHOICE


@pytest.mark.full
def test_two_stages_cost_the_composition_and_use_the_total():
    found = search(RATES, design="two-stage", repetitions=Harmonic(limit=2)).plan()
    assert 0.999 * 3.0 <= found.guarantee.epsilon(1e-6) <= 3.0
    assert found.final_noise < 0.6 * found.noise
    for part in found.parts:
        whole = compose(best_of(part, Harmonic(limit=2)), found.final)
        assert whole.epsilon(1e-6) <= 3.0
        assert best_of(part, Harmonic(limit=2)).epsilon(1e-6) <= 0.9


# The law of what a portfolio releases, on finite outputs


class Says(ClassifierMixin, BaseEstimator):
    """Answers one class for all rows: the exponential mechanism on how many have it, private at `epsilon`."""

    def __init__(self, epsilon=1.0, kind=0, random=None):
        self.epsilon, self.kind, self.random = epsilon, kind, random

    def guarantee(self):
        return pure_dp(epsilon=self.epsilon)

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        law = exponential_law([np.sum(y == 0), np.sum(y == 1)], self.epsilon)
        self.answer_ = int(self.random.uniform(1)[0] > law[0])
        return self

    def predict(self, X):
        return np.full(len(X), self.answer_)


TRIALS, LAST, AHEAD = (1.0, 2.0), (1 / 0.5, 1 / 0.4), 1


def exact_law(labels, rate):
    found = Counter()
    trials = [exponential_law([labels.count(0), labels.count(1)], 1.0 / noise) for noise in TRIALS]
    last = [exponential_law([labels.count(0), labels.count(1)], 1.0 / noise) for noise in LAST]
    for first in (0, 1):
        for second in (0, 1):
            sums = [labels.count(first) + AHEAD, labels.count(second)]
            for place, p in enumerate(exponential_law(sums, rate)):
                for answer in (0, 1):
                    chance = trials[0][first] * trials[1][second] * p * last[place][answer]
                    found[place, answer] += float(chance)
    return found


def portfolio_run(labels, choice):
    price = PortfolioPrice(TRIALS, (), choice, LAST, pure_dp(epsilon=1.0), AHEAD)
    settings = Settings(None, None, None, None, None, None)
    table = TrialRows(np.zeros((len(labels), 1)), np.array(labels), {})
    compared = agreement_of(Says(), None, np.array([0, 1]))
    return PortfolioRun(Says(), [{"kind": 0}, {"kind": 1}], settings, price, table, compared)


@pytest.mark.theorem("docs/theory/portfolio.md, Theorem 1", exact=False, loose="the trials are paid for in full")
def test_a_portfolio_draws_by_the_law_that_is_audited():
    """By `PortfolioRun`, the law of accounting/planning/test_portfolio.py: settings reach it, noise each run."""
    labels = [0, 1, 1]
    choice = the_choice(agreement_of(Says(), None, None).metric, 1.0, Adjacency.ADD_OR_REMOVE_ONE)
    run, draws, found = portfolio_run(labels, choice), 300, Counter()
    for number in range(draws):
        packed, place = run({}, keyed_source(f"portfolio {number}")).value
        model = unpack(packed)
        assert model.kind == int(place)
        assert model.random is None
        found[int(place), model.answer_] += 1
    for outcome, chance in exact_law(labels, float(choice.rate)).items():
        assert abs(found[outcome] / draws - chance) < 4.0 * math.sqrt(chance * (1.0 - chance) / draws)


@pytest.mark.parametrize("path", ["", "dpsgdclassifier__"])
@pytest.mark.parametrize("routed", [False, True])
def test_the_last_run_goes_on_from_its_trial(path, routed):
    """Where the last step takes weights to begin with, and pipelines pass on what they are told."""
    rows = np.eye(4), np.array([0, 1, 0, 1])
    model = DPSGDClassifier(classes=[0, 1], nominal_rows=4, noise_multiplier=3.0)
    model = (make_pipeline(Normalizer(), model) if path else model).fit(*rows)
    weights = (model[-1] if path else model).weights_[0]
    with config_context(enable_metadata_routing=routed):
        told = _beginning(TrialModel(model, 30.0), 3.0)
    assert told.keys() == (set() if routed else {f"{path}initial_weights"})
    for begun in told.values():
        assert np.array_equal(begun[0], 0.1 * weights)
        model.fit(*rows, **told)
    assert _beginning(None, 3.0) == _beginning(TrialModel(Says(), 30.0), 3.0) == {}

    class Own(DPSGDClassifier):
        def fit(self, X, y):
            return super().fit(X, y)

    own = Own(classes=[0, 1], nominal_rows=4).fit(*rows)
    assert _beginning(TrialModel(own, 30.0), 3.0) == {}


class Told(ExponentialMechanism):
    """A choice that tells the scores that it is given."""

    def __call__(self, scores, *, random):
        raise Scores(scores)


class Scores(BaseException):
    pass


@pytest.mark.parametrize(("attributes", "taken"), [({"weights_": 2}, 4), ({"coef_": 1, "intercept_": 1}, 4), ({}, 0)])
def test_a_candidate_with_more_weights_is_put_back(attributes, taken):
    """Half of eight numbers more; those of this package's learners and of linear models are counted."""

    class Fitted(Says):
        def fit(self, X, y):
            for name, arrays in attributes.items():
                found = [np.zeros(4 + 4 * self.kind)] * arrays
                setattr(self, name, found if name == "weights_" else found[0])
            return super().fit(X, y)

    choice = the_choice(agreement_of(Says(), None, None).metric, 1.0, Adjacency.ADD_OR_REMOVE_ONE)
    told = Told(sensitivity=choice.sensitivity, epsilon=1.0)
    run = replace(portfolio_run([0, 1], told), estimator=Pipeline([("says", Fitted())]))
    run = replace(run, candidates=[{"says__kind": 0}, {"says__kind": 1}])
    with pytest.raises(Scores) as found:
        run({}, keyed_source(1))
    assert found.value.args[0] == [1.0 + AHEAD, 1.0 - taken]


@pytest.mark.full
def test_a_portfolio_of_mechanisms_with_a_pure_epsilon_shares_it():
    found = search({"kind": [0, 1]}, Says(), design="portfolio", epsilon=2.0, delta=0.0).plan()
    makes = [lambda noise: pure_dp(epsilon=1.0 / noise)] * 2
    again = portfolio_of(makes, found.portfolio.choice, epsilon=2.0, delta=0.0)
    assert found.portfolio.noises == pytest.approx(again.noises, rel=1e-9)
    assert found.guarantee.pure_epsilon <= 2.0
    assert covering([pure_dp(epsilon=1.0 / noise) for noise in again.noises]).pure_epsilon == again.last.pure_epsilon


# What is released


@pytest.mark.full
def test_the_chosen_candidate_is_released_and_nothing_of_the_others():
    fitted = search(SCALES, design="portfolio", random=keyed_source(5)).fit(*rows())
    assert fitted.best_params_ in ({"intercept_scale": 0.3}, {"intercept_scale": 1.0})
    assert fitted.best_estimator_.intercept_scale == fitted.best_params_["intercept_scale"]
    assert fitted.best_estimator_.noise_multiplier == fitted.plan().portfolio.noises[0]
    assert not hasattr(fitted, "best_score_")
    again = search(SCALES, design="portfolio", random=keyed_source(5)).fit(*rows())
    assert np.array_equal(again.best_estimator_.weights_[0], fitted.best_estimator_.weights_[0])


def test_one_run_is_the_estimator_as_it_is():
    fitted = search({}, design="one-run", random=keyed_source(5)).fit(*rows())
    assert fitted.best_params_ == {}
    assert fitted.score(*rows()) > 0.7


@pytest.mark.full
def test_the_second_stage_has_its_own_noise_and_a_rate_that_the_rule_carries_over():
    options = {"design": "two-stage", "repetitions": Harmonic(limit=2), "random": keyed_source(5)}
    fitted = search(RATES, DPSGDClassifier(), **options).fit(*rows())
    plan = fitted.plan()
    assert fitted.best_estimator_.noise_multiplier == plan.final_noise
    assert fitted.best_estimator_.nominal_rows == 500
    assert fitted.best_estimator_.learning_rate == fitted.best_params_["learning_rate"]
    assert not 0.5 <= fitted.best_params_["learning_rate"] <= 0.5001


@pytest.mark.full
def test_numbers_and_rules_of_ones_own_are_compared_too():
    X, _ = rows()
    regressor = DPSGDRegressor(label_bounds=(-1.0, 1.0), **FULL)
    fitted = search(SCALES, regressor, design="portfolio", classes=None, random=keyed_source(5)).fit(X, 2 * X[:, 0])
    assert fitted.score(X, 2 * X[:, 0]) > 0.2
    rule = RowScore(lambda y, answers: (y == answers).astype(float))
    assert search(SCALES, design="portfolio", scoring=rule, random=keyed_source(5)).fit(*rows()).score(*rows()) > 0.7


def test_another_adjacency_is_not_converted():
    with pytest.raises(AdjacencyError):
        search({"kind": [0, 1]}, Says(), design="portfolio", adjacency="replace_one").plan()
