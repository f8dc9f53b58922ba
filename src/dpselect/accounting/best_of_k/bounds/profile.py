"""Hockey-stick bounds on the best of K runs from the base's privacy profile, for every law of K.

With w(v) = phi'(1 - v), m = E[K], and T the base's trade-off in the matching direction, c(v) = log w(v) - log w(T(v)):

- layered: H_e(A || A') <= w(1) h(1) + integral of -w'(v) h(v) dv, h(v) = min(v, H_{e - C(v)}(Q || Q')), C(v) the
  largest shift up to v. Proof: the integrand w(u) [P - exp(e - c(u)) P']_+ with w written as a sum of layers
  {u <= v}, on each of which c <= C(v), and whose mass under P is at most v.
- shifted: H_e(A || A') <= m H_{e - c*}(Q || Q') with c* the largest shift (the layers taken together).
- Koskela, Redberg and Wang (2024, arXiv 2402.06701) bound c* in closed form for some laws. Here it is computed.

H(A || A') needs H(Q || Q') and, inside T, H(Q' || Q): the two directions are kept apart.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpselect.accounting.best_of_k.cells import Cells, partition
from dpselect.accounting.best_of_k.feasible_region import Curve, TradeOff, loss_range, trade_offs
from dpselect.accounting.best_of_k.search_bound import search_bound
from dpselect.caching import CopiedByFields
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee
from dpselect.privacy.profile import TwoSidedProfile
from dpselect.repetitions import Repetitions

__all__ = ["LayeredProfile", "Part", "PartedProfile", "TabulatedCurve", "layered_bound", "profile", "shifted_bound"]


Part = tuple[Cells, Curve]
"""What one direction is computed from: cells of the event probabilities, and the hockey-stick curve of one run."""

_TABLE = 8192
_MANY = 1024


class TabulatedCurve:
    """A hockey-stick curve on a fine grid of losses, by chords in exp(loss): never below the curve, and fast.

    The true curve is convex in exp(loss) and non-increasing, so chords between upper bounds on it are upper bounds.
    """

    def __init__(self, curve: Curve) -> None:
        """`curve` gives the divergence at any real loss."""
        reach = loss_range(curve)
        self.losses = np.linspace(-reach, reach, _TABLE + 1)
        self.factors, self.values = np.exp(self.losses), np.minimum.accumulate(curve(self.losses))

    def __call__(self, losses: Array) -> Array:
        with np.errstate(over="ignore", under="ignore"):
            return np.interp(np.exp(losses), self.factors, self.values, left=1.0) * ROUND_UP


class ConvexHull:
    """The lower convex hull, in exp(epsilon), of bounds on a divergence in both directions at epsilons >= 0.

    The divergence is convex and non-increasing in exp(epsilon), and reciprocity gives it at negative epsilons.
    """

    def __init__(self, epsilons: Array, forward: Array, backward: Array) -> None:
        """`epsilons` ascending from 0."""
        mirrored = -np.expm1(-epsilons) + np.exp(-epsilons) * backward
        x = np.concatenate(([0.0], np.exp(-epsilons[:0:-1]), np.exp(epsilons)))
        y = np.concatenate(([1.0], mirrored[:0:-1], forward))
        kept: list[int] = []
        for i in range(x.size):
            while len(kept) > 1:
                a, b = kept[-2:]
                if (y[b] - y[a]) * (x[i] - x[b]) <= (y[i] - y[b]) * (x[b] - x[a]):
                    break
                kept.pop()
            kept.append(i)
        self.factors, self.values = x[kept], np.minimum.accumulate(y[kept])

    def __call__(self, epsilons: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.interp(np.exp(epsilons), self.factors, self.values) * ROUND_UP


def shifted_bound(cells: Cells, curve: Curve, mean: float, epsilons: Array) -> Array:
    """m H_{e - c*}: the simplest of the bounds, good at small divergences."""
    top = float(np.max(cells.shifts))
    return mean * curve(epsilons - top) if np.isfinite(top) else np.ones_like(epsilons)


def layered_bound(cells: Cells, curve: Curve, epsilons: Array, masses: Array | None = None, most: float = 1.0) -> Array:
    """The layer-cake bound, each layer bounded on its cell and certified by monotonicity alone.

    `masses` bound those of the layers under P, by default the right edges of the cells. `most` multiplies the curve.
    """
    weights = np.exp(cells.log_weights)
    layers = weights[:-1] - weights[1:]
    shifts = np.maximum.accumulate(cells.shifts)
    # layers that share a shift and are above its divergence share h too, so cells past the largest shift are cheap
    finite = np.isfinite(shifts)
    losses = np.where(finite, epsilons[:, None] - np.where(finite, shifts, 0.0), -np.inf)
    heights = np.minimum(cells.edges[1:] if masses is None else masses, most * curve(losses))
    return np.asarray((heights @ layers + weights[-1] * heights[:, -1]) * ROUND_UP)


@dataclass(frozen=True)
class PartedProfile(CopiedByFields, TwoSidedProfile):
    """A profile that is computed from a part for each direction."""

    base: Guarantee

    @abstractmethod
    def _part(self, trade_off: TradeOff, curve: Curve) -> Part:
        """The part of the direction in which the base has this trade-off and this hockey-stick curve."""

    @abstractmethod
    def _direction(self, part: Part, epsilons: Array) -> Array:
        """The divergence of one direction at epsilon >= 0."""

    @cached_property
    def _parts(self) -> tuple[Part, Part]:
        forward, backward = trade_offs(self.base)
        curves = self.base.best_profile()
        first = self._part(forward, curves.remove)
        return first, first if backward is forward else self._part(backward, curves.add)

    def at(self, direction: int, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0."""
        return self._direction(self._parts[direction], epsilons)


