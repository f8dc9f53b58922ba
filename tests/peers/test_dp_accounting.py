"""dp-accounting, its main branch of 2026-08-06 (b5b0286): the numbers that its tests assert.

Tests of `python/dp_accounting/dp_accounting/`. Numbers are printed with seven or more digits, and compared so.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event as de

from dpselect.accounting import best_of, calibrate
from dpselect.adaptive.transfer import trade_off_bound
from dpselect.errors import ArgumentError
from dpselect.privacy import approximate_dp, compose, dp_sgd, from_dp_event, gaussian, laplace, pure_dp, zcdp
from dpselect.privacy.sampled import poisson_sample
from dpselect.repetitions import Geometric, Logarithmic, Poisson, TruncatedNegativeBinomial
from tests.peers.comparison import facts

pytestmark = pytest.mark.peers

FACTS = facts("dp_accounting_facts.json")
PRINTED = {"relative": 2e-6, "absolute": 2e-7}


def mechanism(name, noise, sensitivity):
    """Of dpselect, from the parameters of dp-accounting's loss mechanisms."""
    if name == "discrete_laplace":
        return from_dp_event(de.DiscreteLaplaceDpEvent(noise, sensitivity))
    return {"laplace": lambda s: laplace(scale=s), "gaussian": lambda s: gaussian(noise_multiplier=s)}[name](
        noise / sensitivity
    )


def profile(name, noise, sensitivity, rate=1.0):
    """Both directions of the privacy profile, on a Poisson sample if the rate is below 1."""
    inner = mechanism(name, noise, sensitivity)
    return (inner if rate == 1.0 else poisson_sample(inner, rate)).profile


def deltas(curve, direction, epsilons):
    """At any real epsilon."""
    return {"ADD": curve.add, "REMOVE": curve.remove}[direction.upper()](np.asarray(epsilons, dtype=float))


@pytest.mark.parametrize("name", ["laplace", "gaussian", "discrete_laplace"])
def test_deltas(compare, name):
    """pld/privacy_loss_mechanism_test.py. REPLACE moves a Gaussian by two norms, ours as well."""
    with compare("dp-accounting") as peer:
        for row in FACTS["deltas"]:
            if row["mechanism"] != name:
                continue
            if row["direction"] == "REPLACE":
                # a sample under replace-one is accounted by their own loss distribution, which takes minutes
                if row["epsilon"] >= 0.0 and row["rate"] == 1.0:
                    event = de.GaussianDpEvent(row["noise"] / row["sensitivity"])
                    ours = from_dp_event(event, adjacency="replace_one").delta(row["epsilon"])
                    peer.close(ours, row["delta"], row, **PRINTED)
                continue
            curve = profile(name, row["noise"], row["sensitivity"], row["rate"])
            ours = float(deltas(curve, row["direction"], [row["epsilon"]])[0])
            peer.close(ours, row["delta"], row, **PRINTED)
            if name == "gaussian" and row["rate"] < 1.0 and row["epsilon"] >= 0.0:
                step = dp_sgd(noise_multiplier=row["noise"] / row["sensitivity"], sampling_rate=row["rate"], steps=1)
                peer.between(row["delta"] * (1 - 1e-5) - 1e-7, step.delta(row["epsilon"]), 1.0, row)


def of_masses(masses, infinite, interval, epsilon):
    """The hockey-stick divergence of a distribution of losses."""
    losses = np.array([place for place, _ in masses]) * interval
    weights = np.array([weight for _, weight in masses])
    return float(np.sum(np.where(losses > epsilon, weights * -np.expm1(epsilon - losses), 0.0)) + infinite)


@pytest.mark.parametrize("name", ["laplace", "gaussian", "discrete_laplace"])
def test_loss_distributions(compare, name):
    """pld/privacy_loss_distribution_test.py: three kinds of rounding.

    Rounded up they are above our delta at every point, rounded down below it, and connected dots are equal to it.
    """
    with compare("dp-accounting") as peer:
        for row in FACTS["loss_distributions"]:
            if row["mechanism"] != name or (row["relation"] == "REPLACE_ONE" and row["rate"] < 1.0):
                continue
            noise = row["noise"] / (2.0 if row["relation"] == "REPLACE_ONE" else 1.0)
            curve = profile(name, noise, row["sensitivity"], row["rate"])
            places = [int(place) for place, _ in row["masses"] if math.isfinite(place)]
            for place in range(min(places), max(places) + 1):
                epsilon = place * row["interval"]
                ours = float(deltas(curve, row["direction"], [epsilon])[0])
                theirs = of_masses(row["masses"], row["infinite"], row["interval"], epsilon)
                if row["kind"] == "exact" and len(places) == max(places) - min(places) + 1:
                    peer.close(ours, theirs, row, place, relative=1e-6, absolute=2e-6)
                elif row["kind"] != "below":
                    peer.between(0.0, ours, theirs + 1e-6, row, place)
                else:
                    # masses below the cut are left out, which makes this end smaller still
                    peer.between(theirs - 1e-6, ours, 1.0, row, place)


