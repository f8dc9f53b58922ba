"""The noise on the sums of private boosting: its size by hand, its grid, its law; how far rows of one round move."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import dpselect.learners.tree_sums as module
from dpselect.learners.fixed_point import STEP
from dpselect.learners.tree_sums import CLIPPED_WEIGHT, COUNT_WEIGHT, TreeSums, add_noise
from dpselect.randomness import keyed_source
from tests.learners.tree_rounds_cases import squares


@pytest.mark.theorem("docs/theory/boosted-trees.md, Theorem 1", exact=True)
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("ranked", [0, 1, 50])
def test_all_sums_together_cost_what_was_asked_exactly(ranked, replace):
    for sigma, rounds, share in itertools.product((0.05, 0.7, 12.3, 4e5), (1, 7, 150, 10_000), (0.03, 1 / 3)):
        sums = TreeSums(sigma, rounds, ranked, share, replace)
        ranks, one = squares(sums)
        spent = (ranks + rounds * one) * Fraction(sigma) ** 2
        assert 1 - Fraction(1, 10**12) < spent <= 1


def moves(rows):
    """All pairs of rows (gradient, weight, flag, leaf) as sums over two leaves: the squares of their differences."""
    for (g, w, f, leaf), (g2, w2, f2, leaf2) in itertools.product(rows, repeat=2):
        vectors = np.zeros((2, 2, len(g) + 1))
        for vector, part, weight, where in ((vectors[0], g, w, leaf), (vectors[1], g2, w2, leaf2)):
            vector[where] = [*part, COUNT_WEIGHT * weight]
        yield float(np.sum(np.square(vectors[0] - vectors[1]))) + (CLIPPED_WEIGHT * (f - f2)) ** 2


@pytest.mark.cases(1)
@pytest.mark.theorem("docs/theory/boosted-trees.md, Theorem 1", exact=True)
def test_no_two_rows_of_one_round_are_further_apart_than_the_proof_says():
    """On a grid of gradients in the unit disc, weights, flags and leaves."""
    angles = np.linspace(0.0, 2.0 * math.pi, 7)[:-1]
    vectors = [(0.0, 0.0)] + [(r * math.cos(t), r * math.sin(t)) for r in (0.3, 0.7, 1.0) for t in angles]
    rows = [
        (g, w, f, leaf)
        for g in vectors
        for w in (0.0, 0.3, 0.7, 1.0)
        for f in (0, 1)
        for leaf in (0, 1)
        if math.hypot(*g) <= w + 1e-12
    ]
    largest = max(moves(rows))
    assert largest == pytest.approx(4.0 + CLIPPED_WEIGHT**2)
    sums = TreeSums(1.0, 1, 0, 0.0, replace=True)
    assert largest <= sums.gradient_deviation**2 * (1 + 1e-12)
    alone = max(math.hypot(*g) ** 2 + (COUNT_WEIGHT * w) ** 2 + (CLIPPED_WEIGHT * f) ** 2 for g, w, f, _ in rows)
    sums = TreeSums(1.0, 1, 0, 0.0, replace=False)
    assert alone == pytest.approx(sums.gradient_deviation**2)


@pytest.mark.parametrize("deviation", [0.06, 1.0, 300.0, 1e9])
def test_noisy_sums_are_on_a_grid_that_is_public_and_fine(deviation, monkeypatch):
    asked = []

    def seven(steps, size, random):
        asked.append(steps)
        return np.full(size, 7, dtype=np.int64)

    monkeypatch.setattr(module, "gaussian_steps", seven)
    most = min(deviation, 1.0) * 2.0**20  # so that doubles hold the noisy sums; beyond, they are rounded to doubles
    sums = np.array([0.0, 3.0, -np.floor(most), np.floor(most) - STEP])
    step = (add_noise(sums, deviation, keyed_source(1)) - sums) / 7.0
    assert len(set(step)) == 1, "the sums are exact"
    assert step[0] <= STEP
    assert asked[0] * step[0] == deviation
    assert asked[0] >= 2.0**24
    assert math.frexp(step[0])[0] == 0.5


def test_the_noise_is_gaussian_and_independent():
    """False alarm 1e-6 by each of two tests."""
    sums = np.full((150, 20), 5.0)
    noise = (add_noise(sums, 3.0, keyed_source(8)) - sums) / 3.0
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-6
    assert stats.kstest(np.sum(noise, axis=1) / math.sqrt(20), "norm").pvalue > 1e-6
