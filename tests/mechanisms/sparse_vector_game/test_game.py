"""The sparse vector as a game of coins: its value against strategies that are played out."""

import dataclasses
import math

import numpy as np
import pytest

from dpselect.mechanisms.sparse_vector_game.game import SparseVectorGame
from dpselect.mechanisms.sparse_vector_game.mesh import LossDistribution, Mesh
from dpselect.mechanisms.sparse_vector_game.price import game_guarantee
from dpselect.mechanisms.sparse_vector_game.profile import GameProfile, _deltas
from dpselect.mechanisms.sparse_vector_game.query_pairs import geometric_pairs, laplace_pairs
from dpselect.mechanisms.sparse_vector_game.values import game_values
from tests.mechanisms.sparse_vector_adversaries import (
    best_adaptive,
    geometric_tail,
    hockey_stick,
    laplace_losses,
    laplace_nodes,
    laplace_tail,
    published_game,
    signed_counts,
    tracking_laws,
)
from tests.mechanisms.sparse_vector_game.game_cases import RATE, THRESHOLDS, shifted, values_at

SURE = [(0, 1.0)]


@pytest.mark.parametrize("threshold", [SURE, *THRESHOLDS[:2]])
def test_monotonic_queries_up_and_down(threshold):
    game = SparseVectorGame(threshold_rate=0.1, query_rate=RATE, positives=2, monotonic=True)
    for one, moves, sign in zip(game.query_moves, ((0, 1), (-1, 0)), (1, -1), strict=True):
        attained = best_adaptive(
            geometric_tail(math.exp(-RATE)),
            threshold,
            levels=(-1, 0, 1),
            moves=moves,
            queries=4,
            positives=2,
            growth=1.2,
        )
        bounds = []
        for shift in (0.0, 1.0):
            pairs = geometric_pairs(RATE, one.interval(shift), 1)
            bounds.append(
                shifted(
                    threshold,
                    sign * round(one.moved(shift)),
                    lambda loss, pairs=pairs: values_at(pairs, 2, [loss - math.log(1.2)], width=RATE / 200)[0],
                )
            )
        assert attained <= min(bounds)


def test_moves_in_one_direction_alone_are_caught():
    attained = best_adaptive(
        geometric_tail(math.exp(-RATE)), SURE, levels=range(-2, 4), moves=(-1, 1), queries=4, positives=2, growth=1.5
    )
    assert values_at(geometric_pairs(RATE, (0.0, 1.0), 1), 2, [-RATE], queries=4)[0] < attained * 0.99


def test_a_shift_chosen_after_the_query_is_known_is_caught():
    """With s following each query all coins would be fair; the neighbour's threshold noise can move only once."""
    law = [math.exp(-0.2 * abs(r)) for r in range(-12, 13)]
    threshold = [(r, p / sum(law)) for r, p in zip(range(-12, 13), law, strict=True)]
    attained = best_adaptive(
        geometric_tail(math.exp(-RATE)), threshold, levels=(-1, 0, 1), moves=(-1, 1), queries=3, positives=2, growth=1.5
    )
    claimed = shifted(threshold, 1, lambda loss: max(-math.expm1(RATE - loss), 0.0))
    assert claimed < 0.5 * attained


@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 1", exact=True)
def test_fresh_threshold_noise_after_each_positive():
    size = 0.3
    threshold = [(0, 1 / (1 + math.exp(-size))), (1, math.exp(-size) / (1 + math.exp(-size)))]
    attained = best_adaptive(
        geometric_tail(math.exp(-RATE)),
        threshold,
        levels=(-1, 0, 1),
        moves=(-1, 1),
        queries=3,
        positives=2,
        growth=1.5,
        fresh=True,
    )
    # at shift 0 a new threshold costs nothing
    assert attained <= values_at(geometric_pairs(RATE, (-1.0, 1.0), 1), 2, [-RATE])[0]


def lattice_law(rate, reach):
    """Discrete Laplace noise on -reach, ..., reach."""
    law = [math.exp(-rate * abs(r)) for r in range(-reach, reach + 1)]
    return [(r, p / sum(law)) for r, p in zip(range(-reach, reach + 1), law, strict=True)]