def test_noises_that_meet_a_target(compare):
    """pld/privacy_loss_mechanism_test.py. Noise of the larger direction at least; equal if the directions agree."""
    with compare("dp-accounting") as peer:
        for row in FACTS["noises"]:
            name, rate = row["mechanism"], row["rate"]
            if name == "discrete_gaussian" or row["direction"] == "REPLACE":
                continue

            def made(noise, row=row):
                inverse = row["mechanism"] == "discrete_laplace"
                inner = mechanism(row["mechanism"], 1.0 / noise if inverse else noise, row["sensitivity"])
                return inner if row["rate"] == 1.0 else poisson_sample(inner, row["rate"])

            found = calibrate(made, epsilon=row["epsilon"], delta=row["delta"], relative=1e-6)
            found = 1.0 / found if name == "discrete_laplace" else found
            if name == "gaussian" and rate == 1.0:
                peer.close(found, row["noise"], row, relative=2e-3)
            elif name == "gaussian":
                peer.between(row["noise"] * (1 - 2e-3), found, math.inf, row)
            else:
                # theirs is the noise of a pure mechanism, without use of delta: ours is at most as large
                ratio = found / row["noise"] if name == "laplace" else row["noise"] / found
                peer.between(0.5, ratio, 1 + 2e-3, row)


def test_least_noises_of_compositions(compare):
    """pld/accountant_test.py: to the tolerance that it gives."""
    tolerance = {"laplace": 0.1, "discrete_laplace": 1e-3, "gaussian": 1e-3}
    with compare("dp-accounting") as peer:
        for row in FACTS["least_noises"]:
            name, rate, count = row["mechanism"], row["rate"], row["queries"]

            def made(noise, row=row):
                name, rate, count = row["mechanism"], row["rate"], row["queries"]
                if rate < 1.0:
                    return dp_sgd(noise_multiplier=noise / row["sensitivity"], sampling_rate=rate, steps=count)
                inner = mechanism(name, 1.0 / noise if name == "discrete_laplace" else noise, row["sensitivity"])
                return compose(*[inner] * count)

            found = calibrate(made, epsilon=row["epsilon"], delta=row["delta"], relative=1e-3)
            found = 1.0 / found if name == "discrete_laplace" else found
            peer.close(found, row["noise"], row, rate, count, absolute=tolerance[name], relative=2e-3)


def test_optimal_composition(compare):
    """pld/accountant_test.py, `advanced_composition`: the optimal composition of (epsilon, delta), on integer steps.

    Ours answers between them, so it is at most theirs, and more than one step of 2 epsilon below is impossible.
    """
    with compare("dp-accounting") as peer:
        for row in FACTS["compositions"]:
            epsilon, count = row["epsilon"], row["queries"]
            once = approximate_dp(epsilon=epsilon, delta=row["delta"]) if row["delta"] else pure_dp(epsilon=epsilon)
            ours = compose(*[once] * count).epsilon(row["total_delta"])
            if row["total_epsilon"] is None:
                peer.holds(math.isinf(ours), ours, row)
            else:
                peer.between(row["total_epsilon"] - 2 * epsilon, ours, row["total_epsilon"] * (1 + 1e-5), row)


