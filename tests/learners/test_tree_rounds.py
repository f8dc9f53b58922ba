"""The rounds of boosted trees: attacks on their price."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import dpselect.learners.tree_rounds as module
from dpselect.learners import PrivateBoostingClassifier, PrivateBoostingRegressor
from dpselect.learners.dp_sgd import GradientSchedule
from dpselect.learners.least_squares import LeastSquares
from dpselect.learners.tree_sums import COUNT_WEIGHT, TreeSums
from dpselect.privacy import gaussian
from dpselect.randomness import keyed_source
from tests.learners.tree_rounds_cases import (
    ADJACENCIES,
    KINDS,
    labelled,
    learner,
    neighbour,
    nothing,
    one_leaf,
    squares,
    watcher,
)

SIGMA = 0.7


@pytest.fixture
def fit(monkeypatch):
    """See `watcher`."""
    return watcher(monkeypatch)


def same(first, second):
    return [np.array_equal(*pair) for pair in zip(first, second, strict=True)]


def squared_way(first, second):
    """By how much all that is asked moves, in units of its noise, squared, with the price of the linear start."""
    assert [deviation for _, deviation in first.asked] == [deviation for _, deviation in second.asked]
    return float(np.sum(np.square(first.sums() - second.sums()))) + first.linear


# neighbours, with the same past


@pytest.mark.cases(3)
@pytest.mark.theorem("docs/theory/boosted-trees.md, Theorem 1", exact=True)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", KINDS)
def test_no_row_moves_what_is_asked_further_than_the_price_says(kind, adjacency, fit):
    """For any past; and the model is a function of the past alone."""
    random = np.random.default_rng(KINDS.index(kind))
    shares = (0.0, 0.5) if adjacency == "add_or_remove_one" else (0.0,)
    answers = [None, lambda sums, deviation, _: random.normal(size=sums.shape) * 1e6]
    for share, answer in [(share, answer) for share in shares for answer in answers]:
        model = learner(kind, noise_multiplier=SIGMA, adjacency=adjacency, linear_share=share)
        X, y = labelled(random, kind, 40)
        past = fit(model, X, y, answer=answer)
        moved = 0.0
        for _ in range(3):
            other = fit(model, *neighbour(random, kind, adjacency, X, y), past=past)
            moved = max(moved, squared_way(past, other))
            for (ranks, weights, _), (ranks2, weights2, _) in zip(past.drawn, other.drawn, strict=True):
                assert all(same([*ranks, weights], [*ranks2, weights2])), "trees are drawn by what was released"
            assert all(same(past.weights, other.weights)), "all of the model was released"
        assert 0.0 < moved <= 1 / SIGMA**2


def test_the_linear_start_sees_neighbours(fit):
    random = np.random.default_rng(2)
    model = learner("weights", noise_multiplier=SIGMA, linear_share=0.5)
    X, y = labelled(random, "weights", 40)
    y[7] = "z"
    past, other = fit(model, X, y), fit(model, np.delete(X, 7, axis=0), np.delete(y, 7))
    known = np.count_nonzero(y[:7] != "other")
    for part, with_it in zip(other.rows, past.rows, strict=True):
        assert np.array_equal(part, np.delete(with_it, known, axis=0))
    assert np.max(np.linalg.norm(past.rows[0][:, :-1], axis=1)) <= 1


@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_adds_the_same_in_any_company_order_and_parts(kind, share, fit, monkeypatch):
    random = np.random.default_rng(4)
    model = learner(kind, noise_multiplier=SIGMA, linear_share=share)
    X, y = labelled(random, kind, 25)
    past = fit(model, X, y)
    order = random.permutation(len(X))
    monkeypatch.setattr(module, "CHUNK", 7)
    assert all(same([sums for sums, _ in past.asked], [s for s, _ in fit(model, X[order], y[order], past=past).asked]))
    for sums in zip(*(fit(model, X[[k]], y[[k]], past=past).asked for k in range(len(X))), past.asked, strict=True):
        *alone, whole = (each for each, _ in sums)
        assert np.array_equal(np.sum(alone, axis=0), whole)


def test_rows_without_a_known_label_ask_nothing(fit):
    X, _ = labelled(np.random.default_rng(1), "classes", 20)
    for kind, y in (("classes", ["other"] * 20), ("regression", [math.nan] * 20)):
        model = learner(kind, noise_multiplier=SIGMA)
        found = fit(model, X, y)
        assert not np.any(found.sums())
        assert all(same(found.weights, fit(model, X[:0], y[:0], past=found).weights))


# the worst rows


def worst(fit, kind, sigma=SIGMA, **options):
    """The squared way of the worst row that is added, when all answers are zero."""
    model = learner(kind, noise_multiplier=sigma, **options)
    row = [[0.5, 0.5, 0.5, 1.0, 0.0]]
    past = fit(model, np.zeros((0, 5)), [], answer=nothing)
    return squared_way(past, fit(model, row, [6.0 if kind == "regression" else "z"], past=past))


PLANS = [
    {"linear_share": share, "n_estimators": trees, "max_depth": depth, "nominal_rows": rows}
    for share, trees, depth, rows in ((0.0, 1, 1, 1), (0.5, 40, 2, 1e4), (0.95, 8, 4, 1e7), (0.01, 17, 1, 30))
]


@pytest.mark.theorem("docs/theory/boosted-trees.md, Theorem 1", exact=True)
@pytest.mark.parametrize("plan", PLANS, ids=range(len(PLANS)))
@pytest.mark.parametrize("sigma", [0.05, 0.7, 31.0, 1e5])
@pytest.mark.parametrize("kind", KINDS)
def test_all_that_is_released_costs_what_the_guarantee_says(kind, sigma, plan, fit):
    spent = worst(fit, kind, sigma, **plan) * sigma**2
    assert spent <= 1 + 1e-12
    # at scores of zero no row of classes is longer than the first bound
    assert spent > 1 - 1e-4 - (0 if kind == "regression" else 0.05 / plan["n_estimators"])
    model = learner(kind, noise_multiplier=sigma, **plan)
    assert model.guarantee().gaussian_mu == gaussian(noise_multiplier=sigma).gaussian_mu


def opposed(fit):
    """The squared way of two rows of one leaf and no common code: one is as long as the bound, the other longer."""
    model = PrivateBoostingRegressor(
        label_bounds=(-1, 1), noise_multiplier=SIGMA, adjacency="replace_one", n_estimators=1, max_depth=2
    )
    past = fit(model, [[-1.0, 0.0]], [0.5], answer=nothing, tree=one_leaf)
    other = fit(model, [[1.0, 0.5]], [-1.0], past=past)
    return squared_way(past, other)


@pytest.mark.parametrize("sigma", [0.05, 0.7, 31.0, 1e5])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.95])
@pytest.mark.parametrize("kind", ["classes", "regression"])
def test_the_trees_get_what_the_linear_start_left_not_a_bit_more(kind, share, sigma, monkeypatch):
    """In exact arithmetic."""
    made, started = [], []
    monkeypatch.setattr(module, "TreeSums", lambda *arguments: made.append(TreeSums(*arguments)) or made[-1])
    run, fit = GradientSchedule.run, LeastSquares.fit

    def steps(self, *rest):
        started.append(Fraction(self.steps) / Fraction(self.noise_multiplier) ** 2)
        return run(self, *rest)

    def least(self, X, y):
        started.append(1 / Fraction(self.noise_multiplier) ** 2)
        return fit(self, X, y)

    monkeypatch.setattr(GradientSchedule, "run", steps)
    monkeypatch.setattr(LeastSquares, "fit", least)
    model = learner(kind, noise_multiplier=sigma, linear_share=share, n_estimators=2, max_depth=1)
    model.fit(np.zeros((0, 5)), [])
    if kind == "regression" or share > 0.9:
        assert len(started) == (sigma < 1e5 or kind == "classes"), "so much noise the start does not take"
    ranks, one = squares(*made)
    spent = sum(started) + ranks + 2 * one
    assert 1 - Fraction(1, 10**12) < spent * Fraction(sigma) ** 2 <= 1


@pytest.mark.theorem("docs/theory/boosted-trees.md, Theorem 1", exact=True)
def test_two_opposed_rows_attain_the_price_of_replacement(fit):
    assert 0.9999 < opposed(fit) * SIGMA**2 <= 1


@pytest.mark.theorem("docs/theory/boosted-trees.md, Theorem 1", sharp=True)
@pytest.mark.parametrize("part", ["rank_deviation", "gradient_deviation"])
def test_the_noise_of_addition_is_too_small_for_replacement(part, fit, monkeypatch):
    original = getattr(TreeSums, part).fget
    monkeypatch.setattr(TreeSums, part, property(lambda self: original(replace(self, replace=False))))
    assert opposed(fit) > 1.02 / SIGMA**2


@pytest.mark.theorem("docs/theory/boosted-trees.md, Theorem 1", sharp=True)
@pytest.mark.parametrize("part", ["rank_deviation", "gradient_deviation", "count_deviation", "clipped_deviation"])
def test_noise_that_is_too_small_is_found(part, fit, monkeypatch):
    """By one per cent, or as much as one sixteenth of the price needs."""
    original, less = getattr(TreeSums, part).fget, 0.8 if part == "clipped_deviation" else 0.98
    monkeypatch.setattr(TreeSums, part, property(lambda self: less * original(self)))
    assert worst(fit, "regression", linear_share=0.5, n_estimators=40) > 1 / SIGMA**2


@pytest.mark.theorem("docs/theory/boosted-trees.md, Theorem 1", sharp=True)
def test_a_linear_start_that_is_not_paid_for_is_found(fit, monkeypatch):
    monkeypatch.setattr(module, "TreeSums", lambda _, *others: TreeSums(SIGMA, *others))
    assert worst(fit, "regression", linear_share=0.5, n_estimators=40) > 1.4 / SIGMA**2


@pytest.mark.theorem("docs/theory/boosted-trees.md, Theorem 1", sharp=True)
def test_a_count_of_more_weight_than_its_noise_is_found(fit, monkeypatch):
    monkeypatch.setattr(TreeSums, "count_deviation", property(lambda self: self.gradient_deviation * COUNT_WEIGHT))
    assert worst(fit, "classes", linear_share=0.0, n_estimators=40) > 2 / SIGMA**2


def test_gradients_that_are_not_shortened_move_too_far(fit, monkeypatch):
    monkeypatch.setattr(module, "_DOWN", 1.5)
    assert worst(fit, "regression", linear_share=0.0) > 1.2 / SIGMA**2


def test_terms_that_are_not_on_the_grid_are_found(fit, monkeypatch):
    """Sums of them depend on the order of the rows."""
    random = np.random.default_rng(4)
    model = learner("classes", noise_multiplier=SIGMA, linear_share=0.0)
    X, y = labelled(random, "classes", 50)
    monkeypatch.setattr(module, "truncate", lambda values: values)
    past = fit(model, X, y)
    other = fit(model, X[::-1], y[::-1], past=past)
    assert not all(same([sums for sums, _ in past.asked], [sums for sums, _ in other.asked]))


# noise


def test_a_second_fit_with_one_source_draws_new_noise():
    """Noise that is drawn twice is subtracted: two fits on neighbours would show the row."""
    model = learner("classes", noise_multiplier=1.0, linear_share=0.5)
    X, y = labelled(np.random.default_rng(1), "classes", 60)
    first = model.fit(X, y).weights_
    assert not any(same(first, model.fit(X, y).weights_))
    model.set_params(random=keyed_source(5))
    assert all(same(first, model.fit(X, y).weights_)), "a key replays a fit"


def test_sums_get_the_noise_that_is_theirs(fit):
    """Of 200 rounds, in units of the deviation; false alarm 1e-6."""
    model = learner("regression", noise_multiplier=SIGMA, linear_share=0.0, n_estimators=200, max_depth=1)
    found = fit(model, *labelled(np.random.default_rng(1), "regression", 30))
    drawn = np.concatenate(
        [np.ravel(given - sums) / deviation for (sums, deviation), given in zip(found.asked, found.given, strict=True)]
    )
    assert len(set(np.round(drawn, 12))) == len(drawn) == 3 * 255 + 200 * 5
    assert abs(np.mean(np.square(drawn)) - 1.0) < 4.9 * math.sqrt(2 / len(drawn))


def test_a_public_guess_stands_for_the_number_of_rows(fit):
    """The rounds' bounds on gradients are the same for any table of one past."""
    model = PrivateBoostingClassifier(noise_multiplier=SIGMA, classes=[0, 1], nominal_rows=50, n_estimators=5)
    X = np.random.default_rng(0).uniform(-1, 1, (80, 2))
    past = fit(model, X, [0, 1] * 40)
    assert all(same(past.weights, fit(model, X[:3], [0, 1, 1], past=past).weights))
