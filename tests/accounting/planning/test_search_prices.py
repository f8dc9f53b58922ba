"""The one pricer of a search: what it remembers, what it must not, and that its short cuts change no price."""

import importlib
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from dpselect.accounting import best_of
from dpselect.accounting.planning import search_prices
from dpselect.accounting.planning.search_prices import (
    SearchPrice,
    least_noise,
    longest_within,
    score_epsilon,
    score_multiplier,
)
from dpselect.errors import BudgetError, number
from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.learners import OutputPerturbationClassifier
from dpselect.privacy import Adjacency, Guarantee, compose, dp_sgd, gaussian, laplace, pure_dp, worst_of
from dpselect.privacy.profile import SymmetricProfile
from dpselect.repetitions import Fixed, Harmonic, Poisson

LAW = Harmonic(limit=3)


@pytest.fixture
def counted(monkeypatch):
    """The searches that are priced."""
    priced = []

    def noted(part, law, **settings):
        priced.append(part)
        return best_of(part, law, **settings)

    for memo in (search_prices._guarantee, search_prices._epsilon, search_prices._about):
        memo.cache_clear()
    monkeypatch.setattr(search_prices, "best_of", noted)
    yield priced
    for memo in (search_prices._guarantee, search_prices._epsilon, search_prices._about):
        memo.cache_clear()


@pytest.mark.full
def test_equal_settings_are_priced_once(counted):
    first = SearchPrice((laplace(scale=2.0),), LAW).epsilon(1e-6)
    assert len(counted) == 1
    assert SearchPrice((laplace(scale=2.0),), Harmonic(limit=3)).epsilon(1e-6) == first
    assert len(counted) == 1
    for other in (
        SearchPrice((laplace(scale=2.5),), LAW),
        SearchPrice((laplace(scale=2.0),), Harmonic(limit=4)),
        SearchPrice((pure_dp(epsilon=0.5),), LAW),
        SearchPrice((pure_dp(epsilon=0.5, adjacency="replace_one"),), LAW),
    ):
        before = len(counted)
        assert other.epsilon(1e-6) == best_of(other.parts[0], other.law).epsilon(1e-6)
        assert len(counted) == before + 1


@pytest.mark.cases(1)
@pytest.mark.parametrize("shape", [{}, {"refit": True}, {"cv": 2}])
def test_a_plan_that_is_asked_for_again_prices_nothing(counted, shape):
    def plan():
        return PrivateSearchCV(
            OutputPerturbationClassifier(), {"regularization": [0.1, 1.0]}, epsilon=1.0, repetitions=LAW, **shape
        ).plan()

    first = plan()
    assert counted
    counted.clear()
    assert (plan().noise, plan().score_epsilon) == (first.noise, first.score_epsilon)
    assert counted == []


@dataclass(frozen=True)
class Somebodys:
    """A Renyi curve whose code is not this library's: it may be another one tomorrow."""

    def __call__(self, orders):
        return SLOPE[0] * np.asarray(orders)


SLOPE = {0: 0.01}


@pytest.mark.full
def test_what_has_somebodys_own_code_in_it_is_not_remembered(monkeypatch):
    def price():
        base = Guarantee(adjacency=Adjacency.ADD_OR_REMOVE_ONE, theorem="someone's", renyi_curve=Somebodys())
        return SearchPrice((base,), LAW).epsilon(1e-6)

    before = price()
    monkeypatch.setitem(SLOPE, 0, 0.04)
    assert price() > before


@pytest.mark.full
def test_the_largest_of_the_parts_with_a_further_run_is_that_of_the_curves():
    """Whichever part pays most, and whether or not its quick price shows it."""
    final = pure_dp(epsilon=0.3)
    for parts in ((0.2, 0.5), (0.5, 0.2), (0.4, 0.4)):
        given = tuple(pure_dp(epsilon=e) for e in parts)
        price = SearchPrice(given, LAW, final)
        whole = worst_of(*[compose(best_of(part, LAW), final) for part in given])
        for delta in (0.0, 1e-6, 1e-2):
            assert price.epsilon(delta) <= whole.epsilon(delta)
            assert price.epsilon(delta) == pytest.approx(price.guarantee.epsilon(delta), rel=1e-12)
            assert SearchPrice(given, LAW, final, bound="quick").epsilon(delta) >= price.epsilon(delta)
            assert price.within(price.epsilon(delta) * (1 + 1e-12), delta)
            assert not price.within(price.epsilon(delta) * (1 - 1e-9), delta)