@dataclass(frozen=True)
class LayeredProfile(PartedProfile):
    """The privacy profile of the best of K runs: the smaller of the layered and the shifted bound, per direction.

    The base's failure mass is part of its profile. Rounded up, with `points` cells a direction.
    """

    law: Repetitions
    points: int = 6000
    theorem: str = "hockey-stick bounds for the best of K runs (after Koskela, Redberg, Wang 2024)"

    def _part(self, trade_off: TradeOff, curve: Curve) -> Part:
        return partition(self.law, trade_off, points=self.points), TabulatedCurve(curve)

    def _direction(self, part: Part, epsilons: Array) -> Array:
        flat = np.ravel(epsilons)
        if flat.size > _MANY:
            return self._many(part, flat).reshape(np.shape(epsilons))
        return np.minimum(self._plain(part, flat), self._hull_of(part)(flat)).reshape(np.shape(epsilons))

    def _plain(self, part: Part, flat: Array) -> Array:
        cells, curve = part
        shifted = shifted_bound(cells, curve, self.law.mean, flat)
        layered = np.concatenate([layered_bound(cells, curve, flat[i : i + 32]) for i in range(0, flat.size, 32)])
        return np.minimum(np.minimum(shifted, layered), 1.0)

    @cached_property
    def _hulls(self) -> tuple[ConvexHull, ConvexHull]:
        """Near epsilon 0 the bounds above are loose, even not monotone. Chords across from the other sign are not."""
        trial = np.geomspace(1e-3, 300.0, 24)
        top = max(self._range(part, trial) for part in self._parts)
        grid = np.linspace(0.0, top, 33)
        first, second = self._parts
        forward = self._plain(first, grid)
        backward = forward if second is first else self._plain(second, grid)
        return ConvexHull(grid, forward, backward), ConvexHull(grid, backward, forward)

    def _range(self, part: Part, trial: Array) -> float:
        small = self._plain(part, trial) <= 1e-2
        return float(trial[int(np.argmax(small))]) if np.any(small) else float(trial[-1])

    def _hull_of(self, part: Part) -> ConvexHull:
        return self._hulls[0] if part is self._parts[0] else self._hulls[1]

    def _many(self, part: Part, flat: Array) -> Array:
        """Chords between fewer points: the true divergence is convex in exp(epsilon)."""
        grid = np.linspace(0.0, min(float(np.max(flat)), 700.0), _MANY)
        values = np.minimum.accumulate(self._direction(part, grid))
        return np.interp(np.exp(np.minimum(flat, 700.0)), np.exp(grid), values) * ROUND_UP


@search_bound("profile")
def profile(base: Guarantee, law: Repetitions) -> Guarantee | None:
    """A privacy profile (Koskela, Redberg, Wang 2024, and two sharper bounds)."""
    if base.profile is None and base.renyi_curve is None and not np.isfinite(base.pure_epsilon):
        return None
    found = LayeredProfile(base, law)
    return Guarantee(adjacency=base.adjacency, theorem=found.theorem, profile=found)
