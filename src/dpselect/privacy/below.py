"""Lower ends of brackets: profiles that a mechanism attains.

A lower profile never is above the hockey-stick curve of a mechanism that satisfies every statement of its guarantee:
the named mechanism where there is one, else some mechanism. Nothing valid for that guarantee is then below it. If one
pair of output distributions attains the whole curve, the profile gives it by `pair_source`. It can then be composed,
repeated and selected from. If each epsilon has its own mechanism, there is no such pair. See docs/theory/brackets.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from dpselect.caching import CopiedByFields, counted
from dpselect.numerics.search import Array
from dpselect.privacy.losses.below import Positive, compose_below, dots_below, joined, lattice, positive_losses
from dpselect.privacy.losses.discretise import DominatingPair, PairEnclosure, coarsen, loss_grid
from dpselect.privacy.losses.pairs import Attainable, PairSource
from dpselect.privacy.losses.replaced_gaussian import replaced_gaussian_positive
from dpselect.privacy.losses.sampled_gaussian import sampled_gaussian_positive
from dpselect.privacy.profile import (
    GaussianProfile,
    LaplaceProfile,
    PrivacyProfile,
    SymmetricProfile,
    extend,
)

__all__ = [
    "AttainedGaussian",
    "AttainedLaplace",
    "AttainedPair",
    "AttainedReplacedGaussian",
    "AttainedSampledGaussian",
    "ClosedFormLowerProfile",
    "ComposedLowerProfile",
    "attained_pairs",
    "composed_below",
    "parts_below",
]

Directions = tuple[Positive, Positive]

_MOST_CELLS = 1 << 19
_REACH = 14.3
_UNIT = 2.0**-53


class _RoundedDown(Protocol):
    def below(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0, rounded down."""
        ...


