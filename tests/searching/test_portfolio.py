"""A portfolio: trials, a private choice and a last run within the total, each with random numbers of its own."""

from dataclasses import replace

import numpy as np
import pytest

from dpselect.mechanisms import ExponentialMechanism
from dpselect.privacy import compose, pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed
from dpselect.searching.portfolio import CandidateTrials, Portfolio
from tests.searching.requests import request


def test_trials_choice_and_last_run_together_cost_the_total():
    found = Portfolio().priced(request(epsilon=2.0))
    assert found.repetitions == Fixed(count=1)
    price = found.portfolio
    assert price.choice.epsilon == pytest.approx(0.2)
    assert len(price.trials) == len(price.noises) == 2
    assert found.noise == price.noises[0]
    whole = compose(*price.training, price.choice.guarantee, price.last).epsilon(0.0)
    assert whole == pytest.approx(price.guarantee.epsilon(0.0))
    assert 2.0 - 1e-3 <= whole <= 2.0


def test_a_portfolio_leaves_room_for_what_is_paid_beside():
    beside = pure_dp(epsilon=0.5)
    found = Portfolio().priced(request(epsilon=2.0, beside=beside))
    assert 2.0 - 1e-3 <= compose(found.portfolio.guarantee, beside).epsilon(0.0) <= 2.0


def test_the_best_trial_is_trained_further_from_its_model():
    """At epsilon 20 and 100,000 apart, another choice has a chance below exp(-10**5)."""
    price = replace(Portfolio().priced(request()).portfolio, choice=ExponentialMechanism(epsilon=20.0, sensitivity=1))
    calls = []

    def fitting(place):
        def fit(noise, random, rows, trial):
            calls.append((place, noise, random.bytes(4), trial))
            return place

        return fit

    trials = CandidateTrials(
        fits=(fitting(0), fitting(1)),
        price=price,
        agreement=lambda model, X, y: np.array([100_000 * model]),
    )
    model, (place,) = trials({}, keyed_source(3), (None, None))
    assert (model, float(place)) == (1, 1.0)
    source = keyed_source(3).spawn("train")
    assert [call[:3] for call in calls] == [
        (0, price.trials[0], source.spawn(0).bytes(4)),
        (1, price.trials[1], source.spawn(1).bytes(4)),
        (1, price.noises[1], keyed_source(3).spawn("last").bytes(4)),
    ]
    assert (calls[2][3].model, calls[2][3].noise) == (1, price.trials[1])
