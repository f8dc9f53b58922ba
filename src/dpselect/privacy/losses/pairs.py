"""Recipes for finite pairs around the usual mechanisms: how many atoms in, enclosures of both directions out.

A recipe is a frozen dataclass, so that guarantees stay cheap to hold and to pickle. `recipe(atoms)` returns the
enclosures of (P, P') and of (P', P), the same object twice where the two directions agree.

A recipe whose optimistic pairs some mechanism attains says so: `attained` is true. One that does not say it is a bound
only, and nothing may be concluded from below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from scipy.special import ndtr

from dpselect.numerics.search import Array
from dpselect.privacy.losses.connect_the_dots import hull_points
from dpselect.privacy.losses.discretise import DominatingPair, PairEnclosure, coarsen, enclose_bins, loss_grid, splice

__all__ = [
    "Attainable",
    "GaussianPairs",
    "LaplacePairs",
    "LossPairs",
    "PairSource",
    "ProfilePairs",
    "RandomizedResponsePairs",
]

PairSource = Callable[[int], tuple[PairEnclosure, PairEnclosure]]

_REACH = 10.5
"""Standard deviations kept on either side: 4e-26 of the mass is beyond."""

_MOST_KNOTS = 4096
"""Of a table with more points the pairs are coarsened: every search over them takes time by their number."""

_TRIED, _STEP = 400, 19
"""Epsilons at which the end of a curve is looked for: each 19th first, among them the last."""

_LARGEST_LOSS = 600.0
"""Losses beyond it count as infinite: exp of them would leave double precision."""


@runtime_checkable
class Attainable(Protocol):
    """A recipe that states whether some mechanism attains its optimistic pairs."""

    @property
    def attained(self) -> bool:
        """Whether one does."""
        ...

    def __call__(self, atoms: int) -> tuple[PairEnclosure, PairEnclosure]: ...


class Curves(Protocol):
    """Bounds on both hockey-stick divergences, as a privacy profile has."""

    def remove(self, epsilons: Array) -> Array:
        """Of P from P'."""
        ...

    def add(self, epsilons: Array) -> Array:
        """Of P' from P."""
        ...


class Distributions(Protocol):
    """Privacy-loss distributions, read as pairs."""

    @property
    def pairs(self) -> tuple[DominatingPair, DominatingPair]:
        """For (P, P') and (P', P)."""
        ...

    def rougher(self) -> Distributions:
        """The same on a wider mesh."""
        ...


@dataclass(frozen=True)
class GaussianPairs:
    """N(mu, 1) against N(0, 1)."""

    mu: float
    attained: ClassVar[bool] = True

    def __call__(self, atoms: int) -> tuple[PairEnclosure, PairEnclosure]:
        low, high = -_REACH, self.mu + _REACH
        bound = _LARGEST_LOSS / self.mu + self.mu / 2.0
        x = np.linspace(max(low, self.mu - bound), min(high, bound), atoms)
        upper, lower = _normal_masses(x - self.mu), _normal_masses(x)
        both = enclose_bins(
            self.mu * (x - self.mu / 2.0),
            upper[1:-1],
            lower[1:-1],
            (float(upper[0]), float(lower[0])),
            (float(upper[-1]), float(lower[-1])),
        )
        return both, both


def _normal_masses(x: Array) -> Array:
    """Standard normal masses of the intervals cut at `x`, from the nearer tail."""
    below, above = ndtr(x), ndtr(-x)
    inner = np.where(x[1:] <= 0.0, np.diff(below), -np.diff(above))
    return np.concatenate(([below[0]], inner, [above[-1]]))


@dataclass(frozen=True)
class LaplacePairs:
    """Laplace(0, 1 / epsilon) against Laplace(1, 1 / epsilon): an atom at either end, a density between."""

    epsilon: float
    attained: ClassVar[bool] = True

    def __call__(self, atoms: int) -> tuple[PairEnclosure, PairEnclosure]:
        e = self.epsilon
        edges = np.linspace(-e, e, atoms)
        # masses of P between losses: half exp(-e/2) (exp(l/2)) at the ends
        half = 0.5 * np.expm1(0.5 * np.diff(edges))
        upper = half * np.exp(0.5 * (edges[:-1] - e))
        lower = half * np.exp(-0.5 * (edges[1:] + e))
        inside = enclose_bins(edges, upper, lower, (0.0, 0.0), (0.0, 0.0))
        heavy = DominatingPair(
            losses=np.array([-e, e]),
            upper=np.array([0.5 * np.exp(-e), 0.5]),
            lower=np.array([0.5, 0.5 * np.exp(-e)]),
        )
        optimistic = inside.optimistic
        assert optimistic is not None
        both = PairEnclosure(_union(inside.pessimistic, heavy), _union(optimistic, heavy))
        return both, both


