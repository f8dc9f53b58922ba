"""The values of the sparse vector game: attained without threshold noise, and bounds with it."""

import math

import numpy as np
import pytest

from dpselect.mechanisms.sparse_vector_game.mesh import Mesh
from dpselect.mechanisms.sparse_vector_game.query_pairs import geometric_pairs, laplace_pairs
from dpselect.mechanisms.sparse_vector_game.values import game_values
from tests.mechanisms.sparse_vector_adversaries import (
    best_adaptive,
    geometric_tail,
)
from tests.mechanisms.sparse_vector_game.game_cases import RATE, THRESHOLDS, shifted, values_at

SURE = [(0, 1.0)]


@pytest.mark.cases(4)
@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 1", exact=True, sharp=True)
@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 2", exact=True, sharp=True)
@pytest.mark.parametrize(("positives", "queries"), [(1, 3), (1, 4), (2, 4)])
@pytest.mark.parametrize("steps", [0, 0.5, 1, 2])
def test_without_threshold_noise_the_game_is_what_the_best_strategy_attains(positives, queries, steps):
    attained = best_adaptive(
        geometric_tail(math.exp(-RATE)),
        SURE,
        levels=range(-2, 4),
        moves=(-1, 1),
        queries=queries,
        positives=positives,
        growth=math.exp(steps * RATE),
    )
    pairs = geometric_pairs(RATE, (-1.0, 1.0), 1)
    bound = values_at(pairs, positives, [-steps * RATE], queries=queries)[0]
    assert attained <= bound * (1 + 1e-12)
    assert bound == pytest.approx(attained, rel=1e-6)
    assert 0.99 * bound < attained  # a bound 1 % smaller is false
    assert values_at(pairs, positives, [-steps * RATE])[0] >= bound


@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 1", exact=True)
@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_with_noise_on_the_threshold_no_strategy_exceeds_any_shift(threshold, steps):
    tail, epsilon = geometric_tail(math.exp(-RATE)), steps * RATE
    attained = best_adaptive(
        tail, threshold, levels=(-1, 0, 1, 2), moves=(-1, 1), queries=3, positives=2, growth=math.exp(epsilon)
    )
    bounds = []
    for shift in (-1, 0, 1):
        pairs = geometric_pairs(RATE, (shift - 1.0, shift + 1.0), 1)
        bounds.append(
            shifted(threshold, shift, lambda loss, pairs=pairs: values_at(pairs, 2, [loss - epsilon], queries=3)[0])
        )
    assert attained <= min(bounds) * (1 + 1e-9)


@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 3", exact=True)
@pytest.mark.parametrize("residual", [1e-1, 1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize(("rate", "low"), [(0.025, -1.5), (0.5, -12.0)])
def test_values_lie_above_the_solution_wherever_the_iteration_stops(monkeypatch, residual, rate, low):
    """How much is added must not rest on how the value changes from one loss to the next: in the tail it may be all."""
    mesh, pairs = Mesh.between(low, 1.5, rate / 20), laplace_pairs(rate, (-0.5, 1.5) if rate < 0.1 else (-1.0, 1.0))
    monkeypatch.setattr("dpselect.mechanisms.sparse_vector_game.values._RELATIVE", 1e-15)
    solved = game_values(mesh, pairs, 5)
    monkeypatch.setattr("dpselect.mechanisms.sparse_vector_game.values._RELATIVE", residual)
    stopped = game_values(mesh, pairs, 5)
    assert np.all(stopped >= solved * (1.0 - 1e-12))
