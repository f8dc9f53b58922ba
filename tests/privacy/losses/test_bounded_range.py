"""Profiles of bounded ranges: the price of compositions, their brackets, and what is put together as a game."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest

from dpselect.mechanisms import bounded_range
from dpselect.privacy import compose, gaussian, laplace, pure_dp
from dpselect.privacy.losses.bounded_range import (
    BoundedRangeProfile,
    RangeGameProfile,
    RepeatedRangeLowerProfile,
    games,
)
from dpselect.privacy.losses.pld import profile_loss
from dpselect.privacy.losses.range_game import LossMesh, mesh_of, step_below
from tests.adaptive.generalisation_cases import close


def test_bounded_range_profile() -> None:
    profile = BoundedRangeProfile(0.5)
    assert close(float(profile.at(np.array(0.0))), 0.1243530, 1e-6)
    assert close(float(profile.at(np.array(0.0))), math.tanh(0.125), 1e-9)
    assert close(float(profile.at(np.array(0.1))), 0.08350978, 1e-6)
    assert close(float(profile.at(np.array(-0.5))), -math.expm1(-0.5), 1e-9)
    assert float(profile.at(np.array(0.5))) == 0.0


@pytest.mark.theorem("docs/theory/bounded-range.md, Theorem 1", sharp=True)
@pytest.mark.full
def test_a_hundred_mechanisms_cost_what_adaptive_ones_attain() -> None:
    """2.2506 is the value of the game, by an implementation of its own; the Renyi divergence gives 2.4002."""
    lower, upper = compose(*[bounded_range(epsilon=0.1)] * 100).epsilon_bracket(1e-6)
    assert lower <= 2.2508 <= upper
    assert upper <= lower * 1.001


@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_brackets_of_few_mechanisms_are_narrow(delta: float) -> None:
    lower, upper = compose(*[bounded_range(epsilon=0.5)] * 3).epsilon_bracket(delta)
    assert lower <= upper <= lower * 1.001


@pytest.mark.cases(2)
@pytest.mark.parametrize(("epsilon", "count"), [(1e-200, 2), (1e200, 2), (1e-5, 3), (90.0, 2), (0.1, 60), (3.0, 20)])
def test_brackets_never_cross(epsilon: float, count: int) -> None:
    whole = compose(*[bounded_range(epsilon=epsilon)] * count)
    for delta in (0.0, 1e-60, 1e-20, 1e-3):
        lower, upper = whole.epsilon_bracket(delta)
        assert 0.0 <= lower <= upper <= epsilon * count * (1 + 1e-9)


def test_a_game_names_its_theorem() -> None:
    one = bounded_range(epsilon=0.5)
    assert "Durfee" in compose(one, one).profile.theorem
    assert "Durfee" not in compose(one, laplace(scale=2.0)).profile.theorem


@pytest.mark.theorem("docs/theory/bounded-range.md, Theorem 2", exact=True, sharp=True)
@pytest.mark.parametrize("kinds", [((20, 5), (12, 4)), ((24, 7), (6, 3))])
def test_two_games_cover_every_interleaving(kinds: tuple[tuple[int, int], ...]) -> None:
    """The best adversary on a mesh, who picks the kind that runs next after each output. 1 % less is exceeded."""
    width = 0.02
    sizes = [(profile_loss(BoundedRangeProfile(cells * width)), count) for cells, count in kinds]
    assert len(games(sizes)) == 2
    mesh = LossMesh(width, sum(cells * count for cells, count in kinds) + 1)
    points = np.arange(mesh.cells + 1)
    values = {(0, 0): np.zeros(mesh.cells + 1)}
    for left in sorted(itertools.product(*(range(count + 1) for _, count in kinds)), key=sum)[1:]:
        before = [(*left[:i], left[i] - 1, *left[i + 1 :]) for i in range(2)]
        moves = [step_below(values[b], kinds[i][0], mesh, (points, 0.0)) for i, b in enumerate(before) if min(b) >= 0]
        values[left] = np.max(moves, axis=0)
    attained = values[tuple(count for _, count in kinds)]
    whole = compose(*[bounded_range(epsilon=cells * width) for cells, count in kinds for _ in range(count)])
    bound = whole.delta(points * width)
    seen = attained > 1e-12
    assert np.all(attained <= bound)
    assert np.min(bound[seen] / attained[seen]) < 1.01


def test_compositions_that_contain_others_are_one_game() -> None:
    part = compose(*[bounded_range(epsilon=0.2)] * 3)
    whole = compose(part, *[bounded_range(epsilon=0.2)] * 3).epsilon(1e-3)
    assert whole == pytest.approx(compose(*[bounded_range(epsilon=0.2)] * 6).epsilon(1e-3), rel=1e-9)


@pytest.mark.parametrize("other", [gaussian(noise_multiplier=3.0), laplace(scale=4.0), pure_dp(epsilon=0.2)])
def test_a_game_is_a_part_like_others(other) -> None:
    """At least as much as the game alone, and at most as much as both budgets together."""
    alone = compose(*[bounded_range(epsilon=0.3)] * 4)
    both = compose(other, *[bounded_range(epsilon=0.3)] * 4)
    assert alone.epsilon(1e-4) < both.epsilon(1e-4) <= alone.epsilon(5e-5) + other.epsilon(5e-5) + 1e-9
    assert other.epsilon_bracket(1e-4)[0] <= both.epsilon_bracket(1e-4)[0] < both.epsilon(1e-4)


def test_only_positive_ranges_of_enough_mechanisms_are_played() -> None:
    one, none = profile_loss(BoundedRangeProfile(0.5)), profile_loss(BoundedRangeProfile(0.0))
    other = profile_loss(pure_dp(epsilon=1.0).best_profile())
    assert games([(other, 2), (one, 1), (none, 3)]) == ((other, 2), (one, 1))
    (played, count), *rest = games([(one, 2), (none, 1)])
    assert (count, rest) == (1, [])
    assert isinstance(played, profile_loss)
    assert isinstance(played.profile, RangeGameProfile)
    assert games([(one, 100_000)]) == ((one, 100_000),)
    many = [(profile_loss(BoundedRangeProfile(0.1 + 0.01 * i)), 1) for i in range(9)]
    assert sum(count for _, count in games(many)) == 9
    assert len(games(many[:8])) == 2


def test_games_travel_without_what_they_computed() -> None:
    mesh = mesh_of(((0.5, 2),), 3)
    assert mesh is not None
    profile = RangeGameProfile(((0.5, 2),), mesh)
    at = profile.at(np.array([0.1]))
    assert pickle.loads(pickle.dumps(profile)).at(np.array([0.1])) == at
    assert len(pickle.dumps(profile)) < 1000


def test_the_same_pair_every_time_is_attained() -> None:
    """Two draws by hand, and never beyond the game."""
    lower = RepeatedRangeLowerProfile(1.0, 2)
    t = 0.5
    p = math.expm1(t - 1.0) / math.expm1(-1.0)
    by_hand = p * p * -math.expm1(0.2 - 2 * t)
    assert float(lower.at(np.array(0.2))) >= by_hand * 0.999
    mesh = mesh_of(((1.0, 2),), 3)
    assert mesh is not None
    epsilons = np.linspace(0.0, 2.0, 21)
    assert np.all(lower.at(epsilons) <= RangeGameProfile(((1.0, 2),), mesh).at(epsilons))
    assert not RepeatedRangeLowerProfile(0.0, 2).at(epsilons).any()
