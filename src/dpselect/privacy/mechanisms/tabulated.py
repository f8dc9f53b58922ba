"""Mechanisms of which points of the privacy profile are known."""

from __future__ import annotations

from collections.abc import Sequence

from dpselect.errors import number
from dpselect.privacy.adjacency import Adjacency, parse_adjacency
from dpselect.privacy.below import AttainedPair
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.profile import TabulatedProfile

__all__ = ["from_profile"]

_DEFAULT = Adjacency.ADD_OR_REMOVE_ONE


def from_profile(
    epsilons: Sequence[float], deltas: Sequence[float], *, adjacency: Adjacency | str = _DEFAULT
) -> Guarantee:
    """A privacy profile: (epsilons[i], deltas[i])-privacy for every i, in both directions.

    `epsilons` >= 0 and strictly increasing; chords in exp(epsilon) between the points, which lie above the true
    (convex) profile; past the last point its delta holds. The pair whose curve is made of these chords satisfies it.
    """
    epsilons = tuple(number("epsilons", e, at_least=0.0, rounding="up") for e in epsilons)
    deltas = tuple(number("deltas", d, at_least=0.0, at_most=1.0, rounding="up") for d in deltas)
    pure = min((e for e, d in zip(epsilons, deltas, strict=False) if d == 0.0), default=float("inf"))
    profile = TabulatedProfile(epsilons, deltas)
    return Guarantee(
        adjacency=parse_adjacency(adjacency),
        theorem="privacy profile",
        terms={"mechanism": "profile", "epsilons": list(epsilons), "deltas": list(deltas)},
        pure_epsilon=pure,
        profile=profile,
        lower_profile=AttainedPair(profile.pair_source()),
    )
