"""What one row can move: every claim about sensitivity by brute force over neighbouring tables, in exact arithmetic."""

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

from dpselect.learners import DPSGDClassifier
from dpselect.learners.clipped_gradients import HiddenLayerNetwork, Model, SoftmaxRegression, clipped_gradient_sum
from dpselect.learners.fixed_point import STEP, WEIGHT_LIMIT
from dpselect.learners.rows import class_numbers, labels_of, unit_rows
from dpselect.learners.strongly_convex import LogisticProblem
from dpselect.mechanisms.grid import grid_at_most
from dpselect.randomness import RandomSource, keyed_source

Array = np.ndarray[Any, np.dtype[np.float64]]

POISON = [math.nan, math.inf, -math.inf, 1e308, -1e-308, 5e-324, 0.0, None, "text", 10**400, 3 + 4j, [1], object()]


# --- rows -------------------------------------------------------------------------------------------------------------

cells = st.one_of(st.floats(), st.integers(-(10**20), 10**20), st.booleans(), st.sampled_from(POISON))


@given(st.lists(st.lists(cells, min_size=3, max_size=3), min_size=1, max_size=6), st.sampled_from([0.1, 1.0, 1e6]))
def test_rows_are_unit_rows_each_by_itself(table: list[list[Any]], row_norm: float) -> None:
    array = np.empty((len(table), 3), dtype=object)
    for i, row in enumerate(table):
        for j, cell in enumerate(row):
            array[i, j] = cell
    found = unit_rows(array, row_norm, intercept=True)
    assert found.shape == (len(table), 4)
    for i in range(len(table)):
        assert np.array_equal(found[i], unit_rows(array[i : i + 1], row_norm, intercept=True)[0])
        assert sum(Fraction(float(v)) ** 2 for v in found[i, :-1]) <= 1
        assert all((Fraction(float(v)) / Fraction(STEP)).denominator == 1 for v in found[i])
        assert found[i, -1] == 1.0


def test_a_text_in_one_row_leaves_the_others_alone() -> None:
    clean = [[1, 0.25], [0.5, 0.125]]
    poisoned = [[1, 0.25], [0.5, 0.125], ["text", 2j]]
    assert np.array_equal(unit_rows(poisoned, 2.0, intercept=False)[:2], unit_rows(clean, 2.0, intercept=False))
    labels = labels_of([1, 0, "text"], 3)
    assert class_numbers(labels, np.array([0, 1])).tolist() == [1, 0, -1]


def test_rows_keep_their_values_when_they_are_short() -> None:
    X = np.random.default_rng(0).uniform(-0.1, 0.1, (50, 8))
    np.testing.assert_allclose(unit_rows(X, 2.0, intercept=False), X / 2.0, atol=2 * STEP)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array([2, 5, 3, -1]), [0, 1, -1, -1]),
        (np.array([2.0, math.nan, math.inf, 5.0]), [0, -1, -1, 1]),
        (np.array([2, None, "5", [5], 5.0, True], dtype=object), [0, -1, -1, -1, 1, -1]),
        (np.array(["2", "5"]), [-1, -1]),
        (np.array([], dtype=float), []),
    ],
)
def test_labels_outside_the_classes_are_marked_not_refused(labels: Any, expected: list[int]) -> None:
    assert class_numbers(labels, np.array([2, 5])).tolist() == expected


# --- clipped gradients ------------------------------------------------------------------------------------------------

