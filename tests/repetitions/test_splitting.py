"""The K runs of a search, split over candidates: the joint law of the counts, and what is not it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2

from dpselect.errors import ArgumentError
from dpselect.randomness import keyed_source
from dpselect.repetitions import (
    Fixed,
    Geometric,
    Harmonic,
    Logarithmic,
    Poisson,
    independent_counts,
    split_counts,
)

WEIGHTS = (1, 2)
SHARES = (1 / 3, 2 / 3)
LARGEST = 12


def joint(law):
    """P(N_1 = a, N_2 = b) for the counts of K runs: P(K = a + b) times the binomial probability."""
    table = np.zeros((LARGEST, LARGEST))
    for a, b in itertools.product(range(LARGEST), repeat=2):
        table[a, b] = law.pmf(float(a + b)) * math.comb(a + b, a) * SHARES[0] ** a * SHARES[1] ** b
    return table


def product(parts):
    k = np.arange(float(LARGEST))
    return np.outer(parts[0].pmf(k), parts[1].pmf(k))


def misfit(pairs, table):
    """Pearson's statistic over the cells where at least 10 are expected (the rest is one cell), and its p-value."""
    observed = np.zeros((LARGEST, LARGEST))
    for a, b in pairs:
        if max(a, b) < LARGEST:
            observed[a, b] += 1
    expected = table * len(pairs)
    cells = expected >= 10
    counts = np.append(observed[cells], len(pairs) - observed[cells].sum())
    means = np.append(expected[cells], len(pairs) - expected[cells].sum())
    return chi2.sf(((counts - means) ** 2 / means).sum(), counts.size - 1)


@pytest.mark.cases(2)
@pytest.mark.statistical
@pytest.mark.parametrize("law", [Poisson(mean=3.0), Geometric(gamma=0.3), Harmonic(limit=6), Logarithmic(gamma=0.2)])
def test_split_counts_have_the_joint_law(law):
    """False alarm: 1e-5 a law, at a fixed seed. A sampler off by 0.05 in total variation passes with less than 1e-6."""
    source = keyed_source(41)
    pairs = [tuple(split_counts(law, WEIGHTS, random=source)) for _ in range(6000)]
    assert misfit(pairs, joint(law)) > 1e-5


def test_poisson_counts_are_independent_and_no_others_are():
    parts = independent_counts(Poisson(mean=3.0), WEIGHTS)
    assert_allclose(product(parts), joint(Poisson(mean=3.0)), atol=1e-15)
    assert sum(part.mean for part in parts) <= 3.0
    for law in (Geometric(gamma=0.3), Logarithmic(gamma=0.2), Harmonic(limit=6), Fixed(count=3)):
        table = joint(law)
        independent = np.outer(table.sum(axis=1), table.sum(axis=0))
        assert 0.5 * abs(table - independent).sum() > 0.1


@pytest.mark.statistical
def test_zoo_independent_negative_binomial_counts_are_rejected():
    """Each candidate's own geometric count, of the right mean: another joint law, and another law of the total.

    Misses with probability below 1e-6: the two laws differ by more than 0.3 in total variation. What it costs stands in
    accounting/test_zoo.py.
    """
    law, source = Geometric(gamma=0.3), keyed_source(42)
    pairs = [(law.sample(source) - 1, law.sample(source)) for _ in range(6000)]
    assert misfit(pairs, joint(law)) < 1e-12


@pytest.mark.parametrize("law", [Geometric(gamma=0.3), Fixed(count=3), Harmonic(limit=6)])
def test_independent_counts_are_refused_for_other_laws(law):
    with pytest.raises(ArgumentError, match="Poisson"):
        independent_counts(law, 3)


@pytest.mark.parametrize("weights", [0, [], [0, 0], [-1, 2], [math.nan, 1], [math.inf, 1], ["a"]])
def test_bad_weights(weights):
    with pytest.raises((ArgumentError, TypeError), match="weights"):
        split_counts(Fixed(count=2), weights)


def test_what_has_no_weight_never_runs():
    counts = split_counts(Fixed(count=200), [0, 1, 0, 1e-300], random=keyed_source(1))
    assert counts.tolist() == [0, 200, 0, 0]
    with pytest.raises(ArgumentError, match="above 0"):
        independent_counts(Poisson(mean=1.0), [0, 1])


def test_a_number_of_candidates_stands_for_equal_weights():
    counts = split_counts(Fixed(count=300), 3, random=keyed_source(1)).tolist()
    assert counts == split_counts(Fixed(count=300), [1, 1, 1], random=keyed_source(1)).tolist()
    assert sum(counts) == 300
    assert min(counts) > 60  # of 100 expected, five standard deviations
    assert [part.mean for part in independent_counts(Poisson(mean=6.0), 3)] == [2.0] * 3
