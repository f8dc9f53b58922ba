"""prv_accountant 0.2.0 (a844f72): the truths that its tests hold its interval against, and live intervals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from dpselect.accounting import calibrate
from dpselect.privacy import approximate_dp, compose, dp_sgd, gaussian, laplace, pure_dp
from dpselect.privacy.sampled import poisson_sample

pytestmark = pytest.mark.peers


def times(noise, count):
    return gaussian(noise_multiplier=noise / math.sqrt(count))


def test_compositions_of_gaussians(compare):
    """`tests/test_accountant.py`: noise 100, 9,999 and 10,000 rounds, and two kinds of rounds, in closed form."""
    with compare("prv-accountant") as peer:
        for count, epsilon in itertools.product((9_999, 10_000), (1e-1, 1e0, 1e1, 1e2)):
            mu = math.sqrt(count) / 100.0
            exact = norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
            ours = times(100.0, count).delta(epsilon)
            peer.close(ours, exact, count, epsilon, relative=1e-7, absolute=1e-15)
            peer.holds(ours >= exact - 1e-15, count, epsilon)
        ours = compose(*[gaussian(noise_multiplier=10.0)] * 50, *[gaussian(noise_multiplier=5.0)] * 50)
        mu = math.sqrt(50 * 10**-2 + 50 * 5**-2)
        exact = float(norm.cdf(-4 / mu + mu / 2) - math.exp(4) * norm.cdf(-4 / mu - mu / 2))
        peer.close(ours.delta(4.0), exact, mu, relative=1e-9)


def test_compositions_of_approximate_privacy(compare):
    """`test_approximate_dp.py`: below strong composition, and 1 - (1 - delta)^k for epsilon 0."""
    with compare("prv-accountant") as peer:
        for delta, count in itertools.product((1e-7, 1e-8), (10_000, 100_000)):
            ours = compose(*[approximate_dp(epsilon=0.0, delta=delta)] * count)
            peer.close(ours.delta(0.0), -math.expm1(count * math.log1p(-delta)), delta, count, relative=1e-6)
            once = compose(*[approximate_dp(epsilon=0.01, delta=delta)] * 1000)
            for spare in (1e-5, 1e-6):
                strong = 0.01 * math.sqrt(2 * 1000 * math.log(1 / spare)) + 1000 * 0.01 * math.tanh(0.005)
                peer.between(0.0, once.epsilon(1000 * delta + spare), strong, delta, spare)


def test_compositions_of_laplace_noise(compare):
    """`test_laplace.py`: below advanced composition."""
    with compare("prv-accountant") as peer:
        for count, delta in itertools.product((10_000, 100_000), (1e-5, 1e-6)):
            ours = compose(*[laplace(scale=100.0)] * count).epsilon(delta)
            peer.between(0.0, ours, 1e-2 * count * math.sqrt(2 * math.log(1 / delta)), count, delta)


def test_losses_of_a_sampled_gaussian(compare):
    """`test_poisson_subsampled_gaussian.py`, rate .01 and noise 1: the distribution of the loss.

    P(loss > t) is delta(t) - delta'(t), for delta as a function of t. Ours has it by a difference quotient.
    """
    with compare("prv-accountant") as peer:
        rate, noise = 1e-2, 1.0
        curve = poisson_sample(gaussian(noise_multiplier=noise), rate).profile
        for t in (math.log(1 - rate) / 2, 0.0, 0.5, 1.0, 2.0, 3.0):
            inside = math.log((math.exp(t) - (1 - rate)) / rate)
            tails = rate * norm.sf(noise * inside - 0.5 / noise) + (1 - rate) * norm.sf(noise * inside + 0.5 / noise)
            step = 1e-5
            low, middle, high = curve.remove(np.array([t - step, t, t + step]))
            peer.close(float(middle - (high - low) / (2 * step)), float(tails), t, relative=1e-4, absolute=1e-8)


def test_noise_of_a_training(compare):
    """`test_dpsgd.py`: the noise of (4, 1e-7) at rate .002 and 10,000 steps is between 0 and 2."""
    with compare("prv-accountant") as peer:
        noise = calibrate(
            lambda s: dp_sgd(noise_multiplier=s, sampling_rate=2e-3, steps=10_000), epsilon=4.0, delta=1e-7
        )
        peer.between(0.0, noise, 2.0)
        found = dp_sgd(noise_multiplier=noise, sampling_rate=2e-3, steps=10_000).epsilon(1e-7)
        peer.close(found, 4.0, relative=1e-3)


@pytest.mark.filterwarnings("ignore")
def test_live_intervals(compare):
    """Ours is in each of their intervals, which are valid at both ends up to their error of delta."""
    prv = pytest.importorskip("prv_accountant")
    kinds = [
        (prv.GaussianMechanism(noise_multiplier=8.0), gaussian(noise_multiplier=8.0), (20,)),
        (prv.LaplaceMechanism(mu=0.1), laplace(scale=10.0), (30,)),
        (prv.PureDPMechanism(0.1), pure_dp(epsilon=0.1), (30,)),
    ]
    sampled = [(1.0, 0.01, 500), (0.8, 0.005, 300), (2.0, 0.05, 400)]
    with compare("prv-accountant", live=True) as peer:
        for theirs, ours, counts in kinds:
            accountant = prv.PRVAccountant([theirs], eps_error=0.01, delta_error=1e-11, max_self_compositions=[100])
            for count in counts:
                intervals(peer, accountant, compose(*[ours] * count), count)
        for noise, rate, count in sampled:
            theirs = prv.PoissonSubsampledGaussianMechanism(rate, noise)
            accountant = prv.PRVAccountant([theirs], eps_error=0.01, delta_error=1e-11, max_self_compositions=[count])
            intervals(peer, accountant, dp_sgd(noise_multiplier=noise, sampling_rate=rate, steps=count), count)


def intervals(peer, accountant, ours, count):
    for delta in np.geomspace(1e-8, 1e-2, 13):
        low, _, high = accountant.compute_epsilon(delta, [count])
        peer.between(low - 1e-6, ours.epsilon(delta), high, count, delta)
    for epsilon in (0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0):
        low, _, high = accountant.compute_delta(epsilon, [count])
        peer.between(low, ours.delta(epsilon), high, count, epsilon)