def test_divergences_of_randomised_response(compare):
    """rdp/rdp_privacy_accountant_test.py, under replace-one. Other kinds of neighbours are not ours."""
    with compare("dp-accounting") as peer:
        for row in FACTS["response_divergences"]:
            event = de.RandomizedResponseDpEvent(row["noise"], row["buckets"])
            ours = from_dp_event(event, adjacency="replace_one")
            order = row["order"]
            found = ours.pure_epsilon if math.isinf(order) else ours.renyi(order)
            peer.close(found, row["divergence"], row, relative=1e-4)
        for noise, buckets, expected in ((1, 2, 0.0), (0.1, 1, 0.0)):
            ours = from_dp_event(de.RandomizedResponseDpEvent(noise, buckets), adjacency="replace_one")
            for order in (1.1, 1.2):
                peer.close(ours.renyi(order), expected, noise, buckets, order, absolute=1e-12)
        for noise, buckets in ((-1, 10), (2, 10), (0.1, 0)):
            event = de.RandomizedResponseDpEvent(noise, buckets)
            peer.refuses(ArgumentError, lambda e=event: from_dp_event(e, adjacency="replace_one"), event)


def test_true_positive_rates(compare):
    """pld/privacy_loss_distribution_test.py: the largest power of a test of one row."""
    with compare("dp-accounting") as peer:
        for row in FACTS["true_positive_rates"]:
            ours = trade_off_bound(gaussian(noise_multiplier=1.0), row["false_positives"])
            peer.close(ours, row["true_positives"], row, relative=1e-3)
        for row in [{"buckets": 2, **row} for row in FACTS["response_extreme_true_positive_rates"]]:
            peer.close(response_power(row), row["true_positives"], row, relative=1e-3)
        for row in FACTS["response_true_positive_rates"]:
            peer.close(response_power(row), row["true_positives"], row, relative=1e-3)


def response_power(row):
    """Of randomised response that answers by a coin half of the time."""
    event = de.RandomizedResponseDpEvent(0.5, row["buckets"])
    return trade_off_bound(from_dp_event(event, adjacency="replace_one"), row["false_positives"])


@pytest.mark.parametrize("name", ["laplace", "gaussian", "discrete_laplace"])
def test_bad_parameters_are_refused(compare, name):
    """Value errors of both files of loss distributions."""
    event = {
        "laplace": lambda n, s: de.LaplaceDpEvent(n / s),
        "gaussian": lambda n, s: de.GaussianDpEvent(n / s),
        "discrete_laplace": de.DiscreteLaplaceDpEvent,
    }[name]
    with compare("dp-accounting") as peer:
        for row in FACTS["refused"]:
            # a sensitivity of 0 and a sample of no rows are events that reveal nothing, and are accounted so
            if row["mechanism"] != name or row["sensitivity"] == 0 or row["rate"] == 0:
                continue
            sampled = de.PoissonSampledDpEvent(row["rate"], event(row["noise"], row["sensitivity"]))
            peer.refuses(ArgumentError, lambda e=sampled: from_dp_event(e).epsilon(1e-6), row)


def test_gaussian_noise_and_epsilon_are_inverse(compare):
    """gaussian_mechanism_test.py: both grids of 7 by 7, and the loss distribution's values."""
    with compare("dp-accounting") as peer:
        for delta in (1e-10, 1e-5, 0.1, 0.5, 0.9):
            for epsilon in (1e-5, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e5):
                noise = calibrate(lambda s: gaussian(noise_multiplier=s), epsilon=epsilon, delta=delta, low=1e-12)
                less = gaussian(noise_multiplier=noise * (1 - 3e-4))
                peer.holds(gaussian(noise_multiplier=noise).epsilon(delta) <= epsilon, epsilon, delta)
                peer.holds(less.epsilon(delta) > epsilon or less.delta(epsilon) > delta, epsilon, delta)
            for noise in (1e-5, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e5):
                epsilon = gaussian(noise_multiplier=noise).epsilon(delta)
                if epsilon == 0.0:
                    peer.holds(gaussian(noise_multiplier=noise).delta(0.0) <= delta, noise, delta)
                elif math.isfinite(epsilon):
                    found = calibrate(lambda s: gaussian(noise_multiplier=s), epsilon=epsilon, delta=delta, low=1e-12)
                    peer.close(found, noise, epsilon, delta, relative=1e-3)
        for noise in (1e-5, 1.0, 1e5):
            peer.holds(math.isinf(gaussian(noise_multiplier=noise).epsilon(0.0)), noise)
            peer.holds(gaussian(noise_multiplier=noise).epsilon(1.0) == 0.0, noise)


def negative_binomial(gamma, shape):
    """The distribution of the number of runs with dp-accounting's parameters."""
    if shape == 0:
        return Logarithmic(gamma=gamma)
    return Geometric(gamma=gamma) if shape == 1 else TruncatedNegativeBinomial(eta=shape, gamma=gamma)


