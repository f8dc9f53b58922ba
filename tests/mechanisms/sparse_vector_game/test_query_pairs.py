"""The curves of one query: polygons lie around them, for Laplace, Gaussian and geometric noise."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from dpselect.mechanisms.sparse_vector_game.query_pairs import gaussian_pairs, geometric_pairs, laplace_pairs
from tests.mechanisms.sparse_vector_adversaries import (
    geometric_tail,
    laplace_tail,
)


@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 3", exact=True, sharp=True)
@pytest.mark.parametrize("move", [0.3, 1.0, 1.7, -0.4, -2.0])
def test_the_polygon_lies_around_the_curve_and_close_to_it(move):
    rate, pairs = 0.7, laplace_pairs(0.7, (move, 0.0))
    tail = laplace_tail(rate)
    u = np.linspace(-12, 12, 4001)
    curve = np.array([(1 - tail(x), 1 - tail(x + move)) for x in u])
    vertices = np.column_stack([pairs.negative, pairs.negative * np.exp(-pairs.negative_loss)])
    path = np.vstack([[0.0, 0.0], vertices[np.argsort(vertices[:, 0])], [1.0, 1.0]])
    edge = np.interp(curve[:, 0], path[:, 0], path[:, 1])
    gap = edge - curve[:, 1] if move > 0 else curve[:, 1] - edge
    assert gap.min() >= -1e-12
    assert gap.max() < 0.02
    # 1 % less of a move leaves points of the curve outside
    closer = laplace_pairs(0.7, (0.99 * move, 0.0))
    vertices = np.column_stack([closer.negative, closer.negative * np.exp(-closer.negative_loss)])
    path = np.vstack([[0.0, 0.0], vertices[np.argsort(vertices[:, 0])], [1.0, 1.0]])
    edge = np.interp(curve[:, 0], path[:, 0], path[:, 1])
    assert (edge - curve[:, 1] if move > 0 else curve[:, 1] - edge).min() < -1e-5


def test_geometric_coins_with_many_steps_lie_around_their_points():
    rate, steps = 0.5, 16
    pairs, tail = geometric_pairs(rate, (1.0, -1.0), steps), geometric_tail(math.exp(-rate / steps))
    up = pairs.negative_loss < 0
    vertices = np.column_stack([pairs.negative, pairs.negative * np.exp(-pairs.negative_loss)])[up]
    path = np.vstack([[0.0, 0.0], vertices[np.argsort(vertices[:, 0])], [1.0, 1.0]])
    points = np.array([(1 - tail(u), 1 - tail(u + steps)) for u in range(-80, 81)])
    assert (np.interp(points[:, 0], path[:, 0], path[:, 1]) - points[:, 1]).min() >= -1e-12
    few, tail = geometric_pairs(1.0, (1.0, 0.0), 1), geometric_tail(math.exp(-1.0))
    there = few.negative[0] * math.exp(-few.negative_loss[0])
    assert (1 - tail(0), 1 - tail(1)) == pytest.approx((few.negative[0], there))


def vertices(shift):
    """The corners of the polygon above the curve of queries that move one way, without what they are raised by."""
    pairs, lost = gaussian_pairs(shift)
    half = len(lost) // 2
    positive, loss = pairs.positive[:half], pairs.positive_loss[:half]
    there = np.where(positive > 0.0, 1.0 - positive * np.exp(-loss), 1.0)
    here = pairs.negative[:half] / (1.0 + 1e-10)
    return np.array(sorted([(0.0, 0.0), *zip(here.tolist(), there.tolist(), strict=True), (1.0, 1.0)]))


@pytest.mark.theorem("docs/theory/sparse-vector.md, Theorem 9", exact=True, sharp=True)
@pytest.mark.parametrize("shift", [1e-3, 0.05, 0.5, 1.0])
def test_the_polygon_lies_around_the_gaussian_curve(shift):
    path, u = vertices(shift), np.linspace(-9.0, 9.0, 4001)
    gap = np.interp(ndtr(u), path[:, 0], path[:, 1]) - ndtr(u + shift)
    assert gap.min() >= -1e-14
    assert gap.max() < 0.01 * (ndtr(shift / 2) - ndtr(-shift / 2))
    # 1 % less of a move leaves points of the curve outside
    path = vertices(0.99 * shift)
    assert (np.interp(ndtr(u), path[:, 0], path[:, 1]) - ndtr(u + shift)).min() < -1e-3 * shift
