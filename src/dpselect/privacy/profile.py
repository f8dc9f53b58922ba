"""Privacy profiles: hockey-stick divergences as functions of epsilon, one for each direction.

With P the output law on the larger data set and P' on the smaller one (add/remove), or on either order (replace):
`remove(e)` bounds H_{exp(e)}(P || P') and `add(e)` bounds H_{exp(e)}(P' || P), for every real e, where
H_a(P || Q) = sup_S P(S) - a Q(S). Reciprocity H_{exp(-e)}(P || Q) = 1 - exp(-e) + exp(-e) H_{exp(e)}(Q || P) gives
the values at negative e, so implementations need them at e >= 0 only.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import erfcx, ndtr

from dpselect.caching import memoized
from dpselect.errors import ArgumentError
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array, root_on_grids
from dpselect.privacy.losses.pairs import GaussianPairs, LaplacePairs, PairSource, ProfilePairs, RandomizedResponsePairs
from dpselect.privacy.renyi import RenyiCurve, profile_from_renyi

__all__ = [
    "GaussianProfile",
    "LaplaceProfile",
    "MinimumProfile",
    "PrivacyProfile",
    "RandomizedResponseProfile",
    "RenyiProfile",
    "SymmetricProfile",
    "TabulatedProfile",
    "TwoSidedProfile",
    "approximate_delta_at",
    "both_directions",
    "epsilon_at",
    "extend",
]

_SMALLEST = 5e-324
_LARGEST = 1e5
"""Epsilons are searched up to here."""
_ROOT_TAU = float(np.sqrt(2.0 * np.pi))
_ROUND_DOWN = 2e-12
"""What closed forms are lowered by, relatively, where they must not be above the truth."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


class PrivacyProfile(ABC):
    """Two vectorised curves of epsilon (any real), each a bound in [0, 1]. Subclasses override what they know better.

    Bounds are upper ones, or lower ones for a profile that is the lower end of a bracket.
    """

    @abstractmethod
    def remove(self, epsilons: Array) -> Array:
        """A bound on H_{exp(epsilon)}(P || P')."""

    @abstractmethod
    def add(self, epsilons: Array) -> Array:
        """A bound on H_{exp(epsilon)}(P' || P)."""

    @property
    def theorem(self) -> str:
        """The source of the bound, empty if only the guarantee names it."""
        return ""

    @property
    def corners(self) -> tuple[float, ...]:
        """Epsilons at which the curve may bend."""
        return ()

    @property
    def costly(self) -> bool:
        """Whether one value takes about a tenth of a second, so that thousands would take minutes."""
        return False

    def pair_source(self) -> PairSource | None:
        """A recipe for finite pairs of its own, or None."""
        return None

    def among(self, costly: int) -> PrivacyProfile:  # noqa: ARG002
        """The same for a composition with so many costly profiles: a bound that may be looser, in less time."""
        return self

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon >= 0 at which both directions are seen to be at most `delta`, inf if none is below 1e5.

        A profile that is costly to evaluate inverts itself.
        """
        if bool(both_directions(self, np.zeros(1))[0] <= delta):
            return 0.0
        found = root_on_grids(lambda e: both_directions(self, e) <= delta, safe=_LARGEST, unsafe=0.0)
        return found if found < _LARGEST else math.inf

    def epsilon_lower_bound(self, delta: float) -> float:
        """The largest epsilon below 1e5 at which the profile is seen to exceed `delta`, 0 if none is. Rounded down."""
        return root_on_grids(lambda e: both_directions(self, e) > delta, safe=0.0, unsafe=_LARGEST)

    def approximate_delta(self, epsilon: float) -> float | None:  # noqa: ARG002
        """A number near both directions at `epsilon`, quickly, or None. It serves searches and bounds nothing."""
        return None


def both_directions(profile: PrivacyProfile, epsilons: Array) -> Array:
    """The larger of the two directions: what a delta must cover."""
    return np.maximum(profile.remove(epsilons), profile.add(epsilons))


def epsilon_at(profile: PrivacyProfile, delta: float) -> float:
    """The smallest epsilon >= 0 at which both directions are seen to be at most `delta`; inf if none is below 1e5.

    A profile that is costly to evaluate inverts itself, by a method `epsilon`. Profiles are public, and what was found
    of one is kept.
    """
    return float(_inverted(profile, delta))


def approximate_delta_at(profile: PrivacyProfile, epsilon: float) -> float | None:
    """A number near both directions at `epsilon`, or None. It is kept by the profile and epsilon."""
    found: float | None = _approximated(profile, epsilon)
    return found


@memoized
def _approximated(profile: PrivacyProfile, epsilon: float) -> float | None:
    return profile.approximate_delta(epsilon)


@memoized
def _inverted(profile: PrivacyProfile, delta: float) -> float:
    return float(profile.epsilon(delta))


def extend(epsilons: Array, forward: Callable[[Array], Array], backward: Callable[[Array], Array]) -> Array:
    """Evaluate `forward` at every real epsilon, given both directions at epsilon >= 0, by reciprocity, clipped."""
    epsilons = np.asarray(epsilons, dtype=np.float64)
    size = np.abs(epsilons)
    positive = epsilons >= 0.0
    if bool(np.all(positive)):
        return np.clip(forward(size), 0.0, 1.0)
    mirrored = -np.expm1(-size) + np.exp(-size) * np.clip(backward(size), 0.0, 1.0)
    return np.clip(np.where(positive, forward(size), mirrored), 0.0, 1.0)


class SymmetricProfile(PrivacyProfile):
    """A profile whose two directions agree. Subclasses give `at` for epsilon >= 0."""

    @abstractmethod
    def at(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0."""

    def remove(self, epsilons: Array) -> Array:
        """A bound on H_{exp(epsilon)}(P || P')."""
        return extend(epsilons, self.at, self.at)

    add = remove


