"""Report noisy max with Laplace noise and permute-and-flip: their profiles against laws that are computed."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpselect.mechanisms import PermuteAndFlip, ReportNoisyMax, bounded_range
from dpselect.mechanisms.noisy_max import LaplaceMaxProfile
from dpselect.privacy import compose, pure_dp
from dpselect.privacy.profile import LaplaceProfile, RandomizedResponseProfile
from tests.mechanisms.scripted_words import Scripted
from tests.mechanisms.sparse_vector_adversaries import hockey_stick
from tests.mechanisms.test_scores import FALSE_ALARM


def below(u):
    """P(noise < u) of standard Laplace noise."""
    return np.where(u < 0, 0.5 * np.exp(np.minimum(u, 0)), 1 - 0.5 * np.exp(-np.maximum(u, 0)))


def noisy_max_law(scores):
    """The law of the place of the largest of scores with standard Laplace noise, by quadrature between the kinks."""
    x, w = np.polynomial.legendre.leggauss(12)
    edges = np.unique(np.concatenate([np.linspace(min(scores) - 40, max(scores) + 40, 400), scores]))
    half = 0.5 * np.diff(edges)
    nodes = (0.5 * (edges[1:] + edges[:-1])[:, None] + half[:, None] * x).ravel()
    masses = (half[:, None] * w).ravel()
    parts = np.array([below(nodes - q) for q in scores])
    density = np.array([0.5 * np.exp(-np.abs(nodes - q)) for q in scores])
    others = [np.prod(np.delete(parts, i, axis=0), axis=0) for i in range(len(scores))]
    return np.array([np.sum(masses * density[i] * others[i]) for i in range(len(scores))])


@pytest.mark.cases(2)
@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 8", exact=True)
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0, 8.0])
def test_no_choice_exceeds_the_profile(epsilon):
    generator, epsilons = np.random.default_rng(3), np.linspace(0.0, epsilon, 9)
    bound, closest, over = LaplaceMaxProfile(epsilon).at(epsilons), 0.0, 0.0
    ranged = bounded_range(epsilon=epsilon).delta(epsilons)
    for count in (2, 3, 5):
        for _ in range(25):
            scores = generator.normal(0.0, 2.0, count)
            moves = generator.choice([-0.5, 0.5], count) * epsilon
            laws = [noisy_max_law(scores - 0.5 * moves), noisy_max_law(scores + 0.5 * moves)]
            for one, other in itertools.permutations(laws):
                attained = np.array([hockey_stick(one, other, e) for e in epsilons])
                assert np.all(attained <= bound + 1e-10)
                closest = max(closest, float(np.max(attained[:-1] / bound[:-1])))
                over = max(over, float(np.max(attained[:-1] / ranged[:-1])))
    assert closest > 0.4
    if epsilon <= 3.0:
        assert over > 1.02  # the profile of the exponential mechanism does not hold


@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 8", exact=True, sharp=True)
def test_two_candidates_attain_it_where_epsilon_is_large():
    laws = [noisy_max_law(np.array([gap, -gap])) for gap in (4.0, -4.0)]
    attained, bound = hockey_stick(*laws, 0.0), LaplaceMaxProfile(16.0).at(np.zeros(1))[0]
    assert 0.99 * bound < attained <= bound
    assert LaplaceMaxProfile(16.0).at(np.array([12.0]))[0] < 0.97


@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 8", exact=True, sharp=True)
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 2.0, 5.0])
def test_winners_against_a_public_bar_attain_it(epsilon):
    """With the largest of the others known, as the proof has it: several coins, of equal and of random levels."""
    epsilons, levels = np.linspace(0.0, 0.98 * epsilon, 7), np.linspace(-12.0, 4.0, 4001)
    bound, best = LaplaceMaxProfile(epsilon).at(epsilons), np.zeros(7)
    for count in (1, 2, 3, 5, 8):
        here, there = below(levels) ** count, below(levels + epsilon) ** count
        best = np.maximum(best, np.max((1 - here)[:, None] - np.exp(epsilons) * (1 - there)[:, None], axis=0))
    generator = np.random.default_rng(5)
    for _ in range(2000):
        u = generator.laplace(0.0, 2.0, generator.integers(1, 7))
        here, there = np.prod(below(u)), np.prod(below(u + epsilon))
        best = np.maximum(best, (1 - here) - np.exp(epsilons) * (1 - there))
    pure = RandomizedResponseProfile(epsilon).at(epsilons)
    assert np.all(np.minimum(best, pure) <= bound)
    assert best[-1] > 0.99 * bound[-1]  # near the pure end one coin is all
    one = LaplaceProfile(epsilon).at(epsilons)
    assert np.any(best > 1.01 * one) or epsilon > 4  # one coin alone is not a bound


@pytest.mark.parametrize("epsilon", [1e-8, 1e-5, 1e-3, 40.0, 499.0, 1e4])
def test_it_is_a_profile_for_any_epsilon(epsilon):
    epsilons = np.linspace(0.0, 1.1 * epsilon, 400)
    deltas = LaplaceMaxProfile(epsilon).at(epsilons)
    assert np.all(np.isfinite(deltas))
    assert np.all(np.diff(deltas) <= 1e-12)
    assert np.all(deltas <= RandomizedResponseProfile(epsilon).at(epsilons))
    assert deltas[-1] == 0.0


def test_what_the_mechanisms_promise():
    noisy = ReportNoisyMax(sensitivity=1.0, epsilon=1.0, noise="laplace").guarantee
    assert noisy.epsilon(0.0) == 1.0
    lower, upper = noisy.epsilon_bracket(1e-2)
    assert 0.7 < lower < upper < 0.98 * pure_dp(epsilon=1.0).epsilon(1e-2) + 0.02
    assert noisy.delta(0.5) < 0.78 * pure_dp(epsilon=1.0).delta(0.5)
    together = compose(*[noisy] * 5).epsilon(1e-3)
    assert together < compose(*[pure_dp(epsilon=1.0)] * 5).epsilon(1e-3)
    for other in (
        ReportNoisyMax(sensitivity=1.0, epsilon=1.0, noise="exponential"),
        PermuteAndFlip(sensitivity=1.0, epsilon=1.0),
    ):
        low, high = other.guarantee.epsilon_bracket(1e-2)
        assert 0.97 < low < high <= 1.0


def test_a_noise_of_few_bits_does_not_cut_off_others() -> None:
    """Its size is 63 log 2 plus an exponential noise of which nothing is known yet, and the other's 63 log 2 + 0.23."""
    scores = [0.0, 63 * math.log(2) + 0.23 - math.log(2)]
    mechanism = ReportNoisyMax(sensitivity=1.0, epsilon=2.0)
    won = [mechanism(scores, random=Scripted(str(key), [0, 1 << 63])).value for key in range(200)]
    assert stats.binomtest(sum(won), 200, 1 - math.exp(-0.23)).pvalue > FALSE_ALARM