MODELS: list[Model] = [
    SoftmaxRegression(6, 4),
    HiddenLayerNetwork(6, 4, 5, "tanh"),
    HiddenLayerNetwork(6, 4, 5, "relu"),
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
    numbers = generator.integers(0, 4, 9)
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
    numbers = generator.integers(0, 4, count)
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


@pytest.mark.parametrize("model", MODELS, ids=repr)
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


# --- the whole of fit -------------------------------------------------------------------------------------------------


def one_step_weights(X: Any, y: Any, **changed: Any) -> Array:
    """One step at sampling rate 1 with a fixed key: the same noise for all tables, so only the data moves it."""
    parameters = {"noise_multiplier": 1.0, "steps": 1, "sampling_rate": 1.0, "clip_norm": 0.5, "learning_rate": 1.0}
    model = DPSGDClassifier(**{**parameters, **changed}, classes=[0, 1, 2], nominal_rows=4, random=keyed_source(1))
    return np.concatenate([w.ravel() for w in model.fit(X, y).weights_])


@pytest.mark.parametrize("hidden_units", [0, 4])
def test_fit_moves_by_at_most_the_clip_norm_over_the_public_count(hidden_units: int) -> None:
    base = [[0.3, -0.2], [5.0, 1.0], [0.1, 0.1]]
    labels = [0, 1, 2]
    before = one_step_weights(np.array(base, dtype=object), labels, hidden_units=hidden_units)
    moves = []
    for poison in [*POISON, 0.5, -300.0]:
        for label in (0, 2, 7, None, "text", math.nan, [1]):
            added = np.empty((4, 2), dtype=object)
            added[:3] = base
            added[3, 0], added[3, 1] = poison, 0.4
            after = one_step_weights(added, [*labels, label], hidden_units=hidden_units)
            moves.append(float(np.linalg.norm(after - before)))
    bound = 0.5 / 4  # clip_norm / (sampling_rate * nominal_rows)
    # the last subtraction and the average are in doubles of order one
    assert max(moves) <= bound * (1 + 1e-12)
    assert max(moves) > 0.99 * bound
    assert min(moves) == 0.0  # an unknown label


# --- the minimiser ----------------------------------------------------------------------------------------------------


def neighbours(rows: Array, numbers: Any, *, replace: bool) -> list[tuple[Array, Any]]:
    found = []
    for i in range(len(rows)):
        kept = np.delete(np.arange(len(rows)), i)
        if not replace:
            found.append((rows[kept], numbers[kept]))
        else:
            for label in range(int(numbers.max()) + 1):
                found.append((np.vstack([rows[kept], -rows[i : i + 1]]), np.append(numbers[kept], label)))
    return found


def hard_table(classes: int, count: int, seed: int) -> tuple[Array, Any]:
    """Rows on the edge of the unit ball in few directions, so that one row weighs a lot."""
    generator = np.random.default_rng(seed)
    X = np.repeat(np.sign(generator.normal(size=(3, 2))), count, axis=0)[generator.permutation(3 * count)[:count]]
    return unit_rows(X, 1.0, intercept=False), generator.integers(0, classes, count)


@pytest.mark.theorem(
    "Chaudhuri, Monteleoni, Sarwate 2011, Lemma 7",
    "Hartmann et al. 2022, Theorem 16",
    exact=True,
    loose="attained by a linear loss, which the logistic one is far out only",
)
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("regularization", [0.01, 1.0, 10.0])
def test_minimisers_of_neighbours_are_within_the_sensitivity(
    classes: int, replace: bool, regularization: float
) -> None:
    problem = LogisticProblem(2, classes, 8, regularization, 1.0)
    bound = problem.sensitivity(replace=replace)
    worst = 0.0
    for seed, count in enumerate((1, 2, 5, 8, 12)):
        rows, numbers = hard_table(classes, count, seed)
        here = problem.minimise(rows, numbers)
        for other in neighbours(rows, numbers, replace=replace):
            worst = max(worst, float(np.linalg.norm(here - problem.minimise(*other))))
    assert worst <= bound
    if regularization == 10.0:
        assert worst > 0.45 * bound  # not a bound that nothing could break


def test_a_normaliser_taken_from_the_data_is_caught() -> None:
    """Broken under adding or removing: dividing by the number of rows while the noise is for the nominal number."""
    bound = LogisticProblem(2, 2, 50, 1.0, 1.0).sensitivity(replace=False)
    rows, numbers = hard_table(2, 8, 0)
    here = LogisticProblem(2, 2, len(rows), 1.0, 1.0).minimise(rows, numbers)
    moves = [
        np.linalg.norm(here - LogisticProblem(2, 2, len(other[0]), 1.0, 1.0).minimise(*other))
        for other in neighbours(rows, numbers, replace=False)
    ]
    assert max(moves) > bound


@pytest.mark.parametrize("classes", [1, 2, 3])
def test_minimiser_is_certified_and_agrees_with_scipy(classes: int) -> None:
    generator = np.random.default_rng(5)
    rows = unit_rows(generator.normal(size=(200, 4)), 1.0, intercept=True)
    numbers = generator.integers(0, classes, 200)
    problem = LogisticProblem(5, classes, 150, 1e-3, math.sqrt(2.0))
    found = problem.minimise(rows, numbers)

    def objective(flat: Array) -> float:
        scores = rows @ flat.reshape(found.shape)
        scores = np.hstack([np.zeros_like(scores), scores]) if classes == 2 else scores
        return float(-log_softmax(scores, axis=1)[np.arange(200), numbers].sum() / 150 + 5e-4 * flat @ flat)

    best = optimize.minimize(objective, np.zeros(found.size), method="BFGS", options={"gtol": 1e-9})
    # J(found) - min J <= tolerance^2 / (2 regularization) by strong convexity; BFGS adds its own error
    assert objective(found.ravel()) - best.fun <= problem.tolerance**2 / (2 * 1e-3) + 1e-12


@pytest.mark.parametrize("regularization", [1e-9, 1e-5, 1.0, 1e9])
@pytest.mark.parametrize(("nominal", "count"), [(1, 16), (1000, 3), (1000, 0), (100, 1600)])
def test_minimiser_always_certifies(regularization: float, nominal: int, count: int) -> None:
    """Never the zero vector for want of a certificate: some gradient must be found small, separable or not."""
    rows = unit_rows(np.random.default_rng(2).normal(size=(count, 3)), 1.0, intercept=True)
    numbers = (rows[:, 0] > 0).astype(int)
    problem = LogisticProblem(4, 2, nominal, regularization, math.sqrt(2.0))
    gradient = problem._gradient(problem.minimise(rows, numbers), rows, numbers)
    assert np.linalg.norm(gradient) <= problem.tolerance


def test_a_source_is_only_asked_for_what_is_public() -> None:
    """The number of random words that output perturbation draws does not depend on the data."""
    from dpselect.learners import OutputPerturbationClassifier

    class Counting(RandomSource):
        __slots__ = ("asked",)

        def bytes(self, count: int) -> bytes:
            self.asked = getattr(self, "asked", 0) + count
            return super().bytes(count)

    asked = set()
    for X in (np.zeros((5, 3)), np.full((5, 3), 1e9), np.full((5, 3), np.nan)):
        source = Counting(b"k" * 32)
        OutputPerturbationClassifier(classes=[0, 1], nominal_rows=5, random=source).fit(X, [0, 1, 0, 1, 5])
        asked.add(source.asked)
    assert len(asked) == 1
