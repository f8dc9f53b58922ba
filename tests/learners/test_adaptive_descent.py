"""Adaptive noisy gradients: the most that one row moves all releases, exactly; the noise; the bound that follows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import dpselect.learners.adaptive_descent as module
import dpselect.learners.sufficient_statistics as statistics
from dpselect.learners.adaptive_descent import AdaptiveDescent
from dpselect.learners.batches import Batches
from dpselect.learners.fixed_point import STEP, truncate
from dpselect.learners.rows import unit_rows
from dpselect.randomness import keyed_source

SIGMA = 0.7
RUN = AdaptiveDescent(
    noise_multiplier=SIGMA,
    steps=4,
    gram_share=0.3,
    count_share=0.2,
    row_norm=math.sqrt(1.09) * (1 + 2.0**-50),
    clipped_share=0.2,
    rows=30.0,
    replace=False,
)


def table(seed, count=30):
    random = np.random.default_rng(seed)
    X = random.normal(size=(count, 3)) * 10.0 ** random.integers(-2, 3, size=(count, 1))
    return unit_rows(X, 1.0, intercept=0.3), truncate(random.uniform(-1, 1, count))


def released(run, rows, targets, path, monkeypatch):
    """All that a run would release without noise along a given path, in units of the noise it asks for, one vector.

    `path` holds the weights and the bound of each step, which earlier releases fix.
    """
    deviations = []

    def nothing(deviation, size, random=None):
        deviations.append(deviation)
        return np.zeros(size, dtype=np.int64)

    with monkeypatch.context() as patched:
        patched.setattr(module, "gaussian_steps", nothing)
        patched.setattr(statistics, "gaussian_steps", nothing)
        gram = statistics.noisy_gram(rows, run.gram_deviation, keyed_source(1))
        above, diagonal = deviations
        parts = [gram[np.triu_indices(len(gram), 1)] / STEP**2 / above, np.diag(gram) / STEP**2 / diagonal]
        lengths = np.sqrt(np.sum(rows * rows, axis=1))
        for weights, clip in path:
            deviations.clear()
            gradient, count = run._release(weights, (Batches.of(rows), lengths, targets), clip, keyed_source(1))
            step, grid = module.grid_at_most(clip) * STEP, module.grid_at_most(run.count_deviation * 2.0**-32)
            parts += [gradient.ravel() / (STEP * step) / deviations[0], np.array([count / grid / deviations[1]])]
    return np.concatenate(parts)


def path(seed, steps=4):
    random = np.random.default_rng(seed)
    return [(random.normal(size=(4, 1)), float(random.choice([2.0**-7, 0.1, 0.3, 1.3, 2.0]))) for _ in range(steps)]


def neighbours(rows, targets, *, replaced):
    extreme = unit_rows([[9e9, -1.0, 3.0]], 1.0, intercept=0.3)
    for k in range(len(rows)):
        if replaced:
            yield np.vstack([np.delete(rows, k, axis=0), extreme]), np.append(np.delete(targets, k), -1.0)
        else:
            yield np.delete(rows, k, axis=0), np.delete(targets, k)


@pytest.mark.cases(3)
@pytest.mark.theorem("docs/theory/least-squares.md, Theorem 1", exact=True)
@pytest.mark.parametrize("replaced", [False, True], ids=["add", "replace"])
def test_no_row_moves_all_releases_further_than_the_price_says(replaced, monkeypatch):
    run = replace(RUN, replace=replaced)
    for seed in range(3):
        rows, targets = table(seed)
        here = released(run, rows, targets, path(seed), monkeypatch)
        moves = [
            np.linalg.norm(here - released(run, *other, path(seed), monkeypatch))
            for other in neighbours(rows, targets, replaced=replaced)
        ]
        assert 0.2 / SIGMA < max(moves) <= 1 / SIGMA


def worst(run, monkeypatch):
    """The move by the worst row: as long as a row may be, and clipped at every step."""
    row, target = unit_rows([[9e9, 0.0, 0.0]], 1.0, intercept=0.3), np.array([1.0])
    clipped = [(np.array([[-3.0], [0.0], [0.0], [0.0]]), 0.3)] * run.steps
    nothing = released(run, row[:0], target[:0], clipped, monkeypatch)
    return float(np.linalg.norm(released(run, row, target, clipped, monkeypatch) - nothing))


@pytest.mark.theorem("docs/theory/least-squares.md, Theorem 1", exact=True)
def test_the_worst_row_attains_it(monkeypatch):
    assert 0.9999 / SIGMA < worst(RUN, monkeypatch) <= 1 / SIGMA


def replaced(run, monkeypatch, rows):
    """The square of the move, times sigma^2, when the second row comes in the place of the first, clipped against it.

    The step of the second row has the weights of the first with the other sign, in place of a target beyond 1. Both are
    clipped, and their counts are taken as different: a row whose gradient has just the bound is not counted.
    """
    weights = np.array([[-9.0], [-9.0], [0.0], [0.0]])
    one, other = (
        released(run, rows[i : i + 1], np.zeros(1), [(sign * weights, 0.03)] * run.steps, monkeypatch)
        for i, sign in ((0, 1.0), (1, -1.0))
    )
    way = one - other
    way[14::5] = 1.0 / run.count_deviation
    return float(np.sum(way**2)) * SIGMA**2


@pytest.mark.theorem("docs/theory/least-squares.md, Theorem 1", exact=True)
@pytest.mark.parametrize(("gram", "cosine", "length"), [(0.1, 1.0, 0.08), (0.3, 1.0, 0.08), (0.6, 0.0, 1.0)])
def test_two_rows_move_all_releases_as_far_as_the_joint_share_says(gram, cosine, length, monkeypatch):
    """One long and one short row, or two long ones; noise that is 1 % smaller fails here."""
    run = replace(RUN, replace=True, gram_share=gram)
    a, b = gram / 2, (1 - gram) * 0.8 / 4
    cosine = cosine or b / (2 * a)
    rows = np.array([[1.0, 0.0, 0.0, 0.0], [length * cosine, length * math.sqrt(1 - cosine**2), 0.0, 0.0]])
    assert 0.99 < replaced(run, monkeypatch, truncate(math.sqrt(1.09) * rows)) <= 1.0


@pytest.mark.theorem("docs/theory/least-squares.md, Theorem 1", exact=True)
@pytest.mark.cases(2)
@pytest.mark.parametrize("gram", [0.01, 0.1, 0.3, 0.5, 0.9])
def test_no_two_rows_move_all_releases_further(gram):
    run = replace(RUN, replace=True, gram_share=gram)
    random = np.random.default_rng(3)
    sizes, cosine = random.uniform(0.0, 1.0, (100_000, 2)) ** 0.2, random.uniform(0.0, 1.0, 100_000)
    sizes[:1000] = np.rint(sizes[:1000])  # rows of no length and of the largest
    cosine[:200] = 1.0
    squares = sizes**2
    gram_part = np.sum(squares**2, axis=1) - 2 * np.prod(squares, axis=1) * cosine**2
    moved = gram_part * run.row_norm**4 / run.gram_deviation**2
    moved += run.steps * ((2 + 2 * cosine) / run.gradient_deviation**2 + 1 / run.count_deviation**2)
    assert 0.999 / SIGMA**2 < np.max(moved) <= 1 / SIGMA**2


@pytest.mark.theorem("docs/theory/least-squares.md, Theorem 1", sharp=True)
@pytest.mark.parametrize("part", ["gram_deviation", "gradient_deviation", "count_deviation"])
def test_noise_that_is_one_per_cent_smaller_is_found(part, monkeypatch):
    original = getattr(AdaptiveDescent, part).fget
    monkeypatch.setattr(AdaptiveDescent, part, property(lambda self: 0.99 * original(self)))
    assert worst(RUN, monkeypatch) > 1 / SIGMA


def test_a_run_releases_just_that_and_each_with_its_noise(monkeypatch):
    """In order: X'X, then for each step a gradient and a count, with the deviations of the theorem at that bound."""
    asked, bounds = [], []
    original, releasing = module.gaussian_steps, AdaptiveDescent._release

    def noting(deviation, size, random=None):
        asked.append((deviation, np.prod(size)))
        return original(deviation, size, random)

    def bounded(self, weights, data, clip, random):
        bounds.append(clip)
        return releasing(self, weights, data, clip, random)

    monkeypatch.setattr(module, "gaussian_steps", noting)
    monkeypatch.setattr(statistics, "gaussian_steps", noting)
    monkeypatch.setattr(AdaptiveDescent, "_release", bounded)
    rows, targets = table(1)
    RUN.run(Batches.of(rows), targets, keyed_source(2))
    assert [size for _, size in asked] == [6, 4, *[4, 1] * 4]
    found = np.array([deviation for deviation, _ in asked])
    s, tau = 1.09 * SIGMA / math.sqrt(0.3), SIGMA * math.sqrt(4 / 0.7)
    assert found[:2] * STEP**2 == pytest.approx([s / math.sqrt(2), s])
    for place, clip in enumerate(bounds):
        step, grid = module.grid_at_most(clip) * STEP, module.grid_at_most(RUN.count_deviation * 2.0**-32)
        assert found[2 + 2 * place] * STEP * step == pytest.approx(clip * tau / math.sqrt(0.8))
        assert found[3 + 2 * place] * grid == pytest.approx(tau / math.sqrt(0.2))
    assert len(set(bounds)) == 4


