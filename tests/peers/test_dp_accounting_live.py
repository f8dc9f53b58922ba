"""dp-accounting 0.6.0, called: loss distributions rounded both ways, Renyi accountants, and the Gaussian mechanism."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
from dp_accounting import dp_event as de, gaussian_mechanism
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant

from dpselect.privacy import compose, dp_sgd, from_dp_event, gaussian, laplace, zcdp
from dpselect.privacy.sampled import poisson_sample

pytestmark = pytest.mark.peers

MESH = 1e-3
EPSILONS = np.array([0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0])


def discrete(parameter, sensitivity):
    return from_dp_event(de.DiscreteLaplaceDpEvent(parameter, sensitivity))


def response(noise, buckets):
    return from_dp_event(de.RandomizedResponseDpEvent(noise, buckets), adjacency="replace_one")


ONCE = {
    **{("laplace", b): (laplace(scale=b), pld.from_laplace_mechanism, (b,)) for b in (0.5, 1.0, 2.0, 5.0)},
    **{
        ("gaussian", s): (gaussian(noise_multiplier=s), pld.from_gaussian_mechanism, (s,)) for s in (0.5, 1.0, 2.0, 5.0)
    },
    **{
        ("discrete", a, s): (discrete(a, s), pld.from_discrete_laplace_mechanism, (a, s))
        for a, s in ((0.2, 1), (0.5, 2), (1.0, 1))
    },
    **{("response", p, k): (response(p, k), pld.from_randomized_response, (p, k)) for p, k in ((0.3, 2), (0.6, 5))},
}


@pytest.mark.parametrize("name", sorted({kind for kind, *_ in ONCE}))
@pytest.mark.parametrize("count", [1, 4, 20])
def test_compositions_are_between_both_roundings(compare, name, count):
    """Our delta is at most their pessimistic one, up to 1e-7 of it, and at least their optimistic one."""
    with compare("dp-accounting", live=True) as peer:
        for case, (ours, make, arguments) in ONCE.items():
            if case[0] != name:
                continue
            high, low = (
                make(*arguments, value_discretization_interval=MESH, pessimistic_estimate=kind).self_compose(count)
                for kind in (True, False)
            )
            total = compose(*[ours] * count) if count > 1 else ours
            above, below = high.get_delta_for_epsilon(EPSILONS), low.get_delta_for_epsilon(EPSILONS)
            found = total.delta(EPSILONS)
            for epsilon, least, mine, most in zip(EPSILONS, below, found, above, strict=True):
                peer.holds(mine <= most * (1 + 1e-7) + 1e-9, "above", case, count, epsilon, mine, most)
                peer.holds(mine >= least - 1e-9, "below", case, count, epsilon, mine, least)


@pytest.mark.parametrize(
    ("noise", "rate", "steps"), [(1.0, 0.01, 100), (0.8, 0.05, 20), (2.0, 0.2, 50), (4.0, 0.5, 10)]
)
def test_trainings_are_between_both_roundings(compare, noise, rate, steps):
    """DP-SGD, and one round of Laplace noise on a sample."""
    with compare("dp-accounting", live=True) as peer:
        cases = [
            (dp_sgd(noise_multiplier=noise, sampling_rate=rate, steps=steps), pld.from_gaussian_mechanism, steps),
            (poisson_sample(laplace(scale=noise), rate), pld.from_laplace_mechanism, 1),
        ]
        for ours, make, count in cases:
            options = {"sampling_prob": rate, "value_discretization_interval": MESH}
            high = make(noise, **options).self_compose(count)
            low = make(noise, pessimistic_estimate=False, **options).self_compose(count)
            above, below = high.get_delta_for_epsilon(EPSILONS), low.get_delta_for_epsilon(EPSILONS)
            for epsilon, least, mine, most in zip(EPSILONS, below, ours.delta(EPSILONS), above, strict=True):
                # the mesh of ours is coarser than theirs here
                peer.holds(mine <= most * (1 + 1e-3) + 1e-9, "above", noise, rate, count, epsilon, mine, most)
                peer.holds(mine >= least - 1e-9, "below", noise, rate, count, epsilon, mine, least)


ORDERS = [1.1, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 8.0, 10.0, 16.0, 20.0, 32.0, 64.0, 128.0, 256.0]


def divergences(event):
    """Theirs at each order. Fractional orders of samples may be given up, and are infinite then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RdpAccountant(ORDERS).compose(event)._rdp


