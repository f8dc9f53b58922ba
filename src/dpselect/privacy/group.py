"""Group privacy: what a guarantee for one row says of several rows of one person.

Data sets that differ in k rows are the ends of a chain of k neighbours. Every bound here is proved along such a chain:
none of it takes k rows for k mechanisms, whose composition is smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial

import numpy as np

from dpselect.caching import CopiedByFields
from dpselect.errors import number
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy.below import AttainedGaussian, AttainedLaplace
from dpselect.privacy.losses.connect_the_dots import hull_points
from dpselect.privacy.profile import (
    GaussianProfile,
    LaplaceProfile,
    PrivacyProfile,
    SymmetricProfile,
    TabulatedProfile,
    TwoSidedProfile,
    both_directions,
    epsilon_at,
)
from dpselect.privacy.renyi import LinearRenyi, RenyiCurve

__all__ = ["failure_of_rows", "lower_of_rows", "profile_of_rows", "renyi_of_rows", "times_up"]

_LARGEST = 700.0
"""Losses beyond this have no exponential."""
_SMALLEST = 1e-60
"""Profiles are followed down to this delta, or to where they stop falling."""
_LOSSES = 8001
"""How many values of a step's loss are considered."""
_STARTS = 20_000
"""How many probabilities a chain is followed from, twice: fewer for more rows than 200."""
_MOST_STEPS = 4_000_000
"""Steps of all chains of one kind, which bound the time for any number of rows: about a second."""
_LEAST_OF_COSTLY = 1e-12
_POINTS_OF_COSTLY = 33
"""A profile of which each value takes a tenth of a second is known at so many points, down to that delta."""
_NARROWEST = 2.0**-20
"""So far at least, for a profile that is nearly nothing at 0."""
_CHAIN_ROUNDING = 1.0 + 1e-11
"""More than the rounding of a line, relatively, of which each step multiplies by an exponential of up to 700."""


def times_up(value: float, rows: int) -> float:
    """`rows` times a number, rounded up where that is no float64."""
    return number("epsilon", Fraction(value) * rows, rounding="up") if math.isfinite(value) else value


def failure_of_rows(epsilon: float, failure: float, rows: int) -> float:
    """delta (exp(k epsilon) - 1) / (exp(epsilon) - 1), with which k epsilon holds, at most 1.

    Source: Vadhan 2017, Lemma 2.2.
    """
    if failure == 0.0:
        return 0.0
    if epsilon * (rows - 1) > _LARGEST:
        return 1.0
    grown = (
        math.fsum(math.exp(epsilon * step) for step in range(rows))
        if rows <= 1000
        else rows * math.exp(epsilon * (rows - 1))
    )
    return min(failure * grown * ROUND_UP, 1.0)


@dataclass(frozen=True)
class RenyiOfRows:
    """k a (R(ka)/(ka) + R(ka-1)/(ka-1) + ... + R(ka-k+1)/(ka-k+1)) at order a, R being the curve of one row.

    By the weak triangle inequality along the chain, its orders chosen so that rho * order becomes k^2 rho * order.
    Source: Mironov 2017, Proposition 11.
    """

    curve: RenyiCurve
    rows: int
    theorem: str = "group privacy (Mironov 2017, Proposition 11)"

    def __call__(self, orders: Array) -> Array:
        """The divergence at each order."""
        top = self.rows * np.asarray(orders, dtype=np.float64)
        total = np.zeros(top.shape)
        for step in range(self.rows):
            total = total + self.curve(top - step) / (top - step)
        return np.asarray(top * total * ROUND_UP)


def renyi_of_rows(curve: RenyiCurve, rows: int) -> RenyiCurve:
    """The Renyi curve of `rows` rows. Source: Bun, Steinke 2016, Proposition 1.9."""
    if isinstance(curve, LinearRenyi):
        return LinearRenyi(times_up(curve.rho, rows * rows))
    return RenyiOfRows(curve, rows)


def profile_of_rows(
    profile: PrivacyProfile, rows: int, *, one_way: bool, corners: tuple[float, ...] = ()
) -> PrivacyProfile:
    """The profile of `rows` rows: in closed form for Gaussian and Laplace noise, else by the best splits.

    `one_way` says that every step of the chain goes in the same direction, as when rows are added. `corners` are
    epsilons at which the curve may bend.
    """
    if isinstance(profile, GaussianProfile):
        return GaussianProfile(times_up(profile.mu, rows), "group privacy (Dong, Roth, Su 2022, Theorem 2.14)")
    if isinstance(profile, LaplaceProfile):
        return LaplaceProfile(times_up(profile.epsilon0, rows), "group privacy (Dong, Roth, Su 2022, Theorem 2.14)")
    if profile.costly:
        lasting = float(both_directions(profile, np.array([_LARGEST]))[0])
        end = epsilon_at(profile, max(_LEAST_OF_COSTLY, min(1.001 * lasting, 1.0)))
        points = np.linspace(0.0, min(max(end, _NARROWEST), _LARGEST), _POINTS_OF_COSTLY)
        known = both_directions(profile, points)
        profile = TabulatedProfile(tuple(points.tolist()), tuple(known.tolist()))
    return ProfileOfRows(profile, rows, one_way, corners)