def _union(first: DominatingPair, second: DominatingPair) -> DominatingPair:
    losses = np.concatenate((first.losses, second.losses))
    order = np.argsort(losses, kind="stable")
    return DominatingPair(
        losses=losses[order],
        upper=np.concatenate((first.upper, second.upper))[order],
        lower=np.concatenate((first.lower, second.lower))[order],
    )


@dataclass(frozen=True)
class RandomizedResponsePairs:
    """The worst (epsilon, failure)-private pair (Kairouz, Oh, Viswanath 2015, Theorem 3.3): four atoms."""

    epsilon: float
    failure: float = 0.0
    attained: ClassVar[bool] = True

    def __call__(self, atoms: int) -> tuple[PairEnclosure, PairEnclosure]:  # noqa: ARG002
        kept = 1.0 - self.failure
        likely = kept / (1.0 + np.exp(-self.epsilon))
        unlikely = kept * np.exp(-self.epsilon) / (1.0 + np.exp(-self.epsilon))
        pair = DominatingPair(
            losses=np.array([-np.inf, -self.epsilon, self.epsilon, np.inf]),
            upper=np.array([0.0, unlikely, likely, self.failure]),
            lower=np.array([self.failure, likely, unlikely, 0.0]),
        )
        both = PairEnclosure(pair, pair)
        return both, both


@dataclass(frozen=True)
class LossPairs:
    """Coarsenings of a privacy-loss distribution, which is pessimistic: nothing of it is attained.

    Each direction takes its losses above zero from its own distribution and those below zero from the other one turned
    round. A distribution composed by transforms is only accurate if its own masses are not multiplied up.
    """

    profile: Distributions
    attained: ClassVar[bool] = False

    def __call__(self, atoms: int) -> tuple[PairEnclosure, PairEnclosure]:
        remove, add = self.profile.pairs
        remove, add = _consistent(remove), _consistent(add)
        forward = splice(remove, add.swapped())
        first = _enclose(forward, atoms)
        if self.profile.pairs[0] is self.profile.pairs[1]:
            return first, first
        return first, _enclose(splice(add, remove.swapped()), atoms)

    def rougher(self) -> LossPairs:
        """The same of distributions on a wider mesh: quicker, and close above."""
        return LossPairs(self.profile.rougher())


def _consistent(pair: DominatingPair) -> DominatingPair:
    """The same upper masses with lower = upper exp(-loss). The lowest losses take what P' lacks or exceeds.

    P-mass below a cut moves up to it, which raises the curve below the cut to its chord and keeps the rest.
    """
    finite = np.isfinite(pair.losses)
    losses, upper = pair.losses[finite], pair.upper[finite]
    infinite = float(np.sum(pair.upper[pair.losses == np.inf]))
    with np.errstate(over="ignore", invalid="ignore"):
        lower = np.where(upper > 0.0, upper * np.exp(-losses), 0.0)
        above = np.cumsum(lower[::-1])[::-1] - lower
        fits = above + np.cumsum(upper) * np.exp(-losses) <= 1.0
    cut = int(np.argmax(fits)) if np.any(fits) else losses.size - 1
    upper, lower, losses = upper.copy(), lower.copy(), losses[cut:]
    moved = float(np.sum(upper[: cut + 1]))
    upper, lower = upper[cut:], lower[cut:]
    upper[0], lower[0] = moved, moved * float(np.exp(-losses[0]))
    return DominatingPair.between(losses, upper, lower, infinite=infinite)


def _enclose(pair: DominatingPair, atoms: int) -> PairEnclosure:
    return PairEnclosure(coarsen(pair, loss_grid(pair, atoms)).pessimistic, None)


