"""Gaussian noise on the queries of a sparse vector: its game with a limit of queries."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from dpselect.errors import ArgumentError
from dpselect.mechanisms.sparse_vector_game.price import gaussian_game_guarantee
from dpselect.privacy import compose, gaussian, laplace
from tests.mechanisms.sparse_vector_adversaries import best_adaptive


@pytest.mark.full
@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 9", exact=True, sharp=True)
@pytest.mark.parametrize(("shift", "queries", "positives"), [(0.5, 3, 1), (0.25, 3, 2)])
def test_all_strategies_of_a_few_queries_come_near_and_stay_below(shift, queries, positives):
    promised = gaussian_game_guarantee(noise_multiplier=1 / shift, positives=positives, queries=queries)
    for epsilon in (0.0, 0.2):
        attained = best_adaptive(
            lambda u: ndtr(-shift * u),
            [(0.0, 1.0)],
            levels=np.linspace(-1.5, 1.5, 7) / shift,
            moves=(-1, 1),
            queries=queries,
            positives=positives,
            growth=math.exp(epsilon),
        )
        assert 0.97 * promised.delta(epsilon) < attained <= promised.delta(epsilon)
        fewer = gaussian_game_guarantee(noise_multiplier=1 / shift, positives=positives, queries=queries - 1)
        assert fewer.delta(epsilon) < attained  # a query forgotten


@pytest.mark.parametrize("threshold", [[(0.0, 0.5), (1.5, 0.5)], [(-2.0, 0.3), (0.0, 0.4), (2.0, 0.3)]])
def test_noise_on_the_threshold_never_makes_it_dearer(threshold):
    promised = gaussian_game_guarantee(noise_multiplier=2.0, positives=2, queries=3)
    attained = best_adaptive(
        lambda u: ndtr(-0.5 * u), threshold, levels=(-2, 0, 2), moves=(-1, 1), queries=3, positives=2, growth=1.2
    )
    assert attained <= promised.delta(math.log(1.2))


def test_without_a_limit_there_is_no_price():
    with pytest.raises(ArgumentError, match="queries must be given"):
        gaussian_game_guarantee(noise_multiplier=5.0, positives=1, queries=None)
    with pytest.raises(ArgumentError, match="at most"):
        gaussian_game_guarantee(noise_multiplier=5.0, positives=10, queries=1000)
    with pytest.raises(ArgumentError, match="noise_multiplier"):
        gaussian_game_guarantee(noise_multiplier=0.1, positives=1, queries=10)
    # more queries cost more, and never more than as many Gaussian mechanisms
    found = [gaussian_game_guarantee(noise_multiplier=5.0, positives=2, queries=n).epsilon(1e-6) for n in (1, 5, 25)]
    assert found == sorted(found)
    assert found[-1] < 0.8 * gaussian(noise_multiplier=1.0).epsilon(1e-6)
    assert found[0] <= gaussian(noise_multiplier=5.0).epsilon(1e-6) * (1 + 1e-9)
    least = gaussian_game_guarantee(noise_multiplier=1.0, positives=1, queries=1)
    assert least.epsilon(1e-6) == pytest.approx(gaussian(noise_multiplier=1.0).epsilon(1e-6), rel=1e-9)


def test_it_composes():
    one = gaussian_game_guarantee(noise_multiplier=20.0, positives=1, queries=20)
    together = compose(one, laplace(scale=4.0)).epsilon(1e-6)
    assert one.epsilon(1e-6) < together < one.epsilon(1e-6) + 0.3
