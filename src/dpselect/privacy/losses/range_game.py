"""The composition of mechanisms of bounded range, as a game on a mesh of losses (docs/theory/bounded-range.md).

V(s) is the largest hockey-stick divergence at exp(s) that an adversary reaches with the mechanisms that are left. A
mechanism of range r turns V into

    (T V)(s) = max over 0 <= t <= r of p V(s - t) + (1 - p) V(s - t + r),   p = (1 - exp(t-r)) / (1 - exp(-r)),

since its worst pairs have the losses t and t - r. V is convex in exp(s). So the chords between the points of a mesh
are above it, and on chords the largest value over t is found in closed form, cell by cell.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics.search import Array

__all__ = ["LossMesh", "Ranges", "chord_above", "game_above", "game_below", "mesh_of", "reach_of", "step_below"]

Ranges = tuple[tuple[float, int], ...]
"""Distinct positive ranges, each with how many mechanisms have it."""

_STEPS: Final = 256
"""Most cells in the largest range. With 32 cells chords raise epsilon by about .1 %, with n cells by (32/n)^2 of it."""
_FEWEST_STEPS: Final = 8
_MOST_LOOPS: Final = 16_000
_WORK: Final = 2e7
"""Cells times choices of t times mechanisms: about a third of a second."""
_LEAST_RANGE: Final = 1e-6
_LARGEST_RANGE: Final = 100.0
_LOG_TAIL: Final = 110.0
"""Divergences below exp(-110) are not told apart."""
_UP: Final = 1.0 + 1e-12
_DOWN: Final = 1.0 - 1e-12


@dataclass(frozen=True)
class LossMesh:
    """The losses 0, w, 2 w, ..., `cells` w for a width w."""

    width: float
    cells: int

    def extended(self, values: Array, beyond: int, last: float) -> Array:
        """The values at -beyond, ..., cells + beyond: by reciprocity below 0, and `last` past the end."""
        size = np.arange(beyond, 0, -1) * self.width
        known = np.append(values, np.full(beyond, last))
        below = -np.expm1(-size) + np.exp(-size) * known[beyond:0:-1]
        return np.concatenate((below, known))


def reach_of(ranges: Ranges) -> float:
    """A loss past which the divergence is below exp(-110), as a mechanism of range r satisfies r^2/8-zCDP."""
    rho = sum(count * r * r / 8.0 for r, count in ranges)
    return min(sum(count * r for r, count in ranges), rho + math.sqrt(4.0 * rho * _LOG_TAIL))


def mesh_of(ranges: Ranges, moves: int) -> LossMesh | None:
    """The mesh for a game of so many moves that are tried, or None.

    There is none if the game would take longer than about a second, or for ranges beyond what doubles serve.
    """
    if not all(_LEAST_RANGE <= size <= _LARGEST_RANGE for size, _ in ranges):
        return None
    largest, reach = max(r for r, _ in ranges), reach_of(ranges)
    steps = min(_STEPS, _MOST_LOOPS // moves, int(math.sqrt(_WORK * largest / (reach * moves))))
    if steps < _FEWEST_STEPS:
        return None
    width = math.nextafter(largest / steps, math.inf)
    return LossMesh(width, math.ceil(reach / width) + 1)


def game_above(ranges: Ranges, mesh: LossMesh) -> Array:
    """The value of the game at the points of the mesh, rounded up, in whichever order the adversary runs mechanisms.

    Source: docs/theory/bounded-range.md, Theorem 1.
    """
    values = {(0,) * len(ranges): np.zeros(mesh.cells + 1)}
    states = sorted(itertools.product(*(range(count + 1) for _, count in ranges)), key=sum)
    for left in states[1:]:
        found = np.zeros(mesh.cells + 1)
        for i, (size, _) in enumerate(ranges):
            if left[i]:
                before = values[(*left[:i], left[i] - 1, *left[i + 1 :])]
                found = np.maximum(found, _step_above(before, size, mesh))
        values[left] = found
    return values[states[-1]]


def _step_above(values: Array, size: float, mesh: LossMesh) -> Array:
    """One more mechanism of this range, rounded up.

    On a cell of t both arguments move along one chord each. With y = exp(-t) the value is then C - A/y - B y. It
    is largest at y = sqrt(A/B) if A and B are positive, and at an end of the cell otherwise.
    """
    width, span = mesh.width, size / mesh.width
    if 0.0 <= round(span) * width - size <= 1e-9 * width:  # a whole number of cells, but for rounding
        span, size = float(round(span)), round(span) * width
    whole = math.floor(span)
    beyond = whole + 2
    extended = mesh.extended(values, beyond, float(values[-1]))
    slopes = np.diff(extended) / math.expm1(width)  # those of the chords, times exp of their left ends
    intercepts = extended[:-1] - slopes
    best = np.zeros(values.size)
    ends = np.unique([*range(whole + 1), span, *(span - k for k in range(whole + 1))])
    for start, end in itertools.pairwise(ends.tolist()):
        middle = 0.5 * (start + end)  # searches: of a cell, to tell on which chords it is
        back, on = math.floor(middle), math.floor(span - middle)
        here = slice(beyond - back - 1, beyond - back - 1 + values.size)
        there = slice(beyond + on, beyond + on + values.size)
        numerator = math.exp(-size) * (intercepts[here] - intercepts[there])
        denominator = slopes[there] * math.exp(-on * width) - slopes[here] * math.exp((back + 1) * width)
        usable = (numerator > 0.0) & (denominator > 0.0)
        inner = -0.5 * np.log(np.where(usable, numerator, 1.0) / np.where(usable, denominator, 1.0))
        for t in (start * width, np.clip(inner, start * width, end * width)):
            first = extended[here] + slopes[here] * np.expm1((back + 1) * width - t)
            second = extended[there] + slopes[there] * np.expm1((span - on) * width - t)
            stay, leave = -np.expm1(np.minimum(t - size, 0.0)), -np.expm1(-t) * np.exp(t - size)
            best = np.maximum(best, (stay * first + leave * second) / -math.expm1(-size))
    return np.minimum(best * _UP, 1.0)


def chord_above(values: Array, mesh: LossMesh, epsilons: Array) -> Array:
    """An upper bound at each epsilon >= 0, from upper bounds at the points of the mesh."""
    index = np.minimum(epsilons / mesh.width, mesh.cells).astype(np.int64)
    after = np.minimum(index + 1, mesh.cells)
    share = np.clip(np.expm1(epsilons - index * mesh.width) / math.expm1(mesh.width), 0.0, 1.0)
    return np.asarray(((1.0 - share) * values[index] + share * values[after]) * _UP)


def game_below(steps: Sequence[tuple[int, int]], mesh: LossMesh) -> Array:
    """The values that mechanisms attain at the points of the mesh, rounded down.

    Args:
        steps: ranges in cells, each with how many mechanisms have it. The last ones run first.
        mesh: the mesh.
    """
    values = np.zeros(mesh.cells + 1)
    points = np.arange(mesh.cells + 1, dtype=np.int64)
    for cells, count in steps:
        for _ in range(count):
            values = step_below(values, cells, mesh, (points, 0.0))
    return values


def step_below(values: Array, cells: int, mesh: LossMesh, losses: tuple[NDArray[np.int64], Array | float]) -> Array:
    """One more mechanism with a range of some cells, rounded down.

    `losses` are points of the mesh and what is added to each, less than a width. Each t is such that losses end on it.
    """
    at, added = losses
    size = cells * mesh.width
    extended = mesh.extended(values, cells + 1, 0.0)
    best = np.zeros(at.shape)
    for back in range(cells + 1):
        t = back * mesh.width + added
        p = np.maximum(np.expm1(t - size) / math.expm1(-size), 0.0)
        lower = np.clip(at - back + cells + 1, 0, extended.size - 1)
        upper = np.clip(at - back + 2 * cells + 1, 0, extended.size - 1)
        found = p * extended[lower] + (1.0 - p) * extended[upper]
        best = np.maximum(best, np.where(t <= size, found, 0.0))
    return np.asarray(best * _DOWN)