@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 1", exact=True)
@pytest.mark.parametrize("shift", [-1, 0, 1])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.8])
def test_restarts_with_any_shift_bound_every_strategy(shift, epsilon):
    """All strategies of three queries and two positives against the recursion with a fresh loss between positives.

    The losses of the shift are +-rate and, at the end of the law, none that is finite: there the value is 1.
    """
    rate, reach = 0.5, 9
    threshold = lattice_law(rate, reach)
    attained = best_adaptive(
        geometric_tail(math.exp(-RATE)),
        threshold,
        levels=(-1, 0, 1, 2),
        moves=(-1, 1),
        queries=3,
        positives=2,
        growth=math.exp(epsilon),
        fresh=True,
    )
    pairs = geometric_pairs(RATE, (shift - 1.0, shift + 1.0), 1)
    mesh = Mesh.between(-5.0, 5.0, rate / 50)
    spread, lost = LossDistribution(50, np.zeros(101)), 0.0
    for r, p in threshold:
        there = dict(threshold).get(r + shift)
        if there is None:
            lost += p
        else:
            spread.weights[50 + round(50 * math.log(p / there) / rate)] += p
    values = game_values(mesh, pairs, 2, between=[LossDistribution(50, spread.weights)])
    # anyone who draws from the lost end wins: twice at most
    bound = np.interp(-epsilon, mesh.losses, spread.expected(mesh, values)) + 2.0 * lost
    assert attained <= bound + 1e-9
    if shift:  # without the losses of the queries the claim is false
        assert np.interp(-epsilon, mesh.losses, game_values(mesh, geometric_pairs(RATE, (0.0, 0.0), 1), 2)) < attained


@pytest.mark.full
@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 1", exact=True)
def test_an_analyst_who_tracks_the_threshold_stays_below_the_game_and_gets_far():
    """100 positives at scales 33.3 and 40: 1.248 at delta 1e-6; 1.043 without tracking, 1.584 is the price."""
    game = SparseVectorGame(threshold_rate=0.03, query_rate=0.025, positives=100)
    laws = tracking_laws(0.025, 100, first=28, level=0.05)
    assert laws[0].sum() == pytest.approx(1.0, abs=1e-9)
    epsilons = np.linspace(0.0, 1.6, 9)
    attained = np.array([hockey_stick(*laws, epsilon) for epsilon in epsilons])
    assert np.all(attained <= GameProfile(game).at(epsilons) + 1e-9)
    assert hockey_stick(*laws, 1.248) > 1e-6 > hockey_stick(*laws, 1.25)
    assert game_guarantee(game).epsilon_bracket(1e-6)[0] < 1.05
    # a price a quarter lower is false, and so is one for 60 positives
    assert GameProfile(dataclasses.replace(game, positives=60)).epsilon(1e-6) < 1.248 < 0.8 * 1.584


@pytest.mark.full
@pytest.mark.parametrize(("rate", "positives", "first"), [(0.1, 12, 4), (0.3, 8, 3)])
def test_tracking_stays_below_any_threshold_noise(rate, positives, first):
    for threshold_rate in (0.1 * rate, 2.0 * rate):
        profile = GameProfile(SparseVectorGame(threshold_rate=threshold_rate, query_rate=rate, positives=positives))
        epsilons = np.linspace(0.0, positives * rate, 7)
        for level in (-0.3, 0.3):
            for weights in ((2, 1), (-2, 1)):
                laws = tracking_laws(
                    rate, positives, first=first, level=level, for_positive=weights[0], for_negative=weights[1]
                )
                attained = np.array([hockey_stick(*laws, epsilon) for epsilon in epsilons])
                assert np.all(attained <= profile.at(epsilons) + 1e-9)


@pytest.mark.full
def test_restarts_played_out_with_laplace_noise_stay_below_the_profile():
    for thresholds, queries, positives in ((0.05, 0.05, 8), (0.3, 0.2, 4), (0.6, 0.5, 3)):
        game = SparseVectorGame(threshold_rate=thresholds, query_rate=queries, positives=positives, restarts=True)
        profile, threshold = GameProfile(game), laplace_nodes(thresholds)
        epsilons = np.linspace(0.0, positives * (queries + thresholds), 8)
        for level in (-2.0, 0.0, 2.0):
            for scores in ((1, 0), (1, 1)):
                laws = signed_counts(
                    laplace_tail(queries),
                    threshold,
                    level=level / queries,
                    positives=positives,
                    for_positive=scores[0],
                    for_negative=scores[1],
                    fresh=True,
                )
                attained = [hockey_stick(*laws, epsilon) for epsilon in epsilons]
                assert np.all(attained <= profile.at(epsilons) + 1e-9)


@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 1", exact=True, sharp=True)
@pytest.mark.parametrize("change", [{"restarts": True}, {"release_epsilon": 0.3}])
def test_what_happens_after_a_positive_is_in_the_price(change):
    """With noise on the threshold shifted by a half: the game played from below, and what a game without it says."""
    rate, shift, width = 0.2, 0.5, 0.2 / 400
    plain = SparseVectorGame(threshold_rate=0.6, query_rate=rate, positives=2)
    game = dataclasses.replace(plain, **change)
    drawn = laplace_losses(0.6 * shift)
    odds = math.exp(-game.release_epsilon)
    release = [(game.release_epsilon, 1 / (1 + odds)), (-game.release_epsilon, odds / (1 + odds))]
    laws = {"after": [drawn]} if game.restarts else {"after": [release], "last": [release]}
    losses, values = published_game(rate, 2, (shift - 1, shift + 1), **laws, width=width, low=-2.0, high=1.5)
    for epsilon in (0.0, rate):
        attained = sum(p * np.interp(loss - epsilon - width, losses, values) for loss, p in drawn)
        bounds = [_deltas(one, one.query_moves[0], shift)[round(epsilon / one.mesh)] for one in (game, plain)]
        assert attained <= bounds[0] < 1.03 * attained
        assert bounds[1] < attained


