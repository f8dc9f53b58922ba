"""A finite pair laid out for best-of-K: finite losses in order, masses outside any interval without subtraction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics.search import Array
from dpselect.privacy.losses.discretise import DominatingPair, pieces
from dpselect.repetitions import Repetitions

__all__ = ["Atoms", "Index", "split_atoms"]

Index = NDArray[np.intp]

_ROUNDING = 1e-15


@dataclass(frozen=True, eq=False)
class Atoms:
    """Atoms 0 .. n-1 of finite ascending loss with P-mass `p` and P'-mass `q`. Nodes 0 .. n are between them.

    `infinite` is the P-mass of infinite loss and `zero` the P'-mass of loss -inf. For nodes a <= b the mass outside
    the atoms a .. b-1 is `below[a] + above[b]`, both summed from the far ends.
    """

    losses: Array
    p: Array
    q: Array
    infinite: float
    zero: float

    @classmethod
    def of(cls, pair: DominatingPair) -> Atoms:
        """The atoms of a pair. Those without any mass are left out, and P- or P'-less ones count as infinite."""
        p_only, q_only = pair.lower <= 0.0, pair.upper <= 0.0
        kept = ~(p_only | q_only)
        return cls(
            losses=pair.losses[kept],
            p=pair.upper[kept],
            q=pair.lower[kept],
            infinite=float(np.sum(pair.upper[p_only])),
            zero=float(np.sum(pair.lower[q_only])),
        )

    def merged(self, count: int) -> Atoms:
        """Every `count` neighbours as one atom: a pair that this one dominates."""
        if self.size <= count:
            return self
        starts = np.arange(0, self.size, count)
        p, q = np.add.reduceat(self.p, starts), np.add.reduceat(self.q, starts)
        return Atoms(losses=np.log(p) - np.log(q), p=p, q=q, infinite=self.infinite, zero=self.zero)

    def divided(self, parts: Index) -> Atoms:
        """Every atom as so many equal ones of its loss: the same pair up to splitting, in both directions."""
        p, q = np.repeat(self.p / parts, parts), np.repeat(self.q / parts, parts)
        return Atoms(losses=np.repeat(self.losses, parts), p=p, q=q, infinite=self.infinite, zero=self.zero)

    @property
    def size(self) -> int:
        """The number of atoms of finite loss."""
        return int(self.losses.size)

    @cached_property
    def below_p(self) -> Array:
        """P-mass of the atoms before each node."""
        return _running(0.0, self.p)

    @cached_property
    def below_q(self) -> Array:
        """P'-mass before each node, that of loss -inf among it."""
        return _running(self.zero, self.q)

    @cached_property
    def above_p(self) -> Array:
        """P-mass of the atoms from each node on, that of infinite loss among it."""
        return _running(self.infinite, self.p[::-1])[::-1]

    @cached_property
    def above_q(self) -> Array:
        """P'-mass of the atoms from each node on."""
        return _running(0.0, self.q[::-1])[::-1]

    @cached_property
    def excess_below(self) -> Array:
        """P'-mass less P-mass before each node. Near masses are subtracted exactly, so small losses keep digits."""
        return _running(self.zero, self.q - self.p)

    @cached_property
    def excess_above(self) -> Array:
        """P-mass less P'-mass from each node on."""
        return _running(self.infinite, (self.p - self.q)[::-1])[::-1]

    def crossing(self, delta: float) -> float:
        """The largest loss > 0 at which the divergence of the atoms is above delta, else the largest of all.

        Searches begin there, with delta over the mean number of runs: where that is small, runs add up.
        """
        with np.errstate(over="ignore"):
            above = (self.above_p[:-1] - np.exp(self.losses) * self.above_q[:-1] > delta) & (self.losses > 0.0)
        return float(np.max(self.losses[above] if np.any(above) else self.losses, initial=0.0))

    def outside_p(self, a: Index, b: Index) -> Array:
        """1 - F[a, b): the P-mass outside the atoms a .. b-1."""
        return np.minimum(self.below_p[a] + self.above_p[b], 1.0)

    def outside_q(self, a: Index, b: Index) -> Array:
        """1 - F'[a, b): the P'-mass outside the atoms a .. b-1."""
        return np.minimum(self.below_q[a] + self.above_q[b], 1.0)

    @cached_property
    def uncertainty(self) -> float:
        """By how much a mass outside an interval may be wrong: the rounding of sums, and what the masses lack of 1.

        It matters if an interval has hardly any mass and phi' there is much smaller than elsewhere: for a law of K
        without K = 1, at single runs of epsilon 20 and more.
        """
        lacking = max(abs(1.0 - float(self.below_p[-1]) - self.infinite), abs(1.0 - float(self.below_q[-1])))
        return 4.0 * (_ROUNDING + lacking)

    def larger(self, outside: Array) -> Array:
        """The mass outside an interval, rounded up: the interval's own is rounded down."""
        return np.minimum(outside + self.uncertainty, 1.0)

    def smaller(self, outside: Array) -> Array:
        """The mass outside an interval, rounded down."""
        return np.maximum(outside - self.uncertainty, 0.0)

    def increments(self, law: Repetitions, a: Index, b: Index, last: Index, *, up: bool) -> tuple[Array, Array]:
        """The growth of phi under P and under P' when the atom `last` is put on top and makes it [a, b).

        Rounded so that the first less a multiple of the second is rounded up, or down.
        """
        toward, away = (self.smaller, self.larger) if up else (self.larger, self.smaller)
        outside = np.stack((toward(self.outside_p(a, b)), away(self.outside_q(a, b))))
        rise, cost = _increment(law, outside, np.stack((self.p[last], self.q[last])))
        return rise, cost

    def apart(self, a: Index, b: Index) -> tuple[Array, Array]:
        """F[a, b) - F'[a, b), bounded from both sides against rounding."""
        below, above = self.excess_below[a], self.excess_above[b]
        noise = _ROUNDING * (np.abs(below) + np.abs(above))
        return below - above - noise, below - above + noise

    def between(self, a: Index, b: Index) -> tuple[Array, Array]:
        """The P- and P'-masses of the atoms a .. b-1, from the smaller running sums."""
        p, q = (
            np.where(below[b] <= above[a], below[b] - below[a], above[a] - above[b])
            for below, above in ((self.below_p, self.above_p), (self.below_q, self.above_q))
        )
        one = b == a + 1
        inside = np.minimum(a, self.size - 1)
        return np.where(one, self.p[inside], np.maximum(p, 0.0)), np.where(one, self.q[inside], np.maximum(q, 0.0))