def lower_of_rows(lower: PrivacyProfile | None, rows: int) -> PrivacyProfile | None:
    """The profile that noise attains for `rows`, given the one of a single row: each row can move the sum as far."""
    if isinstance(lower, AttainedGaussian):
        return AttainedGaussian.of(rows * lower.profile.mu)
    if isinstance(lower, AttainedLaplace):
        return AttainedLaplace.of(rows * lower.profile.epsilon0)
    return None


@dataclass(frozen=True)
class ProfileOfRows(TwoSidedProfile, CopiedByFields):
    """The profile of k rows by splits of epsilon among the k steps of the chain, the best found for each epsilon.

    With H_a(P, R) for the divergence at a, H_exp(a + b)(P, R) <= H_exp(a)(P, Q) + exp(a) H_exp(b)(Q, R) for every real
    a and b. Equal splits give Vadhan 2017, Lemma 2.2. The best splits are those of the k-fold iterate of the trade-off
    curve, which is the exact answer for a curve. Any split is valid, so the search can only lose tightness. Source:
    Dong, Roth, Su 2022, Theorem 2.14.
    """

    one: PrivacyProfile
    rows: int
    one_way: bool
    corners: tuple[float, ...] = ()
    theorem: str = "group privacy (Dong, Roth, Su 2022, Theorem 2.14)"

    def at(self, direction: int, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0."""
        return self._tables[direction].at(epsilons)

    @cached_property
    def _tables(self) -> tuple[TabulatedProfile, TabulatedProfile]:
        if isinstance(self.one, SymmetricProfile) or not self.one_way:
            table = _table(partial(both_directions, self.one), self.rows, self.corners)
            return table, table
        return _table(self.one.remove, self.rows, self.corners), _table(self.one.add, self.rows, self.corners)


def _table(curve: Callable[[Array], Array], rows: int, corners: tuple[float, ...]) -> TabulatedProfile:
    """Points (epsilon, delta) of the profile of `rows` steps of a curve, chords between them.

    A step is at most exp(a) x + delta(a) for every a, where x is the probability of the event before it. From each of
    many x the chain takes the a that is best there, and what it took is a point.
    """
    losses, deltas = _lines(curve, corners)
    # log x below which the next line is the better one
    with np.errstate(divide="ignore"):
        turns = np.log(np.maximum(-np.diff(deltas), 0.0)) - losses[1:] - np.log(-np.expm1(-np.diff(losses)))
    turns = np.minimum.accumulate(turns)[::-1]
    starts = min(_STARTS, _MOST_STEPS // rows)
    log_x = np.concatenate([-np.geomspace(1e-6, 40.0, starts), np.linspace(-40.0, -_LARGEST, starts)])
    total, grown = np.zeros(log_x.shape), np.zeros(log_x.shape)
    for _ in range(rows):
        best = turns.size - np.searchsorted(turns, log_x, side="right")
        grown = np.minimum(grown * np.exp(losses[best]) + deltas[best], 1.0)
        total = total + losses[best]
        with np.errstate(divide="ignore"):
            log_x = np.minimum(np.logaddexp(log_x + losses[best], np.log(deltas[best])), 0.0)
    # a larger epsilon is the weaker claim
    total = total + 1e-15 * rows * float(np.max(np.abs(losses)))
    order = np.lexsort((grown, total))
    total, grown = total[order], np.minimum.accumulate(grown[order])
    first = np.concatenate([[True], np.diff(total) > 0.0])
    total, grown = total[first], np.minimum(grown[first] * _CHAIN_ROUNDING, 1.0)
    kept = hull_points(total, grown)
    total, grown = total[kept], grown[kept]
    at_zero = float(TabulatedProfile(tuple(total.tolist()), tuple(grown.tolist())).at(np.zeros(1))[0])
    above = total > 0.0
    return TabulatedProfile((0.0, *total[above].tolist()), (min(at_zero, 1.0), *grown[above].tolist()))


def _lines(curve: Callable[[Array], Array], corners: tuple[float, ...]) -> tuple[Array, Array]:
    """Losses on both sides of zero, dense as far as the curve falls, and its deltas there: the lower hull of them."""
    sought = np.concatenate([[0.0], np.geomspace(1e-9, _LARGEST, 2000)])
    deltas = np.minimum.accumulate(curve(sought))
    end = int(np.argmax(deltas <= max(float(deltas[-1]) * (1.0 + 1e-9), _SMALLEST)))
    top = float(sought[max(end, 1)])
    bends = [sign * corner for corner in corners if corner < _LARGEST for sign in (-1.0, 1.0)]
    losses = np.union1d(np.linspace(-top, top, _LOSSES), bends)
    deltas = np.minimum.accumulate(np.clip(curve(losses), 0.0, 1.0))
    kept = hull_points(losses, deltas)
    return losses[kept], deltas[kept]