@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 3", exact=True, sharp=True)
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 0.9])
def test_laplace_noise_nearly_attains_the_game(epsilon):
    """Every query from a list of levels, values rounded down to a fine mesh: attained, and within 1 %."""
    rate, width, queries = 0.5, 2e-4, 5
    tail, losses = laplace_tail(rate), np.arange(-8000, 8001) * width
    values = [np.maximum(-np.expm1(-losses), 0.0), np.maximum(-np.expm1(-losses), 0.0)]

    def read(value, loss):
        cells = math.floor(loss / width + 1e-9)
        return np.interp(np.arange(losses.size) + cells, np.arange(losses.size), value, left=0.0, right=value[-1])

    pairs = [(tail(u), tail(u + d)) for u in np.linspace(-3, 3, 25) for d in (-1, 1)]
    for _ in range(queries):
        best = values[1]
        for s, t in pairs:
            best = np.maximum(
                best,
                s * read(values[0], math.log(s / t)) + (1 - s) * read(values[1], math.log((1 - s) / (1 - t))),
            )
        values[1] = best
    attained = float(np.interp(-epsilon, losses, values[1]))
    bound = float(values_at(laplace_pairs(rate, (-1.0, 1.0)), 1, [-epsilon], queries=queries, width=rate / 80)[0])
    assert attained <= bound
    assert 0.99 * bound < attained
    narrow = values_at(laplace_pairs(rate, (-0.9, 0.9)), 1, [-epsilon], queries=queries, width=rate / 80)[0]
    assert narrow < attained  # moves that are 10 % too small


GAMES = [
    SparseVectorGame(threshold_rate=0.03, query_rate=0.025, positives=10),
    SparseVectorGame(threshold_rate=0.2, query_rate=0.1, positives=3),
    SparseVectorGame(threshold_rate=0.5, query_rate=0.5, positives=2),
    SparseVectorGame(query_rate=0.2, positives=5),
]


@pytest.mark.full
@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 1", exact=True)
@pytest.mark.parametrize("game", GAMES)
def test_no_strategy_against_laplace_noise_exceeds_the_profile(game):
    guarantee = game_guarantee(game)
    threshold = SURE if game.threshold_rate is None else laplace_nodes(game.threshold_rate)
    tail = laplace_tail(game.query_rate)
    epsilons = np.linspace(0.0, 1.5 * game.positives * game.query_rate, 12)
    bounds = guarantee.profile.at(epsilons)
    for level in (-2.0, 0.0, 2.0):
        for scores in ((1, 0), (1, 1)):
            upper, lower = signed_counts(
                tail,
                threshold,
                level=0.5 * level / game.query_rate,
                positives=game.positives,
                for_positive=scores[0],
                for_negative=scores[1],
            )
            attained = [hockey_stick(upper, lower, epsilon) for epsilon in epsilons]
            assert np.all(attained <= bounds + 1e-9)


@pytest.mark.cases(1)
@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 5", exact=True, loose="a lower end, approached from below")
@pytest.mark.parametrize("game", GAMES)
def test_what_is_attained_lies_below(game):
    guarantee = game_guarantee(game)
    for delta in (1e-2, 1e-4, 1e-6):
        lower, upper = guarantee.epsilon_bracket(delta)
        assert 0.0 < lower < upper
    # the limit of far thresholds, against queries that are far
    far = signed_counts(
        laplace_tail(game.query_rate),
        SURE if game.threshold_rate is None else laplace_nodes(game.threshold_rate),
        level=3.0 / game.query_rate,
        positives=game.positives,
    )
    here = guarantee.lower_profile.remove(np.array([0.2 * game.query_rate]))[0]
    assert hockey_stick(*far, 0.2 * game.query_rate) <= here + 0.2 * (game.threshold_rate or 0.0) + 1e-9


def test_the_product_of_laplace_losses_does_not_bound_the_published_game():
    """c = 1, shift 1: two queries at 0 exceed what one loss of Laplace noise of half the scale would cost."""
    beta = math.exp(-1.0)
    negative, there = 0.5, 1 - beta / 2
    leaves = [(0.5, beta / 2), (negative * 0.5, there * beta / 2), (negative**2, there**2)]
    played = sum(max(p - q, 0.0) for p, q in leaves)
    assert played == pytest.approx(0.75 - beta + beta**2 / 4)
    product = 1 - math.exp(-0.5)
    assert product < played
    assert played <= values_at(laplace_pairs(0.5, (0.0, 2.0)), 1, [0.0], queries=2, width=0.5 / 80)[0]
