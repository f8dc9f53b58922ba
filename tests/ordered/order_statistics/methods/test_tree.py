"""The tree of noisy counts, by `Quantiles`: its noise, and the order of its answers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import ArgumentError, BoundUnavailableError
from dpselect.ordered import quantiles
from dpselect.privacy import Adjacency

ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE


@pytest.mark.parametrize(("adjacency", "factor"), [(ADD, 1), (REPLACE, 2)])
def test_tree_noise_is_calibrated_and_without_noise_it_is_exact(monkeypatch, adjacency, factor):
    scales = []

    def none(scale, size, random):
        scales.append(scale)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr("dpselect.ordered.order_statistics.tree.discrete_laplace_array", none)
    rows = np.sort(np.random.default_rng(2).integers(0, 121, 997))
    qs = [Fraction(k, 40) for k in range(1, 40)]
    released = quantiles(rows, qs=qs, lower=0, upper=120, epsilon=0.75, adjacency=adjacency)
    assert released.plan.chosen == "tree"
    assert scales == [2 * factor / Fraction(3, 4)] * 2
    assert released.value == [int(rows[math.ceil(q * 997) - 1]) for q in qs]
    assert released.guarantee.epsilon(delta=0) == 0.75
    assert released.noisy_rows == 997
    with pytest.raises(BoundUnavailableError, match="tree"):
        released.plan.rank_errors(121)
    with pytest.raises(ArgumentError, match="tree"):
        quantiles(rows, qs=qs, lower=0, upper=12_000, epsilon=0.75, method="tree")


def test_trees_of_any_content_give_increasing_answers():
    for rows in ([], [3] * 5, list(range(100))):
        released = quantiles(rows, qs=[0, 0.3, 0.6, 1], lower=0, upper=99, granularity=1, epsilon=0.1, method="tree")
        assert released.value == sorted(released.value)
