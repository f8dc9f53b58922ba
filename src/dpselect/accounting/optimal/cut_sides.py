"""Masses on either side of places in the sorted list of outcomes, which may be inside atoms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics.search import Array

__all__ = ["Sides", "atom_at", "last_atom"]


@dataclass(frozen=True, eq=False)
class Sides:
    """Masses under P and P' (two rows) up to and from places that may be inside atoms, none by subtraction from 1.

    `excess_below` is that of P' over P below each node, `excess_above` that of P over P' from each node on.
    """

    losses: Array
    masses: Array
    running: Array
    remaining: Array
    excess_below: Array
    excess_above: Array

    @cached_property
    def middle(self) -> int:
        """The first place from which losses are positive."""
        return int(np.searchsorted(self.losses, 0.0, side="right"))

    @property
    def size(self) -> int:
        """The number of atoms of finite loss."""
        return self.masses.shape[1]

    def below(self, place: Array) -> Array:
        """The masses below places."""
        atom = atom_at(place, self.size)
        return np.asarray(self.running[:, atom] + (place - atom) * self.masses[:, atom])

    def above(self, place: Array) -> Array:
        """The masses above places."""
        atom = atom_at(place, self.size)
        return np.asarray(self.remaining[:, atom + 1] + (1.0 - (place - atom)) * self.masses[:, atom])

    def between(self, start: Array, end: Array) -> Array:
        """The masses between places, 0 if they do not ascend, each from the end at which it keeps its digits."""
        rising, falling = self.below(end) - self.below(start), self.above(start) - self.above(end)
        near = np.where(self.below(start) <= self.above(end), rising, falling)
        first, last = atom_at(start, self.size), last_atom(end, self.size)
        return np.maximum(np.where(first == last, (end - start) * self.masses[:, first], near), 0.0)

    def apart(self, excess: Array, start: Array, end: Array) -> tuple[Array, Array]:
        """The smallest and the largest excess at places from `start` to `end`, `excess_below` or `excess_above`.

        Both rise up to where losses change sign and fall from there on.
        """
        ends = self._at(excess, start), self._at(excess, end)
        peak = (start <= self.middle) & (self.middle <= end)
        highest = np.where(peak, excess[self.middle], np.maximum(*ends))
        return np.minimum(*ends), np.maximum(highest, np.maximum(*ends))

    def _at(self, excess: Array, place: Array) -> Array:
        atom = atom_at(place, self.size)
        share = place - atom
        return np.asarray(excess[atom] * (1.0 - share) + excess[atom + 1] * share)

    def rejected(self, start: Array, end: Array, u: Array) -> Array:
        """1 - u, for P' (whose value is multiplied by exp(epsilon)) from the masses between."""
        return np.array([1.0 - u[0], np.minimum(self.between(start, end)[1], 1.0)])


def atom_at(place: Array, size: int) -> NDArray[np.intp]:
    """The atom a place is in, the later one at a node."""
    return np.minimum(place.astype(np.intp), size - 1)


def last_atom(place: Array, size: int) -> NDArray[np.intp]:
    """The atom a place is in, the earlier one at a node."""
    return np.clip(np.ceil(place).astype(np.intp) - 1, 0, size - 1)
