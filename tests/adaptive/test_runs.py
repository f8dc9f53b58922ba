"""Composed runs of the sparse vector: the trade-off bound, its inverse, and updates that end in a count."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.adaptive.runs import response_trade_off, runs_guarantee, runs_trade_off, runs_trade_off_inverse
from dpselect.adaptive.transfer import trade_off_bound
from dpselect.privacy import compose, pure_dp
from tests.mechanisms.sparse_vector_adversaries import (
    laplace_nodes,
    laplace_tail,
    signed_counts,
)


def test_the_trade_off_bound_covers_the_exact_laws() -> None:
    for q in (0.0, 1e-9, 0.01, 0.3, 0.9, 1.0):
        exact = float(response_trade_off(0.7, 1, np.array([q]))[0])
        assert exact * (1 - 1e-8) - 1e-200 <= trade_off_bound(pure_dp(epsilon=0.7), q) <= exact * (1 + 1e-8) + 1e-8
    many = compose(*[pure_dp(epsilon=0.2)] * 8)
    for q in (0.01, 0.2, 0.6):
        exact = float(response_trade_off(0.2, 8, np.array([q]))[0])
        assert exact * (1 - 1e-8) <= trade_off_bound(many, q) <= exact + 0.01


def powers(upper, lower, levels):
    """The largest probability under `upper` of events with these probabilities under `lower`: Neyman, Pearson."""
    order = np.argsort(-(upper + 1e-300) / (lower + 1e-300))
    return np.interp(levels, np.append(0.0, np.cumsum(lower[order])), np.append(0.0, np.cumsum(upper[order])))


LEVELS = np.array([1e-4, 3e-3, 0.02, 0.2, 0.6])


@pytest.mark.full
@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 1", exact=True)
@pytest.mark.parametrize(("epsilon", "times"), [(0.3, 6), (0.1, 12), (1.0, 3)])
def test_no_runs_have_more_power_than_their_trade_off(epsilon, times):
    """Verifications with counts that move up and down in turn, each run with a threshold of its own."""
    first, second = 0.4 * epsilon, 0.6 * epsilon
    bound, closest = runs_trade_off(first, second, times, LEVELS), 0.0
    wide, caught = runs_trade_off(first, 0.4 * second, times, LEVELS), False
    for level in (-2.0, 0.0, 2.0):
        for scores in ((1, 0), (1, 1)):
            laws = signed_counts(
                laplace_tail(second / 2),
                laplace_nodes(first),
                level=2 * level / second,
                positives=times,
                for_positive=scores[0],
                for_negative=scores[1],
                fresh=True,
            )
            attained = powers(*laws, LEVELS)
            assert np.all(attained <= bound * (1 + 1e-9) + 1e-9)
            closest = max(closest, float(np.max((attained - LEVELS)[1:] / (bound - LEVELS)[1:])))
            caught |= bool(np.any(attained > wide))
    assert closest > 0.4
    assert caught  # noise taken for 2.5 times as wide
    assert np.all(bound <= response_trade_off(epsilon, times, LEVELS))
    assert np.all(bound >= response_trade_off(second / 2, times, LEVELS))  # attained: Theorem 5


@pytest.mark.full
def test_the_inverse_of_a_trade_off_is_on_its_safe_side():
    for power in (1e-3, 0.02, 0.4):
        level = runs_trade_off_inverse(0.01, 0.02, 30, power)
        assert runs_trade_off(0.01, 0.02, 30, np.array([level * (1 - 1e-8)]))[0] < power
        assert runs_trade_off(0.01, 0.02, 30, np.array([level * 1.01]))[0] > power


@pytest.mark.full
def test_updates_are_runs_followed_by_counts():
    """The count after each run is in the price: without it the same runs cost less."""
    with_counts = runs_guarantee(0.02, 0.02, 20, release_epsilon=0.04)
    without = runs_guarantee(0.02, 0.02, 20)
    assert without.epsilon(1e-6) < 0.6 * with_counts.epsilon(1e-6)
    assert with_counts.epsilon(1e-6) < 0.75 * compose(*[pure_dp(epsilon=0.08)] * 20).epsilon(1e-6)
    assert compose(*[pure_dp(epsilon=0.04)] * 20).epsilon(1e-6) < with_counts.epsilon(1e-6)
