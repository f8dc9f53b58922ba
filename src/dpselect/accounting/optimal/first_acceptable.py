"""The price of releasing the first acceptable of a random number of tries, as small as a valid bound can be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, SupportsFloat

import numpy as np

from dpselect.accounting.best_of_k.theorems import lemma_20
from dpselect.accounting.optimal.atoms import Atoms
from dpselect.accounting.optimal.cuts import Cuts
from dpselect.accounting.optimal.direction import Bracketed
from dpselect.accounting.optimal.first_pure import pure_first
from dpselect.accounting.optimal.profile import CachedPairs, LowerProfile, TwoSided, UpperProfile
from dpselect.errors import integer, number
from dpselect.privacy import Guarantee
from dpselect.privacy.losses.discretise import DominatingPair, pieces
from dpselect.repetitions import Repetitions

__all__ = ["first_acceptable"]

ATOMS = 2000
_PIECES = np.geomspace(1e-19, 0.5, 64)
"""Masses, each a half of the next, at which heavy atoms are cut: the adversary's set may be a tiny part of one."""


def first_acceptable(
    base: Guarantee, tries: Repetitions, *, chance: SupportsFloat = 1.0, atoms: int = ATOMS
) -> Guarantee:
    """The first acceptable output among T tries, or "none", priced by the supremum over mechanisms and acceptable sets.

    T is drawn from `tries` independently of the data. With probability 1 - `chance` nothing is tried at all and
    "none" is released. No valid bound that knows only the base's dominating pairs can be smaller. If a pair is known
    that attains the base, `epsilon_bracket` gives the certified upper value and one that some mechanism and some set
    attain. You must ensure that the acceptable set does not depend on the data and that nothing but the output is
    released. `atoms` sets the accuracy.

    Source: docs/theory/optimal-selection.md, Theorem 2. Rounded up, with rounding errors of floating point
    (relative, about 1e-12) added. It is conditional on the masses of a privacy-loss distribution if the base has one.
    Raises `ArgumentError` if the base makes no statement.

    >>> from dpselect.privacy import pure_dp
    >>> from dpselect.repetitions import Geometric
    >>> total = first_acceptable(pure_dp(epsilon=1.0), Geometric(gamma=0.1))
    >>> round(total.epsilon(delta=0.0), 6)
    1.795672
    """
    atoms = integer("atoms", atoms, at_least=16, at_most=200_000)
    chance = number("chance", chance, above=0.0, at_most=1.0)
    # outside the failure mass the tries are tilted, and so is the chance of any, which the pure cost does not need
    tilted, failure = lemma_20(law=tries, failure=base.failure)
    pure = pure_first(tilted, base.pure_epsilon) if failure < 1.0 else math.inf
    failure *= chance
    pairs, attained = CachedPairs(base.pair_source()), base.attained_pairs()
    return Guarantee(
        adjacency=base.adjacency,
        theorem="optimal accounting of the first acceptable of T tries",
        terms={
            "mechanism": "first-acceptable",
            "base": dict(base.terms),
            "tries": tries.describe(),
            "chance": chance,
        },
        failure=failure,
        pure_epsilon=pure,
        profile=FirstOfProfile(pairs, tries, atoms, chance, pure, failure),
        lower_profile=(
            FirstOfLowerProfile(pairs if attained == pairs.source else CachedPairs(attained), tries, atoms, chance)
            if attained is not None
            else None
        ),
    )


@lru_cache(maxsize=8)
def _cuts(pair: DominatingPair, law: Repetitions, chance: float) -> Cuts:
    """The curve over a pair, one for both ends of a bracket if some mechanism attains the pair itself."""
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
