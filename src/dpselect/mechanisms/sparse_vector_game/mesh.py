"""Functions of a loss on a mesh: chords in exp(-loss), which are above the convex functions that they stand for."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpselect.numerics.search import Array

__all__ = ["LossDistribution", "Mesh", "laplace_losses", "place", "pure_losses"]


@dataclass(frozen=True)
class Mesh:
    """The `size` losses first width, (first + 1) width, ..."""

    width: float
    first: int
    size: int

    @classmethod
    def between(cls, low: float, high: float, width: float) -> Mesh:
        """From just below `low` to just above `high`."""
        first = math.floor(low / width) - 1
        return cls(width, first, math.ceil(high / width) + 1 - first)

    @property
    def losses(self) -> Array:
        """The losses."""
        return np.asarray((self.first + np.arange(self.size)) * self.width)

    def padded(self, values: Array, cells: int, out: Array | None = None) -> Array:
        """`values` with so many more on either side, which are no smaller than those of the function they stand for.

        Below the first loss a value of a function that rises. Above the last one the chord to the value 1 at infinity.
        """
        buffer = np.empty((*values.shape[:-1], self.size + 2 * cells)) if out is None else out
        buffer[..., :cells] = values[..., :1]
        buffer[..., cells : cells + self.size] = values
        fade = np.exp(-self.width * np.arange(1, cells + 1))
        buffer[..., cells + self.size :] = 1.0 - (1.0 - values[..., -1:]) * fade
        return buffer


def place(loss: float, width: float) -> tuple[int, float]:
    """A loss between two points of the mesh: the lower one and the weight, in exp(-loss), of the upper one. Rounded up.

    A value at `loss` is at most (1 - weight) times that of the lower point plus weight times that of the upper one.
    """
    below = math.floor(loss / width)
    above = max(loss - below * width, 0.0) + 2.0**-50 * (1.0 + abs(loss))
    return below, min(math.expm1(-above) / math.expm1(-width), 1.0)


@dataclass(frozen=True, eq=False)
class LossDistribution:
    """A law of losses on a mesh that is larger in the convex order of exp(-loss): weights of -reach, ..., reach."""

    reach: int
    weights: Array

    def expected(self, mesh: Mesh, values: Array) -> Array:
        """The expectation of `values` at each loss plus one of this law."""
        if not self.reach:
            return values
        found = np.convolve(mesh.padded(values, self.reach), self.weights[::-1], "valid")
        return np.minimum(found * (1.0 + 2.0**-51 * self.weights.size), 1.0)

    def convolve(self, other: LossDistribution) -> LossDistribution:
        """The law of the sum of one loss of each."""
        factor = 1.0 + 2.0**-51 * min(self.weights.size, other.weights.size)
        return LossDistribution(self.reach + other.reach, np.convolve(self.weights, other.weights) * factor)


def laplace_losses(size: float, width: float) -> LossDistribution:
    """The loss of Laplace noise that moves by `size` of its scale: an atom at either end, a density between.

    Under P there is mass 1/2 at `size`, exp(-size)/2 at -size, and the density exp((l - size)/2)/4 between. Under P' it
    is that times exp(-l). The masses of each cell under both are kept, and put on its ends: the chord's expectation.
    """
    if size == 0.0:
        return LossDistribution(0, np.ones(1))
    reach = math.ceil(size / width) + 1
    weights = np.zeros(2 * reach + 1)
    edges = np.clip(np.arange(-reach, reach + 1) * width, -size, size)
    half = 0.5 * np.expm1(0.5 * np.diff(edges))
    here, there = half * np.exp(0.5 * (edges[:-1] - size)), half * np.exp(-0.5 * (edges[1:] + size))
    # with weights a, b on the ends: a + b = here, a + b exp(-width) = there exp(lower end)
    upper = (here - there * np.exp(np.arange(-reach, reach) * width)) / -math.expm1(-width)
    upper = np.clip(upper, 0.0, here)
    slack = here * (2.0**-48 / width)
    weights[:-1] += here - upper + slack
    weights[1:] += upper + slack
    return _with_atoms(LossDistribution(reach, weights), width, {-size: 0.5 * math.exp(-size), size: 0.5})


def pure_losses(epsilon: float, width: float) -> LossDistribution:
    """The loss of randomised response, which every epsilon-private mechanism is a post-processing of."""
    reach = math.ceil(epsilon / width) + 1
    odds = math.exp(-epsilon)
    nothing = LossDistribution(reach, np.zeros(2 * reach + 1))
    return _with_atoms(nothing, width, {-epsilon: odds / (1.0 + odds), epsilon: 1.0 / (1.0 + odds)})


def _with_atoms(distribution: LossDistribution, width: float, atoms: dict[float, float]) -> LossDistribution:
    weights = distribution.weights.copy()
    for loss, mass in atoms.items():
        cell, weight = place(loss, width)
        weights[cell + distribution.reach] += mass * (1.0 - weight) + mass * 2.0**-48
        weights[cell + 1 + distribution.reach] += mass * weight + mass * 2.0**-48
    return LossDistribution(distribution.reach, weights)
