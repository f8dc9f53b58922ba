"""Gaussian noise reduction: boundaries keep their delta, and levels have their joint distribution."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import kstest

from dpselect.mechanisms.brownian import BrownianReduction, linear_boundary, mixture_boundary
from dpselect.privacy import gaussian
from dpselect.privacy.output.gaussian_stopping import stopping_delta
from dpselect.randomness import keyed_source

MANY = [1.0 / math.sqrt(s) for s in np.linspace(0.05, 1.0, 20)]


@pytest.mark.full
def test_choosing_the_level_after_the_fact_is_not_free():
    """20 levels, each at its own epsilon for delta 1e-6, need eight times that delta; adding up says twenty times."""
    own = [gaussian(noise_multiplier=m).epsilon(1e-6) for m in MANY]
    needed = stopping_delta(noise_multipliers=MANY, epsilons=own)
    assert 5e-6 < needed < 20e-6
    prices = BrownianReduction(noise_multipliers=MANY, delta=1e-6, sensitivity=1).guarantee
    assert stopping_delta(noise_multipliers=MANY, epsilons=[prices.price(i) for i in range(1, 21)]) <= 1e-6
    assert all(mine < prices.price(i) for i, mine in enumerate(own, 1))


def test_a_boundary_is_tightest_at_the_last_level():
    """s/2 + sqrt(2 s log(1/delta)) with s = 1/4 there; and all levels are priced by the one boundary."""
    for name, boundary in (("linear", linear_boundary), ("mixture", mixture_boundary)):
        levels = BrownianReduction(noise_multipliers=[8, 4, 2], delta=1e-6, sensitivity=1, boundary=name)
        found = [levels.guarantee.price(count) for count in (1, 2, 3)]
        assert found == [boundary(level, delta=1e-6, anchor=2) for level in (8, 4, 2)]
        if name == "linear":
            assert found[-1] == pytest.approx(1 / 8 + math.sqrt(math.log(1e6) / 2), rel=1e-11)


@pytest.mark.cases(5)
@pytest.mark.theorem(
    "docs/theory/noise-reduction.md, Theorem 6",
    exact=True,
    loose="it holds at all levels at once, and finitely many are looked at",
)
@pytest.mark.parametrize("boundary", [linear_boundary, mixture_boundary])
@pytest.mark.parametrize("anchor", [0.5, 1.0, 4.0])
def test_the_privacy_boundaries_keep_their_delta(boundary, anchor):
    """Whitehouse et al. (2022): crossed at some level with probability at most delta, so certainly a valid price."""
    for delta in (0.2, 1e-3, 1e-8):
        prices = [boundary(m, delta=delta, anchor=anchor) for m in MANY]
        assert stopping_delta(noise_multipliers=MANY, epsilons=prices) <= delta
    # and not by an arbitrary margin: at a large delta half the price breaks it
    assert stopping_delta(noise_multipliers=MANY, epsilons=[0.3 * p for p in prices]) > 1e-8


def test_the_linear_boundary_at_its_anchor():
    """rho + 2 sqrt(rho log(1/delta)) at rho = s/2, the classical conversion (Bun, Steinke 2016, Proposition 1.3)."""
    rho, delta = 1 / (2 * 3.0**2), 1e-6
    expected = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert linear_boundary(3.0, delta=delta, anchor=3.0) == pytest.approx(expected, rel=1e-11)


# --- statistical audits of the samplers -----------------------------------------------------------------------------

FALSE_ALARM = 1e-7


@pytest.mark.statistical
def test_each_gaussian_level_has_its_law_and_the_finest_is_sufficient():
    """KS of 40,000 draws: each level, and each backward step, which must be independent of the less noisy level.

    Threshold 0.0145 at a false alarm of 1e-7; a deviation 10 % off moves a Gaussian by 0.023, missed with probability
    below 0.01. Correlation of step and level: |r| < 5.4/sqrt(n) at 1e-7; a fresh noise at each level gives r = -0.45,
    missed with probability below 1e-9.
    """
    size, multipliers = 40_000, [4.0, 2.0, 1.0]
    session = BrownianReduction(noise_multipliers=multipliers, delta=1e-6, sensitivity=1.0).open(
        np.zeros(size), random=keyed_source("brownian")
    )
    levels = [session.release() for _ in multipliers]
    for multiplier, level in zip(multipliers, levels, strict=True):
        assert kstest(level / multiplier, "norm").pvalue > FALSE_ALARM
    for (m, noisy), (k, clean) in itertools.pairwise(zip(multipliers, levels, strict=True)):
        step = noisy - clean
        assert kstest(step / math.sqrt(m * m - k * k), "norm").pvalue > FALSE_ALARM
        assert abs(np.corrcoef(step, clean)[0, 1]) < 5.4 / math.sqrt(size)


def test_gaussian_levels_are_weighted_means_around_the_value():
    """Three entries, 50 sessions: the mean of the last level is within 7 of its deviations (false alarm 1e-11)."""
    value = np.array([[-3.0, 0.0, 1e6]])
    last = []
    for trial in range(50):
        session = BrownianReduction(noise_multipliers=[5.0, 0.5], delta=1e-6, sensitivity=2.0, boundary="linear").open(
            value, random=keyed_source(trial)
        )
        session.release()
        last.append(session.release())
    assert last[0].shape == value.shape
    assert np.all(np.abs(np.mean(last, axis=0) - value) < 7 * 0.5 * 2.0 / math.sqrt(50))


def test_a_level_that_was_interrupted_is_not_drawn_twice():
    """Two answers to one step would be averaged: less noise than the level's price is for."""
    session = BrownianReduction(noise_multipliers=[10, 1], delta=1e-6, sensitivity=1).open(0.0, random=keyed_source(1))
    first = session._level(0)  # an interrupt comes before it is noted as released
    assert session.release() == first == session.released[0]
