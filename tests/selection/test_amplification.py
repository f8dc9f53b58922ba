"""The search that makes a good average result likely: its threshold, its coin, and its price."""

import pytest

from dpselect.accounting import threshold_stopping
from dpselect.errors import ArgumentError
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.selection.amplification import amplification_stop_probability, amplified, markov_probability


def test_markovs_inequality_is_attained_by_two_scores():
    # a score of 1 with probability p and of mean - margin (just below it) else has this mean
    for mean, margin in ((0.6, 0.1), (0.5, 0.5), (1.0, 0.25), (0.9, 1e-3)):
        p = markov_probability(mean=mean, margin=margin)
        assert p + (1 - p) * (mean - margin) == pytest.approx(mean, rel=1e-12)


def test_the_coin_is_the_failure_probability_of_it():
    assert amplification_stop_probability(mean=0.6, margin=0.1, failure_probability=0.05) == pytest.approx(0.01)
    assert amplification_stop_probability(mean=1, margin=1, failure_probability=0.5) == 0.5


def test_the_search_has_their_threshold_and_coin_and_at_most_twice_the_epsilon():
    search = amplified(mean=0.6, margin=0.1, failure_probability=0.05, base=pure_dp(epsilon=0.25))
    assert search.threshold == pytest.approx(0.5)
    assert search.stop_probability == pytest.approx(0.01)
    price = threshold_stopping(pure_dp(epsilon=0.25), stop_probability=search.stop_probability).epsilon(delta=0)
    assert search.guarantee.epsilon(delta=0) == price <= 0.5
    assert search(lambda random: (0.6, "good"), random=keyed_source(1)).value == "good"


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"mean": 0.0}, "mean"),
        ({"mean": 1.01}, "mean"),
        ({"margin": 0.0}, "margin"),
        ({"margin": 0.51}, "margin"),
        ({"failure_probability": 0.0}, "failure_probability"),
        ({"failure_probability": 1.0}, "failure_probability"),
    ],
)
def test_numbers_out_of_range_are_named(wrong, name):
    given = {"mean": 0.5, "margin": 0.1, "failure_probability": 0.1, **wrong}
    with pytest.raises(ArgumentError, match=name):
        amplified(**given, base=pure_dp(epsilon=1))