@dataclass(frozen=True)
class ClosedFormLowerProfile(SymmetricProfile):
    """A profile in closed form, rounded down. Each epsilon may have a mechanism of its own that attains it."""

    profile: _RoundedDown

    def at(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0, rounded down."""
        return self.profile.below(np.asarray(epsilons, dtype=np.float64))


@dataclass(frozen=True)
class _OnePair(ClosedFormLowerProfile):
    """A closed form that is the curve of one pair, the same in both directions."""

    profile: GaussianProfile | LaplaceProfile

    def pair_source(self) -> PairSource:
        """Its pair, cut into atoms."""
        return self.profile.pair_source()

    def positive(self, width: float) -> Directions:
        """Positive losses below both directions, by the closed form from both sides at 0, w/2, w, ..."""
        form = self.profile
        top = form.mu * (0.5 * form.mu + _REACH) if isinstance(form, GaussianProfile) else form.epsilon0
        cells = max(1, min(math.ceil(top / width), _MOST_CELLS))
        epsilons = np.arange(2 * cells + 1, dtype=np.float64) * (0.5 * width)
        # a product of two floating-point numbers lies beside the point that it stands for
        band = form.below(epsilons * (1.0 + 4.0 * _UNIT)), form.at(epsilons * (1.0 - 4.0 * _UNIT))
        found = dots_below(width, band)
        return found, found


@dataclass(frozen=True)
class AttainedGaussian(_OnePair):
    """N(mu, 1) against N(0, 1), mu rounded down: what it is processed from dominates it."""

    profile: GaussianProfile

    @classmethod
    def of(cls, mu: float) -> AttainedGaussian | None:
        """None where mu is too small or too large to work with."""
        return cls(GaussianProfile(mu * (1.0 - 8.0 * _UNIT))) if 1e-150 < mu < 1e150 else None


@dataclass(frozen=True)
class AttainedLaplace(_OnePair):
    """The Laplace mechanism, its epsilon rounded down."""

    profile: LaplaceProfile

    @classmethod
    def of(cls, epsilon: float) -> AttainedLaplace:
        """For noise of scale 1 / epsilon at sensitivity 1."""
        return cls(LaplaceProfile(epsilon * (1.0 - 8.0 * _UNIT)))


@dataclass(frozen=True)
class AttainedPair(CopiedByFields, PrivacyProfile):
    """A finite pair that satisfies a guarantee: randomised response, or the pair of a table of points."""

    source: PairSource

    def remove(self, epsilons: Array) -> Array:
        """H_{exp(epsilon)}(P || P'), rounded down."""
        return extend(epsilons, *(lambda e, pair=pair: _hockey_stick_lower(pair, e) for pair in self._pairs))

    def add(self, epsilons: Array) -> Array:
        """H_{exp(epsilon)}(P' || P), rounded down."""
        return extend(epsilons, *(lambda e, pair=pair: _hockey_stick_lower(pair, e) for pair in self._pairs[::-1]))

    def pair_source(self) -> PairSource:
        """The pair itself."""
        return self.source

    def positive(self, width: float) -> Directions:
        """Positive losses below each direction."""
        forward, backward = self._pairs
        found = positive_losses(width, forward)
        return found, found if backward is forward else positive_losses(width, backward)

    @cached_property
    def unit(self) -> float:
        """The smallest positive loss, which a mesh does well to divide."""
        losses = self._pairs[0].losses
        return float(np.min(losses[(losses > 0.0) & np.isfinite(losses)], initial=math.inf))

    @cached_property
    def _pairs(self) -> tuple[DominatingPair, DominatingPair]:
        first, second = (enclosure.optimistic for enclosure in self.source(2))
        assert first is not None
        assert second is not None
        return first, second


def _hockey_stick_lower(pair: DominatingPair, epsilons: Array) -> Array:
    """The divergence of a pair of few atoms, upper = lower exp(loss), at each epsilon >= 0, rounded down."""
    asked = np.asarray(epsilons, dtype=np.float64)[..., None]
    # by the losses, not by the masses under P', which may underflow
    gains = pair.upper * -np.expm1(np.minimum(asked - np.maximum(pair.losses, 0.0), 0.0))
    total = np.sum(gains, axis=-1) * (1.0 - 1e-13)
    return np.asarray(np.where(total > 1e-299, total, 0.0))


@dataclass(frozen=True)
class AttainedSampledGaussian:
    """One Gaussian mechanism on a Poisson sample: the law of its losses in closed form."""

    noise_multiplier: float
    sampling_rate: float

    def positive(self, width: float) -> Directions:
        """Positive losses below each direction."""
        return sampled_gaussian_positive(self.noise_multiplier, self.sampling_rate, width)


@dataclass(frozen=True)
class AttainedReplacedGaussian:
    """The same under replacing a row, if the two rows have opposite gradients of full length."""

    noise_multiplier: float
    sampling_rate: float

    def positive(self, width: float) -> Directions:
        """Positive losses below each direction, which are the same."""
        found = replaced_gaussian_positive(self.noise_multiplier, self.sampling_rate, width)
        return found, found


_Part = AttainedGaussian | AttainedLaplace | AttainedPair | AttainedReplacedGaussian | AttainedSampledGaussian


@dataclass(frozen=True)
class ComposedLowerProfile(CopiedByFields, PrivacyProfile):
    """Mechanisms run one after another on the same two data sets, each with how often it runs."""

    parts: tuple[tuple[_Part, int], ...]
    width: float

    @cached_property
    def directions(self) -> Directions:
        """Positive losses below the composition, (P, P') first."""
        found = [(part.positive(self.width), count) for part, count in self.parts]
        pairs = [(joined(*both), count) for both, count in found]
        forward = compose_below([(lattice(self.width, pair), count) for pair, count in pairs])
        if all(here is other for (here, other), _ in found):
            return forward, forward
        return forward, compose_below([(lattice(self.width, pair.swapped()), count) for pair, count in pairs])

    def remove(self, epsilons: Array) -> Array:
        """H_{exp(epsilon)}(P || P'), from below."""
        here, other = self.directions
        return extend(epsilons, here.hockey_stick, other.hockey_stick)

    def add(self, epsilons: Array) -> Array:
        """H_{exp(epsilon)}(P' || P), from below."""
        here, other = self.directions
        return extend(epsilons, other.hockey_stick, here.hockey_stick)

    def pair_source(self) -> PairSource:
        """Mergings of one pair that the composition can be processed into."""
        return MergedLowerPairs(self)


@dataclass(frozen=True)
class MergedLowerPairs:
    """Coarsenings of the pair of a composition. The optimistic ones merge its atoms, so they are attained."""

    composed: ComposedLowerProfile
    attained: ClassVar[bool] = True

    def __call__(self, atoms: int) -> tuple[PairEnclosure, PairEnclosure]:
        pair = joined(*self.composed.directions)
        swapped = pair.swapped()
        return coarsen(pair, loss_grid(pair, atoms)), coarsen(swapped, loss_grid(swapped, atoms))


def attained_pairs(lower: PrivacyProfile | None) -> PairSource | None:
    """The recipe for a pair that attains the whole of a lower profile, or None unless the recipe states it."""
    source = None if lower is None else lower.pair_source()
    return source if isinstance(source, Attainable) and source.attained else None


def composed_below(
    lowers: Sequence[tuple[PrivacyProfile | None, int]], interval: float | None
) -> PrivacyProfile | None:
    """Return the profile that a composition attains, or None unless a pair attains each part.

    All pairs stand for the same two data sets in the same order. `lowers` names each part with how often it runs.
    Gaussians compose exactly. For others `interval` is about the width of the mesh.
    """
    parts: list[tuple[Any, int]] = []
    for lower, count in lowers:
        if isinstance(lower, ComposedLowerProfile):
            parts += [(part, times * count) for part, times in lower.parts]
        elif isinstance(lower, (_OnePair, AttainedPair)) and attained_pairs(lower) is not None:
            parts.append((lower, count))
        else:
            return None
    return parts_below(parts, interval)


def parts_below(parts: Sequence[tuple[Any, int]], interval: float | None) -> PrivacyProfile | None:
    """The same for parts that each have a pair."""
    mus = [part.profile.mu * math.sqrt(count) for part, count in parts if isinstance(part, AttainedGaussian)]
    parts = list(counted((part, count) for part, count in parts if not isinstance(part, AttainedGaussian)))
    gaussian = AttainedGaussian.of(math.hypot(*mus))
    if not parts or (mus and gaussian is None):
        return gaussian
    if interval is None:
        return None
    # smaller losses than the mesh are moved to 0: a mesh that divides one of 1e-8 would have some 1e8 cells
    units = [part.unit for part, _ in parts if isinstance(part, AttainedPair) and interval <= part.unit < math.inf]
    if units:
        interval = min(units) * (1.0 - 32.0 * _UNIT) / math.ceil(min(units) / interval)
    return ComposedLowerProfile((*parts, *([(gaussian, 1)] if gaussian is not None else [])), interval)
