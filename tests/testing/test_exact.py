"""Exact laws and divergences on finite outputs, against sums by hand and enumeration of all runs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpselect.repetitions import Fixed, Poisson
from dpselect.testing.exact import best_of_masses, finite_guarantee, finite_pair, hockey_stick, renyi_divergence

E = math.e
RESPONSE = ([E / (1 + E), 1 / (1 + E)], [1 / (1 + E), E / (1 + E)])


def test_the_best_of_three_by_enumeration():
    masses = [0.5, 0.3, 0.2]
    expected = [0.0] * 3
    for runs in itertools.product(range(3), repeat=3):
        expected[max(runs)] += math.prod(masses[run] for run in runs)
    found = best_of_masses([masses, masses], Fixed(count=3))
    assert found.shape == (2, 4)
    assert found[0] == pytest.approx([0.0, *expected], rel=1e-14)


def test_the_best_of_a_random_number_of_runs_starts_with_no_run():
    """Of a Poisson number of runs: P(no output above the first) = exp(-mean * (1 - mass))."""
    none, low, high = best_of_masses([0.75, 0.25], Poisson(mean=2.0))
    assert none == pytest.approx(math.exp(-2.0), rel=1e-12)
    assert low == pytest.approx(math.exp(-2.0 * 0.25) - math.exp(-2.0), rel=1e-12)
    assert none + low + high == pytest.approx(1.0, rel=1e-14)


def test_hockey_stick_by_hand():
    upper, lower = [0.6, 0.4, 0.0], [0.2, 0.3, 0.5]
    assert hockey_stick(upper, lower, [0.0, math.log(2.0), 2.0, 1e6]) == pytest.approx([0.5, 0.2, 0.0, 0.0], abs=1e-15)
    assert hockey_stick(lower, upper, [0.0, 800.0]) == pytest.approx([0.5, 0.5])


def test_renyi_divergences_by_hand():
    upper, lower = [0.5, 0.5], [0.25, 0.75]
    expected = [math.log(0.25 / 0.25 + 0.25 / 0.75), math.log(2.0)]
    assert renyi_divergence(upper, lower, [2.0, math.inf]) == pytest.approx(expected, rel=1e-14)
    assert np.isinf(renyi_divergence([0.5, 0.5], [1.0, 0.0], [1.5, math.inf])).all()
    assert renyi_divergence([1.0, 0.0], [0.5, 0.5], [3.0]) == pytest.approx([math.log(2.0)], rel=1e-14)


def test_a_pair_has_both_directions():
    pair = finite_pair([0.6, 0.4], [0.2, 0.8])
    zero = np.zeros(1)
    assert pair.remove(np.array([math.log(2.0)])) == pytest.approx([0.2])
    assert pair.add(np.array([math.log(2.0)])) == pytest.approx([0.0], abs=1e-15)
    assert pair.remove(zero) == pytest.approx(pair.add(zero))
    assert pair(np.array([math.inf])) == pytest.approx([math.log(3.0)])
    assert pair.best_of(Fixed(count=2)).upper == pytest.approx((0.0, 0.36, 0.64))


def test_the_guarantee_of_randomised_response():
    found = finite_guarantee(*RESPONSE)
    assert found.pure_epsilon == pytest.approx(1.0, rel=1e-14)
    assert found.delta(np.array([0.0, 0.5])) == pytest.approx([(E - 1) / (E + 1), (E - math.sqrt(E)) / (E + 1)])
    assert finite_guarantee([0.1, 0.9], [0.1, 0.9]).pure_epsilon == 0.0
