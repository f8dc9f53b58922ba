"""Noisy sufficient statistics: what one row can do, exactly; the law of the noise; the floor under the eigenvalues."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpselect.learners.ridge
import dpselect.learners.sufficient_statistics as module
from dpselect.learners import PrivateRidge, PrivateRidgeClassifier
from dpselect.learners.sufficient_statistics import SufficientStatistics, solve
from dpselect.randomness import keyed_source

SIGMA, SHARE = 0.7, 0.35


@pytest.fixture
def silent(monkeypatch):
    """Fits without noise; gives what is released, in units of the noise that was asked for, as one vector."""
    found: dict[str, Any] = {}

    def nothing(deviation, size, random):
        found.setdefault("deviations", []).append(deviation)
        return np.zeros(size, dtype=np.int64)

    def keep(gram, moments, floor):
        found["gram"], found["moments"] = gram, moments
        return solve(gram, moments, floor)

    monkeypatch.setattr(module, "gaussian_steps", nothing)
    monkeypatch.setattr(dpselect.learners.ridge, "solve", keep)

    def released(model, X, y, *, step=2.0**-28):
        found["deviations"] = []
        model.fit(X, y)
        above, diagonal, moments = found["deviations"]
        gram = found["gram"]
        return np.concatenate(
            [
                gram[np.triu_indices(len(gram), 1)] * 2.0**32 / above,
                np.diag(gram) * 2.0**32 / diagonal,
                found["moments"].ravel() / step / moments,
            ]
        )

    return released


def models(adjacency, **options):
    shared = {"noise_multiplier": SIGMA, "gram_share": SHARE, "adjacency": adjacency, **options}
    return {
        "regression": (PrivateRidge(label_bounds=(-2, 6), **shared), 2.0**-32),
        "classes": (PrivateRidgeClassifier(classes=["x", "y", "z"], **shared), 2.0**-28),
        "weights": (
            PrivateRidgeClassifier(classes=["x", "y", "z"], class_weights={"x": 0.3, "z": 7.0}, **shared),
            2.0**-28,
        ),
    }


def labelled(random, kind, count):
    X = random.normal(size=(count, 4)) * 10.0 ** random.integers(-2, 3, size=(count, 1))
    X[random.random(X.shape) < 0.1] = random.choice([np.nan, np.inf, -np.inf, 1e300])
    if kind == "regression":
        return X, random.choice([-2.0, 6.0, 1e9, math.nan, -math.inf, 3.3], count)
    return X, random.choice(["x", "y", "z", "other"], count)


def moves(released, kind, adjacency, seed, **options):
    """How far what is released moves between neighbours, in units of its noise: one number for each of 30 pairs."""
    random = np.random.default_rng(seed)
    model, step = models(adjacency, **options)[kind]
    X, y = labelled(random, kind, 40)
    for k in range(30):
        if adjacency == "replace_one":
            X2, y2 = X.copy(), y.copy()
            X2[k], y2[k] = (part[0] for part in labelled(random, kind, 1))
        else:
            X2, y2 = np.delete(X, k, axis=0), np.delete(y, k)
        yield float(np.linalg.norm(released(model, X, y, step=step) - released(model, X2, y2, step=step)))


@pytest.mark.cases(3)
@pytest.mark.theorem("docs/theory/sufficient-statistics.md, Theorem 1", exact=True)
@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("kind", ["regression", "classes", "weights"])
def test_no_row_moves_the_release_further_than_the_price_says(kind, adjacency, silent):
    for seed, options in enumerate(({}, {"intercept_scale": 1.0}, {"intercept_scale": 0.0, "row_norm": 40.0})):
        assert max(moves(silent, kind, adjacency, seed, **options)) <= 1 / SIGMA


def worst(released, kind, scale=0.3):
    """The way of the release when the worst row comes."""
    model, step = models("add_or_remove_one", intercept_scale=scale)[kind]
    row = [[0.0, 1e9, 0.0, 0.0]]
    label = {"regression": [6.0], "classes": ["y"], "weights": ["z"]}[kind]
    nothing = released(model, np.zeros((0, 4)), [], step=step)
    return float(np.linalg.norm(released(model, row, label, step=step) - nothing))


@pytest.mark.theorem("docs/theory/sufficient-statistics.md, Theorem 1", exact=True)
@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("kind", ["regression", "classes", "weights"])
def test_the_worst_row_attains_it(kind, scale, silent):
    assert 0.9999 / SIGMA < worst(silent, kind, scale) <= 1 / SIGMA


@pytest.mark.theorem("docs/theory/sufficient-statistics.md, Theorem 1", sharp=True)
@pytest.mark.parametrize("part", ["gram_deviation", "moment_deviation"])
@pytest.mark.parametrize("kind", ["regression", "classes"])
def test_noise_that_is_one_per_cent_smaller_is_found(kind, part, silent, monkeypatch):
    original = getattr(SufficientStatistics, part).fget
    monkeypatch.setattr(SufficientStatistics, part, property(lambda self: 0.99 * original(self)))
    assert worst(silent, kind) > 1 / SIGMA


def test_rows_that_are_replaced_attain_each_part(silent):
    model, step = models("replace_one", intercept_scale=0.0)["regression"]
    for row, other, labels, part, share in (
        ([1.0, 0.0], [0.0, 1.0], (6.0, 6.0), slice(0, 3), SHARE),
        ([1.0, 0.0], [1.0, 0.0], (6.0, -2.0), slice(3, 5), 1 - SHARE),
    ):
        way = silent(model, [row], labels[:1], step=step) - silent(model, [other], labels[1:], step=step)
        assert 0.9999 * share < np.sum(way[part] ** 2) * SIGMA**2 <= share


def test_sums_are_exact_whatever_the_order_and_the_blocks(silent, monkeypatch):
    random = np.random.default_rng(4)
    X, y = random.normal(size=(300, 3)), random.uniform(-3, 7, 300)
    model, step = models("add_or_remove_one")["regression"]
    whole = silent(model, X, y, step=step)
    order = random.permutation(300)
    monkeypatch.setattr(module, "_CHUNK", 7)
    assert np.array_equal(silent(model, X[order], y[order], step=step), whole)
    one = [silent(model, X[k : k + 1], y[k : k + 1], step=step) for k in range(300)]
    exact = [float(sum(Fraction(v) for v in column)) for column in np.array(one).T.tolist()]
    assert whole == pytest.approx(exact, rel=1e-12)


@pytest.mark.statistical
def test_the_noise_has_the_law_of_the_theorem():
    """One seed; each of six tests is wrong with probability 1e-6."""
    size = 120
    release = SufficientStatistics(2.0, SHARE, 1.5, 3.0, 1.0, replace=False)
    nothing = np.zeros((0, size))
    gram, moments = release.release(nothing, nothing, np.zeros((0, 40)), keyed_source(5))
    assert np.array_equal(gram, gram.T)
    s, r = 2.25 * 2 / math.sqrt(SHARE), 1.5 * 3 * 2 / math.sqrt(1 - SHARE)
    for values, deviation in (
        (np.diag(gram), s),
        (gram[np.triu_indices(size, 1)], s / math.sqrt(2)),
        (moments.ravel(), r),
    ):
        assert stats.kstest(values / deviation, "norm").pvalue > 1e-6
        assert stats.chi2.cdf(np.sum((values / deviation) ** 2), len(values)) == pytest.approx(0.5, abs=0.5 - 1e-6)


def test_the_floor_holds():
    gram = np.diag([100.0, 1.0, -5.0])
    assert solve(gram, np.ones((3, 1)), 2.0).ravel() == pytest.approx([0.01, 0.5, 0.5])