class TwoSidedProfile(PrivacyProfile):
    """A profile whose two directions may differ. Subclasses give `at` for epsilon >= 0."""

    @abstractmethod
    def at(self, direction: int, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0: of P against P' in direction 0, of P' against P in direction 1."""

    def remove(self, epsilons: Array) -> Array:
        """A bound on H_{exp(epsilon)}(P || P')."""
        return extend(epsilons, partial(self.at, 0), partial(self.at, 1))

    def add(self, epsilons: Array) -> Array:
        """A bound on H_{exp(epsilon)}(P' || P)."""
        return extend(epsilons, partial(self.at, 1), partial(self.at, 0))


@dataclass(frozen=True)
class GaussianProfile(SymmetricProfile):
    """N(0,1) against N(mu,1), exact, without cancellation. Source: Balle, Wang 2018, Theorem 8.

    Phi(-near) - exp(e) Phi(-far) with near = e/mu - mu/2 and far = e/mu + mu/2. Since phi(near) = exp(e) phi(far), it
    is phi(near) (M(near) - M(far)) with M = (1 - Phi)/phi. Never reported as zero, which it is not: at least 1e-300.
    """

    mu: float
    theorem: str = "Gaussian mechanism (Balle, Wang 2018, Theorem 8)"

    def pair_source(self) -> PairSource:
        """Its exact pair, cut into atoms."""
        return GaussianPairs(self.mu)

    def at(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0."""
        if not 1e-200 < self.mu < 1e200:
            return np.full(np.shape(epsilons), 1e-200 if self.mu < 1.0 else 1.0)
        result, size = self._found(epsilons)
        return np.asarray(np.maximum(result * (ROUND_UP + 1e-15 * size), 1e-300))

    def below(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0, rounded down, 0 if it is too small to tell."""
        if not 1e-200 < self.mu < 1e200:
            return np.zeros(np.shape(epsilons))
        result, size = self._found(epsilons)
        sure = result * np.maximum(1.0 - _ROUND_DOWN - 8e-15 * size, 0.0)
        return np.asarray(np.where(sure > 1e-299, sure, 0.0))

    def _found(self, epsilons: Array) -> tuple[Array, Array]:
        """The divergence as computed, and how far out: what its rounding grows with."""
        scaled = np.asarray(epsilons, dtype=np.float64) / self.mu
        near, far = scaled - self.mu / 2.0, scaled + self.mu / 2.0
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            density = np.exp(-0.5 * near * near) / _ROOT_TAU
            if self.mu < 0.5:
                inner = scaled[..., None] + 0.5 * self.mu * _NODES
                result = density * self.mu * np.sum(0.5 * _WEIGHTS * _mills_slope(inner), axis=-1)
            else:
                right = density * (_mills(np.maximum(near, 0.0)) - _mills(far))
                # not exp(e) Phi(-far), whose factors cancel ever more digits the larger mu is
                left = ndtr(-near) - density * _mills(far)
                result = np.where(near > 0.0, right, left)
            # `near` is off by a share of `far`, and the logarithm of the divergence has a slope of at most |near| + 1
            # in it; far below it the divergence is 1 to all digits
            return np.asarray(result), np.where(near < -40.0, 0.0, (np.minimum(np.abs(near), 40.0) + 1.0) * far)


def _mills(x: Array) -> Array:
    """(1 - Phi(x)) / phi(x)."""
    return np.asarray(_ROOT_TAU / 2.0 * erfcx(x / np.sqrt(2.0)))


def _mills_slope(x: Array) -> Array:
    """1 - x M(x) = -M'(x) for x > -1, by its asymptotic series where the difference cancels."""
    square = 1.0 / np.square(np.maximum(x, 12.0))
    series = np.zeros_like(square)
    for odd in range(31, 0, -2):
        series = odd * square * (1.0 - series)
    return np.where(x > 12.0, series, 1.0 - x * _mills(x))


@dataclass(frozen=True)
class LaplaceProfile(SymmetricProfile):
    """Laplace noise of scale 1/epsilon0 at sensitivity 1, exact: 1 - exp((e - epsilon0)/2) below epsilon0.

    Source: Balle, Barthe, Gaboardi 2018, Theorem 3.
    """

    epsilon0: float
    theorem: str = "Laplace mechanism (Balle, Barthe, Gaboardi 2018, Theorem 3)"

    def pair_source(self) -> PairSource:
        """Its exact pair, cut into atoms."""
        return LaplacePairs(self.epsilon0)

    def at(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0."""
        return np.asarray(-np.expm1(np.minimum(epsilons - self.epsilon0, 0.0) / 2.0) * ROUND_UP)

    def below(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0, rounded down."""
        return self.at(epsilons) * (1.0 - _ROUND_DOWN)


@dataclass(frozen=True)
class RandomizedResponseProfile(SymmetricProfile):
    """The worst (epsilon0, failure)-private pair: randomised response outside a mass `failure` of no privacy.

    Kairouz, Oh, Viswanath 2015, Theorem 3.3: every such mechanism is a post-processing of this pair.
    """

    epsilon0: float
    failure: float = 0.0
    theorem: str = "definition of (epsilon, delta)-privacy (Kairouz, Oh, Viswanath 2015, Theorem 3.3)"

    def pair_source(self) -> PairSource:
        """Its exact pair, cut into atoms."""
        return RandomizedResponsePairs(self.epsilon0, self.failure)

    def at(self, epsilons: Array) -> Array:
        """failure + (1 - failure) (exp(epsilon0) - exp(e))_+ / (1 + exp(epsilon0))."""
        inside = -np.expm1(np.minimum(epsilons - self.epsilon0, 0.0)) / (1.0 + np.exp(-self.epsilon0))
        # below epsilon0 it is positive, also where half of it is no double
        total = np.maximum((self.failure + (1.0 - self.failure) * inside) * ROUND_UP, _SMALLEST)
        return np.where(epsilons < self.epsilon0, total, self.failure)


@dataclass(frozen=True)
class TabulatedProfile(SymmetricProfile):
    """A profile known at some epsilons: chords in exp(epsilon), which are above the convex true profile.

    Before the first epsilon the chord starts at the trivial point delta = 1 at exp(epsilon) = 0. Past the last epsilon
    the last delta holds.
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]
    theorem: str = "privacy profile given by the caller"

    def __post_init__(self) -> None:
        epsilons, deltas = np.array(self.epsilons), np.array(self.deltas)
        if epsilons.size == 0 or epsilons.shape != deltas.shape:
            raise ArgumentError("epsilons and deltas must be non-empty and of one length")
        if not np.all(np.isfinite(epsilons)) or np.any(np.diff(epsilons) <= 0):
            raise ArgumentError("epsilons must be finite and strictly increasing")
        if not np.all((deltas >= 0) & (deltas <= 1)):
            raise ArgumentError("deltas must be in [0, 1]")

    @property
    def corners(self) -> tuple[float, ...]:
        """The epsilons of the table."""
        return self.epsilons

    def pair_source(self) -> PairSource:
        """The pair whose profile is made of exactly these chords."""
        return ProfilePairs(self, self.epsilons)

    def at(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0."""
        epsilons = np.asarray(epsilons, dtype=np.float64)
        known, deltas = np.array(self.epsilons), np.minimum.accumulate(np.array(self.deltas))
        index = np.searchsorted(known, epsilons, side="right")
        left, right = np.append(-np.inf, known)[index], np.append(known, np.inf)[index]
        delta_left, delta_right = np.append(1.0, deltas)[index], np.append(deltas, deltas[-1])[index]
        # weights of both ends in exp(epsilon): (e^right - e^x) and (e^x - e^left), over (e^right - e^left)
        width = -np.expm1(left - right)
        weight_left = -np.expm1(epsilons - right) / width
        weight_right = np.exp(epsilons - right) * -np.expm1(left - epsilons) / width
        chord = (weight_left * delta_left + weight_right * delta_right) * ROUND_UP
        # a point of the table keeps its own delta, so that the table's promises can be asked back
        return np.where(weight_right == 0.0, delta_left, chord)


@dataclass(frozen=True)
class RenyiProfile(SymmetricProfile):
    """The profile of a Renyi curve plus a failure mass. Source: Canonne, Kamath, Steinke 2020, Proposition 12."""

    curve: RenyiCurve
    failure: float = 0.0
    theorem: str = "conversion from Renyi divergence (Canonne, Kamath, Steinke 2020, Proposition 12)"

    def at(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0."""
        flat = np.ravel(epsilons)
        return (self.failure + profile_from_renyi(self.curve, flat).reshape(np.shape(epsilons))) * ROUND_UP


@dataclass(frozen=True)
class MinimumProfile(PrivacyProfile):
    """The pointwise minimum of profiles that all bound the same mechanism, direction by direction."""

    profiles: tuple[PrivacyProfile, ...]

    def remove(self, epsilons: Array) -> Array:
        """A bound on H_{exp(epsilon)}(P || P')."""
        return np.min([p.remove(epsilons) for p in self.profiles], axis=0)

    def add(self, epsilons: Array) -> Array:
        """A bound on H_{exp(epsilon)}(P' || P)."""
        return np.min([p.add(epsilons) for p in self.profiles], axis=0)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon that any of them gives at `delta`."""
        return min(epsilon_at(profile, delta) for profile in self.profiles)

    @property
    def costly(self) -> bool:
        """Whether one of them is."""
        return any(profile.costly for profile in self.profiles)

    def among(self, costly: int) -> PrivacyProfile:
        """The minimum of theirs."""
        return MinimumProfile(tuple(profile.among(costly) for profile in self.profiles))

    def approximate_delta(self, epsilon: float) -> float | None:
        """The smallest that any of them gives, or None if none has an approximation."""
        found = [profile.approximate_delta(epsilon) for profile in self.profiles]
        return min((near for near in found if near is not None), default=None)