def test_the_longest_law_and_the_noise_of_a_score():
    found = longest_within(lambda law: SearchPrice((pure_dp(epsilon=0.5),), law), epsilon=0.8, delta=0.0, max_runs=50)
    assert found.epsilon(0.0) <= 0.8 < best_of(pure_dp(epsilon=0.5), Harmonic(limit=found.law.limit + 1)).epsilon(0.0)
    score = score_epsilon(LAW, Adjacency.ADD_OR_REMOVE_ONE, epsilon=1.0, delta=0.0)
    assert 0.999 < best_of(pure_dp(epsilon=score), LAW).epsilon(0.0) <= 1.0
    with pytest.raises(BudgetError, match="above the total"):
        longest_within(lambda law: SearchPrice((pure_dp(epsilon=0.5),), law), epsilon=0.4, delta=0.0, max_runs=5)
    with pytest.raises(BudgetError, match="no noise of the learner meets epsilon 1 at delta 0"):
        least_noise("the learner", lambda s: SearchPrice((gaussian(noise_multiplier=s),), LAW), epsilon=1.0, delta=0.0)


@pytest.mark.full
def test_what_a_search_for_noise_looks_at_first_is_near_the_price_and_below_it():
    """Nothing rests on it: the noise that is found has been priced in full."""
    for base in (gaussian(noise_multiplier=2.0), dp_sgd(noise_multiplier=2.0, sampling_rate=0.1, steps=20)):
        price = SearchPrice((base,), LAW)
        epsilon = price.epsilon(1e-6)
        assert price.approximate_delta(epsilon) == pytest.approx(1e-6, rel=1e-3)
        assert price.approximate_delta(epsilon) <= 1e-6 * (1 + 1e-3)  # of DP-SGD the mesh is wider
    composed = SearchPrice((gaussian(noise_multiplier=2.0),), LAW, gaussian(noise_multiplier=1.0))
    assert composed.approximate_delta(1.0) is None
    assert SearchPrice((pure_dp(epsilon=1.0),), LAW, bound="pure").approximate_delta(1.0) is None


def test_nobody_else_calibrates_the_noise_of_a_search():
    for name in ("dpselect.study.price", "dpselect.integrations.sklearn.plan", "dpselect.tuning.plan"):
        names = vars(importlib.import_module(name))
        assert not {"best_of", "calibrate", "adaptive_best_of"} & set(names), name


@pytest.mark.parametrize("epsilon", [60.0, 100.0, 1000.0])
def test_a_large_total_gives_the_least_noise_that_a_learner_takes(epsilon):
    def price(noise):
        return SearchPrice(
            (gaussian(noise_multiplier=number("noise_multiplier", noise, at_least=0.2)),), Fixed(count=1)
        )

    assert 0.2 <= least_noise("the learner", price, epsilon=epsilon, delta=1e-5) <= 0.2001
    with pytest.raises(BudgetError, match="noise_multiplier must be"):
        least_noise("the learner", lambda noise: price(noise - 10.0), epsilon=epsilon, delta=1e-5)


@pytest.mark.full
def test_the_least_noise_takes_few_sharp_prices_and_uses_the_total(monkeypatch):
    asked = []
    sharp = SearchPrice.epsilon
    monkeypatch.setattr(SearchPrice, "epsilon", lambda self, delta: asked.append(sharp(self, delta)) or asked[-1])
    noise = least_noise(
        "a run", lambda s: SearchPrice((gaussian(noise_multiplier=s),), Harmonic(limit=7)), epsilon=2.5, delta=1e-6
    )
    assert len(asked) <= 4
    assert 2.5 * 0.999 <= SearchPrice((gaussian(noise_multiplier=noise),), Harmonic(limit=7)).epsilon(1e-6) <= 2.5


@pytest.mark.full
def test_the_epsilon_of_a_composition_of_searches_is_remembered(monkeypatch):
    def asked():
        base = gaussian(noise_multiplier=5.03)
        return compose(best_of(base, Harmonic(limit=2)), best_of(base, Poisson(mean=2.0))).epsilon(1e-6)

    first = asked()
    monkeypatch.setattr("dpselect.privacy.composition.compose_distributions", None)
    assert asked() == first


def test_a_part_whose_pure_bound_is_below_the_others_epsilon_is_not_worked_out():
    class Costly(SymmetricProfile):
        def at(self, epsilons):
            raise AssertionError

        def epsilon(self, delta):
            raise AssertionError

    small = replace(pure_dp(epsilon=0.5), profile=Costly())
    large = gaussian(noise_multiplier=1.0)
    assert worst_of(small, large).epsilon(1e-6) == worst_of(large, small).epsilon(1e-6) == large.epsilon(1e-6)


@pytest.mark.parametrize("noise", [0.3, 1.7, 3.0])
def test_a_score_is_as_private_as_training_by_its_parameter(noise):
    """Not less, and hardly more: in exact arithmetic one over the multiplier is at most training's parameter."""
    training = gaussian(noise_multiplier=noise)
    multiplier, covered = score_multiplier(training, Fixed(count=1), epsilon=1.0, delta=1e-6)
    assert covered
    assert 1 / Fraction(multiplier) <= Fraction(training.gaussian_mu)
    assert multiplier == pytest.approx(noise, rel=1e-12)