def _increment(law: Repetitions, outside: Array, mass: Array) -> Array:
    """phi's increment by a mass, with `outside` left outside: at least P(K = 1) times the mass, which is its limit."""
    alone = float(law.pmf(1.0)) * mass
    return np.maximum(np.where(outside < 1.0, law.increment(complement_after=outside, mass=mass), alone), alone)


def _running(start: float, masses: Array) -> Array:
    """Running sums from `start` on, each rounded once."""
    return np.cumsum(np.concatenate(([start], masses)), dtype=np.longdouble).astype(np.float64)


_SMALLEST_PIECE = 1e-19
_NEGLIGIBLE = 45.0


def split_atoms(pair: DominatingPair, law: Repetitions, count: int) -> Atoms:
    """The atoms of a pair, the heavy ones cut into about `count` pieces of the same loss.

    Cuts are at equally spaced masses, at masses equally spaced in their logarithm (S may be a tiny part of an atom),
    and where log phi'' falls by equal steps (down to exp(-45) of its largest value).
    """
    third = max(2, count // 12)
    scan = np.concatenate(([0.0], np.geomspace(1e-18, 1.0, 4000)))
    with np.errstate(divide="ignore"):
        fallen = np.log(law.second_derivative(0.0)) - np.log(law.second_derivative(scan))
    fallen = np.maximum.accumulate(np.minimum(np.where(np.isnan(fallen), 0.0, fallen), 2.0 * _NEGLIGIBLE))
    steps = np.linspace(0.0, min(_NEGLIGIBLE, float(fallen[-1])), third + 1)[1:]
    levels = np.concatenate(
        (
            np.arange(1, third) / third,
            np.geomspace(_SMALLEST_PIECE, 0.5, third),
            np.interp(steps, fallen, scan),
        )
    )
    return Atoms.of(pieces(pair, np.unique(levels[(levels > 0.0) & (levels < 1.0)])))
