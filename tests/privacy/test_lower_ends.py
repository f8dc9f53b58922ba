"""Lower ends of what is made of other mechanisms: by enumeration in fractions, and never above the upper ends."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.accounting import adaptive_best_of, best_of, mixture, tune_on_subset
from dpselect.mechanisms import bounded_range
from dpselect.privacy import compose, from_profile, gaussian, pure_dp, renyi_dp, worst_of, zcdp
from dpselect.privacy.lower_ends import average_below, largest_below, sampled_below
from dpselect.repetitions import Geometric

GAUSS = gaussian(noise_multiplier=4.0)


def divergence(first, second, factor):
    return sum(max(p - factor * q, Fraction(0)) for p, q in zip(first, second, strict=True))


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2), Fraction(1)])
@pytest.mark.parametrize("factor", [Fraction(1), Fraction(5, 4), Fraction(2), Fraction(11, 4)])
def test_a_sample_in_fractions(rate, factor):
    """Randomised response of ratio 3; twice the sampled divergence, or the whole rate, would be seen."""
    here, there = (Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))
    sampled = tuple(rate * p + (1 - rate) * q for p, q in zip(here, there, strict=True))
    exact = float(divergence(sampled, there, factor))
    lower = sampled_below(pure_dp(epsilon=math.log(3)).lower_profile, float(rate))
    assert lower is not None
    found = float(lower.remove(np.array([math.log(factor)]))[0])
    assert found <= exact
    assert found == pytest.approx(exact, rel=1e-9, abs=1e-12)
    assert not lower.add(np.array([0.5])).any()


def test_averages_and_maxima_of_what_is_known():
    profile = GAUSS.lower_profile
    assert profile is not None
    epsilons = np.array([-0.5, 0.0, 0.3, 1.0])
    half = average_below([profile, None], [0.5, 0.5])
    largest = largest_below([None, profile])
    assert half is not None
    assert largest is not None
    for direction in ("remove", "add"):
        known = getattr(profile, direction)(epsilons)
        assert getattr(half, direction)(epsilons) == pytest.approx(0.5 * known, rel=1e-11)
        assert getattr(largest, direction)(epsilons) == pytest.approx(known, rel=1e-12)
    assert average_below([None], [1.0]) is largest_below([None]) is sampled_below(None, 0.5) is None


@pytest.mark.parametrize("delta", [1e-2, 1e-6])
def test_lower_ends_are_near_the_upper_ones(delta):
    parts = [
        pure_dp(epsilon=1.0),
        GAUSS,
        bounded_range(epsilon=0.8),
        from_profile(epsilons=[0.0, 1.0], deltas=[0.3, 0.0]),
    ]
    for made in (worst_of(*parts), mixture(parts, [1, 2, 3, 4])):
        lower, upper = made.epsilon_bracket(delta)
        assert upper * (1 - 1e-5) < lower <= upper
    vague = mixture([zcdp(rho=0.1), renyi_dp(orders=[2.0], epsilons=[0.1])])
    assert 0.0 < vague.epsilon_bracket(delta)[0] < vague.epsilon_bracket(delta)[1]


@pytest.mark.parametrize(("rows", "low"), [("rest", 0.96), ("all", 0.92)])
def test_tuning_on_a_subset_costs_at_least_the_final_run(rows, low):
    search = best_of(GAUSS, Geometric(gamma=0.1), bound="profile")
    both = tune_on_subset(search=search, final=GAUSS, sampling_rate=0.1, final_rows=rows, atoms=100)
    lower, upper = both.epsilon_bracket(1e-6)
    assert low * upper < lower <= upper


@pytest.mark.parametrize("bound", [None, "profile", "renyi"])
def test_adaptive_proposals_cost_at_least_the_plain_search(bound):
    law = Geometric.with_mean(mean=10.0)
    total = adaptive_best_of(GAUSS, law, lower_ratio=0.5, upper_ratio=2.0, bound=bound)
    lower, upper = total.epsilon_bracket(1e-6)
    assert lower == pytest.approx(best_of(GAUSS, law).epsilon(1e-6), rel=1e-3)
    assert lower < upper
    vague = adaptive_best_of(renyi_dp(orders=[2.0], epsilons=[0.1]), law, lower_ratio=0.5, upper_ratio=2.0)
    assert vague.epsilon_bracket(1e-2)[0] <= vague.epsilon(1e-2)


def test_a_composition_costs_at_least_what_its_parts_do():
    """A search has no pair: it counts alone, and two mechanisms with pairs count together."""
    search, law = best_of(GAUSS, Geometric.with_mean(mean=10.0)), pure_dp(epsilon=0.3)
    lower, upper = compose(search, GAUSS, law).epsilon_bracket(1e-6)
    assert lower == pytest.approx(search.epsilon(1e-6), rel=1e-3)
    assert lower < upper
    strong = gaussian(noise_multiplier=1.0)
    assert compose(search, strong, law).epsilon_bracket(1e-6)[0] == compose(strong, law).epsilon_bracket(1e-6)[0]
    unknown = renyi_dp(orders=[2.0], epsilons=[0.1])
    assert compose(unknown, unknown).epsilon_bracket(0.1)[0] <= compose(unknown, unknown).epsilon(0.1)


def test_a_split_that_is_not_published_has_no_lower_end():
    one = gaussian(noise_multiplier=4.0, adjacency="replace_one")
    assert tune_on_subset(search=one, final=one, sampling_rate=0.5).epsilon_bracket(1e-6)[0] == 0.0
