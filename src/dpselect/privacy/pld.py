"""Privacy-loss distributions: built and composed by dp-accounting, repaired and read here.

dp-accounting composes by fast Fourier transform, which leaves a noise floor: bins of about -2e-17 and totals off by
1e-5 (in the add direction, where its connect-the-dots step cancels at the lowest losses). `pair_from_pmf` repairs
them so that the curve is only raised. What remains owed is that the library's masses are right; guarantees that rest
on them say so in their theorem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import pld_pmf, pld_privacy_accountant, privacy_loss_distribution
from dp_accounting.privacy_accountant import NeighboringRelation
from numpy.typing import NDArray

from dpselect.errors import ArgumentError
from dpselect.numerics import ROUND_UP
from dpselect.privacy.adjacency import Adjacency
from dpselect.privacy.dominating_pair import DominatingPair
from dpselect.privacy.pairs import LossPairs, PairSource
from dpselect.privacy.profile import PrivacyProfile, SymmetricProfile, both_directions, extend
from dpselect.privacy.renyi import RenyiCurve, epsilon_from_renyi

__all__ = [
    "LossProfile",
    "LossSource",
    "discretisable",
    "event_loss",
    "pair_from_pmf",
    "profile_loss",
    "relation",
    "suitable_interval",
]

Array = NDArray[np.float64]
LossSource = Callable[[float], Any]
"""Maps a discretisation interval to a dp-accounting PrivacyLossDistribution, pessimistic."""

DEFAULT_INTERVAL = 1e-4
_WIDEST = 2e4
_FARTHEST = 600.0


def suitable_interval(curve: RenyiCurve | None, pure_epsilon: float = float("inf")) -> float | None:
    """The mesh for a mechanism's losses: 1e-4, wider by powers of two so that about 1e6 cells cover them.

    None where the losses reach so far that no distribution is worth building; the other curves still answer.
    """
    spread = pure_epsilon
    if curve is not None:
        spread = min(spread, epsilon_from_renyi(curve, 1e-12))
    if not np.isfinite(spread):
        return DEFAULT_INTERVAL if curve is None else None
    interval = DEFAULT_INTERVAL
    while spread > 5e5 * interval:
        interval *= 2.0
    return interval if spread <= _WIDEST else None


def discretisable(profile: PrivacyProfile) -> bool:
    """Whether `profile_loss` has finite losses to work with: not all the mass lies past the farthest."""
    return bool(np.all(both_directions(profile, np.array([_FARTHEST])) < 0.5))


def relation(adjacency: Adjacency) -> NeighboringRelation:
    """dp-accounting's name for an adjacency."""
    return {
        Adjacency.ADD_OR_REMOVE_ONE: NeighboringRelation.ADD_OR_REMOVE_ONE,
        Adjacency.REPLACE_ONE: NeighboringRelation.REPLACE_ONE,
    }[adjacency]


def _dense(pmf: Any) -> tuple[Array, Array, float]:
    """Losses, masses and the mass at infinity of a dp-accounting pmf."""
    dense = pmf.to_dense_pmf()
    probabilities = np.asarray(dense._probs, dtype=np.float64)
    losses = (dense._lower_loss + np.arange(probabilities.size)) * dense._discretization
    return losses, probabilities, max(0.0, float(dense._infinity_mass))  # rounding leaves it below zero at times


def pair_from_pmf(pmf: Any) -> DominatingPair:
    """The pair (P, P') of a dp-accounting pmf, repaired so that its hockey-stick curve is only raised.

    Upper tails are what the curve depends on, monotonically, so each repair raises or keeps them: negative bins
    become zero, excess over unit mass is cut at the lowest losses, missing mass goes to the infinite loss, and so
    does four standard errors of the transform's noise, whose size a bin shows in the most negative bin. P' gets
    exp(-loss) times the masses of P, cut to unit mass at the lowest losses; what it then lacks has loss -inf.
    """
    losses, upper, infinite = _dense(pmf)
    noise = max(0.0, -float(np.min(upper)))
    infinite += 4.0 * noise * float(np.sqrt(upper.size))
    upper = _cut_to(np.maximum(upper, 0.0), 1.0 - infinite)
    infinite += max(0.0, 1.0 - infinite - float(np.sum(upper)))
    with np.errstate(over="ignore", under="ignore"):
        lower = _cut_to(np.where(upper > 0.0, upper * np.exp(-losses), 0.0), 1.0)
    missing = max(0.0, 1.0 - float(np.sum(lower)))
    return DominatingPair(
        losses=np.concatenate(([-np.inf], losses, [np.inf])),
        upper=np.concatenate(([0.0], upper, [infinite])),
        lower=np.concatenate(([missing], lower, [0.0])),
    )


