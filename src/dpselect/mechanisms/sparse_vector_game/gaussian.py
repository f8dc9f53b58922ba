"""Gaussian noise on the queries: a game with a limit of queries, since without one there is no price."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erfcx

from dpselect.errors import ArgumentError, integer, number
from dpselect.mechanisms.sparse_vector_game.coins import Coins
from dpselect.mechanisms.sparse_vector_game.mesh import Mesh
from dpselect.mechanisms.sparse_vector_game.values import limited_values
from dpselect.numerics import Array
from dpselect.privacy import Adjacency, Guarantee, gaussian
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.privacy.profile import GaussianProfile, MinimumProfile, TabulatedProfile

__all__ = ["gaussian_coins", "gaussian_game_guarantee"]

_MOST = 3000
"""Queries times positives up to which the game is solved."""
_TOUCHED = np.concatenate(([-0.08], np.arange(0.08, 3.2, 0.16), np.arange(3.7, 11.0, 0.6)))
"""Where tangents touch the trade-off curve, in deviations from its middle; and the same on its other side."""
_SLACK = 1e-10
"""What weights and losses are raised by: far more than the rounding of a tangent's meeting point."""


def gaussian_coins(shift: float) -> tuple[Coins, Array]:
    """The vertices of a polygon around all pairs of coins, and of each the probability of losing all.

    For P(negative) = Phi(u) here and Phi(u + shift) or Phi(u - shift) there, all real u. The curve of the first is
    concave, with slope exp(-u shift - shift^2/2): it lies below its tangents, those at the ends meeting p = 0 and
    p' = 1. The second is its mirror image.
    """
    u = _TOUCHED - 0.5 * shift
    slope = np.exp(-shift * (u + 0.5 * shift))
    # of a tangent, in s = 1 - p and t = 1 - p': t = slope s - gap, where gap = slope S(u) - S(u + shift) > 0
    density = np.exp(-0.5 * np.square(u + shift)) / math.sqrt(2.0 * math.pi)
    gap = density * math.sqrt(math.pi / 2.0) * (_mills(u) - _mills(u + shift))
    s = (gap[:-1] - gap[1:]) / (slope[:-1] - slope[1:])
    t = slope[:-1] * s - gap[:-1]
    inside = (s > 0.0) & (s < 1.0) & (t > 0.0) & (t < s)
    s, t = s[inside], t[inside]
    s, t = np.append(s, gap[-1] / slope[-1]), np.append(t, 0.0)  # at p' = 1 a positive cannot be there
    # the curve is its own image under (p, p') -> (1 - p', 1 - p), and small numbers keep their digits
    one = np.concatenate((1.0 - s, t)), np.concatenate((1.0 - t, s))
    other = np.concatenate((s, 1.0 - t)), np.concatenate((t, 1.0 - s))
    (up, lost_up), (down, lost_down) = _weighted(*one, *other), _weighted(*one[::-1], *other[::-1])
    return up.joined(down), np.concatenate((lost_up, lost_down))


def _weighted(negative: Array, negative_there: Array, positive: Array, positive_there: Array) -> tuple[Coins, Array]:
    sure, lost = [], np.zeros(len(negative))
    for here, there in ((negative, negative_there), (positive, positive_there)):
        gone = there <= 0.0
        lost = lost + np.where(gone, here, 0.0)
        weight = np.where(gone, 0.0, here)
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = np.where(weight > 0.0, np.log(here / np.where(gone, 1.0, there)), 0.0)
        sure += [weight * (1.0 + _SLACK), loss + _SLACK]
    return Coins(*sure), lost * (1.0 + _SLACK)


def _mills(u: Array) -> Array:
    """(1 - Phi(u)) / phi(u), times sqrt(2/pi)."""
    return np.asarray(erfcx(u / math.sqrt(2.0)))


def gaussian_game_guarantee(
    *, noise_multiplier: float, positives: int, queries: int | None, adjacency: Adjacency | str = "add_or_remove_one"
) -> Guarantee:
    """What a sparse vector promises whose queries have Gaussian noise of `noise_multiplier` sensitivities.

    For at most so many positives and queries, any noise on the threshold (or none) and queries that move anywhere.
    Never more than the composition of so many Gaussian mechanisms. Raises `ArgumentError` without a limit of queries:
    one positive far out then tells everything. Source: docs/theory/sparse-vector.md, Theorem 9.

    >>> round(gaussian_game_guarantee(noise_multiplier=20.0, positives=3, queries=100).epsilon(delta=1e-6), 1)
    1.2
    """
    scale = number("noise_multiplier", noise_multiplier, at_least=1.0, at_most=1e3)
    most = integer("positives", positives, at_least=1)
    if queries is None:
        raise ArgumentError("queries must be given: Gaussian noise protects no unlimited number of them")
    asked = integer("queries", queries, at_least=1)
    if asked * min(most, asked) > _MOST:
        raise ArgumentError(f"queries times positives must be at most {_MOST}: the game is not solved for more")
    whole = gaussian(noise_multiplier=scale / math.sqrt(asked), adjacency=parse_adjacency(adjacency))
    shift, trivial = 1.0 / scale, math.sqrt(asked) / scale
    width = max(shift / 20.0, trivial / 2000.0)
    reach = min(0.5 * trivial * trivial + 6.0 * trivial, 6000.0 * width)
    mesh = Mesh.between(-reach, reach, width)
    coins, lost = gaussian_coins(shift)
    values = limited_values(mesh, coins, most, asked, lost)
    deltas = np.minimum.accumulate(values[: 1 - mesh.first][::-1])
    table = TabulatedProfile(
        tuple((np.arange(len(deltas)) * width).tolist()),
        tuple((np.minimum(deltas, 1.0)).tolist()),
        theorem="sparse vector with Gaussian noise, as a game of coins",
    )
    return Guarantee(
        adjacency=whole.adjacency,
        theorem="sparse vector with Gaussian noise",
        terms={"mechanism": "gaussian sparse vector", "noise_multiplier": scale, "positives": most, "queries": asked},
        renyi_curve=whole.renyi_curve,
        profile=MinimumProfile((table, GaussianProfile(trivial * (1.0 + 1e-12)))),
    )
