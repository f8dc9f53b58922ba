"""Lower ends of mechanisms that are made of others: one of disjoint parts, one drawn at random, one on a sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpselect.numerics.search import Array
from dpselect.privacy.below import composed_below
from dpselect.privacy.profile import PrivacyProfile, extend

__all__ = ["average_below", "composition_below", "largest_below", "sampled_below"]

_DOWN = 1.0 - 1e-12


@dataclass(frozen=True)
class LargestLowerProfile(PrivacyProfile):
    """The pointwise maximum of lower profiles. A mechanism that attains one of them attains it at each epsilon."""

    profiles: tuple[PrivacyProfile, ...]

    def remove(self, epsilons: Array) -> Array:
        """H_{exp(epsilon)}(P || P'), rounded down."""
        return np.max([profile.remove(epsilons) for profile in self.profiles], axis=0)

    def add(self, epsilons: Array) -> Array:
        """H_{exp(epsilon)}(P' || P), rounded down."""
        return np.max([profile.add(epsilons) for profile in self.profiles], axis=0)

    def epsilon_lower_bound(self, delta: float) -> float:
        """The largest of the profiles' own."""
        return max(profile.epsilon_lower_bound(delta) for profile in self.profiles)


@dataclass(frozen=True)
class AverageLowerProfile(PrivacyProfile):
    """The weighted average of lower profiles: of a mixture whose index is released."""

    profiles: tuple[PrivacyProfile, ...]
    weights: tuple[float, ...]

    def remove(self, epsilons: Array) -> Array:
        """H_{exp(epsilon)}(P || P'), rounded down."""
        return np.tensordot(self.weights, [profile.remove(epsilons) for profile in self.profiles], axes=1) * _DOWN

    def add(self, epsilons: Array) -> Array:
        """H_{exp(epsilon)}(P' || P), rounded down."""
        return np.tensordot(self.weights, [profile.add(epsilons) for profile in self.profiles], axes=1) * _DOWN


@dataclass(frozen=True)
class SampledLowerProfile(PrivacyProfile):
    """A mechanism on a secret sample, which has the row that is removed with probability `rate`.

    H_a(rate P + (1 - rate) P' || P') = rate H_b(P || P') for a >= 1 and b = 1 + (a - 1)/rate.
    """

    profile: PrivacyProfile
    rate: float

    def remove(self, epsilons: Array) -> Array:
        """H_{exp(epsilon)}(P || P'), rounded down."""
        return extend(epsilons, self._removed, np.zeros_like)

    def add(self, epsilons: Array) -> Array:
        """Nothing is known of this direction."""
        return extend(epsilons, np.zeros_like, self._removed)

    def _removed(self, epsilons: Array) -> Array:
        inner = epsilons - math.log(self.rate) + np.log1p((self.rate - 1.0) * np.exp(-epsilons))
        return np.asarray(self.rate * self.profile.remove(np.maximum(inner, 0.0) * (1.0 + 1e-14) + 1e-15) * _DOWN)


def composition_below(
    lowers: Sequence[tuple[PrivacyProfile | None, int]], interval: float | None
) -> PrivacyProfile | None:
    """The lower profile of a composition, each part with how often it runs, or None.

    If a part has no pair, those that have one are composed, and the others count alone: leaving out an output does not
    raise a divergence. `interval` is as in `composed_below`.
    """
    whole = composed_below(lowers, interval)
    if whole is not None:
        return whole
    pairs = [part for part in lowers if composed_below([part], interval) is not None]
    alone = [lower for lower, _ in lowers if all(lower is not known for known, _ in pairs)]
    return largest_below([composed_below(pairs, interval), *alone])


def largest_below(profiles: Sequence[PrivacyProfile | None]) -> PrivacyProfile | None:
    """The lower profile of a mechanism that is one of several, whichever is worst, or None if none is known."""
    known = tuple(profile for profile in profiles if profile is not None)
    return LargestLowerProfile(known) if known else None


def average_below(profiles: Sequence[PrivacyProfile | None], weights: Sequence[float]) -> PrivacyProfile | None:
    """The lower profile of a mixture with the index released, or None. Unknown ones count as 0."""
    known = [(profile, weight) for profile, weight in zip(profiles, weights, strict=True) if profile is not None]
    if not known:
        return None
    return AverageLowerProfile(tuple(profile for profile, _ in known), tuple(weight for _, weight in known))


def sampled_below(profile: PrivacyProfile | None, rate: float) -> PrivacyProfile | None:
    """The lower profile of a mechanism on a secret sample of this rate, or None. The rate is a number in (0, 1]."""
    return None if profile is None else SampledLowerProfile(profile, rate)
