"""Loss distributions of the sampled Gaussian mechanism against closed forms."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from dpselect.privacy import dp_sgd
from dpselect.privacy.losses.composition import compose_losses
from dpselect.privacy.losses.pld import pair_from_losses
from dpselect.privacy.losses.sampled_gaussian import sampled_gaussian_losses
from dpselect.privacy.profile import (
    GaussianProfile,
)

# Profiles


def single_step_truth(noise, rate, epsilon):
    """H(P || P') and H(P' || P) at exp(epsilon) for P = (1-q) N(0) + q N(1/noise) and P' = N(0), in closed form."""

    def gaussian_divergence(a):
        mu, e = 1 / mp.mpf(noise), mp.log(a)
        return mp.ncdf(mu / 2 - e / mu) - a * mp.ncdf(-mu / 2 - e / mu)

    q, a = mp.mpf(rate), mp.exp(mp.mpf(epsilon))
    inner = (a - 1 + q) / q
    remove = q * gaussian_divergence(inner) if inner > 0 else 1 - a
    share = 1 - a * (1 - q)
    add = share * gaussian_divergence(a * q / share) if share > 0 else mp.mpf(0)
    return remove, add


@pytest.mark.theorem("Zhu, Dong, Wang 2022, Theorem 11", exact=True, sharp=True)
@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.01), (1.0, 1e-6), (0.5, 0.3), (5.0, 0.9)])
def test_one_step_of_dp_sgd_against_its_closed_form(noise, rate):
    profile = dp_sgd(noise_multiplier=noise, sampling_rate=rate, steps=1).profile
    assert profile is not None
    epsilons = np.concatenate([np.geomspace(rate / 100, 3.0, 25), [0.0], -np.geomspace(rate / 100, 3.0, 25)])
    with mp.workdps(40):
        truth = np.array([[float(x) for x in single_step_truth(noise, rate, e)] for e in epsilons])
    for got, exact in ((profile.remove(epsilons), truth[:, 0]), (profile.add(epsilons), truth[:, 1])):
        assert np.all(got >= exact * (1 - 1e-13) - 1e-17)
        # a mesh wider than every loss leaves a chord from the top: then at most the total variation, below the rate
        assert np.all(got <= exact + 1e-8 + (1e-3 * rate if rate > 1e-4 else rate))


@pytest.mark.parametrize(("noise", "count", "width", "excess"), [(3.0, 9, 1e-4, 5e-6), (100.0, 10_000, 2e-4, 1e-2)])
def test_gaussians_compose_to_a_gaussian(noise, count, width, excess):
    """Gaussian mechanisms compose to one of noise / sqrt(count) (Balle, Wang 2018, Theorem 8), down to 1e-38.

    Connecting the dots widens the loss's variance by count width^2 / 6, which costs `excess` at the last of them.
    """
    one, _ = sampled_gaussian_losses(noise_multiplier=noise, sampling_rate=1.0, width=width)
    pair = pair_from_losses(compose_losses([(one, count)]))
    epsilons = np.linspace(-3.0, 13.0, 65)
    exact = GaussianProfile(1.0).remove(epsilons)
    assert exact[-1] < 1e-34
    found = pair.hockey_stick(epsilons)
    assert np.all(found >= exact * (1 - 2e-12))  # the profile itself is inflated by 1e-12
    assert np.all(found <= exact * (1 + excess) + 2e-40)  # what counts as infinite