@dataclass(frozen=True)
class ProfilePairs:
    """The pair of a profile: chords in exp(epsilon) between knots, exact when the profile is made of such chords.

    Of more than 4,096 knots the pairs are coarsened to about as many atoms, which enclose the exact one.
    `knots` are the epsilons > 0 to use. None spreads them over the range in which the profile falls. `attained` says
    that the profile is itself that of some mechanism, so that nothing valid is below its pair.
    """

    profile: Curves
    knots: tuple[float, ...] | None = None

    @property
    def attained(self) -> bool:
        """Whether there are optimistic pairs: the profile is made of the knots' chords, and not itself a bound."""
        return self.knots is not None

    def __call__(self, atoms: int) -> tuple[PairEnclosure, PairEnclosure]:
        epsilons = self._epsilons(atoms)
        curves = [np.clip(curve(epsilons), 0.0, 1.0) for curve in (self.profile.remove, self.profile.add)]
        # the chord across loss 0 bounds the total variation: (exp(e) - 1 + f(e) + g(e)) / (exp(e) + 1)
        chords = np.tanh(epsilons / 2.0) + (curves[0] + curves[1]) / (1.0 + np.exp(epsilons))
        forward, backward = (_half(epsilons, curve, float(np.min(chords))) for curve in curves)
        at_zero = 1.0 - float(np.sum(forward.upper[1:])) - float(np.sum(backward.lower[1:]))
        if at_zero < -1e-12:
            forward = backward = _half(epsilons, np.maximum(*curves), float(np.min(chords)))
        first, second = splice(forward, backward.swapped()), splice(backward, forward.swapped())
        if self.knots is None:
            return PairEnclosure(first, None), PairEnclosure(second, None)
        if len(self.knots) > _MOST_KNOTS:
            return coarsen(first, loss_grid(first, _MOST_KNOTS)), coarsen(second, loss_grid(second, _MOST_KNOTS))
        return PairEnclosure(first, first), PairEnclosure(second, second)

    def _epsilons(self, atoms: int) -> Array:
        if self.knots is not None:
            return np.array([0.0, *(e for e in self.knots if e > 0.0)])
        top = max(_top(self.profile.remove), _top(self.profile.add))
        return np.linspace(0.0, top, max(2, atoms // 2))


def _half(epsilons: Array, values: Array, variation: float) -> DominatingPair:
    """The atoms of positive loss of one direction, and the rest at loss 0, from its curve at epsilons from 0 on."""
    values = np.append(min(variation, float(values[0])), values[1:])
    values = np.minimum.accumulate(values)
    kept = hull_points(epsilons, values)
    epsilons, values = epsilons[kept], values[kept]
    # slopes in exp(epsilon), scaled by exp of the later knot to stay in range
    falls = np.diff(values) / -np.expm1(-np.diff(epsilons))
    slopes = np.append(falls * np.exp(-epsilons[1:]), 0.0)
    lower = np.maximum(np.diff(slopes), 0.0)
    upper = lower * np.exp(epsilons[1:])
    infinite = float(values[-1])
    return DominatingPair(
        losses=np.concatenate(([0.0], epsilons[1:], [np.inf])),
        upper=np.concatenate(([max(0.0, 1.0 - float(np.sum(upper)) - infinite)], upper, [infinite])),
        lower=np.concatenate(([max(0.0, 1.0 - float(np.sum(lower)))], lower, [0.0])),
    )


def _top(curve: Callable[[Array], Array]) -> float:
    """An epsilon past which the curve no longer falls, or is below 1e-22."""
    tried = np.exp(np.linspace(np.log(1e-4), np.log(_LARGEST_LOSS), _TRIED))
    some = np.asarray(curve(tried[::_STEP]))
    floor = max(1e-22, float(some[-1]) * (1.0 + 1e-9))
    # curves fall, so the first place is between two of these
    end = _STEP * int(np.argmax(some <= floor))
    between = tried[max(end - _STEP + 1, 0) : end + 1]
    fallen = np.append(np.asarray(curve(between[:-1])) <= floor, True)
    return float(between[int(np.argmax(fallen))]) if between.size > 1 else float(tried[end])
