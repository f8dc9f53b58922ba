"""Candidates with different guarantees: one draw of a data-independent mixture of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import SupportsFloat

import numpy as np

from dpselect.errors import ArgumentError, number
from dpselect.numerics.logs import ROUND_UP, log_weighted_sum
from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee
from dpselect.privacy.adjacency import common_adjacency
from dpselect.privacy.lower_ends import average_below
from dpselect.privacy.profile import PrivacyProfile
from dpselect.privacy.promises import promises
from dpselect.privacy.renyi import RenyiCurve

__all__ = ["mixture"]


@dataclass(frozen=True)
class AverageProfile(PrivacyProfile):
    """The weighted average of profiles, direction by direction."""

    profiles: tuple[PrivacyProfile, ...]
    weights: tuple[float, ...]
    theorem: str = "average profile of a mixture whose index is part of the output"

    def remove(self, epsilons: Array) -> Array:
        """A bound on H_{exp(epsilon)}(P || P')."""
        return self._average([p.remove(epsilons) for p in self.profiles])

    def add(self, epsilons: Array) -> Array:
        """A bound on H_{exp(epsilon)}(P' || P)."""
        return self._average([p.add(epsilons) for p in self.profiles])

    def _average(self, curves: Sequence[Array]) -> Array:
        return np.minimum(np.tensordot(self.weights, curves, axes=1) * ROUND_UP, 1.0)


@dataclass(frozen=True)
class AverageRenyi:
    """log of the weighted average of exp((order-1) epsilon), over order - 1: the moments average."""

    curves: tuple[RenyiCurve, ...]
    weights: tuple[float, ...]
    theorem: str = "Renyi moments of a mixture whose index is part of the output"

    def __call__(self, orders: Array) -> Array:
        orders = np.asarray(orders, dtype=np.float64)
        excess = orders - 1.0
        epsilons = np.asarray([curve(orders) for curve in self.curves])
        largest = np.max(epsilons, axis=0)
        weights = np.asarray(self.weights).reshape((-1,) + (1,) * orders.ndim)
        with np.errstate(invalid="ignore"):
            moments = log_weighted_sum(excess * (epsilons - largest), weights)
        return np.where(np.isfinite(largest), largest + moments / excess, np.inf) * ROUND_UP


def mixture(guarantees: Sequence[Guarantee], weights: Sequence[SupportsFloat] | None = None) -> Guarantee:
    """Return the guarantee of one candidate drawn with fixed weights, its index being part of the output.

    Give it to `best_of` when a search draws among candidates of different noise, sampling rate or steps. Profiles and
    Renyi moments average, which is below their maximum. The reason is that the divergences of the joint distribution of
    index and output are averages of the candidates' own.

    Args:
        guarantees: one guarantee for each candidate, all with the same adjacency.
        weights: a positive number for each candidate, in the same order. They need not sum to one. None, the default,
            means equal weights. You must ensure that they do not depend on the data.

    Returns:
        A guarantee with the candidates' adjacency.

    Raises:
        AdjacencyError: if the adjacencies differ.
        ArgumentError: if there is no candidate, a candidate promises nothing or is not a `Guarantee` (`PromiseError`),
            or the weights do not fit.
        TypeError: if a weight is not a number.

    >>> from dpselect.privacy import zcdp
    >>> round(mixture([zcdp(rho=0.2), zcdp(rho=0.05)]).renyi(order=8), 5)
    1.50101
    """
    guarantees = promises("guarantees", guarantees)
    if not guarantees:
        raise ArgumentError("guarantees must have at least one candidate")
    adjacency = common_adjacency(g.adjacency for g in guarantees)
    given = [1.0] * len(guarantees) if weights is None else [number("weights", w, above=0.0) for w in weights]
    if len(given) != len(guarantees):
        raise ArgumentError(f"weights must be one for each of the {len(guarantees)} guarantees, got {len(given)}")
    total = math.fsum(given)
    shares = [w / total for w in given]
    failure = math.fsum(share * g.failure for share, g in zip(shares, guarantees, strict=True))
    # the weights of the candidates given that none failed, the same for both data sets
    inside = [share * (1.0 - g.failure) / (1.0 - failure) for share, g in zip(shares, guarantees, strict=True)]
    curves = tuple(g.renyi_curve for g in guarantees if g.renyi_curve is not None)
    mus = {g.gaussian_mu for g in guarantees}
    return Guarantee(
        adjacency=adjacency,
        theorem="mixture of candidates, the index released",
        terms={"mechanism": "mixture", "weights": shares, "candidates": [dict(g.terms) for g in guarantees]},
        failure=failure,
        pure_epsilon=max(g.pure_epsilon for g in guarantees),
        renyi_curve=AverageRenyi(curves, tuple(inside)) if len(curves) == len(guarantees) else None,
        profile=AverageProfile(tuple(g.best_profile() for g in guarantees), tuple(shares)),
        lower_profile=average_below([g.lower_profile for g in guarantees], shares),
        # trade-off curves average too, so candidates with one Gaussian trade-off keep it
        gaussian_mu=mus.pop() if len(mus) == 1 else None,
    )
