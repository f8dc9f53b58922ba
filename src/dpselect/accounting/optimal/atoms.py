"""A finite pair laid out for best-of-K: finite losses in order, masses outside any interval without subtraction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpselect.privacy import DominatingPair

__all__ = ["Atoms"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Atoms:
    """Atoms 0 .. n-1 of finite ascending loss with P-mass `p` and P'-mass `q`; nodes 0 .. n lie between them.

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
        """The atoms of a pair; those without any mass are left out, and P- or P'-less ones count as infinite."""
        p_only, q_only = pair.lower <= 0.0, pair.upper <= 0.0
        kept = ~(p_only | q_only)
        return cls(
            losses=pair.losses[kept],
            p=pair.upper[kept],
            q=pair.lower[kept],
            infinite=float(np.sum(pair.upper[p_only])),
            zero=float(np.sum(pair.lower[q_only])),
        )

    @property
    def size(self) -> int:
        """The number of atoms of finite loss."""
        return int(self.losses.size)

    @cached_property
    def below_p(self) -> Array:
        """P-mass of the atoms before each node."""
        return np.concatenate(([0.0], np.cumsum(self.p)))

    @cached_property
    def below_q(self) -> Array:
        """P'-mass before each node, that of loss -inf among it."""
        return np.cumsum(np.concatenate(([self.zero], self.q)))

    @cached_property
    def above_p(self) -> Array:
        """P-mass of the atoms from each node on, that of infinite loss among it."""
        return np.cumsum(np.concatenate(([self.infinite], self.p[::-1])))[::-1]

    @cached_property
    def above_q(self) -> Array:
        """P'-mass of the atoms from each node on."""
        return np.concatenate((np.cumsum(self.q[::-1])[::-1], [0.0]))

    def outside_p(self, a: Index, b: Index) -> Array:
        """1 - F[a, b): the P-mass outside the atoms a .. b-1."""
        return np.minimum(self.below_p[a] + self.above_p[b], 1.0)

    def outside_q(self, a: Index, b: Index) -> Array:
        """1 - F'[a, b): the P'-mass outside the atoms a .. b-1."""
        return np.minimum(self.below_q[a] + self.above_q[b], 1.0)
