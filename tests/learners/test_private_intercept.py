"""The private choice of an intercept: its candidates, its counts between neighbours, its exact law, its cost."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import dpselect.learners.output_perturbation as module
from dpselect.errors import ArgumentError
from dpselect.learners import OutputPerturbationClassifier
from dpselect.learners.fixed_point import exact_products
from dpselect.learners.private_intercept import choose_intercept, correct_answers, intercept_candidates
from dpselect.learners.rows import unit_rows
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source

TWO = np.array([[1.0], [-0.5], [7.0]])
THREE = np.array([[1.0, -0.5, 0.0], [0.2, 0.9, -1.0], [3.0, 0.0, -3.0]])
POINTS = [(-0.9, 0.1), (0.2, 0.4), (0.8, -0.3)]


def rows_of(points):
    return unit_rows(np.array(points, dtype=float).reshape(-1, 2), 1.0, intercept=True)


def counts(weights, points, labels, counted=correct_answers):
    scores = exact_products(rows_of(points)[:, :-1], weights[:-1])
    return counted(scores, np.array(labels, dtype=np.intp), intercept_candidates(weights))


def law(scores, rate):
    """Probabilities of the exponential mechanism, shape of `scores`."""
    powers = np.exp(rate * (scores - scores.max()))
    return powers / powers.sum()


def tables(classes):
    """Every table of up to two of three rows, each with any class, as lists of points and labels."""
    kinds = list(itertools.product(POINTS, range(classes)))
    for count in range(3):
        for chosen in itertools.combinations_with_replacement(kinds, count):
            yield [point for point, _ in chosen], [label for _, label in chosen], kinds


def largest_loss(weights, counted=correct_answers):
    """The largest log-ratio of probabilities over all small neighbours, in units of epsilon, for both adjacencies."""
    added = replaced = 0.0
    for points, labels, kinds in tables(max(2, weights.shape[1])):
        here = counts(weights, points, labels, counted)
        for point, label in kinds:
            more = counts(weights, [*points, point], [*labels, label], counted)
            ratio = np.log(law(more, 1.0)) - np.log(law(here, 1.0))
            added = max(added, float(np.abs(ratio).max()))
            if points:
                other = counts(weights, [*points[1:], point], [*labels[1:], label], counted)
                ratio = np.log(law(other, 0.5)) - np.log(law(here, 0.5))
                replaced = max(replaced, float(np.abs(ratio).max()))
    return added, replaced


@pytest.mark.parametrize("weights", [TWO, THREE], ids=["two", "three"])
def test_neighbours_draw_an_intercept_with_probabilities_within_the_cost(weights):
    """Exact, on all tables of up to three rows from three places; and nearly attained, so the check sees something."""
    added, replaced = largest_loss(weights)
    assert 0.5 < added <= 1.0 + 1e-12
    assert 0.3 < replaced <= 1.0 + 1e-12


def test_a_class_that_counts_twice_is_found():
    def twice(scores, numbers, candidates):
        return correct_answers(scores, numbers, candidates) + correct_answers(
            scores[numbers == 1], numbers[numbers == 1], candidates
        )

    added, replaced = largest_loss(TWO, twice)
    assert added > 1.0
    assert replaced > 1.0


@pytest.mark.parametrize(("adjacency", "rate"), [("add_or_remove_one", 3.0), ("replace_one", 1.5)])
def test_the_choice_has_the_law_of_the_exponential_mechanism(adjacency, rate):
    """Frequencies of 600 draws among four cells, by a chi-square limit; false alarm below 1e-6."""
    points, labels = [POINTS[0], POINTS[1], POINTS[2]], [0, 2, 1]
    expected, rows = law(counts(THREE, points, labels), rate), rows_of(points)
    source, found = keyed_source("law"), np.zeros(4)
    for _ in range(600):
        chosen = choose_intercept(THREE, rows, np.array(labels, dtype=np.intp), 3.0, Adjacency(adjacency), source)
        found[np.flatnonzero((intercept_candidates(THREE) == chosen[-1]).all(axis=1))[0]] += 1
        assert np.array_equal(chosen[:-1], THREE[:-1])
    assert np.sum((found - 600 * expected) ** 2 / (600 * expected)) < 31.0


@pytest.mark.parametrize("weights", [TWO, THREE, np.zeros((3, 1)), np.zeros((3, 3)), 1e9 * TWO, 1e9 * THREE])
def test_every_constant_answer_is_a_candidate(weights):
    """The best candidate is right at least as often as the best constant, for any rows."""
    random = np.random.default_rng(3)
    rows = unit_rows(random.normal(size=(200, 2)), 1.0, intercept=True)
    classes = max(2, weights.shape[1])
    scores = exact_products(rows[:, :-1], weights[:-1])
    for constant in range(classes):
        found = correct_answers(scores, np.full(200, constant, dtype=np.intp), intercept_candidates(weights))
        assert found.max() == 200


def test_counts_are_those_of_the_model_that_predicts():
    random = np.random.default_rng(4)
    X, y = random.normal(size=(300, 3)), random.integers(0, 2, 300)
    model = OutputPerturbationClassifier(classes=[0, 1], nominal_rows=300, random=keyed_source(1)).fit(X, y)
    rows = unit_rows(X, 1.0, intercept=True)
    candidates = intercept_candidates(model.weights_[0])
    expected = correct_answers(exact_products(rows[:, :-1], model.weights_[0][:-1]), y, candidates)
    slopes = model.weights_[0][:-1]
    for place in (0, 40, 64, 90, 128):
        model.weights_ = (np.vstack([slopes, candidates[place]]),)
        assert np.sum(model.predict(X) == y) == expected[place]


@pytest.mark.parametrize(("share", "parts"), [(None, 0.2), (0.0, 0.0), (0.9, 0.9)])
def test_weights_and_intercept_cost_the_whole_and_no_more(share, parts, monkeypatch):
    spent = []
    original = module._add_spherical_noise
    monkeypatch.setattr(module, "_add_spherical_noise", lambda *given: [original(*given), spent.append(given[2])][0])
    monkeypatch.setattr(module, "choose_intercept", lambda *given: [given[0], spent.append(given[3])][0])
    for epsilon in (0.3, 1.0, 7.7):
        spent.clear()
        model = OutputPerturbationClassifier(epsilon=epsilon, classes=[0, 1], nominal_rows=4, intercept_share=share)
        model.fit(np.eye(4), [0, 1, 0, 1])
        assert sum(map(Fraction, spent)) <= Fraction(epsilon)
        assert sum(spent) == pytest.approx(epsilon)
        assert (spent[1] if len(spent) > 1 else 0.0) == pytest.approx(parts * epsilon)
    spent.clear()
    model.set_params(intercept_share=None, fit_intercept=False).fit(np.eye(4), [0, 1, 0, 1])
    assert spent == [7.7]


@pytest.mark.parametrize("share", [-0.1, 0.95, math.nan, "much"])
def test_a_share_out_of_range_is_refused(share):
    model = OutputPerturbationClassifier(classes=[0, 1], nominal_rows=4, intercept_share=share)
    with pytest.raises((ArgumentError, TypeError), match="intercept_share"):
        model.fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.statistical
def test_a_model_of_noise_is_about_as_good_as_the_best_constant():
    """Seven of ten rows are of one class and nothing tells them apart; before, some answered it for fewer than half."""
    random = np.random.default_rng(5)
    X, y = random.normal(size=(1000, 6)), (random.random(1000) < 0.7).astype(int)
    source = keyed_source("constant")
    found = {share: [] for share in (0.0, None)}
    for share, scores in found.items():
        model = OutputPerturbationClassifier(
            classes=[0, 1], nominal_rows=1000, regularization=0.005, intercept_share=share, random=source
        )
        scores += [model.fit(X, y).score(X, y) for _ in range(20)]
    assert min(found[0.0]) < 0.5
    assert min(found[None]) > 0.6
