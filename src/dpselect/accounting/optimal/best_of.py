"""The price of releasing the best of K runs, as small as a valid bound can be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpselect.accounting.best_of_k.bounds.pure import pure_best_of
from dpselect.accounting.best_of_k.theorems import lemma_20
from dpselect.accounting.optimal.profile import BestOfLowerProfile, BestOfProfile, CachedPairs
from dpselect.caching import kept_while_alive
from dpselect.errors import integer
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency, Guarantee
from dpselect.privacy.exports.event_of import MORE, event_of
from dpselect.privacy.profile import PrivacyProfile, TwoSidedProfile
from dpselect.repetitions import Repetitions

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

__all__ = ["optimal_best_of"]

ATOMS = 3000


def expect_atoms(atoms: int) -> int:
    """The number of pieces that a base is cut into, checked."""
    return integer("atoms", atoms, at_least=16, at_most=200_000)


def optimal_best_of(base: Guarantee, law: Repetitions, *, atoms: int = ATOMS) -> Guarantee:
    """The best of K runs, priced by the supremum over every mechanism that `base` allows and every order of outcomes.

    No valid bound that knows only the base's dominating pairs can be smaller. If a pair is known that attains the base,
    `epsilon_bracket` gives the certified upper value and one that some mechanism attains. You must ensure that K is
    drawn from `law` independently of the data, and that nothing but the best output is released. The runs must be
    independent draws of one mechanism (with replacement, from one mixture). `atoms` sets the accuracy: the width of the
    bracket falls with its square, and the time grows about in proportion.

    Source: docs/theory/optimal-selection.md, Theorem 1. Rounded up, with rounding errors of floating point
    (relative, about 1e-12) added. It is conditional on the masses of a privacy-loss distribution if the base has one.
    Raises `ArgumentError` if the base makes no statement.

    >>> from dpselect.privacy import gaussian
    >>> from dpselect.repetitions import Geometric
    >>> total = optimal_best_of(gaussian(noise_multiplier=4.0), Geometric.with_mean(mean=10.0))
    >>> lower, upper = total.epsilon_bracket(delta=1e-6)
    >>> round(lower, 3), round(upper, 3)
    (1.557, 1.557)
    """
    atoms = expect_atoms(atoms)
    tilted, failure = lemma_20(law=law, failure=base.failure)
    pure = pure_best_of(law=tilted, epsilon=base.pure_epsilon) if failure < 1.0 else math.inf
    profile: PrivacyProfile
    lower: PrivacyProfile | None
    if law.limit is not None and law.limit <= 1:
        chance = float(law.pmf(1.0))
        profile = OnceProfile(base.best_profile(), chance)
        lower = None if base.lower_profile is None else OnceProfile(base.lower_profile, chance)
    else:
        attained = base.attained_pairs()
        profile = BestOfProfile(_pairs_of(base), law, atoms, pure, failure)
        lower = BestOfLowerProfile(CachedPairs(attained), law, atoms) if attained is not None else None
    return Guarantee(
        adjacency=base.adjacency,
        theorem="optimal accounting of the best of K runs",
        terms={"mechanism": "best-of", "base": dict(base.terms), "repetitions": law.describe(), "bound": "optimal"},
        failure=failure,
        pure_epsilon=pure,
        profile=profile,
        lower_profile=lower,
    )


@kept_while_alive
def _pairs_of(base: Guarantee) -> CachedPairs:
    """The pairs of a base, which all searches over it share."""
    return CachedPairs(base.pair_source())


@dataclass(frozen=True)
class OnceProfile(TwoSidedProfile):
    """The profile of a mechanism that runs with probability `chance` and is else a constant: no order matters."""

    profile: PrivacyProfile
    chance: float

    def at(self, direction: int, epsilons: Array) -> Array:
        """chance H_{exp(epsilon)} at epsilon >= 0."""
        return self.chance * (self.profile.add if direction else self.profile.remove)(epsilons)


@event_of.register(CachedPairs)
def _(part: CachedPairs, adjacency: Adjacency) -> DpEvent | None:
    return event_of(part.source, adjacency)


@event_of.register(BestOfProfile)
def _(part: BestOfProfile, adjacency: Adjacency) -> DpEvent | None:
    """The repetition of the base's event, for the laws that dp-accounting has."""
    from dp_accounting.dp_event import RepeatAndSelectDpEvent

    shape, base = part.law.negative_binomial_shape(), event_of(part.pairs, adjacency)
    if base is None or shape is None or shape < 0.0 or part.law.mean < 1.0:
        return None
    return RepeatAndSelectDpEvent(base, mean=part.law.mean * MORE, shape=shape)
