"""The estimates of noisy leaves: the formula, what is learnt of signal and likeness, and that noise is shrunk away."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.learners.leaf_values import LeafPrior

DEPTH = 4


def leaves(random, signal, likeness, depth=DEPTH):
    """The means of a tree from the prior, by one factor a level."""
    factor = np.array([[1.0]])
    for _ in range(depth):
        factor = np.kron(factor, np.linalg.cholesky([[1.0, likeness], [likeness, 1.0]]))
    return signal * factor @ random.normal(size=(1 << depth, 1))


def errors(signal, likeness, deviation, seed=1, rounds=60):
    """Mean squares of the error of estimates, and of the noisy means themselves, once the prior is learnt."""
    random, prior, found = np.random.default_rng(seed), LeafPrior(DEPTH), []
    for _ in range(rounds):
        truth = leaves(random, signal, likeness)
        noisy = truth + deviation * random.normal(size=truth.shape)
        estimate = prior.estimate(noisy, np.full(len(truth), deviation))
        found.append([np.mean(np.square(each - truth)) for each in (estimate, noisy)])
    return np.mean(found[rounds // 3 :], axis=0)


def test_a_leaf_without_likeness_is_shrunk_by_the_share_of_its_noise():
    estimated, noisy = errors(0.1, 0.0, 0.2)
    assert estimated / noisy == pytest.approx(0.01 / (0.04 + 0.01), rel=0.15)


def test_leaves_that_are_alike_are_estimated_from_each_other():
    assert errors(0.1, 0.9, 0.2)[0] < 0.6 * errors(0.1, 0.0, 0.2)[0]


def test_noise_alone_is_taken_for_noise_and_clear_leaves_stay():
    estimated, noisy = errors(0.0, 0.0, 0.2)
    assert estimated < 0.04 * noisy
    estimated, noisy = errors(1.0, 0.0, 0.01)
    assert estimated == pytest.approx(noisy, rel=0.1)


def test_a_leaf_with_more_noise_is_believed_less():
    prior, means = LeafPrior(1), np.array([[0.5], [-0.5]])
    for _ in range(3):
        found = prior.estimate(means, np.array([0.01, 10.0]))
    assert found[0, 0] == pytest.approx(0.5, rel=0.01)
    assert abs(found[1, 0]) < 0.5


@pytest.mark.parametrize("depth", [1, 5, pytest.param(8, marks=pytest.mark.full)])
def test_any_noise_has_finite_estimates(depth):
    random, prior = np.random.default_rng(0), LeafPrior(depth)
    for deviation in (1e-12, 1e-3, 1.0, 1e9):
        for scale in (0.0, 1.0, 1e9):
            means = scale * random.normal(size=(1 << depth, 2))
            assert np.all(np.isfinite(prior.estimate(means, np.full(len(means), deviation))))
