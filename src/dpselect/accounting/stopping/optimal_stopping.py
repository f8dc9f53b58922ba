"""The leakage of a run that stops where it likes among declared stopping points: an optimal stopping problem.

Hartmann, Bindschaedler, Bentkamp, West, "Privacy accounting economics" (2022), Theorem 15, states the smallest delta
for stopping points with prices as a maximum over exponentially many sets. It is the value of a game: the adversary
watches the privacy loss L grow and stops where the excess over the price is largest. In units of P-mass,

    V_i(L) = max(1 - exp(E_i - L), 0, E_P[V_{i+1}(L + loss of segment i+1)]),   delta = E_P[V_1(loss of segment 1)],

without the last term at the last stopping point. An infinite loss is worth 1.

A dominating pair for each segment is enough, no matter what the segments are and however each is chosen from earlier
outputs. As a function of the ratio r = exp(-L), V_i is convex and falls to 0, and the maximum of such functions is one.
So E_P[V(r dQ/dP)] is an integral of hockey-stick divergences, which a dominating pair only raises.
Induction from the last stopping point backwards. A stopping rule, even a randomised one, is linear in the excess, so
the maximum is right. The two orders of a neighbouring pair are two games, and the larger value counts.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import SupportsFloat

import numpy as np
from scipy.special import logsumexp

from dpselect.errors import ArgumentError, integer, number
from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee
from dpselect.privacy.adjacency import common_adjacency
from dpselect.privacy.losses.discretise import DominatingPair, PairEnclosure, coarsen
from dpselect.privacy.losses.pairs import PairSource
from dpselect.privacy.promises import promises

__all__ = ["ApproximateStepsGame", "StoppingGame", "approximate_steps_delta"]


_THETAS = np.geomspace(1e-2, 1e4, 60)
_NEGLIGIBLE = 1e-8
_LONGEST = 1 << 22


@dataclass(frozen=True, eq=False)
class _Increment:
    """P-masses of one segment's losses `first`, `first` + 1, ... in units of the mesh, and of the infinite loss."""

    first: int
    masses: Array
    infinite: float


@dataclass(frozen=True, eq=False)
class _Lattice:
    """Losses low*mesh .. high*mesh. A path that leaves them is worth what makes the value a bound from this side."""

    mesh: float
    low: int
    high: int
    upper: bool

    def value(self, increments: Sequence[_Increment], prices: Sequence[float | None]) -> float:
        """The value of the game at loss 0. A price None is a segment's end at which no one may stop."""
        losses: Array = np.arange(self.low, self.high + 1, dtype=np.float64) * self.mesh
        values: Array | None = None
        for k in range(len(increments) - 1, -1, -1):
            price = prices[k]
            if price is not None:
                stopped = self._excess(losses, price, len(increments))
                values = stopped if values is None else np.maximum(values, stopped)
            if values is None:
                raise ArgumentError("the last segment must end at a stopping point")
            values = self._carried(values, increments[k])
        assert values is not None
        return float(values[-self.low])

    def _excess(self, losses: Array, price: float, count: int) -> Array:
        # losses add up to multiples of the mesh only up to rounding
        slack = 2.0**-49 * (count + 1) * (price + np.abs(losses) + 1.0)
        return np.asarray(-np.expm1(np.minimum(price - losses + (-slack if self.upper else slack), 0.0)))

    def _carried(self, values: Array, increment: _Increment) -> Array:
        size = increment.masses.size
        place = np.arange(self.low, self.high + size) + increment.first
        after = values[np.clip(place - self.low, 0, values.size - 1)]
        if self.upper:
            after[place > self.high] = 1.0
        else:
            after[place < self.low] = 0.0
        sums = np.correlate(after, increment.masses, mode="valid") + increment.infinite
        rounding = 1e-12 + 2.0**-52 * size
        return np.asarray(np.clip(sums * (1.0 + rounding if self.upper else 1.0 - rounding), 0.0, 1.0))


Game = Callable[[Sequence[float | None]], float]
"""From prices to the value, for one order of the neighbouring pair."""


