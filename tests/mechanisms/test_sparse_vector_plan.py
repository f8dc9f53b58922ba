"""Where a sparse vector is part of another algorithm: its price as a game, against laws that are computed exactly."""

import dataclasses
import math

import numpy as np
import pytest

from dpselect.accounting.candidates.percentile_sparse_vector import percentile_sparse_vector
from dpselect.accounting.candidates.sampled_percentile import SmoothedOdds
from dpselect.accounting.candidates.sampled_search import sampled_sparse_vector, smoothed_odds
from dpselect.accounting.candidates.search_price import first_positive_price
from dpselect.ledger import Ledger
from dpselect.ledger.accounting import digest
from dpselect.mechanisms.sparse_vector_game.mesh import Mesh, laplace_losses
from dpselect.mechanisms.sparse_vector_game.query_pairs import laplace_pairs
from dpselect.mechanisms.sparse_vector_game.values import game_values
from dpselect.mechanisms.sparse_vector_prices import sparse_vector_guarantee
from dpselect.privacy import Adjacency, compose, pure_dp
from dpselect.privacy.profile import RandomizedResponseProfile
from dpselect.selection import PercentileSparseVector
from tests.mechanisms.sparse_vector_adversaries import (
    best_adaptive,
    geometric_tail,
    hockey_stick,
    laplace_nodes,
    laplace_tail,
)


def first_positive(gaps, *, epsilon, noise=None):
    """The law of the place of the first positive (the last entry: none), by quadrature over the threshold's noise.

    `gaps` lists threshold - value in units of the sensitivity; the noises are those of a search of this epsilon.
    """
    threshold = laplace_nodes(epsilon / 2) if noise is None else noise
    tail, law = laplace_tail(epsilon / 4), np.zeros(len(gaps) + 1)
    for r, p in threshold:
        alive = p
        for place, gap in enumerate(gaps):
            law[place] += alive * tail(gap + r)
            alive *= 1.0 - tail(gap + r)
        law[-1] += alive
    return law


def neighbours(level, spread, queries):
    """Queries that move by a sensitivity each, up and down in turn, and stay as far from the target on average."""
    signs = np.array([1 if i % 2 else -1 for i in range(queries)])
    return list(level + spread * signs), list(level - spread * signs)


def price(epsilon, *, tests=None, failure=0.0):
    return first_positive_price(
        epsilon=epsilon, tests=tests, failure=failure, adjacency=Adjacency.REPLACE_ONE, theorem="test", terms={}
    ).guarantee


@pytest.mark.cases(1)
@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 6", exact=True)
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_no_search_exceeds_its_game(epsilon):
    epsilons = np.linspace(0.0, epsilon, 12)
    bound, closest = price(epsilon).delta(epsilons), 0.0
    for level in np.array([-2.0, 0.0, 2.0, 6.0]) / epsilon:
        for pair in (neighbours(level, 0.5, 60), ([level - 0.5] * 60, [level + 0.5] * 60)):
            laws = [first_positive(gaps, epsilon=epsilon) for gaps in pair]
            for one, other in (laws, laws[::-1]):
                attained = np.array([hockey_stick(one, other, e) for e in epsilons])
                assert np.all(attained <= bound + 1e-9)
                closest = max(closest, float(np.max(attained[:6] / bound[:6])))
    assert closest > 0.3
    # far less than the pure price says
    assert bound[3] < 0.75 * RandomizedResponseProfile(epsilon).at(epsilons[3:4])[0]


@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 6", exact=True)
def test_noise_taken_for_twice_as_wide_is_caught():
    """The price of a search whose queries had twice the noise, half of it on the threshold: a factor of 2 dropped."""
    epsilon, level = 1.0, 0.0
    cheap = sparse_vector_guarantee(
        epsilon_threshold=epsilon / 4, epsilon_queries=epsilon / 8, max_positives=1, monotonic=False
    ).worst()
    laws = [first_positive(gaps, epsilon=epsilon) for gaps in neighbours(level, 0.5, 60)]
    assert hockey_stick(*laws, 0.1) > cheap.delta(0.1)


@pytest.mark.cases(1)
@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 6", exact=True, sharp=True)
@pytest.mark.parametrize("failure", [1e-6, 1e-3, 0.2])
def test_statistics_that_are_seldom_far_apart(failure):
    """With the failure's probability the first statistic gives the data set away; else the queries are the game's."""
    epsilon, epsilons = 1.0, np.linspace(0.0, 1.0, 8)
    guarantee = price(epsilon, tests=60, failure=failure)
    assert guarantee.failure == failure
    there, here = neighbours(0.0, 0.5, 59)
    far = 1e3
    laws = []
    for gaps, sign in ((there, -1), (here, 1)):
        near = first_positive([far, *gaps], epsilon=epsilon)
        laws.append(failure * first_positive([sign * far, *gaps], epsilon=epsilon) + (1 - failure) * near)
    attained = np.array([hockey_stick(*laws, e) for e in epsilons])
    assert np.all(attained <= guarantee.delta(epsilons) + 1e-9)
    assert attained[-1] > 0.99 * guarantee.delta(1.0)  # a bound 1 % smaller is false
    forgotten = price(epsilon, tests=60).delta(epsilons)
    assert attained[-1] > forgotten[-1]
    found = guarantee.epsilon(delta=2 * failure)
    assert guarantee.delta(found) <= 2 * failure * (1 + 1e-9)
    assert guarantee.epsilon(delta=0.5 * failure) == math.inf


