"""The game of bounded ranges: in fractions, against adversaries that are enumerated, and against a dense grid of t."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.privacy.losses.range_game import LossMesh, chord_above, game_above, game_below, mesh_of


def exact_game(steps, count, cells):
    """The value at 2^cells of `count` mechanisms of range log(2) steps whose t are whole multiples of log 2."""
    if not count:
        return max(Fraction(0), 1 - Fraction(2) ** cells)
    values = []
    for t in range(steps + 1):
        p = (1 - Fraction(2) ** (t - steps)) / (1 - Fraction(2) ** -steps)
        values.append(
            p * exact_game(steps, count - 1, cells - t) + (1 - p) * exact_game(steps, count - 1, cells - t + steps)
        )
    return max(values)


@pytest.mark.theorem("docs/theory/bounded-range.md, Theorem 1", exact=True)
@pytest.mark.parametrize(("steps", "count"), [(1, 3), (2, 3), (3, 3), (4, 2)])
def test_the_recursion_in_fractions(steps: int, count: int) -> None:
    mesh = LossMesh(math.log(2.0), steps * count + 1)
    below = game_below([(steps, count)], mesh)
    above = game_above(((steps * mesh.width, count),), mesh)
    for cells, (low, high) in enumerate(zip(below, above, strict=True)):
        exact = float(exact_game(steps, count, cells))
        assert low <= exact <= high
        assert low == pytest.approx(exact, rel=1e-10)


def random_pair(generator, size):
    """Laws with a range of at most `size` on two to four outputs."""
    outputs = int(generator.integers(2, 5))
    second = generator.dirichlet(np.full(outputs, generator.choice([0.2, 1.0, 5.0])))
    second = np.maximum(second, 1e-12) / np.maximum(second, 1e-12).sum()
    shift = generator.uniform(0.0, size, outputs)
    if generator.random() < 0.7:
        shift = np.where(generator.random(outputs) < 0.5, 0.0, size)
    first = second * np.exp(shift)
    return first / first.sum(), second


def adversary(generator, sizes):
    """Output laws of a random adversary: at each history another mechanism, of any range that is left."""
    if not sizes:
        return np.ones(1), np.ones(1)
    choice = int(generator.integers(len(sizes)))
    left = sizes[:choice] + sizes[choice + 1 :]
    first, second = random_pair(generator, sizes[choice])
    tails = [adversary(generator, left) for _ in first]
    return (
        np.concatenate([p * tail[0] for p, tail in zip(first, tails, strict=True)]),
        np.concatenate([q * tail[1] for q, tail in zip(second, tails, strict=True)]),
    )


@pytest.mark.theorem("docs/theory/bounded-range.md, Theorem 1")
@pytest.mark.cases(2)
@pytest.mark.parametrize("seed", range(40))
def test_no_adversary_is_beyond_the_game(seed: int) -> None:
    generator = np.random.default_rng(seed)
    kinds = generator.uniform(0.1, 1.5, int(generator.integers(1, 3)))
    sizes = [float(size) for size in generator.choice(kinds, int(generator.integers(2, 5)))]
    ranges = tuple(sorted(((size, sizes.count(size)) for size in set(sizes)), reverse=True))
    mesh = LossMesh(ranges[0][0] / 16 * (1 + 1e-15), math.ceil(sum(sizes) / ranges[0][0] * 16) + 1)
    above = game_above(ranges, mesh)
    epsilons = np.linspace(0.0, sum(sizes), 13)
    bound = chord_above(above, mesh, epsilons)
    for _ in range(25):
        first, second = adversary(generator, sizes)
        for one, other in ((first, second), (second, first)):
            attained = np.maximum(one - np.exp(epsilons)[:, None] * other, 0.0).sum(axis=1)
            assert np.all(attained <= bound + 1e-12)


def dense_game(values, points, size, grid):
    """One more mechanism, each t on a dense grid, on a fine mesh of points by interpolation from below."""
    best = np.zeros(points.shape)
    for t in np.linspace(0.0, size, grid):
        p = math.expm1(t - size) / math.expm1(-size)
        best = np.maximum(best, p * values(points - t) + (1 - p) * values(points - t + size))
    return best


@pytest.mark.theorem("docs/theory/bounded-range.md, Theorem 1", sharp=True)
@pytest.mark.parametrize("sizes", [(1.0, 1.0), (1.0, 0.4), (0.7, 0.7, 0.7)])
def test_the_value_is_that_of_a_dense_grid_within_one_in_a_thousand(sizes: tuple[float, ...]) -> None:
    """A mutation to a value that is 1 % smaller fails here."""
    ranges = tuple(sorted(((size, sizes.count(size)) for size in set(sizes)), reverse=True))
    mesh = LossMesh(ranges[0][0] / 64 * (1 + 1e-15), math.ceil(sum(sizes) / ranges[0][0] * 64) + 1)
    points = np.linspace(-sum(sizes), sum(sizes), 2001)
    values = lambda s: np.maximum(-np.expm1(s), 0.0)  # noqa: E731
    for size in ranges[0][0], *reversed(sizes[1:]):
        found = dense_game(values, points, size, 101)
        values = lambda s, found=found: np.where(  # noqa: E731
            s < points[0], -np.expm1(s), np.where(s > points[-1], 0.0, np.interp(s, points, found))
        )
    asked = np.array([0.1, 0.3, 0.6]) * sum(sizes)
    bound = chord_above(game_above(ranges, mesh), mesh, asked)
    dense = values(asked)
    assert np.all(dense <= bound * (1 + 2e-5))  # the interpolation of the dense game errs upwards by that much
    assert np.all(bound <= dense * 1.002)


def test_the_order_is_the_adversarys_choice() -> None:
    """A smaller range that runs first costs up to 8 % more than one that runs last. A fixed order would miss it."""
    mesh = LossMesh(1.0 / 40, 70)
    free = game_above(((1.0, 1), (0.5, 1)), mesh)
    small_first = game_below([(40, 1), (20, 1)], mesh)
    large_first = game_below([(20, 1), (40, 1)], mesh)
    assert np.all(free >= small_first)
    assert np.max((small_first / np.maximum(large_first, 1e-9))[:30]) > 1.05


def test_no_fixed_order_is_beyond_the_game() -> None:
    cells = (44, 32, 28, 12)
    mesh = LossMesh(0.005, sum(cells) + 1)
    free = game_above(tuple((size * 0.005, 1) for size in cells), mesh)
    for order in itertools.permutations(cells):
        assert np.all(game_below([(size, 1) for size in order], mesh) <= free)


def test_games_that_take_too_long_have_no_mesh() -> None:
    assert mesh_of(((0.1, 5000),), 5001) is None
    assert mesh_of(((0.1, 3),), 4) is not None
    assert mesh_of(((1e-7, 3),), 4) is mesh_of(((101.0, 3),), 4) is mesh_of(((1.0, 3), (1e-300, 1)), 16) is None


@pytest.mark.parametrize("size", [1e-6, 1e-3, 30.0, 100.0])
def test_sizes_of_all_orders_keep_their_digits(size: int) -> None:
    """One mechanism has a closed form, (exp(r/2) - exp(e/2))^2 / (exp(r) - 1), of which chords are close above."""
    mesh = mesh_of(((size, 1),), 2)
    assert mesh is not None
    found = game_above(((size, 1),), mesh)
    epsilons = np.arange(mesh.cells + 1) * mesh.width
    exact = np.expm1(np.minimum(0.5 * (epsilons - size), 0.0)) ** 2 / -math.expm1(-size)
    inside = epsilons < 0.9 * size
    assert np.all(found >= exact)
    assert np.all(found[inside] <= exact[inside] * (1.01 if size < 50.0 else 1.2))
