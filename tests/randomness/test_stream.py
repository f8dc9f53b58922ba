"""Do the draws follow their laws? Seeded, so each test passes or fails for ever; the rates speak of a fresh seed.

Every test rejects a right law with probability about 1e-6 (its p-value is held against 1e-6), and says which wrong
law it would catch with probability above 0.999.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from dpselect.randomness import keyed_source

pytestmark = pytest.mark.statistical
REJECT = 1e-6
N = 200_000


def ks(sample, law):
    return stats.kstest(sample, law).pvalue


LAWS = {
    "uniform": (lambda s: s.uniform(N), stats.uniform),
    "normal": (lambda s: s.normal(N), stats.norm),
    "exponential": (lambda s: s.exponential(N), stats.expon),
    "laplace": (lambda s: s.laplace(N), stats.laplace),
    "gamma 1": (lambda s: s.gamma(1, N), stats.gamma(1)),
    "gamma 5": (lambda s: s.gamma(5, N), stats.gamma(5)),
}


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", LAWS)
def test_distribution_functions(name):
    """Kolmogorov-Smirnov at 2e5 draws: catches any law that differs by 0.01 somewhere, a scale off by 5% among them."""
    draw, law = LAWS[name]
    sample = draw(keyed_source(f"ks {name}"))
    assert ks(sample, law.cdf) > REJECT
    assert ks(sample * 1.05, law.cdf) < REJECT  # the test can fail


@pytest.mark.parametrize("name", LAWS)
def test_no_correlation_between_neighbours(name):
    """Lag 1 and 2 correlation at 2e5 draws: catches 0.02 (nine standard errors)."""
    draw, law = LAWS[name]
    ranks = law.cdf(draw(keyed_source(f"lag {name}")))
    for lag in (1, 2):
        score = abs(np.corrcoef(ranks[:-lag], ranks[lag:])[0, 1]) * math.sqrt(N)
        assert 2 * stats.norm.sf(score) > REJECT


def test_normal_tails():
    """4e6 draws beyond 3.5 (about 1861 expected): catches a tail that is 30% too light; and both signs are alike."""
    z = keyed_source("tails").normal(4_000_000)
    expected = 4e6 * 2 * stats.norm.sf(3.5)
    beyond = int(np.sum(np.abs(z) > 3.5))
    assert 2 * min(stats.poisson.cdf(beyond, expected), stats.poisson.sf(beyond - 1, expected)) > REJECT
    tail = np.abs(z[np.abs(z) > 3.0])
    assert ks(stats.norm.sf(tail) / stats.norm.sf(3.0), stats.uniform.cdf) > REJECT
    assert stats.binomtest(int(np.sum(z > 0)), z.size).pvalue > REJECT
    assert ks(stats.norm.sf(1.02 * tail) / stats.norm.sf(3.0), stats.uniform.cdf) < REJECT


def test_laplace_sign_and_magnitude_are_independent():
    """Chi-square on sign by quartile of the magnitude, 2e5 draws: catches a dependence of 2%."""
    x = keyed_source("sign").laplace(N)
    quartile = np.searchsorted(-np.log([0.75, 0.5, 0.25]), np.abs(x))
    table = np.array(
        [[np.sum((x > 0) & (quartile == q)) for q in range(4)], [np.sum((x <= 0) & (quartile == q)) for q in range(4)]]
    )
    assert stats.chi2_contingency(table).pvalue > REJECT


@pytest.mark.cases(3)
@pytest.mark.parametrize("bound", [2, 3, 7, 10, 64, 100, 2**20 + 1])
def test_below_is_uniform(bound):
    """Chi-square, 40 000 draws: catches a remainder taken without rejection (for 100: 3 cells in 4 off by a third)."""
    source = keyed_source(f"below {bound}")
    drawn = np.array([source.below(bound) for _ in range(40_000)])
    assert drawn.min() >= 0
    assert drawn.max() < bound
    cells = min(bound, 64)
    counts = np.bincount(drawn * cells // bound, minlength=cells)
    edges = [-(-i * bound // cells) for i in range(cells + 1)]
    expected = np.array([40_000 * (b - a) / bound for a, b in pairwise(edges)])
    assert stats.chisquare(counts, expected).pvalue > REJECT


def test_every_bit_of_a_word_is_fair():
    """64 binomial tests at 1e5 words: catches a bit with bias 0.02; level divided by 64."""
    words = keyed_source("bits").words(100_000)
    for bit in range(64):
        ones = int(np.sum((words >> np.uint64(bit)) & np.uint64(1)))
        assert stats.binomtest(ones, 100_000).pvalue > REJECT / 64


@pytest.mark.parametrize("probability", [1e-3, 0.1, 0.5, 1 / 3, 0.999])
def test_bernoulli(probability):
    """Binomial at 1e6 coins: catches an odds ratio off by 30% at 1e-3, and by 2% in the middle."""
    heads = int(np.sum(keyed_source(f"coin {probability}").bernoulli(probability, 1_000_000)))
    assert stats.binomtest(heads, 1_000_000, probability).pvalue > REJECT


def test_bernoulli_at_the_ends():
    source = keyed_source("ends")
    assert not np.any(source.bernoulli(0.0, 1000))
    assert np.all(source.bernoulli(1.0, 1000))


@pytest.mark.full
def test_permutations_are_uniform():
    """Chi-square over the 24 orders of four, 48 000 draws: catches the naive swap shuffle (off by up to 15/32)."""
    source = keyed_source("orders")
    counts = Counter(tuple(source.permutation(4).tolist()) for _ in range(48_000))
    assert len(counts) == 24
    assert stats.chisquare(list(counts.values())).pvalue > REJECT


def test_a_permutation_holds_every_index_once():
    for count in (0, 1, 2, 1000):
        assert sorted(keyed_source(count).permutation(count).tolist()) == list(range(count))


def test_spawned_streams_are_uncorrelated():
    """Correlation between sibling streams and with the parent, 1e5 draws: catches 0.03."""
    parent = keyed_source("family")
    rows = np.array([s.uniform(100_000) for s in (parent, parent.spawn(0), parent.spawn(1), parent.spawn("0"))])
    scores = np.abs(np.corrcoef(rows)[np.triu_indices(4, 1)]) * math.sqrt(100_000)
    assert np.all(2 * stats.norm.sf(scores) > REJECT / 6)
