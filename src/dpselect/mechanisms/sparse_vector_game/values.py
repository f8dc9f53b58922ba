"""The value of the game: what solves its recursion from above, every error counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpselect.mechanisms.sparse_vector_game.mesh import LossDistribution, Mesh, place
from dpselect.mechanisms.sparse_vector_game.query_pairs import QueryPairs
from dpselect.numerics.search import Array

__all__ = ["game_values", "limited_values"]


_RELATIVE = 1e-8
_ABSOLUTE = 1e-19
"""An iteration ends where its residual is at most this share of the value, plus this; then the value is raised."""

_ROUNDING = 2.0**-46
"""Relative error of one application of the recursion in double precision, many times over."""

_COVERED = 1.0 + 2.0**-50
"""How far a computed image may be above what it is the image of: the pairs' weights are inflated by 2**-48, and that
covers this and the roundings of one application, six at most of 2**-53 each."""

_MOST_ITERATIONS = 400


@dataclass(frozen=True)
class _Reads:
    """At each loss x the value at x + loss, times a weight: where it is in padded values, and two factors."""

    start: int
    low: float
    high: float

    @classmethod
    def all(cls, weights: Array, losses: Array, width: float, pad: int) -> list[_Reads]:
        found = []
        for weight, loss in zip(weights.tolist(), losses.tolist(), strict=True):
            cell, share = place(loss, width)
            found.append(cls(cell + pad, weight * (1.0 - share), weight * share))
        return found

    def __call__(self, padded: Array, out: Array) -> Array:
        size = out.shape[-1]
        np.multiply(padded[..., self.start : self.start + size], self.low, out=out)
        out += self.high * padded[..., self.start + 1 : self.start + 1 + size]
        return out


def _prepared(mesh: Mesh, pairs: QueryPairs) -> tuple[int, list[_Reads], list[_Reads], Array]:
    """How far the pairs reach, what they read, and the value without positives."""
    largest = np.concatenate((np.abs(pairs.negative_loss), np.abs(pairs.positive_loss)))
    pad = int(np.max(largest, initial=0.0) / mesh.width) + 3
    negative = _Reads.all(pairs.negative, pairs.negative_loss, mesh.width, pad)
    positive = _Reads.all(pairs.positive, pairs.positive_loss, mesh.width, pad)
    return pad, negative, positive, np.maximum(-np.expm1(-mesh.losses), 0.0) * (1.0 + _ROUNDING)


def game_values(
    mesh: Mesh,
    pairs: QueryPairs,
    positives: int,
    *,
    between: Sequence[LossDistribution] = (),
    last: LossDistribution | None = None,
) -> Array:
    """At each loss x of the mesh an upper bound on v(x), the value of the game with so many positives.

    v_0(x) = (1 - exp(-x))_+ and v_k is the least solution above v_(k-1) of

        v_k(x) = max over the pairs (p, p') of  (1 - p) v_(k-1)(x + log (1-p)/(1-p')) + p v_k(x + log p / p').

    What is above its image under the recursion on the mesh, with chords in exp(-x) between its points, is above
    v_k. An iteration from below stops near its limit and is raised by about what it lacks. Then it is compared with its
    image: where that exceeds it by m at most, m / (1 - P) more everywhere is enough, with P the largest p. So the
    result is above its image, no matter what the iteration did.

    Args:
        mesh: where values are kept.
        pairs: the vertices of polygons around all pairs of the game.
        positives: how many there are.
        between: laws of losses that are suffered after each positive but the last, independent of everything.
        last: the one after the last positive.

    Source: docs/theory/sparse-vector.md, Theorem 3.
    """
    pad, negative, positive, value = _prepared(mesh, pairs)
    share = 1.0 / (1.0 - pairs.stay)
    padded, here = np.empty(mesh.size + 2 * pad), np.empty(mesh.size)
    older = value
    for k in range(1, positives + 1):
        after = value
        for distribution in between if k > 1 else () if last is None else (last,):
            after = distribution.expected(mesh, after)
        after = np.maximum(after, value)
        mesh.padded(after, pad, padded)
        gains = [read(padded, np.empty(mesh.size)) for read in positive]
        # where the iteration starts is a guess: as much is gained as by the positive before
        with np.errstate(divide="ignore", invalid="ignore"):
            growth = np.where(older > 0.0, value / older, 1.0)
        guess = np.maximum.accumulate(np.clip(after * np.minimum(growth, 2.0), after, 1.0))

        def image(values: Array, gains: list[Array] = gains, after: Array = after) -> Array:
            mesh.padded(values, pad, padded)
            found = after.copy()
            for read, gain in zip(negative, gains, strict=True):
                np.maximum(found, read(padded, here) + gain, out=found)
            return found

        for _ in range(_MOST_ITERATIONS):
            found = image(guess)
            excess = found - guess
            if np.all(excess <= _RELATIVE * guess + _ABSOLUTE):
                break
            guess = np.minimum(found, 1.0)
        left = np.divide(excess - _ABSOLUTE, guess, out=np.zeros(mesh.size), where=excess > _ABSOLUTE)
        raised = guess * (1.0 + (float(np.max(left)) + _ROUNDING) * share) + _ABSOLUTE * share
        older, value = value, _above_image(np.minimum(raised, 1.0), image, share)
    return value


def _above_image(values: Array, image: Callable[[Array], Array], share: float) -> Array:
    """`values`, raised by a constant until none of them is below its image. At 1 nothing is left to show.

    A constant c raises the image by P c at most, so c (1 - P) = m is enough. One more rounding may need one more.
    """
    for _ in range(_MOST_ITERATIONS):
        lacking = np.where(values < 1.0, image(values) - values * _COVERED, 0.0)
        most = float(np.max(lacking, initial=0.0))
        if most <= 0.0:
            return values
        values = np.minimum(values + 2.0 * share * most, 1.0)
    return np.ones_like(values)


def limited_values(mesh: Mesh, pairs: QueryPairs, positives: int, queries: int, lost: Array | None = None) -> Array:
    """The same with at most so many queries: v_(k,q), by one application of the recursion for each of them.

    `lost` is the probability that a coin loses all at once, which none does by default.
    """
    pad, negative, positive, nothing = _prepared(mesh, pairs)
    gone = np.zeros(len(negative)) if lost is None else lost
    values = np.tile(nothing, (min(positives, queries) + 1, 1))
    here, gain = np.empty_like(values[1:]), np.empty_like(values[1:])
    for _ in range(queries):
        padded = mesh.padded(values, pad)
        most = np.maximum(values[1:], values[:-1])
        for stays, leaves, all_lost in zip(negative, positive, gone.tolist(), strict=True):
            found = stays(padded[1:], here)
            found += leaves(padded[:-1], gain)
            found += all_lost
            np.maximum(most, found, out=most)
        values[1:] = np.minimum(most * (1.0 + _ROUNDING), 1.0)
    return np.asarray(values[-1])
