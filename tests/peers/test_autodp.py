"""autodp 0.2.3: what its tests assert, and live calls of its accountants."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpselect.accounting import calibrate
from dpselect.adaptive.transfer import trade_off_bound
from dpselect.privacy import dp_sgd, gaussian, laplace, pure_dp, zcdp
from tests.peers.comparison import table

pytestmark = pytest.mark.peers

SIGMAS = [int(1.6**i) for i in range(10)]
"""test/unit_test_calibrator.py"""


def test_renyi_divergences_of_dp_sgd(compare):
    """test/unit_test_dp_sgd_poisson_sampling_add_remove.py: values of TensorFlow Privacy, 1,344 parameters."""
    with compare("autodp") as peer:
        for row in table("autodp_facts.csv"):
            order, rate, noise, steps, theirs = row.values()
            # a rate of 0 is refused by `dp_sgd`: such a search reads nothing
            run = dp_sgd(noise_multiplier=noise, sampling_rate=rate, steps=int(steps)) if rate else pure_dp(epsilon=0)
            peer.close(run.renyi(order), theirs, row, relative=1e-7)


def test_noise_of_a_gaussian(compare):
    """test/unit_test_calibrator.py, both tables: the noise that meets the epsilon of a noise is that noise.

    Theirs asserts 99 % of it. Compositions of k rounds are a noise divided by the root of k.
    """
    with compare("autodp") as peer:
        for noise, delta, rounds in itertools.product(SIGMAS, [1e-3, 1e-4, 1e-5, 1e-6], [1, 10, 100, 1000]):
            epsilon = gaussian(noise_multiplier=noise / math.sqrt(rounds)).epsilon(delta)
            if epsilon == 0.0:
                continue
            found = calibrate(
                lambda s, k=rounds: gaussian(noise_multiplier=s / math.sqrt(k)), epsilon=epsilon, delta=delta
            )
            peer.between(0.9998 * noise, found, 1.0002 * noise, noise, delta, rounds)


def test_trade_off_of_a_gaussian(compare):
    """test/unit_test_approxdp_to_fdp_conversion.py and its inverse: 8 noises, 21 rates of false positives, 8 deltas."""
    autodp = pytest.importorskip("autodp.fdp_bank")
    bank = pytest.importorskip("autodp.dp_bank")
    with compare("autodp", live=True) as peer:
        for noise in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0):
            guarantee = gaussian(noise_multiplier=noise)
            for rate in np.linspace(0.0, 1.0, 21)[1:-1]:
                ours = 1.0 - trade_off_bound(guarantee, float(rate))
                peer.close(ours, float(autodp.fDP_gaussian({"sigma": noise}, rate)), noise, rate, absolute=1e-7)
            for delta in (1e-8, 1e-6, 1e-4, 1e-2, 0.3, 0.5):
                theirs = float(bank.get_eps_ana_gaussian(noise, delta))
                peer.close(guarantee.epsilon(delta), max(theirs, 0.0), noise, delta, relative=1e-5, absolute=1e-7)


ORDERS = [1.01, 1.1, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 128.0, 256.0]


def test_renyi_divergences_of_simple_mechanisms(compare):
    """Their bank of closed forms: Gaussian, Laplace and randomised response."""
    bank = pytest.importorskip("autodp.rdp_bank")
    with compare("autodp", live=True) as peer:
        for noise, order in itertools.product(np.geomspace(0.2, 20.0, 12), ORDERS):
            ours = gaussian(noise_multiplier=noise).renyi(order)
            peer.close(ours, bank.RDP_gaussian({"sigma": noise}, order), noise, order, relative=1e-12)
            ours = laplace(scale=noise).renyi(order)
            peer.close(ours, bank.RDP_laplace({"b": noise}, order), noise, order, relative=1e-8, absolute=1e-12)
        for chance, order in itertools.product(np.linspace(0.51, 0.99, 13), ORDERS):
            ours = pure_dp(epsilon=math.log(chance / (1 - chance))).renyi(order)
            peer.close(ours, bank.RDP_randresponse({"p": chance}, order), chance, order, relative=1e-7)


def test_epsilons_of_simple_mechanisms(compare):
    """Their exact conversions, at each delta of a wide grid."""
    zoo = pytest.importorskip("autodp.mechanism_zoo")
    deltas = np.geomspace(1e-10, 0.1, 10)
    with compare("autodp", live=True) as peer:
        for noise in np.geomspace(0.3, 30.0, 10):
            theirs, ours = zoo.ExactGaussianMechanism(noise), gaussian(noise_multiplier=noise)
            for delta in deltas:
                found = max(theirs.get_approxDP(delta), 0.0)
                peer.close(ours.epsilon(delta), found, noise, delta, relative=1e-5, absolute=1e-7)
        for rho, delta in itertools.product((0.001, 0.01, 0.1, 0.5, 1.0, 4.0), deltas):
            # a valid bound by an older conversion: ours is at most as large
            theirs = zoo.zCDP_Mechanism(rho, 0).get_approxDP(delta)
            peer.between(0.0, zcdp(rho=rho).epsilon(delta), theirs * (1 + 1e-6) + 1e-9, rho, delta)
