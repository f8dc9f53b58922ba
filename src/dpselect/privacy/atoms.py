"""Mechanisms whose losses are finitely many values, the same in both directions: k-ary randomised response and discrete
Laplace noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from scipy.special import logsumexp

from dpselect.errors import ArgumentError
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy.adjacency import Adjacency
from dpselect.privacy.below import AttainedPair
from dpselect.privacy.exports.event_of import MORE, event_of
from dpselect.privacy.group import times_up
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.losses.discretise import DominatingPair, PairEnclosure
from dpselect.privacy.mechanisms.pure import pure_dp
from dpselect.privacy.profile import SymmetricProfile

__all__ = ["AtomsProfile", "AtomsRenyi", "discrete_laplace", "k_ary_response"]

_MOST_ATOMS: Final = 2_000
"""Discrete Laplace noise of a larger sensitivity is accounted as its epsilon alone."""
_ONE_BY_ONE: Final = 32


@dataclass(frozen=True)
class AtomsProfile(SymmetricProfile):
    """The profile of a pair by its positive losses, ascending, and their masses under P. Negative ones mirror them.

    Source: docs/theory/samples.md, Theorem 3.
    """

    losses: tuple[float, ...]
    masses: tuple[float, ...]
    theorem: str = "hockey-stick divergence of a finite pair of distributions"

    def __post_init__(self) -> None:
        losses, masses = np.array(self.losses), np.array(self.masses)
        if losses.shape != masses.shape or losses.size == 0 or losses[0] <= 0.0 or np.any(np.diff(losses) <= 0.0):
            raise ArgumentError("losses must be positive and ascending, one for each mass")
        if np.any(masses <= 0.0) or float(np.sum(masses)) > ROUND_UP:
            raise ArgumentError("masses must be positive and at most 1 in sum")

    @property
    def corners(self) -> tuple[float, ...]:
        """The losses."""
        return self.losses

    def at(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0: the sum of p (1 - exp(epsilon - loss)) over larger losses."""
        asked = np.asarray(epsilons, dtype=np.float64)
        found = self._by_tails(asked) if len(self.losses) > _ONE_BY_ONE else self._one_by_one(asked)
        # a loss is a float64 next to the true one
        found = found * ROUND_UP + 1e-15 * self.losses[-1]
        return np.asarray(np.where(asked < self.losses[-1], found, 0.0))

    def _one_by_one(self, asked: Array) -> Array:
        """The sum without cancellation."""
        found = np.zeros(asked.shape)
        for loss, mass in zip(self.losses, self.masses, strict=True):
            found += mass * -np.expm1(np.minimum(asked - loss, 0.0))
        return found

    def _by_tails(self, asked: Array) -> Array:
        """The same by two sums of tails, which take little time for many losses, with a bound on their rounding."""
        losses, masses = np.array(self.losses), np.array(self.masses)
        upper = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
        lower = np.append(np.cumsum((masses * np.exp(-losses))[::-1])[::-1], 0.0)
        start = np.searchsorted(losses, asked, side="right")
        rounding = 4e-16 * len(losses)
        return np.maximum(upper[start] - np.exp(np.minimum(asked, losses[-1])) * lower[start], 0.0) + rounding

    def pair_source(self) -> AtomPairs:
        """The pair itself."""
        return AtomPairs(self.losses, self.masses)


@dataclass(frozen=True)
class AtomPairs:
    """The pair of an `AtomsProfile`."""

    losses: tuple[float, ...]
    masses: tuple[float, ...]
    attained: ClassVar[bool] = True

    def __call__(self, atoms: int) -> tuple[PairEnclosure, PairEnclosure]:  # noqa: ARG002
        losses, upper = np.array(self.losses), np.array(self.masses)
        lower = upper * np.exp(-losses)
        rest = max(0.0, 1.0 - float(np.sum(upper)) - float(np.sum(lower)))
        pair = DominatingPair(
            losses=np.concatenate((-losses[::-1], [0.0], losses)),
            upper=np.concatenate((lower[::-1], [rest], upper)),
            lower=np.concatenate((upper[::-1], [rest], lower)),
        )
        both = PairEnclosure(pair, pair)
        return both, both


