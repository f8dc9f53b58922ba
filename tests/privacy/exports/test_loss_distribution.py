"""Loss distributions for dp-accounting: above the exact curves of finite laws, alone and composed."""

import math

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.privacy import (
    approximate_dp,
    compose,
    dp_sgd,
    from_profile,
    gaussian,
    laplace,
    pure_dp,
    renyi_dp,
    zcdp,
)
from dpselect.privacy.exports.loss_distribution import mesh_for, raised
from dpselect.privacy.losses.composition import Losses
from tests.privacy.exports.finite_laws import hockey_stick, knots_of, random_pair, squared

DELTAS = (1e-3, 1e-4, 1e-6, 1e-8, 1e-10)


@pytest.mark.cases(3)
@pytest.mark.parametrize("seed", range(40))
def test_finite_laws_stay_below_alone_and_composed(seed):
    """Exact hockey-stick divergences of random laws on three outputs, in both directions, against dp-accounting's."""
    random = np.random.default_rng(seed)
    p, q = random_pair(random)
    knots = knots_of(p, q)
    exact = [max(hockey_stick(p, q, e), hockey_stick(q, p, e)) for e in knots]
    one = from_profile(knots, exact).to_pld(interval=1e-3)
    asked = np.sort(random.uniform(0.0, 1.2 * max(knots), 20))
    two = one.compose(one)
    for e in asked.tolist():
        truth = max(hockey_stick(p, q, e), hockey_stick(q, p, e))
        assert one.get_delta_for_epsilon(e) >= truth
        twice = max(hockey_stick(squared(p), squared(q), e), hockey_stick(squared(q), squared(p), e))
        assert two.get_delta_for_epsilon(e) >= twice - 1e-14


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 1.0001, 7.3])
def test_randomised_response_is_a_cell_wide(epsilon):
    """Its losses are two atoms, the worst case for a mesh."""
    pld = pure_dp(epsilon=epsilon).to_pld()
    for delta in DELTAS:
        exact = math.log(math.exp(epsilon) * (1.0 - delta) - delta)
        assert exact <= pld.get_epsilon_for_delta(delta) <= exact + min(1e-4, 0.002 * exact)


def test_each_direction_has_its_own_losses():
    guarantee = dp_sgd(noise_multiplier=1.0, sampling_rate=0.1, steps=1)
    pld = guarantee.to_pld()
    profile = guarantee.best_profile()
    for e in (0.02, 0.05, 0.09):
        remove, add = (float(curve(np.array([e]))[0]) for curve in (profile.remove, profile.add))
        assert remove > 1.05 * add
        assert remove <= pld._pmf_remove.get_delta_for_epsilon(e) <= 1.001 * remove
        assert add <= pld._pmf_add.get_delta_for_epsilon(e) <= 1.001 * add


@pytest.mark.parametrize("make", [lambda: zcdp(rho=0.1), lambda: renyi_dp(orders=[2, 8, 32], epsilons=[0.1, 0.4, 1.6])])
def test_a_renyi_curve_is_never_undercut(make):
    guarantee = make()
    pld = guarantee.to_pld()
    for delta in np.geomspace(1e-3, 1e-10, 22).tolist():
        ours = guarantee.epsilon(delta)
        assert ours <= pld.get_epsilon_for_delta(delta) <= 1.0001 * ours


def test_a_failure_mass_is_an_infinite_loss():
    pld = approximate_dp(epsilon=1.0, delta=1e-6).to_pld()
    assert 1e-6 <= pld.get_delta_for_epsilon(50.0) <= 1.00001e-6
    assert pld.get_epsilon_for_delta(9e-7) == math.inf
    assert 0.999 <= pld.get_epsilon_for_delta(2e-6) <= 1.0001


def test_composed_by_dp_accounting_it_costs_what_compose_says():
    first, second = laplace(scale=3), gaussian(noise_multiplier=4)
    theirs = first.to_pld(interval=1e-4).compose(second.to_pld(interval=1e-4))
    for delta in DELTAS[:3]:
        ours = compose(first, second).epsilon(delta)
        assert theirs.get_epsilon_for_delta(delta) == pytest.approx(ours, rel=1e-6)


def test_the_mesh_follows_the_size_of_the_losses():
    assert mesh_for(gaussian(noise_multiplier=4).epsilon) == 1e-4
    assert mesh_for(gaussian(noise_multiplier=100).epsilon) == 1e-4 / 8
    assert mesh_for(gaussian(noise_multiplier=0.2).epsilon) == 4e-4
    assert mesh_for(pure_dp(epsilon=0).epsilon) == 1e-4


@pytest.mark.parametrize(
    "guarantee",
    [
        pure_dp(epsilon=1e-300),
        pure_dp(epsilon=1e-9),
        pure_dp(epsilon=0),
        gaussian(noise_multiplier=1e7),
        pytest.param(gaussian(noise_multiplier=0.1), marks=pytest.mark.full),
        dp_sgd(noise_multiplier=50.0, sampling_rate=1e-4, steps=3),
    ],
)
def test_tiny_and_large_losses_have_a_mesh(guarantee):
    pld = guarantee.to_pld()
    for delta in (1e-3, 1e-10):
        ours = guarantee.epsilon(delta)
        assert ours <= pld.get_epsilon_for_delta(delta) <= 1.01 * ours + 1e-12


def test_raising_keeps_the_second_law_and_moves_up():
    losses = Losses(0.5, -1, np.array([0.25, 0.5, 0.25]), 0.0)
    found = raised(losses)
    assert found.masses[-1] > 0.0
    below, after = (float(np.sum(part.masses * np.exp(-part.values))) for part in (losses, found))
    assert after == pytest.approx(below, rel=2e-6)
    assert np.all(np.cumsum(found.masses[::-1])[::-1][1:-1] > np.cumsum(losses.masses[::-1])[::-1][1:])


@pytest.mark.parametrize("interval", [0.0, 1e-10, 2.0, -1.0, math.nan, math.inf])
def test_a_bad_interval_is_named(interval):
    with pytest.raises(ArgumentError, match="interval"):
        gaussian(noise_multiplier=1).to_pld(interval=interval)


def test_an_interval_that_rounding_would_fill_is_refused():
    with pytest.raises(ArgumentError, match="too fine"):
        raised(Losses(1e-12, 0, np.full(1 << 20, 2.0**-20), 0.0))
