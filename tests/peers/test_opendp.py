"""OpenDP: the maps that its tests assert (main branch of 2026-08-06, bc6e18b), and live maps of release 0.16."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpselect.accounting import best_of
from dpselect.mechanisms import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from dpselect.privacy import approximate_dp, compose, from_profile, gaussian, laplace, pure_dp, zcdp
from dpselect.privacy.sampled import fixed_sample
from dpselect.repetitions import Geometric

pytestmark = pytest.mark.peers


def test_zcdp_to_approximate_privacy(compare):
    """`measure_cast/zCDP_to_approxDP`: both functions.

    Ours tries fewer orders for a delta, which is up to a thousandth larger.
    """
    with compare("opendp") as peer:
        peer.close(zcdp(rho=0.05).delta(0.25), 8.17727531036956e-2, relative=3e-5)
        peer.close(zcdp(rho=0.5).delta(0.0), 0.5588356393474351, relative=3e-5)
        one = zcdp(rho=1 / 32)
        peer.close(one.epsilon(1e-3), 0.6880024554878085, relative=1e-6)
        peer.close(one.delta(0.0), 0.1508457845622862, relative=3e-5)
        peer.close(one.delta(0.6880024554878085), 1e-3, relative=3e-5)
        peer.close(one.epsilon(1.0), 0.0)
        peer.holds(math.isinf(one.epsilon(0.0)))
        # a rho of 0 reveals nothing: both say so by a delta, and theirs at a delta of 0 too
        peer.holds(zcdp(rho=0.0).epsilon(1e-9) == 0.0 == zcdp(rho=0.0).delta(0.0))
        peer.holds(zcdp(rho=0.1).delta(0.1) > 0.0)
        # the Gaussian itself is cheaper than any mechanism of its zCDP
        for delta in (1e-9, 1e-6, 1e-3, 0.1):
            peer.holds(gaussian(noise_multiplier=4.0).epsilon(delta) < one.epsilon(delta), delta)


def test_fixed_deltas(compare):
    """`fix_delta` and `fixed_approxDP_to_approxDP`: at its epsilon the delta holds, below it nothing does."""
    with compare("opendp") as peer:
        exponential = from_profile([0.0, 16.11809565095832], [1.0, 1e-7])
        peer.close(exponential.epsilon(1e-7), 16.11809565095832, relative=1e-12)
        for epsilon, delta in ((1.0, 4.5e-5), (0.5, 1e-7), (3.0, 0.01)):
            fixed = approximate_dp(epsilon=epsilon, delta=delta)
            peer.close(fixed.delta(epsilon), delta, epsilon, relative=1e-12)
            peer.close(fixed.delta(math.nextafter(epsilon, 9)), delta, epsilon, relative=1e-12)
            peer.holds(math.isinf(fixed.epsilon(delta * 0.999)), epsilon)
            # ours knows more below epsilon: the worst mechanism of these two numbers, where theirs says 1
            peer.holds(delta < fixed.delta(0.0) < 1.0, epsilon)


def test_private_selection(compare):
    """`select_private_candidate`: twice the loss of a candidate, for a number of runs that stops at random.

    With a threshold and a stop by a coin, it is the best of a geometric number of runs: ours is 2 epsilon at most.
    """
    with compare("opendp") as peer:
        for epsilon, mean in itertools.product((0.1, 0.5, 1.0, 2.0), (2.0, 10.0, 100.0)):
            ours = best_of(pure_dp(epsilon=epsilon), Geometric.with_mean(mean=mean)).epsilon(0.0)
            peer.between(0.0, ours, 3.0 * epsilon * (1 + 1e-12), epsilon, mean)


def test_amplification(compare):
    """`amplify`: 10 of 100 rows, a mean of noise 1/2 and bounds (0, 10) for two changes. Between .494 and .4941."""
    with compare("opendp") as peer:
        ours = fixed_sample(pure_dp(epsilon=2.0, adjacency="replace_one"), size=100, draws=10)
        peer.between(0.494, ours.epsilon(0.0), 0.4941)


def test_selection_mechanisms(compare):
    """`noisy_max`, `noisy_top_k` and `private_quantile`: their scale, in our epsilon."""
    with compare("opendp") as peer:
        # scale 1 at sensitivity 1 and both directions: 2 epsilon, and .5 zCDP, by the exponential mechanism .125 if
        # scores are monotonic
        for scale, monotonic, rho in ((1.0, False, 0.5), (1.0, True, 0.125), (2.0, False, 0.125), (0.5, True, 0.5)):
            epsilon = (1.0 if monotonic else 2.0) / scale
            ours = ExponentialMechanism(sensitivity=1.0, epsilon=epsilon, monotonic=monotonic).guarantee
            peer.close(ours.epsilon(0.0), epsilon, scale, monotonic, relative=1e-12)
            for order in (1.5, 2.0, 8.0):
                peer.holds(ours.renyi(order) <= rho * order * (1 + 1e-9), scale, order)
            for kind in (PermuteAndFlip, ReportNoisyMax):
                other = kind(sensitivity=1.0, epsilon=epsilon, monotonic=monotonic).guarantee
                peer.close(other.epsilon(0.0), epsilon, kind, scale, relative=1e-12)


def test_randomised_response(compare):
    """`randomized_response`: two and k categories."""
    from dp_accounting import RandomizedResponseDpEvent

    from dpselect.privacy import from_dp_event

    with compare("opendp") as peer:
        for chance, count, expected in ((0.75, 2, math.log(3)), (0.5, 2, 0.0), (0.75, 4, math.log(9)), (0.2, 5, 0.0)):
            noise = (1 - chance) * count / (count - 1)  # of dp-accounting: the chance of a uniform answer
            ours = from_dp_event(RandomizedResponseDpEvent(noise, count), adjacency="replace_one")
            peer.close(ours.epsilon(0.0), expected, chance, count, relative=1e-9, absolute=1e-9)


@pytest.fixture(scope="module")
def dp():
    found = pytest.importorskip("opendp.prelude")
    found.enable_features("contrib")
    return found


def test_live_zcdp_profiles(compare, dp):
    """Their conversion of zCDP at 24 noises: delta of epsilon, and epsilon of delta."""
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    with compare("opendp", live=True) as peer:
        for noise in np.geomspace(0.3, 30.0, 24).tolist():
            measurement = dp.m.make_gaussian(*space, noise)
            rho = measurement.map(1.0)
            peer.close(rho, 0.5 / noise**2, noise, relative=1e-12)
            theirs, ours = dp.c.make_zCDP_to_approxDP(measurement).map(1.0), zcdp(rho=rho)
            for delta in np.geomspace(1e-12, 0.5, 12).tolist():
                peer.close(ours.epsilon(delta), theirs.epsilon(delta), noise, delta, relative=1e-6, absolute=1e-9)
            for epsilon in (0.0, 0.01, 0.1, 0.3, 1.0, 2.0, 4.0, 8.0):
                # theirs does not look at orders below 1.01, so at large deltas ours is smaller
                found, value = ours.delta(epsilon), theirs.delta(epsilon)
                low = 0.0 if value > 0.3 else value * (1 - 1e-6)
                peer.between(low, found, value * (1 + 2e-3) + 1e-299, noise, epsilon)


def test_live_noise(compare, dp):
    """Laplace noise and its composition, and compositions of zCDP."""
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    with compare("opendp", live=True) as peer:
        for scale in np.geomspace(0.1, 50.0, 40).tolist():
            loss = dp.m.make_laplace(*space, scale).map(1.0)
            peer.close(laplace(scale=scale).epsilon(0.0), loss, scale, relative=1e-12)
            twice = compose(laplace(scale=scale), laplace(scale=scale)).epsilon(0.0)
            peer.close(twice, 2 * loss, scale, relative=1e-9)
            rho = dp.m.make_gaussian(*space, scale).map(1.0)
            both = compose(zcdp(rho=rho), zcdp(rho=rho))
            for order in (1.5, 2.0, 10.0):
                peer.close(both.renyi(order), 2 * rho * order, scale, order, relative=1e-9)


def test_live_selection(compare, dp):
    """Their noisy maximum over a grid of scales, by both measures."""
    domain, metric = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    with compare("opendp", live=True) as peer:
        for scale in np.geomspace(0.2, 40.0, 40).tolist():
            epsilon = dp.m.make_noisy_max(domain, metric, dp.max_divergence(), scale).map(1)
            rho = dp.m.make_noisy_max(domain, metric, dp.zero_concentrated_divergence(), scale).map(1)
            for kind in (ExponentialMechanism, PermuteAndFlip, ReportNoisyMax):
                ours = kind(sensitivity=1.0, epsilon=2.0 / scale).guarantee
                peer.close(ours.epsilon(0.0), epsilon, kind, scale, relative=1e-12)
            ours = ExponentialMechanism(sensitivity=1.0, epsilon=2.0 / scale).guarantee
            for order in (1.1, 2.0, 5.0, 50.0):
                peer.holds(ours.renyi(order) <= rho * order * (1 + 1e-9), scale, order, ours.renyi(order), rho)


def test_live_quantile_scores(compare, dp):
    """The best candidate of their scores is the quantile that ours chooses at a large epsilon."""
    from dpselect.ordered import quantile
    from dpselect.randomness import keyed_source

    domain = dp.vector_domain(dp.atom_domain(T=int))
    random = np.random.default_rng(3)
    with compare("opendp", live=True) as peer:
        for size, alpha in itertools.product((99, 101, 250), (0.1, 0.25, 0.5, 0.75, 0.9)):
            rows = random.integers(0, 60, size).tolist()
            scores = dp.t.make_quantile_score_candidates(domain, dp.symmetric_distance(), list(range(60)), alpha=alpha)(
                rows
            )
            ours = quantile(rows, q=alpha, epsilon=1000.0, domain_size=60, random=keyed_source(size))
            best = [place for place, score in enumerate(scores) if score == min(scores)]
            peer.holds(min(abs(int(ours.value) - place) for place in best) <= 1, size, alpha, ours.value, best)
