"""Private rectangles: the exact law of a small one, what it costs and needs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.mechanisms import NoisyCount
from dpselect.ordered.domains import WholeNumbers
from dpselect.ordered.labelled_rows.rectangles import Rectangle, RectangleLearner, learn_rectangle
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source

ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE


@pytest.mark.cases(1)
@pytest.mark.parametrize(("axes", "table"), [(2, 1748), (3, 3984), (4, 7023)])
def test_fewer_rows_are_consumed_than_by_pure_prices(axes, table):
    # the derivation's totals for a domain of 2**32, (1, 1e-6), failure 0.05 charge the exponential mechanism as any
    # pure one; its bounded range is cheaper, even with a sixteenth of epsilon for the count
    plan = RectangleLearner(dimensions=axes, domain_size=2**32, epsilon=1.0, delta=1e-6).plan
    assert plan.consumed < table
    assert 0.99 < plan.guarantee.epsilon(delta=1e-6) <= 1.0
    assert (plan.slice_epsilon is not None) == (axes >= 4)
    size = 2 / plan.rate * math.log(2 * 2 * axes * 2**32 / 0.05)
    assert size <= plan.slice_size <= size + 2


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("epsilon", "delta", "slicing"),
    [
        (200.0, 0.0, "plain"),
        (1e-4, 1e-6, "noisy"),
        (1.0, 0.01, "noisy"),
        (1.0, 1e-300, "noisy"),
        (11.0, 1e-6, "auto"),
        (1e-4, 0.01, "plain"),
    ],
)
def test_extreme_budgets(epsilon, delta, slicing):
    plan = RectangleLearner(dimensions=1, domain_size=100, epsilon=epsilon, delta=delta, slicing=slicing).plan
    assert plan.guarantee.epsilon(delta=delta) <= epsilon
    # never less than basic composition allows
    assert plan.rate >= epsilon * (15 / 16) / 4 * (1 - 1e-6)


def test_rows_grow_as_they_should():
    plan = RectangleLearner(dimensions=2, domain_size=2**16, epsilon=1.0).plan
    sizes = [plan.rows(error=error) for error in (0.3, 0.2, 0.1)]
    assert sizes == sorted(sizes)
    assert all(plan.consumed / n <= error for n, error in zip(sizes, (0.3, 0.2, 0.1), strict=True))
    with pytest.raises(ArgumentError, match="error"):
        plan.rows(error=0.0)


@pytest.mark.statistical
@pytest.mark.parametrize(("axes", "share", "adjacency"), [(1, 0.5, ADD), (2, 0.5, REPLACE), (2, 0.15, ADD)])
def test_the_error_is_as_small_as_claimed(axes, share, adjacency):
    """30 trials that may fail with probability 0.05 each: more than 10 failures have probability 4e-7 if the claim
    holds, and at most 10 have probability 0.05 if a trial fails with probability one half."""
    size, asked, epsilon, failures = 2**16, 0.2, 2.0, 0
    options = {"epsilon": epsilon, "adjacency": adjacency}
    plan = RectangleLearner(dimensions=axes, domain_size=size, **options).plan
    rows = plan.rows(error=asked)
    side = share ** (1 / axes)
    low, high = int(size * 0.4 * (1 - side)), int(size * (0.4 + 0.6 * side))
    data, source = np.random.default_rng(61), keyed_source(61)
    for _ in range(30):
        X = data.integers(0, size, (rows, axes))
        y = np.all((low <= X) & (high >= X), axis=1)
        rule = learn_rectangle(X, y, lower=0, upper=size - 1, random=source, **options).value
        truth = ((high - low + 1) / size) ** axes
        if rule.empty:
            wrong = truth
        else:
            inside = math.prod(
                max(min(high, b) - max(low, a) + 1, 0) / size for a, b in zip(rule.first, rule.last, strict=True)
            )
            whole = math.prod((b - a + 1) / size for a, b in zip(rule.first, rule.last, strict=True))
            wrong = truth + whole - 2 * inside
        failures += wrong > asked
    assert failures <= 10


@pytest.mark.full
@pytest.mark.statistical
def test_enough_rows_give_no_false_positives_and_few_false_negatives():
    """Every run with noisy slices: a false positive has probability at most 0.05/2 in theory, far less here."""
    data, source = np.random.default_rng(62), keyed_source(62)
    X = data.integers(0, 1000, (30_000, 4))
    y = np.all((X >= 100) & (X < 950), axis=1)
    options = {"lower": 0, "upper": 999, "epsilon": 4.0, "delta": 1e-6, "slicing": "noisy"}
    plan = RectangleLearner(dimensions=4, domain_size=1000, epsilon=4.0, delta=1e-6, slicing="noisy").plan
    for _ in range(3):
        release = learn_rectangle(X, y, random=source, **options)
        found = release.value.predict(X)
        assert not np.any(found & ~y)
        assert np.sum(y & ~found) < plan.consumed
        assert release.guarantee.epsilon(delta=1e-6) <= 4.0
        assert release.replayable


# --- what goes in and what comes out


def test_too_few_rows_give_the_empty_rectangle_by_a_private_decision():
    X, options = np.full((50, 2), 5), {"lower": 0, "upper": 9, "epsilon": 1.0}
    release = learn_rectangle(X, np.ones(50), random=keyed_source(63), **options)
    assert release.value.empty
    assert release.value.bounds is None
    assert not release.value.predict(X).any()
    plan = RectangleLearner(dimensions=2, domain_size=10, epsilon=1.0).plan
    assert release.guarantee.pure_epsilon >= NoisyCount(epsilon=plan.count_epsilon).guarantee.pure_epsilon
    # around the limit both happen: the decision is noisy
    rows = np.full((plan.least_count, 2), 5)
    source = keyed_source(64)
    found = {learn_rectangle(rows, np.ones(len(rows)), random=source, **options).value.empty for _ in range(40)}
    assert found == {True, False}


def test_rectangles_predict():
    domains = (WholeNumbers(0, 9), WholeNumbers(-5, 5))
    rule = Rectangle(domains, (2, 0), (4, 10))
    assert rule.bounds == [(2, 4), (-5, 5)]
    assert rule.predict([[3, 0], [5, 0], [2, -100], [4, 100], [1, 0]]).tolist() == [True, False, True, True, False]
    assert rule.predict(np.empty((0, 2), dtype=int)).tolist() == []
    assert Rectangle(domains, (5, 0), (4, 10)).empty
    with pytest.raises(ArgumentError, match="X"):
        rule.predict([[1, 2, 3]])
    with pytest.raises(TypeError, match="integers"):
        rule.predict([[1.5, 2.0]])


def test_tables_of_all_kinds():
    data = np.random.default_rng(65)
    X = data.uniform(-1, 1, (4000, 2))
    y = (np.abs(X[:, 0]) < 0.8) & (X[:, 1] > -0.5)
    options = {"epsilon": 20.0, "random": keyed_source(65)}
    holes = X.copy()
    holes[::7, 1] = np.nan
    for table in (X, holes, X.astype(np.float32)):
        rule = learn_rectangle(table, y, lower=-1, upper=[1.0, 2.0], granularity=(None, 0.25), **options).value
        assert np.mean(rule.predict(X) != y) < 0.1
        assert rule.bounds[1][0] % 0.25 == 0
    assert not rule.predict(holes)[::7].any()
    days = np.datetime64("2024-01-01") + data.integers(0, 1000, (3000, 1))
    rule = learn_rectangle(days, np.ones(3000), lower="2020-01-01", upper="2030-01-01", **options).value
    assert rule.bounds[0][0] < np.datetime64("2024-06-01") < rule.bounds[0][1]
    wide = np.array([[2**80 + int(k)] for k in data.integers(0, 1000, 2000)], dtype=object)
    rule = learn_rectangle(wide, np.ones(2000), lower=0, upper=2**90, **options).value
    assert rule.predict(np.array([[2**80 + 500], [2**89]], dtype=object)).tolist() == [True, False]
    odd = learn_rectangle(X, data.integers(0, 3, 4000), lower=-1, upper=1, **options)
    assert odd.value.predict(X).dtype == bool


@pytest.mark.parametrize(
    ("wrong", "error", "name"),
    [
        ({"epsilon": 0.0}, ArgumentError, "epsilon"),
        ({"delta": 0.02}, ArgumentError, "delta"),
        ({"delta": 1e-6, "epsilon": 11.0, "slicing": "noisy"}, ArgumentError, "epsilon"),
        ({"delta": -0.1}, ArgumentError, "delta"),
        ({"slicing": "noisy"}, ArgumentError, "delta"),
        ({"slicing": "fine"}, ArgumentError, "slicing"),
        ({"lower": [0.0, 0.0, 0.0]}, ArgumentError, "lower"),
        ({"lower": 2.0}, ArgumentError, "lower"),
        ({"granularity": -1.0}, ArgumentError, "granularity"),
        ({"failure_probability": 1.0}, ArgumentError, "failure_probability"),
        ({"adjacency": "one"}, AdjacencyError, "adjacency"),
        ({"X": [1.0, 2.0]}, ArgumentError, "X"),
        ({"X": np.empty((3, 0))}, ArgumentError, "X"),
        ({"X": [["a", "b"]]}, TypeError, "X"),
        ({"y": [1, 0]}, ArgumentError, "y"),
        ({"y": ["in"]}, TypeError, "y"),
        ({"random": 5}, TypeError, "random"),
    ],
)
def test_bad_arguments(wrong, error, name):
    arguments = {"X": [[0.5, 0.5]], "y": [1], "lower": 0.0, "upper": 1.0, "epsilon": 1.0} | wrong
    with pytest.raises(error, match=name):
        learn_rectangle(arguments.pop("X"), arguments.pop("y"), **arguments)