def _cut_to(masses: Array, total: float) -> Array:
    """Lower the first masses until their sum is at most `total`, summing from the last."""
    tails = np.cumsum(masses[::-1])[::-1]
    over = np.flatnonzero(tails > total)
    if not over.size:
        return masses
    cut = int(over[-1])
    kept = masses.copy()
    kept[:cut] = 0.0
    kept[cut] = max(0.0, total - (float(tails[cut + 1]) if cut + 1 < masses.size else 0.0))
    return kept


@dataclass(frozen=True)
class LossProfile:
    """The privacy profile of a privacy-loss distribution, built when first asked for."""

    source: LossSource
    interval: float = DEFAULT_INTERVAL
    theorem: str = "privacy-loss distribution (dp-accounting; Doroshenko et al. 2022), conditional on its masses"

    @cached_property
    def pairs(self) -> tuple[DominatingPair, DominatingPair]:
        """The repaired pairs for (P, P') and (P', P)."""
        distribution = self.source(self.interval)
        forward = pair_from_pmf(distribution._pmf_remove)
        if distribution._symmetric:
            return forward, forward
        return forward, pair_from_pmf(distribution._pmf_add)

    def pair_source(self) -> PairSource:
        """Coarsenings of the distribution."""
        return LossPairs(self)

    def remove(self, epsilons: Array) -> Array:
        """A bound on H_{exp(epsilon)}(P || P')."""
        forward, backward = self.pairs
        return extend(epsilons, forward.hockey_stick, backward.hockey_stick) * ROUND_UP

    def add(self, epsilons: Array) -> Array:
        """A bound on H_{exp(epsilon)}(P' || P)."""
        forward, backward = self.pairs
        return extend(epsilons, backward.hockey_stick, forward.hockey_stick) * ROUND_UP

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the recipe, not the distribution."""
        return {"source": self.source, "interval": self.interval, "theorem": self.theorem}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


@dataclass(frozen=True)
class event_loss:
    """The privacy-loss distribution of a DpEvent, by dp-accounting.

    Its accountant is asked about one mechanism at a time: version 0.6.0 ignores the count of a self-composed
    `RandomizedResponseDpEvent`, and keeps a mechanism without privacy in a flag outside the distribution.
    """

    event: dp_event.DpEvent
    adjacency: Adjacency

    def __call__(self, interval: float) -> Any:
        return self._of(self.event, interval)

    def _of(self, event: Any, interval: float) -> Any:
        if isinstance(event, dp_event.ComposedDpEvent) and event.events:
            return reduce(lambda total, part: total.compose(part), (self._of(e, interval) for e in event.events))
        single = not isinstance(event, dp_event.SelfComposedDpEvent)
        if single or isinstance(event.event, dp_event.GaussianDpEvent):  # equal Gaussians it composes exactly
            accountant = pld_privacy_accountant.PLDAccountant(relation(self.adjacency), interval)
            accountant.compose(event)
            if accountant._contains_non_dp_event:
                raise ArgumentError("event holds a mechanism without privacy")
            return accountant._pld
        part = self._of(event.event, interval)
        return part.self_compose(event.count) if event.count > 1 else part


@dataclass(frozen=True)
class profile_loss:
    """A privacy-loss distribution from a profile: connect the dots over its lower convex hull in exp(epsilon).

    True profiles are convex in exp(epsilon), so the hull of an upper bound is still one (Doroshenko et al. 2022).
    """

    profile: PrivacyProfile

    def __call__(self, interval: float) -> Any:
        forward = _connect_the_dots(self.profile.remove, interval)
        backward = None if isinstance(self.profile, SymmetricProfile) else _connect_the_dots(self.profile.add, interval)
        return privacy_loss_distribution.PrivacyLossDistribution(forward, backward)


def _connect_the_dots(curve: Callable[[Array], Array], interval: float) -> Any:
    # past `top` the curve is as low as it gets, or too low to matter; what is left is mass at the infinite loss
    floor = max(1e-14, float(curve(np.array([_FARTHEST]))[0]) * (1.0 + 1e-9))
    top = interval * 2.0
    while top < _FARTHEST and float(curve(np.array([top]))[0]) > floor:
        top *= 2.0
    points = int(np.ceil(top / interval))
    epsilons = np.arange(-points, points + 1, dtype=np.float64) * interval
    clipped = np.clip(curve(epsilons), np.maximum(-np.expm1(epsilons), 0.0), 1.0)
    deltas = np.minimum.accumulate(np.asarray(clipped, dtype=np.float64))
    hull = _lower_hull(epsilons, deltas)
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, -points, points, hull)


def _lower_hull(epsilons: Array, deltas: Array) -> Array:
    """The largest function below `deltas` that is convex in exp(epsilon) and 1 at exp(epsilon) = 0."""
    x, y = np.append(0.0, np.exp(epsilons)), np.append(1.0, deltas)
    kept: list[int] = []
    for i in range(x.size):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) > (y[i] - y[a]) * (x[b] - x[a]):
                kept.pop()
            else:
                break
        kept.append(i)
    hull = np.interp(x, x[kept], y[kept])
    return np.asarray(np.minimum(hull, y))[1:]
