"""Optimal profiles of the first acceptable of T tries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dpselect.accounting.optimal.atoms import Atoms
from dpselect.accounting.optimal.cuts import Cuts
from dpselect.accounting.optimal.direction import Bracketed
from dpselect.accounting.optimal.profile import LowerProfile, TwoSided, UpperProfile
from dpselect.privacy import DominatingPair
from dpselect.privacy.losses.discretise import pieces
from dpselect.repetitions import Repetitions

__all__ = ["FirstOfLowerProfile", "FirstOfProfile"]

_PIECES = np.geomspace(1e-19, 0.5, 64)
"""Masses, each a half of the next, at which heavy atoms are cut: the adversary's set may be a tiny part of one."""


@lru_cache(maxsize=8)
def _cuts(pair: DominatingPair, law: Repetitions, chance: float) -> Cuts:
    """The curve over a pair; one for both ends of a bracket, where some mechanism attains the pair itself."""
    return Cuts(Atoms.of(pieces(pair, _PIECES)), law, chance)


class _FirstOf(TwoSided):
    """With probability `chance` the first acceptable of T tries, else "none"."""

    chance: float

    def _curve(self, direction: int) -> Bracketed:
        return _cuts(self._pick(self.enclosures[direction]), self.law, self.chance)


@dataclass(frozen=True)
class FirstOfProfile(_FirstOf, UpperProfile):
    """The certified profile of the first acceptable of T tries, for every set of acceptable outcomes."""

    chance: float = 1.0
    pure_epsilon: float = math.inf
    failure: float = 0.0
    theorem: ClassVar[str] = "optimal accounting of the first acceptable of T tries"


@dataclass(frozen=True)
class FirstOfLowerProfile(_FirstOf, LowerProfile):
    """The profile of a first acceptable of T tries that some mechanism and set attain."""

    chance: float = 1.0
