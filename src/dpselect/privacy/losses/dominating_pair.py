"""Pairs of finite distributions that dominate a mechanism, sorted by likelihood ratio."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dpselect.errors import ArgumentError
from dpselect.numerics import Array

__all__ = ["DominatingPair"]


@dataclass(frozen=True, eq=False)
class DominatingPair:
    """Two distributions (P, P') on atoms, whose hockey-stick divergence is at least the mechanism's at every order.

    `upper[i]` and `lower[i]` are the masses of atom i under P and P', `losses[i]` = log(upper[i] / lower[i]) ascending;
    -inf where only P' has mass, +inf where only P has. Zhu, Dong, Wang 2022, Definition 7.
    """

    losses: Array
    upper: Array
    lower: Array = field(repr=False)

    def __post_init__(self) -> None:
        if not self.losses.shape == self.upper.shape == self.lower.shape or self.losses.ndim != 1:
            raise ArgumentError("losses, upper and lower must be vectors of one length")
        if np.any(self.losses[1:] < self.losses[:-1]) or np.any(self.upper < 0) or np.any(self.lower < 0):
            raise ArgumentError("losses must ascend and masses must be non-negative")

    @cached_property
    def _tails(self) -> tuple[Array, Array]:
        """Masses of the atoms from i on, under P and P', summed from the far end."""
        return (
            np.append(np.cumsum(self.upper[::-1])[::-1], 0.0),
            np.append(np.cumsum(self.lower[::-1])[::-1], 0.0),
        )

    def hockey_stick(self, epsilons: Array) -> Array:
        """H_{exp(epsilon)}(P || P') at each epsilon (any real)."""
        epsilons = np.asarray(epsilons, dtype=np.float64)
        upper_tail, lower_tail = self._tails
        start = np.searchsorted(self.losses, epsilons, side="right")
        # past 700 the product would overflow or rest on denormals: leaving it out only raises the result
        scaled = np.where(epsilons < 700.0, np.exp(np.minimum(epsilons, 700.0)) * lower_tail[start], 0.0)
        return np.maximum(upper_tail[start] - scaled, 0.0)

    def swapped(self) -> DominatingPair:
        """The pair (P', P): the other direction."""
        return DominatingPair(losses=-self.losses[::-1], upper=self.lower[::-1], lower=self.upper[::-1])