def test_few_queries_cost_less_and_one_costs_a_quarter():
    found = [price(1.0, tests=tests).epsilon(1e-2) for tests in (2, 5, 40, None)]
    assert found == sorted(found)
    assert found[0] < 0.97 * found[-1]
    assert price(1.0, tests=1).epsilon(1e-2) < 0.25
    assert price(1.0, tests=1).renyi_curve is not None
    # a limit that saves nothing is not played out
    assert price(1.0, tests=10**6).epsilon(1e-2) == found[-1]


@pytest.mark.full
def test_searches_compose_by_the_game(tmp_path):
    once = percentile_sparse_vector(pure_dp(epsilon=0.1), epsilon=0.1).guarantee
    assert once.epsilon(0.0) == 0.1
    assert compose(*[once] * 20).epsilon(1e-6) < 0.75  # 1.79 by their pure prices
    base = pure_dp(epsilon=0.5)
    counts = smoothed_odds(base, samples=5000, max_queries=10, delta=1e-7, slack=0.25)
    sampled = sampled_sparse_vector(base, statistic=counts, epsilon=0.1, max_queries=10).guarantee
    assert sampled.epsilon(1e-2) < 0.02 < 0.08 < pure_dp(epsilon=0.1).epsilon(1e-2)
    with Ledger.open(str(tmp_path / "ledger.db")) as ledger:
        divergences = ledger.create_budget("renyi", epsilon=0.6, delta=1e-6, accounting="renyi")
        for _ in range(8):  # 0.8 by their pure prices
            PercentileSparseVector(guarantee=pure_dp(epsilon=0.01), epsilon=0.1, spender=divergences).close()
        pure = ledger.create_budget("pure", epsilon=1, delta=1e-6)
        PercentileSparseVector(guarantee=pure_dp(epsilon=0.01), epsilon=0.1, spender=pure).close()
        assert float(pure.spent().epsilon) == 0.05


@pytest.mark.full
def test_prices_that_differ_in_their_failure_alone_are_told_apart():
    """A budget for a fixed sequence knows its steps by their terms."""
    base = pure_dp(epsilon=0.5)
    statistics = [SmoothedOdds(samples=100, smoothing=size, sensitivity=1.5) for size in (1.0, 3.0)]
    dear, cheap = (sampled_sparse_vector(base, statistic=one, epsilon=1.0, max_queries=60) for one in statistics)
    assert dear.guarantee.failure > 10 * cheap.guarantee.failure
    told = [digest(one) for price in (dear, cheap) for one in (price.guarantee, price.by_output.worst())]
    assert told[0] == told[1] != told[2] == told[3]


def test_what_a_search_promises_can_be_changed_only_as_a_whole():
    found = price(1.0, tests=40, failure=1e-3)
    assert found.lower_profile is None
    assert found.profile.remove(np.array([0.3]))[0] >= 1e-3
    assert dataclasses.replace(found, profile=None).delta(0.5) >= found.delta(0.5)


# ---- noise on integers on both sides ----------------------------------------------------------------------------


def lattice(rate, reach=60):
    """Discrete Laplace noise, as good as all of it."""
    law = [math.exp(-rate * abs(r)) for r in range(-reach, reach + 1)]
    return [(r, p / sum(law)) for r, p in zip(range(-reach, reach + 1), law, strict=True)]


@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 7", exact=True, sharp=True)
@pytest.mark.parametrize(("scale", "steps"), [(2.0, 1), (2.0, 3), (10.0, 4), (10.0, 40)])
def test_a_whole_number_shift_lies_within_a_slightly_larger_one(scale, steps):
    """The testing region of discrete Laplace noise that moves, inside that of Laplace noise that moves 1/(4 l) more."""
    tail = geometric_tail(math.exp(-1 / scale))
    points = np.array([(1 - tail(u), 1 - tail(u + steps)) for u in range(-200, 201)])

    def edge(move):
        p, beta = points[:, 0], math.exp(-move / scale)
        middle = 1 - beta / (4 * np.maximum(p, 1e-300))
        return np.where(p <= beta / 2, p / beta, np.where(p <= 0.5, middle, 1 - beta * (1 - p)))

    assert np.all(points[:, 1] <= edge(steps + 0.25 / scale) + 1e-12)
    assert np.any(points[:, 1] > edge(steps) + 1e-9)
    # what is added is 2 l log cosh(1/(2 l)): 1 % less leaves points outside
    assert np.any(points[:, 1] > edge(steps + 0.99 * 2 * scale * math.log(math.cosh(0.5 / scale))) + 1e-15)


@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 7", exact=True)
@pytest.mark.parametrize("growth", [1.0, 1.3])
def test_noise_on_whole_numbers_on_both_sides(growth):
    """All strategies of three queries against the game of Laplace noises with slightly larger moves."""
    first, second = 0.4, 0.3
    attained = best_adaptive(
        geometric_tail(math.exp(-second)),
        lattice(first, 25),
        levels=(-3, 0, 3),
        moves=(-1, 1),
        queries=3,
        positives=1,
        growth=growth,
    )
    mesh, found = Mesh.between(-6.0, 6.0, 0.005), []
    for shift in (0, 1):
        wider = 0.25 * second
        moves = tuple(math.copysign(abs(h) + wider, h) if h else 0.0 for h in (shift - 1.0, shift + 1.0))
        values = game_values(mesh, laplace_pairs(second, moves), 1)
        spread = laplace_losses(first * (shift + 0.25 * first) if shift else 0.0, mesh.width)
        found.append(float(np.interp(-math.log(growth), mesh.losses, spread.expected(mesh, values))))
    assert attained <= min(found)
    assert attained > 0.25 * min(found)
