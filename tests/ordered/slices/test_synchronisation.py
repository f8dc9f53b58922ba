"""The synchronisation maps: exact rates, weights and log ratios."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.ordered.slices.synchronisation import failure_weights, synchronisation

LONG = 300


@pytest.mark.parametrize(
    ("epsilon", "gamma", "lower", "upper"),
    [
        (0.01, 69, 0.305326989584, 0.308395576845),
        (0.05, 14, 0.299489510978, 0.314844666559),
        (0.1, 7, 0.292785076379, 0.323577551661),
        (0.25, 3, 0.274957138373, 0.353051954171),
        (0.5, 1, 0.238651218541, 0.393469340287),
        (1.0, 1, 0.232544157935, 0.632120558829),
    ],
)
def test_rates_of_failure(epsilon, gamma, lower, upper):
    sync = synchronisation(epsilon)
    assert len(failure_weights(epsilon)) == gamma == math.ceil(math.log1p(math.exp(-epsilon)) / epsilon)
    assert sync.fail_lower == pytest.approx(lower, abs=1e-12)
    assert sync.fail_upper == pytest.approx(upper, abs=1e-12)
    for fail, masses in ((sync.fail_lower, sync.lower), (sync.fail_upper, sync.upper)):
        assert fail + sum(masses) == pytest.approx(1.0, abs=1e-13)


def test_rates_in_the_limits():
    assert synchronisation(1e-5).fail_lower == pytest.approx(1.0 - math.log(2.0), abs=1e-5)
    golden = math.log((1.0 + math.sqrt(5.0)) / 2.0)
    for epsilon in (golden + 1e-9, 0.7, 1.0, 2.0):
        assert synchronisation(epsilon).success_least == pytest.approx(math.exp(-epsilon), rel=1e-12)
    # the rate that the price uses is largest at 1 on (0, 1], where it leaves exp(-1) for success
    assert max(synchronisation(e).fail_upper for e in np.linspace(0.005, 1.0, 200)) == pytest.approx(1 - 1 / math.e)


def test_weights_of_failure():
    assert failure_weights(0.25) == pytest.approx([0.778800783071, 0.385331442784, 0.078897212454], abs=1e-12)
    for epsilon in (0.01, 0.1, 0.3, 1.0):
        weights = failure_weights(epsilon)
        assert all(a >= b for a, b in itertools.pairwise(weights))
        assert all(t <= math.exp(-(i + 1) * epsilon) + 1e-15 for i, t in enumerate(weights))


@pytest.mark.parametrize(
    ("epsilon", "ratios"),
    [(0.25, (-0.25, 0.11064653, 0.25)), (0.5, (None, -0.43275213, 0.5)), (1.0, (None, 0.54132485, 1.0))],
)
def test_log_ratios_of_success(epsilon, ratios):
    sync = synchronisation(epsilon)
    for lower, upper, ratio in zip(sync.lower, sync.upper, ratios, strict=True):
        if ratio is None:
            assert lower == upper == 0.0
        else:
            assert math.log(lower / upper) == pytest.approx(ratio, abs=1e-8)


@pytest.mark.theorem("Cohen et al. 2022, Lemma 2.4", exact=True, sharp=True)
@pytest.mark.parametrize("ratio", [Fraction(1, 2), Fraction(3, 4), Fraction(9, 10)])
def test_the_maps_in_rationals(ratio):
    """The definitions of R0 and R1 summed term by term, against the three aggregated outcomes."""
    weights = [max(Fraction(0), ratio**i + ratio ** (i + 1) - 1) for i in range(LONG)]
    lower_fail = sum((1 - ratio) * t for t in weights)
    lower = [(1 - ratio) * ratio**i - (1 - ratio) * t for i, t in enumerate(weights)]
    upper = [(1 - ratio) * ratio**i - (1 - ratio) * weights[i] / ratio for i in range(1, LONG)]  # index i - 1
    sync = synchronisation(-math.log(ratio))
    assert sync.fail_lower == pytest.approx(float(lower_fail), rel=1e-12)
    gamma = sum(t > 0 for t in weights)
    groups = ((0, gamma - 1), (gamma - 1, gamma), (gamma, LONG - 1))
    for (first, last), low, high in zip(groups, sync.lower, sync.upper, strict=True):
        assert low == pytest.approx(float(sum(lower[first:last])), rel=1e-9, abs=1e-15)
        assert high == pytest.approx(float(sum(upper[first:last])), rel=1e-9, abs=1e-15)
    # Lemma 2.4: nothing is more than epsilon apart
    for low, high in zip(lower, upper, strict=False):
        assert ratio * low <= high <= low / ratio
