"""Trees of noisy counts: sensitivity, exact ratios, and the error of a running count."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.signal import fftconvolve

from dpselect.ordered.domains import WholeNumbers
from dpselect.ordered.order_statistics import tree
from dpselect.ordered.order_statistics.intervals import SortedColumn
from dpselect.ordered.order_statistics.tree import (
    TreeAnswer,
    _below,
    _consistent,
    node_counts,
    sum_of_noise,
    tree_codes,
    tree_levels,
)
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source

ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE


@pytest.mark.parametrize("size", [1, 16, 17, 40])
@pytest.mark.parametrize(("adjacency", "factor"), [(ADD, 1), (REPLACE, 2)])
def test_noisy_trees_are_within_epsilon(size, adjacency, factor):
    """P(noise = k) is r^|k| up to a constant: the ratio of two laws of all counts is at most r^-(their L1 distance)."""
    counts = np.random.default_rng(1).integers(0, 3, size)
    most = 0
    for place, other in itertools.product(range(size), repeat=2):
        moved = counts.copy()
        moved[place] += 1
        if adjacency is REPLACE:
            moved[other] -= 1
        distance = sum(int(np.abs(a - b).sum()) for a, b in zip(node_counts(counts), node_counts(moved), strict=True))
        most = max(most, distance)
    assert most <= factor * tree_levels(size)  # which the scale of the noise is times 1/epsilon
    assert most == factor * tree_levels(size) or size == 1


@pytest.mark.parametrize(("count", "scale"), [(1, 3.0), (5, 0.7), (31, 20.0)])
def test_sums_of_noise_stay_within_the_bound(count, scale):
    decay = math.exp(-1.0 / scale)
    reach = int(400 * scale) + 400
    one = (1.0 - decay) / (1.0 + decay) * decay ** np.abs(np.arange(-reach, reach + 1.0))
    law = one
    for _ in range(count - 1):
        law = fftconvolve(law, one, mode="same")  # good to 1e-15
    values = np.abs(np.arange(-reach, reach + 1))
    for failure in (0.05, 1e-4):
        bound = sum_of_noise(count, scale, failure)
        assert law[values > bound].sum() <= failure
        assert law[values > bound / 2.0].sum() > failure


@pytest.mark.parametrize("size", [1, 5, 16, 17, 121, 300])
def test_one_row_moves_tree_counts_by_one_a_level(size):
    counts = np.random.default_rng(1).integers(0, 4, size)
    nodes = node_counts(counts)
    assert len(nodes) == tree_levels(size)
    for code in (0, size // 2, size - 1):
        more = counts.copy()
        more[code] += 1
        moved = sum(np.abs(a - b).sum() for a, b in zip(nodes, node_counts(more), strict=True))
        assert moved == tree_levels(size)


@pytest.mark.parametrize("size", [1, 5, 16, 17, 255, 256, 300, 4096])
def test_stated_errors_of_trees_have_the_noise_of_every_node_of_a_running_count(size, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "dpselect.ordered.order_statistics.tree.sum_of_noise", lambda *given: asked.append(given) or 3.0
    )
    TreeAnswer([0], 9, [0.5], Fraction(7, 2)).rank_errors([Fraction(1, 2)], size, 0.05)
    ((count, scale, failure),) = asked
    ones = [np.ones(len(level), dtype=np.int64) for level in node_counts(np.zeros(size, dtype=np.int64))]
    nodes = max(_below(ones, code) for code in range(size + 1))
    assert count >= nodes
    assert (scale, failure) == (3.5, 0.05 / size)


def test_least_squares_on_a_tree():
    """Against the normal equations: every leaf is one unknown, every node one equation of equal weight."""
    noisy = [level + np.random.default_rng(3).normal(size=len(level)) for level in node_counts(np.arange(300))]
    rows = [np.eye(300)]
    for level in (1, 2):
        rows.insert(0, np.add.reduceat(np.eye(300), np.arange(0, 300, 16**level), axis=0))
    expected = np.linalg.lstsq(np.concatenate(rows), np.concatenate(noisy), rcond=None)[0]
    np.testing.assert_allclose(_consistent(noisy)[-1], expected, atol=1e-8)


def test_how_far_codes_are_off_by_the_noisy_counts(monkeypatch):
    """Without noise: the ranks that a value misses its share by, on the side where it does."""
    monkeypatch.setattr(tree, "discrete_laplace_array", lambda scale, count, random: np.zeros(count, dtype=np.int64))
    column = SortedColumn(np.repeat([2, 7], [30, 10]), WholeNumbers(0, 19))
    quarters = [Fraction(1, 4), Fraction(3, 4), Fraction(4, 5), Fraction(1)]
    asked = {"size": 20, "epsilon": Fraction(2), "random": keyed_source(1)}
    found = tree_codes(column, quarters, adjacency=ADD, **asked)
    assert (found.codes, found.rows, found.off) == ([2, 2, 7, 7], 40, [0.0] * 4)
    assert found.scale == Fraction(1)  # two levels over epsilon
    assert tree_codes(column, quarters, adjacency=REPLACE, units=3, **asked).scale == Fraction(6)
    monkeypatch.setattr(tree, "_not_negative", lambda estimates: np.eye(20)[5])
    assert tree_codes(column, [Fraction(1, 4), Fraction(1)], adjacency=ADD, **asked).off == [20.0, 10.0]
