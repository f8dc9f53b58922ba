"""Privacy-loss distributions of sampled Gaussians and of profiles, read as pairs. Every composition is our own code.

Those of some other mechanisms are dp-accounting's (`privacy.event_losses`). This assumes that the library's masses of
one run are right, up to the noise that `unit_mass` repairs. Guarantees that rest on it state it in their theorem.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from dpselect.caching import CopiedByFields, kept_while_alive
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array, root_on_grids
from dpselect.privacy.losses.composition import BothLosses, Losses, compose_distributions, cut_to, unit_mass
from dpselect.privacy.losses.connect_the_dots import connect_the_dots, on_mesh
from dpselect.privacy.losses.discretise import DominatingPair
from dpselect.privacy.losses.pairs import LossPairs, PairSource
from dpselect.privacy.losses.sampled_gaussian import sampled_gaussian_losses
from dpselect.privacy.profile import PrivacyProfile, SymmetricProfile, both_directions, extend
from dpselect.privacy.renyi import RenyiCurve, SumRenyi, own_orders

__all__ = [
    "DEFAULT_INTERVAL",
    "WIDEST",
    "LossProfile",
    "LossSource",
    "composed_interval",
    "discretisable",
    "farthest",
    "pair_from_losses",
    "profile_loss",
    "sampled_gaussian_loss",
    "suitable_interval",
]


DEFAULT_INTERVAL = 1e-4
_CELLS = 2.0**14
_MOST_WORK = 2e6
"""Cells times transforms: about 2 s for both ends of a bracket."""
WIDEST = 2e4
"""Losses are not discretised past this."""
_ROUGHER = 2.0
_SLACK = 2.0**-46
"""The variance of 1,000 steps is then larger by 5e-6."""
_FARTHEST = 600.0
_SPREAD_ORDERS = 1.0 + np.array([0.03, 0.1, 0.4, 1.2, 3.0, 7.0, 15.0, 30.0, 60.0, 150.0, 620.0, 5e3, 1e5, 2e6])


class LossSource(ABC):
    """A function from the interval of a mesh to a privacy-loss distribution on it, pessimistic."""

    @abstractmethod
    def __call__(self, interval: float) -> BothLosses:
        """The distribution for a mesh of this width."""

    @property
    def parts(self) -> int:
        """How many distributions are added up."""
        return 1

    @property
    def transforms(self) -> int:
        """How many distributions there are to transform: one for each direction."""
        return 2

    @property
    def costly(self) -> int:
        """How many profiles are read that are costly to evaluate."""
        return 0

    def among(self, costly: int) -> LossSource:  # noqa: ARG002
        """The same for a composition that reads so many costly profiles."""
        return self


def suitable_interval(
    curve: RenyiCurve | None, pure_epsilon: float = float("inf"), finest: float | None = None
) -> float | None:
    """The mesh for a mechanism's losses: 1e-4, or near `finest`, wider by powers of two so that 1e6 cells cover them.

    None if the losses reach so far that no distribution is worth building. The other curves still answer.
    """
    return _interval(curve, min(pure_epsilon, math.inf if curve is None else _spread(curve)), finest)


def _interval(curve: RenyiCurve | None, spread: float, finest: float | None = None) -> float | None:
    """The mesh for losses that reach so far: 1e-4, or near `finest`."""
    interval = (
        DEFAULT_INTERVAL
        if finest is None
        else DEFAULT_INTERVAL * 2.0 ** math.floor(math.log2(finest / DEFAULT_INTERVAL))
    )
    if not np.isfinite(spread):
        return interval if curve is None else None
    cells = 5e5 if finest is None else 2e5
    if spread > cells * interval:
        interval *= 2.0 ** math.ceil(math.log2(spread / (cells * interval)))
    return interval if spread <= WIDEST else None


def composed_interval(curve: RenyiCurve | None, pure_epsilon: float, parts: int, transforms: int = 1) -> float | None:
    """The mesh for the composition of that many mechanisms: the steps of a training, not trainings.

    Connecting the dots adds interval^2 / 6 to the variance of each part's losses. A sum over 2^14 cells has a standard
    deviation of about 2^11 cells, so 256 parts add 1e-5 of its variance. Losses that are atoms, as pure ones may be,
    are moved by up to a cell each, and keep the usual mesh. With very many cells, or many distributions to transform,
    the mesh is wider. By a tree, many short ones cost about five times the square root of their number.
    """
    spread = min(pure_epsilon, math.inf if curve is None else _spread(curve))
    if curve is None or math.isfinite(pure_epsilon) or not 0.0 < spread < math.inf:
        found = _interval(curve, spread)
    else:
        finest = spread / _CELLS / math.sqrt(max(1.0, parts / 256.0))
        found = _interval(curve, spread, finest if finest > DEFAULT_INTERVAL else None)
    # only where losses are bounded is a part known to be shorter than the whole
    work = 1.0 + (min(transforms, 5.0 * math.sqrt(transforms)) if math.isfinite(pure_epsilon) else transforms)
    too_much = 0.0 if found is None or spread == math.inf else spread * work / (found * _MOST_WORK)
    return found if found is None or too_much <= 1.0 else found * 2.0 ** math.ceil(math.log2(too_much))


def _spread(curve: RenyiCurve) -> float:
    """Roughly epsilon at delta = 1e-12 (Mironov 2017, Proposition 3), from one evaluation."""
    orders = np.append(_SPREAD_ORDERS, own_orders(curve))
    values: Array
    if isinstance(curve, SumRenyi):  # its curves may be those of a sum that was asked for before
        values = np.sum([_at_spread_orders(part) * count for part, count in curve.curves], axis=0)
    else:
        with np.errstate(over="ignore"):
            values = np.asarray(curve(orders))
    return float(np.min(values - math.log(1e-12) / (orders - 1.0)))


@kept_while_alive
def _at_spread_orders(curve: RenyiCurve) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(curve(_SPREAD_ORDERS))


def discretisable(profile: PrivacyProfile, curve: RenyiCurve | None = None, failure: float = 0.0) -> bool:
    """Whether `profile_loss` has finite losses to work with: not all the mass is past the farthest.

    A Renyi curve that holds outside the failure mass may tell without the profile, which may be slow: the mass past e
    is at most exp(curve(2) - e).
    """
    if curve is not None and failure < 0.25 and float(curve(np.array([2.0]))[0]) < _FARTHEST - 2.0:
        return True
    return bool(np.all(both_directions(profile, np.array([_FARTHEST])) < 1.0))


def farthest(profile: PrivacyProfile) -> float:
    """About the largest finite loss: where a profile has fallen to what it never falls below, or near it."""
    floor = float(both_directions(profile, np.array([_FARTHEST]))[0])
    return root_on_grids(
        lambda epsilons: both_directions(profile, epsilons) <= floor + 1e-12, safe=_FARTHEST, unsafe=0.0, relative=1e-2
    )


def pair_from_losses(losses: Losses) -> DominatingPair:
    """The pair (P, P') of losses, repaired so that its hockey-stick curve is only raised.

    Upper tails are what the curve depends on, monotonically, and `unit_mass` raises or keeps them. P' gets exp(-loss)
    times the masses of P, cut to unit mass at the lowest losses. The mass that it then lacks has loss -inf.
    """
    upper, infinite = unit_mass(losses.masses, losses.infinite)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # of masses that are 0
        lower = cut_to(np.where(upper > 0.0, upper * np.exp(-losses.values), 0.0), 1.0)
    return DominatingPair.between(losses.values, upper, lower, infinite=infinite)


@dataclass(frozen=True)
class LossProfile(CopiedByFields, PrivacyProfile):
    """The privacy profile of a privacy-loss distribution, built when first asked for."""

    source: LossSource
    interval: float = DEFAULT_INTERVAL
    theorem: str = "privacy-loss distribution (dp-accounting; Doroshenko et al. 2022), conditional on its masses"

    @cached_property
    def pairs(self) -> tuple[DominatingPair, DominatingPair]:
        """The repaired pairs for (P, P') and (P', P)."""
        both = self.source(self.interval)
        forward = pair_from_losses(both.remove)
        return forward, forward if both.symmetric else pair_from_losses(both.add)

    def pair_source(self) -> PairSource:
        """Coarsenings of the distribution."""
        return LossPairs(self)

    def rougher(self) -> LossProfile:
        """The same on a mesh that is twice as wide: a bound too, close above this one."""
        return replace(self, interval=_ROUGHER * self.interval)

    def remove(self, epsilons: Array) -> Array:
        """A bound on H_{exp(epsilon)}(P || P')."""
        forward, backward = self.pairs
        return extend(epsilons, *map(_from_above, (forward, backward))) * ROUND_UP

    def add(self, epsilons: Array) -> Array:
        """A bound on H_{exp(epsilon)}(P' || P)."""
        forward, backward = self.pairs
        return extend(epsilons, *map(_from_above, (backward, forward))) * ROUND_UP


def _from_above(pair: DominatingPair) -> Callable[[Array], Array]:
    """Its divergence, with what the sums of its tails and their difference may lose to rounding."""
    return partial(pair.hockey_stick, slack=_SLACK)


@dataclass(frozen=True)
class sampled_gaussian_loss(LossSource):
    """The privacy-loss distribution of `steps` Gaussians on Poisson samples, under adding or removing a row."""

    noise_multiplier: float
    sampling_rate: float
    steps: int = 1

    def __call__(self, interval: float) -> BothLosses:
        remove, add = sampled_gaussian_losses(
            noise_multiplier=self.noise_multiplier, sampling_rate=self.sampling_rate, width=interval
        )
        one = BothLosses(remove, remove if self.sampling_rate == 1.0 else add)
        return compose_distributions([(one, self.steps)])

    @property
    def parts(self) -> int:
        """How many distributions are added up."""
        return self.steps


@dataclass(frozen=True)
class profile_loss(LossSource):
    """A privacy-loss distribution from a profile: connect the dots over its lower convex hull in exp(epsilon).

    True profiles are convex in exp(epsilon), so the hull of an upper bound is still one (Doroshenko et al. 2022).
    """

    profile: PrivacyProfile

    @property
    def transforms(self) -> int:
        """How many laws there are to transform: one where both directions have the same."""
        return 1 if isinstance(self.profile, SymmetricProfile) else 2

    @property
    def costly(self) -> int:
        """1 if the profile is costly, 0 if it is not."""
        return int(self.profile.costly)

    def among(self, costly: int) -> LossSource:
        """The same of a profile that knows how many there are."""
        return profile_loss(self.profile.among(costly)) if costly > 1 else self

    def __call__(self, interval: float) -> BothLosses:
        remove = on_mesh(self.profile.remove, interval)
        if isinstance(self.profile, SymmetricProfile):
            forward = connect_the_dots(interval, remove, remove)
            return BothLosses(forward, forward)
        add = on_mesh(self.profile.add, interval)
        return BothLosses(connect_the_dots(interval, remove, add), connect_the_dots(interval, add, remove))