class StoppingGame:
    """The segments between stopping points, cut onto a lattice of losses once, to be priced many times.

    Args:
        segments: the guarantee of the work before the first stopping point, from there to the second, and so on. The
            same object twice is cut once.
        target: the delta that is wanted, about; it decides how far the losses are followed.
        points: how many losses the lattice has. More are tighter (the error falls with the square) and slower.

    >>> from dpselect.privacy import gaussian
    >>> game = StoppingGame([gaussian(noise_multiplier=4.0)] * 2, target=1e-6)
    >>> low, high = game.lower([1.2, 1.6]), game.upper([1.2, 1.6])
    >>> 0.0 < low <= high < 1.01 * low
    True
    """

    def __init__(self, segments: Sequence[Guarantee], *, target: SupportsFloat, points: int = 4096) -> None:
        if not segments:
            raise ArgumentError("segments must not be empty")
        self._segments = promises("segments", segments)
        common_adjacency(segment.adjacency for segment in self._segments)
        self._target = number("target", target, at_least=0.0, at_most=1.0)
        self._points = integer("points", points, at_least=64, at_most=_LONGEST)

    def upper(self, prices: Sequence[SupportsFloat]) -> float:
        """A delta that holds for these prices, one a stopping point: rounded up, certified on the lattice."""
        return self._value(self._above, prices)

    def lower(self, prices: Sequence[SupportsFloat]) -> float:
        """A delta that some mechanism and stopping rule attain, or 0 if none is known."""
        return self._value(self._below, prices)

    def _value(self, games: Sequence[Game], prices: Sequence[SupportsFloat]) -> float:
        if len(prices) != len(self._segments):
            raise ArgumentError("prices must have one for each segment")
        parsed = [number("prices", price, at_least=0.0) for price in prices]
        return max((game(parsed) for game in games), default=0.0)

    @cached_property
    def _above(self) -> tuple[Game, ...]:
        return tuple(
            self._cut([pair.pessimistic for pair in pairs], upper=True)
            for pairs in self._pairs({id(g): g.pair_source() for g in self._segments}, 2 * self._points)
        )

    @cached_property
    def _below(self) -> tuple[Game, ...]:
        # attained only where the segments' own pairs are
        sources = {id(g): g.attained_pairs() for g in self._segments}
        found = []
        for pairs in self._pairs(sources, 16 * self._points):
            optimistic = [pair.optimistic for pair in pairs if pair.optimistic is not None]
            if len(optimistic) == len(pairs):
                found.append(self._cut(optimistic, upper=False))
        return tuple(found)

    def _pairs(self, sources: Mapping[int, PairSource | None], atoms: int) -> list[list[PairEnclosure]]:
        """The segments' pairs in both orders, once if they agree, none if a segment has no source."""
        made = {}
        for key, source in sources.items():
            if source is None:
                return []
            made[key] = source(atoms)
        orders = 1 if all(first is second for first, second in made.values()) else 2
        return [[made[id(g)][k] for g in self._segments] for k in range(orders)]

    def _cut(self, pairs: Sequence[DominatingPair], *, upper: bool) -> Game:
        low, high = _reach(pairs, self._target)
        mesh = max(high - low, 1e-9) / self._points
        lattice = _Lattice(mesh, math.floor(low / mesh), math.ceil(high / mesh), upper)
        span = (self._points + 2) * mesh
        cut = _raised if upper else _merged
        made = {id(pair): cut(pair, mesh, span) for pair in {id(pair): pair for pair in pairs}.values()}
        return partial(lattice.value, [made[id(pair)] for pair in pairs])


def _reach(pairs: Sequence[DominatingPair], target: float) -> tuple[float, float]:
    """Losses outside which little of P's mass ever goes, by Chernoff. Any window is sound."""
    tail = math.log(_NEGLIGIBLE * max(target, 1e-200))
    rising, falling, top, bottom = np.zeros(_THETAS.size), np.zeros(_THETAS.size), 0.0, 0.0
    for key, count in Counter(id(pair) for pair in pairs).items():
        pair = next(pair for pair in pairs if id(pair) == key)
        kept = np.isfinite(pair.losses) & (pair.upper > 0.0)
        losses, logs = pair.losses[kept], np.log(pair.upper[kept])
        if not losses.size:
            continue
        rising += count * logsumexp(logs[:, None] + losses[:, None] * _THETAS, axis=0)
        falling += count * logsumexp(logs[:, None] - losses[:, None] * _THETAS, axis=0)
        top, bottom = top + count * float(losses[-1]), bottom + count * float(losses[0])
    high = min(float(np.min((rising - tail) / _THETAS)), top)
    # a path that falls is worth little on its return: a coarser tail does
    low = max(-float(np.min((falling - math.log(_NEGLIGIBLE)) / _THETAS)), bottom)
    return min(low, 0.0), max(high, 0.0)


def _raised(pair: DominatingPair, mesh: float, span: float) -> _Increment:
    """Connect the dots: a pair on the lattice that dominates this one."""
    finite = pair.losses[np.isfinite(pair.losses) & ((pair.upper > 0.0) | (pair.lower > 0.0))]
    low, high = (float(finite[0]), float(finite[-1])) if finite.size else (0.0, 0.0)
    first = math.floor(max(low, -span) / mesh) - 1
    last = math.ceil(min(high, span) / mesh) + 1
    grid: Array = np.arange(first, last + 1, dtype=np.float64) * mesh
    raised = coarsen(pair, grid).pessimistic
    return _Increment(first, raised.upper[1:-1], float(raised.upper[-1]))


