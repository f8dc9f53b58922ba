"""Noisy sufficient statistics: what one row can do, exactly; the law of the noise; the floor under the eigenvalues."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

import dpselect.learners.ridge
import dpselect.learners.sufficient_statistics as module
from dpselect.learners import PrivateRidge, PrivateRidgeClassifier
from dpselect.learners.sufficient_statistics import SufficientStatistics, joint_share, solve
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
            2.0**-32,
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


def replaced(released, share, sign=-1.0):
    """The square of the way of the release, times sigma^2, when the worst row comes in the place of another."""
    c = min(1.0, (1 - share) / (4 * share))
    model, step = models("replace_one", intercept_scale=0.0, gram_share=share)["regression"]
    rows, label = ([[1.0, 0.0]], [[sign * c, math.sqrt(1 - c * c)]]), (6.0, 6.0 if sign < 0 else -2.0)
    way = released(model, rows[0], [label[0]], step=step) - released(model, rows[1], [label[1]], step=step)
    return float(np.sum(way**2)) * SIGMA**2


@pytest.mark.theorem("docs/theory/sufficient-statistics.md, Theorem 1", exact=True)
@pytest.mark.parametrize("share", [0.05, 0.2, 0.35, 0.9])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_worst_row_in_the_place_of_another_attains_it(share, sign, silent):
    """A share of m that is 1 % smaller fails here."""
    assert 0.9995 < replaced(silent, share, sign) <= 1.0


@pytest.mark.theorem("docs/theory/sufficient-statistics.md, Theorem 1", sharp=True)
def test_a_joint_share_that_is_one_per_cent_smaller_is_found(silent, monkeypatch):
    monkeypatch.setattr(module, "joint_share", lambda share: 0.99 * joint_share(share))
    assert replaced(silent, SHARE) > 1.0


@pytest.mark.theorem("docs/theory/sufficient-statistics.md, Theorem 1", exact=True)
def test_the_joint_share_in_fractions():
    """At a = 5/17 the cosine of the worst rows is 3/5, and all their numbers are rational."""
    a, z, w = Fraction(5, 17), (Fraction(1), Fraction(0)), (Fraction(-3, 5), Fraction(4, 5))
    gram = sum((z[i] * z[j] - w[i] * w[j]) ** 2 for i in range(2) for j in range(2))
    moment = sum((z[i] - w[i]) ** 2 for i in range(2))
    exact = a / 2 * gram + (1 - a) / 4 * moment
    assert exact == a + (1 - a) / 2 + (1 - a) ** 2 / (16 * a)
    assert exact <= joint_share(5 / 17) <= float(exact) * (1 + 1e-13)


@pytest.mark.cases(2)
@pytest.mark.parametrize("share", [0.02, 0.1, 0.2, 0.35, 0.6, 0.95])
def test_no_two_rows_are_beyond_the_joint_share(share):
    """Local searches from random pairs of rows and targets of any norm up to 1, in three columns with two targets."""
    random = np.random.default_rng(7)

    def move(point):
        z, w, t, u = np.split(point, [3, 6, 8])
        z, w, t, u = (part / max(1.0, float(np.linalg.norm(part))) for part in (z, w, t, u))
        gram = np.sum((np.outer(z, z) - np.outer(w, w)) ** 2)
        return -(share / 2 * gram + (1 - share) / 4 * np.sum((np.outer(z, t) - np.outer(w, u)) ** 2))

    found = [optimize.minimize(move, random.normal(size=10), method="BFGS").fun for _ in range(6)]
    points = random.normal(size=(2000, 10)) * random.uniform(0.1, 2.0, (2000, 1))
    assert -min(*found, *map(move, points)) <= joint_share(share)
    assert -min(found) > 0.999 * joint_share(share)


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
    gram, moments = release.release(nothing, np.zeros((0, 40)), keyed_source(5))
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
