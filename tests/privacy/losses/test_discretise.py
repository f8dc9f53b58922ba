"""Pairs of distributions on finitely many losses: hockey-stick divergences, repairs, and what is no pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpselect.errors import ArgumentError
from dpselect.privacy.losses.discretise import DominatingPair, _straighten, mass_grid, merged_by_mass

INFINITY = float("inf")


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=12), st.integers(-8, 4), st.floats(-6.0, 6.0))
def test_hockey_stick_of_a_pair_is_the_sum_over_its_atoms(masses, lower, epsilon):
    total = sum(masses) + 1e-3
    upper = np.array(masses) / total
    losses = 0.5 * (lower + np.arange(upper.size))
    other = upper * np.exp(-losses)
    pair = DominatingPair(losses=losses, upper=upper, lower=other)
    direct = sum(max(p - np.exp(epsilon) * q, 0.0) for p, q in zip(upper, other, strict=True))
    assert pair.hockey_stick(np.array([epsilon]))[0] == pytest.approx(direct, rel=1e-9, abs=1e-13)
    swapped = sum(max(q - np.exp(epsilon) * p, 0.0) for p, q in zip(upper, other, strict=True))
    assert pair.swapped().hockey_stick(np.array([epsilon]))[0] == pytest.approx(swapped, rel=1e-9, abs=1e-13)


def test_a_hockey_stick_at_losses_beyond_the_exponent_range():
    pair = DominatingPair(
        losses=np.array([-INFINITY, 715.0, INFINITY]),
        upper=np.array([0.0, 0.9, 0.1]),
        lower=np.array([1.0, 0.9 * np.exp(-715.0), 0.0]),
    )
    with np.errstate(all="raise", under="ignore"):
        found = pair.hockey_stick(np.array([0.0, 709.0, 711.0, 714.9, 716.0, 1e6]))
    assert np.all(found[:4] >= np.array([1.0, 1.0, 0.9 * -np.expm1(-4.0) + 0.1, 0.1]) * (1 - 2e-3))
    assert found[4:].tolist() == [0.1, 0.1]


def test_bad_pairs_are_refused():
    with pytest.raises(ArgumentError, match="ascend"):
        DominatingPair(losses=np.array([1.0, 0.0]), upper=np.array([0.5, 0.5]), lower=np.array([0.5, 0.5]))
    with pytest.raises(ArgumentError, match="non-negative"):
        DominatingPair(losses=np.array([0.0]), upper=np.array([-0.5]), lower=np.array([0.5]))
    with pytest.raises(ArgumentError, match="one length"):
        DominatingPair(losses=np.array([0.0]), upper=np.array([0.5, 0.5]), lower=np.array([0.5]))


def straightened_one_by_one(low, high, rest):
    """The nearest atoms on either side give up what makes a unit of loss 0, until one of them is used up."""
    (l_low, p_low, q_low), (l_high, p_high, q_high) = (tuple(x.copy() for x in half) for half in (low, high))
    i, j = l_low.size - 1, 0
    while rest < 0.0 and i >= 0 and j < l_high.size:
        a, b = l_low[i], l_high[j]
        below, above = (x / np.expm1(a - b) for x in (np.expm1(-b), np.exp(-b) * np.expm1(a)))
        moved = min(-rest, q_low[i] / below, q_high[j] / above)
        q_low[i], q_high[j] = max(0.0, q_low[i] - moved * below), max(0.0, q_high[j] - moved * above)
        p_low[i], p_high[j] = q_low[i] * np.exp(a), q_high[j] * np.exp(b)
        rest += moved
        i, j = i - (q_low[i] == 0.0), j + (q_high[j] == 0.0)
    return (l_low, p_low, q_low), (l_high, p_high, q_high), min(rest, 0.0)


@pytest.mark.parametrize("seed", range(20))
def test_a_pair_is_straightened_as_if_atom_by_atom(seed):
    random = np.random.default_rng(seed)
    count, scale = random.integers(1, 30, 2), 10.0 ** random.uniform(-4, 1)
    low, high = -np.sort(random.exponential(scale, count[0]))[::-1], np.sort(random.exponential(scale, count[1]))
    q_low, q_high = (10.0 ** random.uniform(-12, -1, n) for n in count)
    halves = (low, q_low * np.exp(low), q_low), (high, q_high * np.exp(high), q_high)
    for share in (1e-9, 0.3, 3.0):
        rest = -share * min(np.sum(q_low), np.sum(q_high))
        found, wanted = _straighten(*halves, rest), straightened_one_by_one(*halves, rest)
        for half, other in zip(found[:2], wanted[:2], strict=True):
            for values, expected in zip(half, other, strict=True):
                assert values == pytest.approx(expected, abs=1e-15)
        assert found[2] == pytest.approx(wanted[2], abs=1e-15)


def unlike_masses(random, size):
    """A pair of many atoms, some of them heavy, and masses of infinite loss on both sides."""
    losses = np.sort(random.normal(scale=random.choice([0.01, 1.0, 20.0]), size=size))
    upper = random.dirichlet(np.full(size, random.choice([0.05, 1.0]))) * random.choice([1.0, 0.9])
    lower = upper * np.exp(-losses)
    share = min(1.0, 0.99 / float(np.sum(lower)))
    return DominatingPair.between(losses, upper * share, lower * share, infinite=1.0 - share * float(np.sum(upper)))


@pytest.mark.parametrize("seed", range(20))
def test_a_pair_merged_by_mass_is_above_the_pair_in_both_directions(seed):
    random = np.random.default_rng(seed)
    pair = unlike_masses(random, 300)
    merged = merged_by_mass(pair, 40)
    assert np.count_nonzero(np.isfinite(merged.losses)) <= 40
    reach = float(np.max(np.abs(pair.losses[np.isfinite(pair.losses)])))
    epsilons = np.concatenate((pair.losses[1:-1], np.linspace(-1.2 * reach, 1.2 * reach, 500)))
    for one, other in ((merged, pair), (merged.swapped(), pair.swapped())):
        assert np.all(one.hockey_stick(epsilons) >= other.hockey_stick(epsilons) - 1e-13)
    assert merged_by_mass(pair, 300) is pair


def test_there_are_more_losses_where_there_is_more_mass():
    losses = np.linspace(-10.0, 10.0, 2001)
    upper = np.exp(-0.5 * (losses - 1.0) ** 2)
    upper /= np.sum(upper) + 1e-12
    pair = DominatingPair.between(losses, upper, 0.36 * upper * np.exp(-losses), infinite=0.0)
    grid = mass_grid(pair, 101)
    assert (grid.size, np.all(np.diff(grid) > 0.0)) == (101, True)
    assert np.max(np.diff(grid)) > 4.0 * np.min(np.diff(grid))
    assert abs(grid[np.argmin(np.diff(grid))]) < 2.0
    assert mass_grid(DominatingPair(losses=np.zeros(1), upper=np.ones(1), lower=np.ones(1)), 5).tolist() == [0.0]
