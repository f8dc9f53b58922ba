"""Sums of clipped gradients: one row moves them by at most the bound, they are exact, and broken sums are caught."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import optimize
from scipy.special import log_softmax

from dpselect.learners.batches import Batches
from dpselect.learners.clipped_gradients import (
    HiddenLayerNetwork,
    LogisticRegression,
    Model,
    SoftmaxRegression,
    clipped_gradient_sum,
)
from dpselect.learners.dp_sgd import GradientSchedule
from dpselect.learners.fixed_point import STEP, WEIGHT_LIMIT
from dpselect.learners.rows import unit_rows
from dpselect.mechanisms.grid import grid_at_most
from dpselect.randomness import keyed_source

Array = np.ndarray[Any, np.dtype[np.float64]]


MODELS: list[Model] = [
    SoftmaxRegression(6, 4),
    HiddenLayerNetwork(6, 4, 5, "tanh"),
    HiddenLayerNetwork(6, 4, 5, "relu"),
    LogisticRegression(6, 2),
]
GradientSum = Callable[[Model, Any, Array, Any, float], list[Any]]


def gradient_sum(model: Model, weights: Any, rows: Array, numbers: Any, clip_norm: float) -> list[Any]:
    """The learner's own sum, as integers of steps."""
    return list(clipped_gradient_sum(model.layers(weights, rows, numbers), clip_norm, grid_at_most(clip_norm) * STEP))


def clip_forgotten_for_one_row(model: Model, weights: Any, rows: Array, numbers: Any, clip_norm: float) -> list[Any]:
    """Broken: the first row of the batch passes unclipped."""
    step = grid_at_most(clip_norm) * STEP
    sums = gradient_sum(model, weights, rows[1:], numbers[1:], clip_norm)
    first = clipped_gradient_sum(model.layers(weights, rows[:1], numbers[:1]), 100.0, step)
    return [a + b for a, b in zip(sums, first, strict=True)]


