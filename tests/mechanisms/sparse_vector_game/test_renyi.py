"""Renyi divergences of the sparse vector game, as planned and as used, against sequences of answers."""

import dataclasses

import numpy as np
import pytest

from dpselect.mechanisms.sparse_vector_game.game import SparseVectorGame
from dpselect.mechanisms.sparse_vector_game.query_pairs import laplace_pairs
from dpselect.mechanisms.sparse_vector_game.renyi import GameRenyi, GameUsed, log_kappa
from tests.mechanisms.sparse_vector_adversaries import (
    laplace_nodes,
    laplace_tail,
    moments_of_sequence,
)

SURE = [(0, 1.0)]


@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 4", exact=True, loose="no fixed sequence attains it")
@pytest.mark.parametrize("order", [1.5, 3.0, 10.0])
def test_no_sequence_exceeds_the_renyi_curve(order):
    game = SparseVectorGame(threshold_rate=0.2, query_rate=0.25, positives=2)
    tail, threshold = laplace_tail(game.query_rate), laplace_nodes(game.threshold_rate, panels=20)
    bound = float(GameRenyi(game)(np.array([order]))[0]) * (order - 1)
    sequences = ([(0, 1)] * 7, [(1, 1), (-1, -1)] * 4, [(4, 1), (5, -1)] * 4, [(-6, -1)] * 3, [(0, -1)] * 8)
    for sequence in sequences:
        assert moments_of_sequence(tail, threshold, sequence, game.positives, order) <= bound
    sure = dataclasses.replace(game, threshold_rate=None)
    bound = float(GameRenyi(sure)(np.array([order]))[0]) * (order - 1)
    for sequence in sequences:
        assert moments_of_sequence(tail, SURE, sequence, game.positives, order) <= bound


@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 4", exact=True, sharp=True)
@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("order", [1.5, 6.0])
def test_a_limit_of_queries_bounds_divergences_query_by_query(monotonic, order):
    game = SparseVectorGame(query_rate=0.4, positives=3, queries=4, monotonic=monotonic)
    bound = float(GameRenyi(game)(np.array([order]))[0]) * (order - 1)
    tail, closest = laplace_tail(0.4), 0.0
    for level in np.linspace(-3.0, 3.0, 25):
        for move in (1,) if monotonic else (-1, 1):
            played = moments_of_sequence(tail, SURE, [(level, move)] * 4, 4, order)
            assert played <= bound
            closest = max(closest, played)
    assert closest > 0.99 * bound
    assert bound < 0.8 * float(GameRenyi(dataclasses.replace(game, queries=None))(np.array([order]))[0]) * (order - 1)


@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 4", exact=True, sharp=True)
@pytest.mark.parametrize(("rate", "order"), [(0.4, 1.5), (0.1, 4.0), (0.2, 2.0)])
def test_a_run_of_negatives_uses_nothing(rate, order):
    """Less what its positives used no query raises the moment; with positives 1 % too cheap some does."""
    kappa = float(log_kappa(laplace_pairs(rate, (-1.0, 1.0)), np.array([order]))[0])
    tail, grown = laplace_tail(rate), {1.0: [], 0.99: []}
    for level in np.linspace(-3.0, 3.0, 241) / rate:
        for move in (-1, 1):
            for share, found in grown.items():
                found.append(moments_of_sequence(tail, SURE, [(level, move)], 1, order, each=share * kappa))
    assert max(grown[1.0]) <= 1e-14 < max(grown[0.99])


@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 4", exact=True)
@pytest.mark.parametrize("order", [1.5, 3.0])
def test_what_a_session_used_bounds_its_moment(order):
    """With noise on the threshold: positives at the price of the shift that was reserved, and the threshold's."""
    game = SparseVectorGame(threshold_rate=0.2, query_rate=0.25, positives=3)
    none, one = (float(GameUsed(game)(k, np.array([order]))[0]) * (order - 1) for k in (0, 1))
    assert GameUsed(game)(3, np.array([order]))[0] == pytest.approx(GameRenyi(game)(np.array([order]))[0])
    threshold = laplace_nodes(game.threshold_rate, panels=20)
    for sequence in ([(0, 1)] * 7, [(1, 1), (-1, -1)] * 3, [(4, 1), (5, -1)] * 3, [(-6, -1)] * 3, [(0, -1)] * 7):
        played = moments_of_sequence(laplace_tail(0.25), threshold, sequence, 3, order, each=one - none)
        assert played <= none
