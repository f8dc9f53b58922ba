"""Claims checked by a sparse vector: the privacy of a run, its tails, and no lucky runs beyond what is counted."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr, ndtri
from scipy.stats import laplace

from dpselect.holdout import claim_checks
from dpselect.holdout.claim_checks import mu_of_pure, plan_checked
from dpselect.holdout.draws import Draws
from dpselect.holdout.scores import METRICS, Scored
from tests.mechanisms.sparse_vector_adversaries import laplace_nodes, laplace_tail, signed_counts


def test_a_pure_mechanism_is_dominated_by_its_gaussian():
    """Randomised response's trade-off is below the Gaussian's everywhere, and touches it at its vertex."""
    levels = np.linspace(1e-6, 1 - 1e-6, 20_001)
    for epsilon in (0.01, 0.1, 1.0, 3.0):
        response = np.minimum(math.exp(epsilon) * levels, 1 - math.exp(-epsilon) * (1 - levels))
        normal = ndtr(ndtri(levels) + mu_of_pure(epsilon))
        assert np.all(response <= normal + 1e-12)
        assert np.min(normal - response) < 1e-4


@pytest.mark.cases(2)
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
def test_a_run_of_checks_lies_within_its_gaussian(epsilon):
    """Runs played out, claims that move up and down in turn: their power is below the Gaussian's at every level."""
    first, second = epsilon * claim_checks._SPLIT, epsilon * (1 - claim_checks._SPLIT)
    mu, levels, caught = claim_checks.mu_of_run(epsilon), np.array([1e-3, 0.01, 0.1, 0.4, 0.8]), False
    for level in (-2.0, -1.0, 0.0, 1.0, 3.0):
        for scores in ((1, 0), (1, 1)):
            here, there = signed_counts(
                laplace_tail(second / 2),
                laplace_nodes(first),
                level=2 * level / second,
                positives=1,
                for_positive=scores[0],
                for_negative=scores[1],
            )
            order = np.argsort(-(here + 1e-300) / (there + 1e-300))
            power = np.interp(levels, np.append(0, there[order].cumsum()), np.append(0, here[order].cumsum()))
            assert np.all(power <= ndtr(ndtri(levels) + mu) + 1e-9)
            caught |= bool(np.any(power > ndtr(ndtri(levels) + 0.55 * mu)))
    assert caught  # a mu that is so much smaller
    assert mu < 0.61 * epsilon < 0.5 * mu_of_pure(epsilon)


def scales_of(plan, monkeypatch, defect=1.0):
    """What the noise of a check is really drawn with: threshold and query scale, in rows."""
    found = []

    def recorded(scale, random):
        found.append(scale / 2.0**30)
        return 0

    monkeypatch.setattr(claim_checks, "discrete_laplace", recorded)
    scored = Scored(METRICS["accuracy"], np.zeros(plan.counting.rows), np.zeros(plan.counting.rows), 1.0)
    plan.confirms(scored, 0.9, Draws(bytes(32), "p", "q", 0))
    query, threshold = found
    return threshold * defect, query


def largest_loss(threshold_scale, query_scale, confirmed=12):
    """The largest log-ratio of the probability of yes, ..., yes, no between neighbours, summed over a fine grid.

    Many claims at distance 80 are confirmed, so the threshold's noise is large, and one at -80 is refused anyway:
    then its loss is nearly that of the threshold's shift and of twice the claim's.
    """
    noise = np.linspace(-40, 60, 400_001) * threshold_scale
    weights = laplace.pdf(noise, scale=threshold_scale)

    def chance(near, far):
        yes = laplace.cdf(noise - near, scale=query_scale) ** confirmed
        return np.sum(weights * yes * laplace.sf(noise - far, scale=query_scale))

    here = chance(80.0, -80.0)
    return max(abs(math.log(here / chance(80.0 + x, -80.0 + y))) for x, y in itertools.product((-1, 1), repeat=2))


def checked_plan():
    return plan_checked(
        questions=100, answers=4, rows=20_000, failure_probability=0.05, tolerance=0.005, largest_mu=0.6
    )


@pytest.mark.full
def test_a_run_of_checks_costs_what_is_stated(monkeypatch):
    plan = checked_plan()
    scales = scales_of(plan, monkeypatch)
    assert 1 / scales[0] + 2 / scales[1] <= plan.epsilon * (1 + 1e-9)
    assert 0.8 * plan.epsilon < largest_loss(*scales) <= plan.epsilon * (1 + 1e-6)


@pytest.mark.full
def test_zoo_a_threshold_noise_of_a_third_of_the_scale_is_caught(monkeypatch):
    plan = checked_plan()
    assert largest_loss(*scales_of(plan, monkeypatch, defect=1 / 3)) > plan.epsilon


def test_the_tail_of_a_check_is_that_of_two_laplace_noises():
    a, b = 1 / (0.3 * claim_checks._SPLIT), 2 / (0.3 * (1 - claim_checks._SPLIT))
    for rows in (1.0, 5.0, 40.0):
        exact = quad(lambda x, r=rows: laplace.pdf(x, scale=a) * laplace.sf(r - x, scale=b), -900, 900, limit=500)[0]
        assert claim_checks._tail(rows, 0.3) == pytest.approx(exact, rel=2e-6)


def test_lucky_runs_confirm_no_far_claim_more_often_than_is_counted():
    """An analyst that keeps a run only once it has confirmed claims at the tolerance, and then claims too much.

    20,000 runs at a tail of 1 %: 200 expected at the most, 250 or more has a chance below 5e-4.
    """
    epsilon, runs, generator = 1.0, 20_000, np.random.default_rng(9)
    a, b = 1 / (epsilon * claim_checks._SPLIT), 2 / (epsilon * (1 - claim_checks._SPLIT))
    gap = claim_checks._gap(0.01, epsilon)
    threshold = generator.laplace(0, a, runs)
    lucky = np.all(generator.laplace(0, b, (3, runs)) < threshold, axis=0)
    far = gap + generator.laplace(0, b, runs) < threshold
    assert np.count_nonzero(lucky & far) < 250
    assert np.count_nonzero(far & lucky) / np.count_nonzero(lucky) > 0.012  # lucky runs are worse, given that they are