def _merged(pair: DominatingPair, mesh: float, span: float) -> _Increment:
    """Atoms merged where they are near a loss of the lattice, then moved down to it: a pair that this one dominates.

    The bins reach a little further up than down, so that most merged losses are just above the loss they move to.
    """
    finite = np.isfinite(pair.losses) & (pair.upper > 0.0) & (pair.lower > 0.0) & (pair.losses >= -span)
    losses = np.minimum(pair.losses[finite], span)
    place = np.floor(losses / mesh + 0.46).astype(np.int64)
    if not place.size:
        return _Increment(0, np.zeros(1), float(np.sum(pair.upper[pair.losses == np.inf])))
    start = int(place.min())
    upper, lower = (np.bincount(place - start, masses[finite]) for masses in (pair.upper, pair.lower))
    kept = upper > 0.0
    moved = np.floor((np.log(upper[kept]) - np.log(lower[kept])) / mesh - 1e-9).astype(np.int64)
    first = int(moved.min())
    masses = np.asarray(np.bincount(moved - first, upper[kept]), dtype=np.float64)
    return _Increment(first, masses, float(np.sum(pair.upper[pair.losses == np.inf])))


class ApproximateStepsGame:
    """The same for single steps, each known to be (epsilon, delta)-private and no more.

    Such steps are dominated by randomised response with a failure (their Lemma 12; Kairouz, Oh, Viswanath 2015). Its
    losses are plus or minus epsilon. The result is exact if the epsilons are multiples of `mesh`. If not, each is
    rounded up to one, which is a bound. Without `mesh` their greatest common divisor as decimals is used. `stops` are
    the numbers of steps after which a run may stop, the last being all of them.

    Raises `ArgumentError` for lists that do not fit, or for more than `limit` operations.
    Source: Hartmann et al. 2022, Theorem 15.
    """

    def __init__(
        self,
        *,
        epsilons: Sequence[SupportsFloat],
        deltas: Sequence[SupportsFloat],
        stops: Sequence[int],
        mesh: SupportsFloat | None = None,
        limit: int = 10**10,
    ) -> None:
        sizes = [number("epsilons", e, at_least=0.0, rounding="up") for e in epsilons]
        failures = [number("deltas", d, at_least=0.0, at_most=1.0, rounding="up") for d in deltas]
        self._stops = [integer("stops", k, at_least=1) for k in stops]
        if len(sizes) != len(failures) or not self._stops or self._stops[-1] != len(sizes):
            raise ArgumentError("epsilons and deltas must have one for each step up to the last stop")
        if any(b <= a for a, b in itertools.pairwise(self._stops)):
            raise ArgumentError("stops must be strictly increasing")
        unit = _common_unit(sizes) if mesh is None else Fraction(repr(number("mesh", mesh, above=0.0)))
        counts = [math.ceil(Fraction(repr(e)) / unit) for e in sizes]
        total = sum(counts)
        if total > _LONGEST or total * (total + len(counts)) > limit:
            raise ArgumentError("mesh must be coarser: these epsilons would take too many losses")
        self._steps = [_response(m, m * float(unit), d) for m, d in zip(counts, failures, strict=True)]
        self._lattice = _Lattice(float(unit), -total, total, upper=True)

    def upper(self, prices: Sequence[SupportsFloat]) -> float:
        """The smallest delta for these prices, one a stop, rounded up."""
        parsed = [number("prices", e, at_least=0.0) for e in prices]
        if len(parsed) != len(self._stops):
            raise ArgumentError("prices must have one for each stop")
        at = dict(zip(self._stops, parsed, strict=True))
        return self._lattice.value(self._steps, [at.get(k + 1) for k in range(len(self._steps))])


def approximate_steps_delta(
    *,
    epsilons: Sequence[SupportsFloat],
    deltas: Sequence[SupportsFloat],
    stops: Sequence[int],
    prices: Sequence[SupportsFloat],
    mesh: SupportsFloat | None = None,
) -> float:
    """The smallest delta for (epsilons[k], deltas[k])-private steps and these prices: see `ApproximateStepsGame`.

    >>> round(approximate_steps_delta(epsilons=[0.5] * 2, deltas=[0.01] * 2, stops=[1, 2], prices=[0.3, 0.6]), 10)
    0.1450943973
    """
    return ApproximateStepsGame(epsilons=epsilons, deltas=deltas, stops=stops, mesh=mesh).upper(prices)


def _common_unit(sizes: Sequence[float]) -> Fraction:
    unit = Fraction(0)
    for size in sizes:
        exact = Fraction(repr(size))
        unit = Fraction(
            math.gcd(unit.numerator * exact.denominator, exact.numerator * unit.denominator),
            unit.denominator * exact.denominator,
        )
    return unit or Fraction(1)


def _response(count: int, epsilon: float, failure: float) -> _Increment:
    """Randomised response with losses +- count meshes, and its failure."""
    masses = np.zeros(2 * count + 1)
    masses[0] += (1.0 - failure) * math.exp(-epsilon) / (1.0 + math.exp(-epsilon))
    masses[-1] += (1.0 - failure) / (1.0 + math.exp(-epsilon))
    return _Increment(-count, masses, failure)
