"""The smallest dominating Gaussian: against closed forms, against finite laws, and its regret by its definition."""

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from dpselect.errors import ArgumentError
from dpselect.privacy import approximate_dp, dp_sgd, from_profile, gaussian, laplace, pure_dp, zcdp
from dpselect.privacy.exports.gaussian_bound import gaussian_bound
from dpselect.privacy.profile import GaussianProfile, SymmetricProfile
from tests.privacy.exports.finite_laws import hockey_stick, knots_of, random_pair


def exact_mu_of_response(epsilon: float) -> float:
    """Randomised response: its trade-off curve is above G_mu where its corner at 1 / (1 + exp(epsilon)) is."""
    return 2.0 * float(ndtri(1.0 / (1.0 + math.exp(-epsilon))))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
def test_randomised_response_is_as_in_closed_form(epsilon):
    found = pure_dp(epsilon=epsilon).gaussian_mu_bound()
    exact = exact_mu_of_response(epsilon)
    assert exact <= found.mu <= 1.001 * exact


def corners(p, q):
    """The corners of the exact trade-off curve of two finite laws: errors of likelihood-ratio tests."""
    order = np.argsort(q / p)[::-1]
    return np.cumsum(p[order])[:-1], 1.0 - np.cumsum(q[order])[:-1]


@pytest.mark.theorem("Dong, Roth, Su 2022, Corollary 2.13", exact=True, sharp=True)
@pytest.mark.cases(3)
@pytest.mark.parametrize("seed", range(30))
def test_finite_laws_are_dominated_by_no_smaller_gaussian(seed):
    random = np.random.default_rng(seed)
    p, q = random_pair(random, outputs=4)
    # between the knots of both directions their curves may cross
    knots = sorted({*knots_of(p, q), *np.linspace(0.0, max(knots_of(p, q)), 300).tolist()})
    exact = [max(hockey_stick(p, q, e), hockey_stick(q, p, e)) for e in knots]
    found = from_profile(knots, exact).gaussian_mu_bound(smallest_delta=1e-12)
    # a Gaussian's curve is convex, so it is below the straight pieces where it is below the corners
    spare = [
        below - ndtr(-ndtri(at) - mu)
        for mu in (found.mu, 0.998 * found.mu)
        for at, below in (corners(p, q), corners(q, p))
    ]
    assert min(np.min(spare[0]), np.min(spare[1])) >= 0.0
    assert min(np.min(spare[2]), np.min(spare[3])) < 0.0


def supremum_of_lines(guarantee, grid):
    """The trade-off function of a guarantee, from its profile at both signs of epsilon."""
    e = np.linspace(0.0, 12.0, 4001)
    h = np.asarray(guarantee.delta(e))
    e, h = np.append(-e, e), np.append(1.0 - np.exp(-e) + np.exp(-e) * h, h)
    return np.array([np.max(1.0 - h - np.exp(e) * min(a, 1.0)) for a in grid.tolist()])


@pytest.mark.cases(2)
@pytest.mark.parametrize("seed", range(10))
def test_the_regret_moves_the_curve_below_the_gaussians(seed):
    """Its definition on trade-off functions, where the module computes it from profiles."""
    p, q = random_pair(np.random.default_rng(seed), outputs=4)
    knots = knots_of(p, q)
    guarantee = from_profile(knots, [max(hockey_stick(p, q, e), hockey_stick(q, p, e)) for e in knots])
    found = guarantee.gaussian_mu_bound(smallest_delta=1e-12)
    grid = np.linspace(1e-4, 1.0 - 1e-4, 801)
    errors = ndtr(-ndtri(grid) - found.mu)
    assert np.all(supremum_of_lines(guarantee, grid + found.regret) - found.regret <= errors + 1e-9)
    less = 0.99 * found.regret - 1e-4
    assert np.any(supremum_of_lines(guarantee, grid + less) - less > errors)


def test_the_regret_is_the_published_one():
    """Gomez et al. 2025, Figure 1: 3.70 hundredths for Laplace noise at epsilon 1, and 3.43 for saying epsilon."""
    assert laplace(scale=1).gaussian_mu_bound().regret == pytest.approx(0.0370, abs=5e-5)


@pytest.mark.parametrize("mu", [0.01, 0.25, 1.0, 5.0])
def test_a_gaussian_profile_finds_itself(mu):
    """The search, where the answer is known; the guarantee's own mu is not used."""
    profile = GaussianProfile(mu)
    found = gaussian_bound(profile, profile.epsilon(1e-10), 1e-10)
    assert mu <= found.mu <= 1.001 * mu
    assert 0.0 <= found.regret <= 5e-4


class Step(SymmetricProfile):
    """A profile that falls at once, between two points of any mesh."""

    def at(self, epsilons):
        return np.where(epsilons < 1 / 3, 0.3, 1e-12)


def test_a_fall_inside_a_cell_counts():
    found = gaussian_bound(Step(), 1.0, 1e-10)
    assert GaussianProfile(found.mu).below(np.array([np.nextafter(1 / 3, 0.0)]))[0] >= 0.3


def test_a_gaussian_guarantee_says_its_mu():
    assert gaussian(noise_multiplier=4).gaussian_mu_bound() == (0.25, 0.0, 1e-10)


@pytest.mark.parametrize(
    "guarantee",
    [dp_sgd(noise_multiplier=1.0, sampling_rate=0.01, steps=1000), laplace(scale=2), zcdp(rho=0.1)],
    ids=["sgd", "laplace", "zcdp"],
)
def test_it_dominates_between_its_cells(guarantee):
    found = guarantee.gaussian_mu_bound(smallest_delta=1e-9)
    epsilons = np.random.default_rng(1).uniform(0.0, guarantee.epsilon(1e-9), 4000)
    assert np.all(GaussianProfile(found.mu).below(epsilons) >= guarantee.delta(epsilons) * (1.0 - 1e-12))
    smaller = GaussianProfile(0.999 * found.mu).at(epsilons)
    assert np.any(smaller < guarantee.delta(epsilons))


def test_refusals():
    with pytest.raises(ArgumentError, match="smallest_delta"):
        approximate_dp(epsilon=1, delta=1e-6).gaussian_mu_bound()
    assert approximate_dp(epsilon=1, delta=1e-6).gaussian_mu_bound(smallest_delta=1e-5).mu > 1.2
    for bad in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(ArgumentError, match="smallest_delta"):
            laplace(scale=1).gaussian_mu_bound(smallest_delta=bad)
    with pytest.raises(ArgumentError, match="no Gaussian mechanism"):
        pure_dp(epsilon=600).gaussian_mu_bound()


def test_large_losses():
    assert 5.4 <= zcdp(rho=15).gaussian_mu_bound().mu <= 13
    with pytest.raises(ArgumentError, match="no Gaussian mechanism"):
        zcdp(rho=800).gaussian_mu_bound()


def test_no_privacy_loss_at_all():
    found = pure_dp(epsilon=0).gaussian_mu_bound()
    assert found.mu <= 1e-6
    assert found.regret <= 1e-6
