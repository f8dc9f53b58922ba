"""The minimiser of a regularised logistic loss: its certificate and its sensitivity, over neighbouring tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from scipy.special import log_softmax

from dpselect.learners.rows import unit_rows
from dpselect.learners.strongly_convex import LogisticProblem

Array = np.ndarray[Any, np.dtype[np.float64]]


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