def mean_of_the_batch(model: Model, weights: Any, rows: Array, numbers: Any, clip_norm: float) -> list[Any]:
    """Broken: divided by the number of rows in the batch instead of a public number (times 8, to stay whole)."""
    return [s * 8 // max(len(rows), 1) for s in gradient_sum(model, weights, rows, numbers, clip_norm)]


def clipped_by_layer(model: Model, weights: Any, rows: Array, numbers: Any, clip_norm: float) -> list[Any]:
    """Broken for networks: each layer is clipped to clip_norm by itself."""
    layers = model.layers(weights, rows, numbers)
    step = grid_at_most(clip_norm) * STEP
    return [clipped_gradient_sum((layer,), clip_norm, step)[0] for layer in layers]


def largest_move(total: GradientSum, model: Model, clip_norm: float, seed: int = 0) -> float:
    """The largest squared distance, in units of clip_norm**2, between the sums of neighbouring tables; exact until
    the last division."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(9, 5)) * 10.0 ** generator.integers(-3, 4, (9, 1))
    rows = unit_rows(X, 1.0, intercept=True)
    numbers = generator.integers(0, model.classes, 9)
    squared_unit = (Fraction(STEP) * Fraction(grid_at_most(clip_norm) * STEP)) ** 2
    worst = Fraction(0)
    for scale in (0.0, 1.0, 30.0, 1e9):
        weights = tuple(scale * generator.normal(size=w.shape) for w in model.initial(keyed_source(1)))
        whole = total(model, weights, rows, numbers, clip_norm)
        for left_out in range(len(rows)):
            kept = np.delete(np.arange(len(rows)), left_out)
            rest = total(model, weights, rows[kept], numbers[kept], clip_norm)
            moved = sum(int(d) ** 2 for a, b in zip(whole, rest, strict=True) for d in (a - b).ravel())
            worst = max(worst, moved * squared_unit)
    return float(worst / Fraction(clip_norm) ** 2) if worst <= Fraction(clip_norm) ** 2 else math.inf


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("clip_norm", [1e-6, 0.3, 1.0, 1000.0])
def test_one_row_moves_the_sum_by_at_most_the_clip_norm(model: Model, clip_norm: float) -> None:
    worst = largest_move(gradient_sum, model, clip_norm)
    assert worst <= 1.0
    if clip_norm < 1.0:
        assert worst > 0.999  # the bound is attained, so the check has something to find


@pytest.mark.parametrize(
    ("broken", "model"),
    [
        (clip_forgotten_for_one_row, MODELS[0]),
        (clip_forgotten_for_one_row, MODELS[1]),
        (mean_of_the_batch, MODELS[0]),
        (clipped_by_layer, MODELS[1]),
    ],
)
def test_broken_sums_are_caught(broken: GradientSum, model: Model) -> None:
    assert max(largest_move(broken, model, 0.3, seed) for seed in range(5)) > 1.0


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from(MODELS), st.integers(1, 300))
def test_the_sum_is_exactly_the_sum_of_the_rows(seed: int, model: Model, count: int) -> None:
    """In any order and any batch, bit for bit: no row's term depends on its company."""
    generator = np.random.default_rng(seed)
    rows = unit_rows(generator.normal(size=(count, 5)), 1.0, intercept=True)
    numbers = generator.integers(0, model.classes, count)
    weights = tuple(generator.normal(size=w.shape) * 3 for w in model.initial(keyed_source(seed)))
    whole = gradient_sum(model, weights, rows, numbers, 0.7)
    order = generator.permutation(count)
    shuffled = gradient_sum(model, weights, rows[order], numbers[order], 0.7)
    cut = int(generator.integers(0, count + 1))
    first = gradient_sum(model, weights, rows[:cut], numbers[:cut], 0.7)
    second = gradient_sum(model, weights, rows[cut:], numbers[cut:], 0.7)
    for a, b, c, d in zip(whole, shuffled, first, second, strict=True):
        assert np.array_equal(a, b)
        assert np.array_equal(a, c + d)


@pytest.mark.parametrize("model", [SoftmaxRegression(65, 10), HiddenLayerNetwork(65, 10, 64, "relu")], ids=["s", "n"])
def test_sums_of_many_rows_at_the_largest_weights_are_exact(model: Model) -> None:
    generator = np.random.default_rng(1)
    rows = unit_rows(generator.normal(size=(3000, 64)), 1.0, intercept=True)
    numbers = generator.integers(0, 10, 3000)
    weights = tuple(np.where(generator.normal(size=w.shape) > 0, 1e9, -1e9) for w in model.initial(keyed_source(1)))
    whole = gradient_sum(model, weights, rows, numbers, 1.0)
    parts = [gradient_sum(model, weights, rows[i : i + 7], numbers[i : i + 7], 1.0) for i in range(0, 3000, 7)]
    for a, *b in zip(whole, *parts, strict=True):
        assert np.array_equal(a, sum(b))
    assert WEIGHT_LIMIT < 1e9


@pytest.mark.parametrize("model", MODELS[:3], ids=repr)
def test_unclipped_gradients_are_those_of_the_loss(model: Model) -> None:
    generator = np.random.default_rng(3)
    rows = unit_rows(generator.normal(size=(4, 5)) / 3, 1.0, intercept=True)
    numbers = generator.integers(0, 4, 4)
    weights = tuple(generator.normal(size=w.shape) for w in model.initial(keyed_source(3)))
    shapes = [w.shape for w in weights]
    cuts = np.cumsum([w.size for w in weights])[:-1]

    def loss(flat: Array) -> float:
        parts = tuple(p.reshape(s) for p, s in zip(np.split(flat, cuts), shapes, strict=True))
        # the learner's own forward pass is on a grid; this one is not
        if len(parts) == 1:
            scores = rows @ parts[0]
        else:
            reached = rows @ parts[0]
            active = np.tanh(reached) if model.activation == "tanh" else np.maximum(reached, 0)  # type: ignore[union-attr]
            scores = np.hstack([active, np.ones((4, 1))]) @ parts[1]
        return float(-log_softmax(scores, axis=1)[np.arange(4), numbers].sum())

    flat = np.concatenate([w.ravel() for w in weights])
    expected = optimize.approx_fprime(flat, loss, 1e-6)
    step = grid_at_most(1000.0) * STEP * STEP
    found = np.concatenate([s.ravel() * step for s in gradient_sum(model, weights, rows, numbers, 1000.0)])
    # clip_norm 1000 has error terms on a grid of 512 * 2**-16, four rows of norm at most sqrt(5)
    np.testing.assert_allclose(found, expected, atol=4 * math.sqrt(5) * 512 * STEP + 1e-3)


def test_one_column_has_the_gradients_of_two_classes() -> None:
    """To the rounding of the factors: (-g, g) is clipped at C where g is clipped at C / sqrt(2)."""
    generator = np.random.default_rng(5)
    rows = unit_rows(generator.normal(size=(200, 5)) / 3, 1.0, intercept=True)
    numbers, weights = generator.integers(0, 2, 200), (3 * generator.normal(size=(6, 2)),)
    for clip in (0.2, 1.0, 5.0):
        sums = [
            clipped_gradient_sum(model.layers(weights, rows, numbers), bound, 2.0**-40)[0] * STEP * 2.0**-40
            for model, bound in ((SoftmaxRegression(6, 2), clip), (LogisticRegression(6, 2), clip / math.sqrt(2)))
        ]
        assert np.hstack([-sums[1], sums[1]]) == pytest.approx(sums[0], abs=200 * 3 * STEP)
        assert np.abs(sums[1]).max() > 0.05


@pytest.mark.statistical
@pytest.mark.parametrize("momentum", [0.0, 0.7])
def test_one_column_moves_the_difference_as_two_columns_do(momentum: float) -> None:
    """Noise alone: the variance of the difference of both columns, to 6 standard errors of 400 fits of 6 columns."""
    schedule = GradientSchedule(2.0, 1.0, 5, 0.7, 1.5, momentum, 0.5, 10.0)
    nothing, none = Batches.of(np.zeros((0, 6))), np.zeros(0, dtype=np.intp)
    spread = []
    for model in (SoftmaxRegression(6, 2), LogisticRegression(6, 2)):
        source = keyed_source("columns")
        fits = [schedule.run(model, nothing, none, source)[0] for _ in range(400)]
        spread.append(np.var([w[:, 1] - w[:, 0] for w in fits]))
    assert abs(spread[1] / spread[0] - 1) < 6 * math.sqrt(4 / 2400)


def test_squares_that_are_given_are_those_that_are_computed() -> None:
    rows = unit_rows(np.random.default_rng(2).normal(size=(50, 5)), 1.0, intercept=True)
    model, numbers = MODELS[1], np.arange(50) % 4
    layers = model.layers(model.initial(keyed_source(2)), rows, numbers)
    given = clipped_gradient_sum(layers, 0.1, STEP, squares=Batches.of(rows).squares)
    for one, other in zip(given, clipped_gradient_sum(layers, 0.1, STEP), strict=True):
        assert np.array_equal(one, other)