def test_divergences(compare):
    """Renyi divergences at 16 orders. Theirs of a sampled Gaussian below order 2 is an interpolation that is too large.

    So ours is at most theirs there, and equal from order 2 on at whole orders.
    """
    with compare("dp-accounting", live=True) as peer:
        for noise in (0.5, 1.0, 2.0, 4.0, 8.0):
            simple = [
                (de.GaussianDpEvent(noise), gaussian(noise_multiplier=noise)),
                (de.LaplaceDpEvent(noise), laplace(scale=noise)),
                (de.ZCDpEvent(1 / noise), zcdp(rho=1 / noise)),
                (de.SelfComposedDpEvent(de.LaplaceDpEvent(noise), 5), compose(*[laplace(scale=noise)] * 5)),
                (
                    de.ComposedDpEvent([de.LaplaceDpEvent(noise), de.GaussianDpEvent(3.0)]),
                    compose(laplace(scale=noise), gaussian(noise_multiplier=3.0)),
                ),
            ]
            for event, ours in simple:
                for order, theirs in zip(ORDERS, divergences(event), strict=True):
                    peer.close(ours.renyi(order), float(theirs), event, order, relative=1e-8)
            for rate in (0.001, 0.01, 0.1, 0.5):
                event = de.PoissonSampledDpEvent(rate, de.GaussianDpEvent(noise))
                ours = dp_sgd(noise_multiplier=noise, sampling_rate=rate, steps=1)
                for order, theirs in zip(ORDERS, divergences(event), strict=True):
                    found = ours.renyi(order)
                    if order == int(order):
                        peer.close(found, float(theirs), event, order, relative=1e-6, absolute=1e-12)
                    else:
                        peer.holds(found <= theirs * (1 + 1e-6) + 1e-12, found, theirs, event, order)


def test_the_divergence_of_order_one_and_a_half_that_they_print(compare):
    """`test_compute_rdp_poisson_sampled_gaussian`: noise 2.5, rate .01, 50 rounds, orders 1.5 to 100.

    They print 6.7058e-4 for order 1.5. By 50-digit quadrature it is 6.5007e-4: theirs is 3.2 % too large. The other
    orders agree.
    """
    import mpmath

    def exact(order, *, noise=2.5, rate=0.01, rounds=50):
        with mpmath.workdps(50):
            a, q, s = mpmath.mpf(order), mpmath.mpf(rate), mpmath.mpf(noise)

            def integrand(x):
                return mpmath.npdf(x, 0, s) * ((1 - q) + q * mpmath.exp((2 * x - 1) / (2 * s**2))) ** a

            places = [-mpmath.inf, -20, -5, 0, 5, 20, 60, 300, mpmath.inf]
            return float(rounds * mpmath.log(mpmath.quad(integrand, places)) / (a - 1))

    printed = {1.5: 6.70579741e-4, 2.5: 1.08548710e-3, 5: 2.18075656e-3, 50: 2.38460375e-2, 100: 1.67416308e2}
    ours = dp_sgd(noise_multiplier=2.5, sampling_rate=0.01, steps=50)
    with compare("dp-accounting") as peer:
        for order, theirs in printed.items():
            if order == 1.5:
                peer.close(exact(order), 6.5007e-4, order, relative=1e-4)
                peer.close(ours.renyi(order), exact(order), order, relative=1e-8)
                peer.between(1.031, theirs / exact(order), 1.032)
            else:
                peer.close(ours.renyi(order), theirs, order, relative=1e-4)
        peer.holds(math.isinf(ours.renyi(math.inf)))


def test_the_gaussian_mechanism(compare):
    """`get_epsilon_gaussian` over noises and deltas."""
    with compare("dp-accounting", live=True) as peer:
        for noise, delta in itertools.product(np.geomspace(0.1, 100.0, 13), np.geomspace(1e-12, 0.5, 13)):
            theirs = gaussian_mechanism.get_epsilon_gaussian(float(noise), float(delta), tol=1e-14)
            ours = gaussian(noise_multiplier=noise).epsilon(delta)
            peer.close(ours, theirs, noise, delta, relative=1e-8, absolute=1e-10)
