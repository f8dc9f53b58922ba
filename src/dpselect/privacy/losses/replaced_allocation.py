"""The privacy-loss distribution of Gaussian noise under random allocation, under replacing one row, pessimistic.

P, the mean over t steps of N(s e_i, I), against Q, the mean of N(-s e_i, I), s = 1/noise_multiplier, dominates an
epoch (docs/theory/random-allocation.md, Theorem 3). Both directions have the same losses. With x_i ~ N(0, 1),

    H_a(P || Q) = E (D_1 + ... + D_t)_+ / t,    D_i = L_i - a M_i,    L_i, M_i = exp(+-s x_i - s^2 / 2).

For each a this is a sum of independent variables, and the function is increasing and convex. So it only grows in steps
1 to 3 (Theorem 4).

1. D above a point becomes that point, and the mean of what was cut is added to the result. D below a point becomes that
   point. Between two points of a mesh the mass moves to both, keeping its mean.
2. Sums are composed by `compose_losses`, whose tails are not below the true ones.
3. Of many steps, sums of a block of them move to a wider mesh, as in 1.

The divergence is computed at some epsilons. Between them chords in exp(epsilon) are above it, and past the last it
stays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import ndtr

from dpselect.numerics.search import Array
from dpselect.privacy.losses.composition import BothLosses, Losses, compose_distributions, compose_losses
from dpselect.privacy.losses.connect_the_dots import connect_the_dots, on_mesh
from dpselect.privacy.losses.pld import LossSource
from dpselect.privacy.profile import GaussianProfile

__all__ = [
    "LEAST_REPLACED",
    "MOST_REPLACED",
    "replaced_allocation_delta",
    "replaced_allocation_knots",
    "replaced_allocation_loss",
    "replaced_allocation_mesh",
]

LEAST_REPLACED: Final = 0.4
"""For less noise the mesh is too wide to gain anything."""
MOST_REPLACED: Final = 1e4
"""For more noise differences of masses lose their digits."""

_PER_DEVIATION: Final = 16.0
"""Mesh points in a standard deviation of D: the mesh adds one part in 1,500 to its variance."""
_FEWEST_BLOCKS: Final = 64
_MOST_CELLS: Final = 1 << 15
"""On either side of 0. For large epsilons, whose divergences are small, the mesh is wider."""
_FAR: Final = 8.0
"""Standard deviations of x beyond the mean of the losing step that are kept: 6e-16 of the mass is beyond."""
_CELL: Final = 1e-3
"""A mesh point as a loss, so that compositions meet the tilts that they know from losses."""
_FLOOR: Final = 1e-15
"""A divergence that is so small ends the knots."""
_MOST_KNOTS: Final = 400
_FALL: Final = 0.35
"""How much the logarithm of the divergence falls from knot to knot. A chord is then above it by .015 at most."""
_SMALL: Final = 1e-9
"""Below it the knots are three times as far apart."""
_PER_SPREAD: Final = 32.0
_UNIT: Final = 2.0**-53


@dataclass(frozen=True)
class replaced_allocation_loss(LossSource):
    """The privacy-loss distribution of so many epochs, under replacing a row."""

    noise_multiplier: float
    steps: int
    epochs: int = 1

    def __call__(self, interval: float) -> BothLosses:
        epsilons, deltas = replaced_allocation_knots(self.noise_multiplier, self.steps)
        factors = np.exp(epsilons)

        def chords(at: Array) -> Array:
            return np.interp(np.exp(at), factors, deltas) * (1.0 + 1e-12)

        curve = on_mesh(chords, interval)
        one = connect_the_dots(interval, curve, curve)
        return compose_distributions([(BothLosses(one, one), self.epochs)])

    @property
    def parts(self) -> int:
        """How many distributions are added up."""
        return self.epochs

    @property
    def transforms(self) -> int:
        """Both directions have the same distribution."""
        return 1


@lru_cache(maxsize=16)
def replaced_allocation_knots(noise_multiplier: float, steps: int) -> tuple[Array, Array]:
    """Epsilons from 0 on and bounds on the divergence of one epoch there, which do not grow."""
    spread = replaced_allocation_mesh(noise_multiplier, steps) * _PER_SPREAD
    whole = GaussianProfile(2.0 / noise_multiplier)
    epsilons: list[float] = []
    deltas: list[float] = []
    epsilon, step = 0.0, 0.1 * spread
    while len(epsilons) < _MOST_KNOTS:
        least = min(float(whole.at(np.array([epsilon]))[0]), deltas[-1] if deltas else 1.0)
        deltas.append(min(replaced_allocation_delta(noise_multiplier, steps, epsilon), least))
        epsilons.append(epsilon)
        if deltas[-1] <= _FLOOR:
            break
        if len(deltas) > 1:
            fall = max(math.log(deltas[-2] / deltas[-1]), 1e-3)
            wanted = _FALL if deltas[-1] > _SMALL else 3.0 * _FALL
            step = min(max(step * wanted / fall, 0.5 * step, 0.02 * spread), 2.0 * step, spread)
        epsilon += step
    return np.array(epsilons), np.array(deltas)


def replaced_allocation_mesh(noise_multiplier: float, steps: int) -> float:
    """A mesh width, the 32nd part of about the standard deviation of the loss."""
    s = 1.0 / noise_multiplier
    spread = s if s > 20.0 else math.sqrt(math.log1p(math.expm1(s * s) / steps))
    return 2.0 * spread / _PER_SPREAD


def replaced_allocation_delta(noise_multiplier: float, steps: int, epsilon: float) -> float:
    """A bound on the divergence of one epoch at this epsilon >= 0, in either direction."""
    s, a = 1.0 / noise_multiplier, math.exp(epsilon)
    one, width, cut = _difference(s, a, steps)
    whole = _sum(one.repaired(), steps)
    values = np.maximum(whole.values, 0.0)
    # the mass past the window, at the largest sum
    beyond = whole.infinite * steps * max(float(one.values[-1]), 0.0)
    mean = (float(np.sum(whole.masses * values)) + beyond) / steps * (width / _CELL)
    return min(mean * (1.0 + 1e-12) + cut, 1.0)


def _difference(s: float, a: float, steps: int) -> tuple[Losses, float, float]:
    """D on a mesh of points `_CELL` apart, their true distance, and the mean of what was cut off above."""
    deviation = math.sqrt((1.0 + a * a) * math.expm1(min(s * s, 400.0)) + 2.0 * a * -math.expm1(-s * s))
    # above it the sum is positive in any case, and below it negative
    enough = steps * (a - 1.0) + 12.0 * math.sqrt(steps) * deviation
    far = math.exp(min(s * (s + _FAR) - 0.5 * s * s, 600.0))
    # far out, sums change sign where L and a M are about sqrt(a)
    width = max(deviation * 2.0 * math.sqrt(a) / (1.0 + a) / _PER_DEVIATION, enough / _MOST_CELLS)
    above, below = (math.ceil(min(enough, most) / width) for most in (far, a * far))
    points = np.arange(-below, above + 1) * width
    root = 0.5 * math.log(a)
    x = (root + np.arcsinh(0.5 * points * math.exp(0.5 * s * s - root))) / s
    right = x > 0.0

    def tails(shift: float) -> tuple[Array, Array]:
        """The masses of N(shift, 1) between the points, and the tails that they are differences of."""
        tail = np.where(right, ndtr(shift - x), ndtr(x - shift))
        inner = np.where(right[:-1] & right[1:], tail[:-1] - tail[1:], tail[1:] - tail[:-1])
        crossing = ~right[:-1] & right[1:]
        inner[crossing] = (1.0 - tail[1:] - tail[:-1])[crossing]
        return np.maximum(inner, 0.0), np.maximum(tail[:-1], tail[1:])

    (mass, mass_tail), (up, up_tail), (down, down_tail) = tails(0.0), tails(s), tails(-s)
    low = points[:-1]
    later = np.clip((up - a * down - low * mass) / width, 0.0, mass)
    # x is off by a few units of itself, which moves each tail by a share of it
    rounding = 16.0 * _UNIT * (1.0 + np.square(x[:-1]) + np.square(x[1:]) + s * np.abs(x[:-1]))
    error = rounding * ((up_tail + a * down_tail + np.abs(low) * mass_tail) / width + mass_tail)
    masses = np.zeros(points.size)
    masses[:-1] += mass - later + error
    masses[1:] += later + error
    masses[0] += float(ndtr(x[0])) * (1.0 + 1e-12)
    masses[-1] += float(ndtr(-x[-1])) * (1.0 + 1e-12)
    beyond, top = float(ndtr(s - x[-1])), float(points[-1])
    cut = beyond - a * float(ndtr(-s - x[-1])) - top * float(ndtr(-x[-1]))
    cut = max(cut, 0.0) + float(rounding[-1]) * (beyond + top * float(ndtr(-x[-1])))
    return Losses(_CELL, -below, masses, 0.0), width, cut


def _sum(one: Losses, steps: int) -> Losses:
    """The sum of so many, on a mesh that is wider for more of them."""
    doublings = max(0, math.floor(math.log(steps / _FEWEST_BLOCKS, 4.0))) if steps > _FEWEST_BLOCKS else 0
    if not doublings:
        return compose_losses([(one, steps)])
    size = 4**doublings
    parts = [(_wider(compose_losses([(one, size)]), 2**doublings), steps // size)]
    if steps % size:
        parts.append((_wider(compose_losses([(one, steps % size)]), 2**doublings), 1))
    return compose_losses([(part.repaired(), count) for part, count in parts])


def _wider(losses: Losses, stride: int) -> Losses:
    """The same on a mesh that is so many times wider: each mass at both neighbours, keeping its mean."""
    places, above = np.divmod(losses.first + np.arange(losses.masses.size), stride)
    first = int(places[0])
    later = above / stride
    masses = np.bincount(places - first, losses.masses * (1.0 - later), int(places[-1]) - first + 2)
    masses += np.bincount(places - first + 1, losses.masses * later, masses.size)
    raised = np.asarray(masses * (1.0 + 1e-13), dtype=np.float64)
    return Losses(losses.width * stride, first, raised, losses.infinite)