@dataclass(frozen=True)
class AtomsRenyi:
    """The Renyi divergence of the same pair, the same in both directions, rounded up.

    A positive loss l of mass p has a mirror -l of mass p exp(-l). So the moment of order a is
    1 + sum p (exp((a-1) l) - 1)(1 - exp(-a l)). Nothing cancels in it.
    """

    losses: tuple[float, ...]
    masses: tuple[float, ...]
    theorem: str = "Renyi divergence of a finite pair of distributions"

    def __call__(self, orders: Array) -> Array:
        """The divergence at each order."""
        a = np.asarray(orders, dtype=np.float64)[..., None]
        losses, masses = np.array(self.losses), np.array(self.masses)
        grown = (a - 1.0) * losses
        logs = np.log(masses) + grown + np.log(-np.expm1(-grown)) + np.log(-np.expm1(-a * losses))
        moment = np.logaddexp(0.0, logsumexp(logs, axis=-1))
        return np.asarray(np.minimum(moment / (a[..., 0] - 1.0) * ROUND_UP, self.losses[-1] * ROUND_UP))


def _guarantee(
    losses: tuple[float, ...], masses: tuple[float, ...], terms: dict[str, Any], adjacency: Adjacency
) -> Guarantee:
    profile = AtomsProfile(losses, masses)
    down = AtomPairs(tuple(loss * (1.0 - 1e-12) for loss in losses), tuple(mass * (1.0 - 1e-12) for mass in masses))
    return Guarantee(
        adjacency=adjacency,
        theorem=profile.theorem,
        terms=terms,
        pure_epsilon=losses[-1],
        renyi_curve=AtomsRenyi(losses, masses),
        profile=profile,
        lower_profile=AttainedPair(down),
    )


def discrete_laplace(parameter: float, sensitivity: int, adjacency: Adjacency) -> Guarantee:
    """The guarantee of integer noise with masses tanh(a/2) exp(-a |x|) on an integer of this L1 sensitivity.

    The loss at x = 0, ..., sensitivity is a (sensitivity - 2 x). Each tail has the loss of the end that it begins at.

    >>> from dpselect.privacy.adjacency import Adjacency
    >>> discrete_laplace(0.5, 2, Adjacency.ADD_OR_REMOVE_ONE).epsilon(delta=0)
    1.0
    """
    epsilon = times_up(parameter, sensitivity)
    if epsilon == 0.0:
        return pure_dp(epsilon=0, adjacency=adjacency)
    if sensitivity > _MOST_ATOMS or not 1e-12 < epsilon < 600.0:
        return pure_dp(epsilon=epsilon, adjacency=adjacency)
    places = range((sensitivity - 1) // 2, -1, -1)
    losses = tuple(parameter * (sensitivity - 2 * x) for x in places)
    inner = np.tanh(parameter / 2.0) * np.exp(-parameter * np.array(places))
    masses = (*inner[:-1].tolist(), float(1.0 / (1.0 + np.exp(-parameter))))
    terms = {"mechanism": "discrete-laplace", "parameter": parameter, "sensitivity": sensitivity}
    return _guarantee((*losses[:-1], epsilon), masses, terms, adjacency)


def k_ary_response(noise: float, buckets: int, adjacency: Adjacency) -> Guarantee:
    """The guarantee of a response that is uniform over `buckets` answers with probability `noise`, and else the truth.

    The truth is one row's, and neighbours differ in it.

    >>> from dpselect.privacy.adjacency import Adjacency
    >>> print(round(k_ary_response(0.5, 2, Adjacency.REPLACE_ONE).epsilon(delta=0), 6))
    1.098612
    """
    if noise == 0.0 and buckets > 1:
        raise ArgumentError("noise_parameter is 0: the response is the truth, and there is no guarantee")
    if noise == 1.0 or buckets == 1:
        return pure_dp(epsilon=0, adjacency=adjacency)
    loss = float(np.log1p((1.0 - noise) * buckets / noise)) * (1.0 + 4e-15)
    terms = {"mechanism": "randomised-response", "noise": noise, "buckets": buckets}
    return _guarantee((loss,), (1.0 - noise + noise / buckets,), terms, adjacency)


@event_of.register(AtomsProfile)
def _event(part: AtomsProfile, adjacency: Adjacency) -> Any:
    """Discrete Laplace noise, if these are its atoms: the mass of the largest loss tells the parameter."""
    from dp_accounting.dp_event import DiscreteLaplaceDpEvent

    largest, mass = part.losses[-1], part.masses[-1]
    if adjacency is Adjacency.REPLACE_ONE or not 0.5 < mass < 1.0:
        return None
    parameter = math.log(mass) - math.log1p(-mass)
    sensitivity = max(round(largest / parameter), 1)
    alike = discrete_laplace(largest / sensitivity, sensitivity, adjacency).profile
    if not isinstance(alike, AtomsProfile) or len(alike.losses) != len(part.losses):
        return None
    same = all(np.allclose(a, b, rtol=1e-9) for a, b in ((alike.losses, part.losses), (alike.masses, part.masses)))
    return DiscreteLaplaceDpEvent(largest / sensitivity * MORE, sensitivity) if same else None