def test_the_count_is_that_of_the_gradients_that_are_clipped(monkeypatch):
    monkeypatch.setattr(module, "gaussian_steps", lambda deviation, size, random=None: np.zeros(size, dtype=np.int64))
    rows, targets = table(5)
    lengths = np.sqrt(np.sum(rows * rows, axis=1))
    gradients = -targets[:, None] * rows
    norms = np.linalg.norm(gradients, axis=1)
    for clip in (0.05, 0.5, 1.0):
        total, count = RUN._release(np.zeros((4, 1)), (Batches.of(rows), lengths, targets), clip, keyed_source(1))
        assert count == np.sum(norms > clip)
        expected = (gradients * np.minimum(1.0, clip / norms)[:, None]).sum(axis=0)
        assert total[:, 0] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(("spread", "share"), [(0.05, 0.1), (0.4, 0.02)])
def test_the_bound_follows_the_errors(spread, share, monkeypatch):
    """With hardly any noise the share of clipped gradients comes near what is asked for, whatever the errors are."""
    random = np.random.default_rng(3)
    rows = unit_rows(random.normal(size=(4000, 3)), 1.0, intercept=0.3)
    targets = truncate(np.clip(rows @ [0.3, -0.2, 0.0, 0.1] + random.normal(0, spread, 4000), -1, 1))
    shares, releasing = [], AdaptiveDescent._release

    def noting(self, weights, data, clip, source):
        found = releasing(self, weights, data, clip, source)
        shares.append(found[1] / 4000)
        return found

    monkeypatch.setattr(AdaptiveDescent, "_release", noting)
    run = replace(RUN, noise_multiplier=0.05, steps=60, clipped_share=share, rows=4000.0, gram_share=0.1)
    weights = run.run(Batches.of(rows), targets, keyed_source(4))
    assert np.mean(shares[30:]) == pytest.approx(share, rel=0.3)
    assert weights[:, 0] == pytest.approx(np.linalg.lstsq(rows, targets, rcond=None)[0], abs=0.05)


def test_columns_of_unlike_variance_are_fitted_alike():
    """A column a hundred times smaller than another has its weight; gradients alone would need thousands of steps."""
    random = np.random.default_rng(6)
    rows = unit_rows(random.normal(size=(20_000, 2)) * [0.4, 0.02], 1.0, intercept=0.3)
    targets = truncate(rows @ [0.1, 8.0, 0.3])
    run = replace(RUN, noise_multiplier=0.1, steps=60, rows=20_000.0, gram_share=0.1, count_share=0.03)
    assert run.run(Batches.of(rows), targets, keyed_source(1))[:, 0] == pytest.approx([0.1, 8.0, 0.3], abs=0.2)


def test_many_columns_do_without_the_first_release(monkeypatch):
    monkeypatch.setattr(module, "_WIDEST", 3)
    monkeypatch.setattr(module, "noisy_gram", None)
    rows, targets = table(1)
    assert np.all(np.isfinite(RUN.run(Batches.of(rows), targets, keyed_source(1))))