def test_means_of_numbers_of_runs(compare):
    """rdp/rdp_privacy_accountant_test.py: closed forms of the mean, and its inverse."""
    with compare("dp-accounting") as peer:
        for gamma in (1e-7, 0.1, 1 - 1e-6):
            peer.close(negative_binomial(gamma, 0).mean, (1 - 1 / gamma) / math.log(gamma), gamma, relative=1e-7)
            peer.close(negative_binomial(gamma, 1).mean, 1 / gamma, gamma, relative=1e-7)
            for shape in (0.01, 0.5, 0.99, 1.01, 2, 10):
                expected = shape * (1 / gamma - 1) / (1 - gamma**shape)
                peer.close(negative_binomial(gamma, shape).mean, expected, gamma, shape, relative=1e-7)
        for row in FACTS["negative_binomial_parameters"]:
            gamma, shape = row["gamma"], row["shape"]
            if gamma == 1:  # one run for certain: no search
                peer.refuses(ArgumentError, lambda g=gamma, s=shape: negative_binomial(g, s), row)
                continue
            mean = negative_binomial(gamma, shape).mean
            law = {0: Logarithmic, 1: Geometric}.get(shape)
            found = (
                law.with_mean(mean=mean) if law else TruncatedNegativeBinomial.with_mean(eta=shape, mean=mean)
            ).gamma
            peer.close(found, gamma, row, absolute=1e-7, relative=1e-7)


def test_searches(compare):
    """rdp/rdp_privacy_accountant_test.py: searches are bounded by the theorems of Papernot and Steinke.

    Theirs is those theorems' value. Ours is never above it, at any order, and for a pure base it is smaller.
    """
    with compare("dp-accounting") as peer:
        for row in FACTS["repeat_pure_negative_binomial"]:
            theirs, shape = row["epsilon"] * (2 + row["shape"]), row["shape"]
            law = (
                Logarithmic.with_mean(mean=row["mean"])
                if shape == 0
                else Geometric.with_mean(mean=row["mean"])
                if shape == 1
                else TruncatedNegativeBinomial.with_mean(eta=shape, mean=row["mean"])
            )
            ours = best_of(pure_dp(epsilon=row["epsilon"]), law)
            peer.between(0.9 * theirs, ours.epsilon(0.0), theirs * (1 + 1e-9), row)
            peer.between(0.0, best_of(laplace(scale=1 / row["epsilon"]), law).epsilon(1e-10), theirs * (1 + 1e-9), row)
        for row in FACTS["repeat_gaussian_negative_binomial"]:
            peer_rows(peer, row)
        for row in FACTS["repeat_pure_poisson"]:
            epsilon, mean = row["epsilon"], row["mean"]
            order = 1 + 1 / math.expm1(epsilon)
            theirs = (
                epsilon
                + math.log1p(math.expm1((1 - 2 * order) * epsilon) * (order - 1) / (2 * order - 1)) / (order - 1)
                + math.log(mean) * math.expm1(epsilon)
            )
            base = laplace(scale=1 / epsilon)
            if mean > 1e6:  # ours has a limit
                peer.refuses(ArgumentError, lambda m=mean: Poisson(mean=m), row)
            elif mean > 1:
                ours = best_of(base, Poisson(mean=mean), bound="renyi").renyi(order) if order > 1 else math.inf
                peer.between(0.0, ours, theirs * (1 + 1e-3), row)


def peer_rows(peer, row):
    """Corollary 4 of Papernot and Steinke 2022 at eleven orders."""
    shape, gamma = row["shape"], row["gamma"]
    rho = min(row["rho"], -math.log(gamma))
    law = negative_binomial(gamma, shape)
    mean = law.mean
    middle = 1 + math.sqrt(math.log(mean) / rho)
    ours = best_of(zcdp(rho=rho), law, bound="renyi")
    fixed = 2 * (1 + shape) * math.sqrt(-rho * math.log(gamma)) - shape * rho
    for order in (1.1, 2, math.sqrt(-math.log(gamma) / rho), middle, 3, 5, 10, 100, 1000, 10000):
        if order <= 1:
            continue
        if order <= middle:
            theirs = 2 * math.sqrt(rho * math.log(mean)) + fixed
        else:
            theirs = rho * (order - 1) + math.log(mean) / (order - 1) + fixed
        peer.between(0.0, ours.renyi(order), theirs * (1 + 1e-7), row, order)
