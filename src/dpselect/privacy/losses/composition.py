"""Composing privacy-loss distributions with relative accuracy in the upper tail, every error counted upwards.

One transform leaves an absolute error in every bin, which is a false floor of delta (or, unseen, a missing mass) once a
search amplifies it. The masses tilted to x(l) = p(l) exp(theta l - c) have that error relative to the tilted
distribution, with its bulk in the tail. A few tilts cover the whole tail.

Why the result is an upper bound. All that is read from a distribution, sum of p(l) (1 - exp(e - l))_+ for any e,
does not decrease when a mass grows or moves to a larger loss, and neither does any convolution of it. So it is enough
that the result's mass of all losses >= l is at least the true one, for every l, which these steps keep:

1. For each tilt separately, bin l of the composition is at most (y(l) + a) exp(C - theta l), where y is the computed
   cyclic convolution of the x and C the sum of the c: wrap-around adds non-negative masses, the constants c may be any
   numbers as long as the same ones are taken out, and a bounds the rounding of the transforms (below). Each tilt gives
   a bound, so the smallest over the tilts is one. The choice of tilts only affects tightness.
2. Loss above the window has at most the mass of Chernoff's bound, min over t > 0 of E[exp(t L)] exp(-t end), and
   counts as infinite, as does any infinite loss of a part: 1 - prod (1 - infinite)^count.
3. Loss below the window counts as the window's first value: that bin is filled up to unit mass.
4. exp and the products before the transform are wrong by a factor within 1 +- r for each of the `count` parts, so a
   bin of positive terms by (1 - r)^-count at most; exp(C - theta l) by the rounding of its argument. Both factors are
   multiplied on.
5. Many parts are composed by a tree: the smallest first, a few at once, and then the sums. Each sum has at least the
   true mass of all losses >= l, for every l. So it may take the place of its parts. Excess mass comes from rounding
   only, and counts as that of the lowest losses. A sum has far fewer cells than the whole, so n parts cost about as
   much as 5 sqrt(n) transforms of the size of the whole.

The bound a: a transform of size N errs by at most D = u f log2(N) |X| in the Euclidean norm, u = 2^-53 (Higham 2002,
Theorem 24.2, has f near 7 for radix two with exact twiddle factors; f = 16 here covers the radices 3 and 5 and
rounded factors). With A = |X| + D and G = prod A^count over the parts, the product of powers errs at one frequency by
at most sum of count d G / A (d the error there, |d| <= D in norm) from the transforms, and 3 u count G from repeated
squaring; frequencies with G < exp(-90) are left out and counted. The inverse divides the sum over frequencies by N
(Cauchy and Schwarz: sum of d G / A <= D |G / A|) and adds its own u f log2(N) |y|.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics.search import Array, minimise

__all__ = [
    "BothLosses",
    "Losses",
    "Part",
    "Transformed",
    "by_tree",
    "compose_distributions",
    "compose_losses",
    "cumulant",
    "cut_to",
    "transformed",
    "unit_mass",
    "window",
]

Part = tuple["Losses", int]

_UNIT = 2.0**-53
_FACTOR = 16.0
_ABOVE = math.log(1e-40)
_BELOW = math.log(1e-18)
_LEFT_OUT = -90.0
_SMALLEST = -300.0
_DEFICIT = 1.5
_TOGETHER = 8
"""Parts that are transformed and multiplied at once: about the cheapest number, with few rounds of rounding."""


@dataclass(frozen=True, eq=False)
class Losses:
    """Masses of the losses (first + i) width under P, and at infinity. They sum to 1, or to less if bins were cut."""

    width: float
    first: int
    masses: Array
    infinite: float

    @classmethod
    def of(cls, pmf: Any) -> Losses:
        """A dp-accounting pmf, as it is."""
        dense = pmf.to_dense_pmf()
        masses = np.asarray(dense._probs, dtype=np.float64)
        return cls(float(dense._discretization), int(dense._lower_loss), masses, float(dense._infinity_mass))

    def repaired(self) -> Losses:
        """With unit mass, from the first bin that has any to the last."""
        masses, infinite = unit_mass(self.masses, self.infinite)
        present = np.flatnonzero(masses > 0.0)
        start, end = (int(present[0]), int(present[-1])) if present.size else (0, 0)
        return Losses(self.width, self.first + start, masses[start : end + 1], infinite)

    @property
    def last(self) -> int:
        """Index of the largest loss."""
        return self.first + self.masses.size - 1

    @cached_property
    def values(self) -> Array:
        """The losses."""
        return np.asarray((self.first + np.arange(self.masses.size)) * self.width, dtype=np.float64)

    def log_moment(self, theta: float) -> float:
        """log of E[exp(theta L)] over finite L."""
        if theta not in self._log_moments:
            shift = max(theta * self.first * self.width, theta * self.last * self.width)
            self._log_moments[theta] = shift + math.log(float(np.sum(self.tilted(theta, shift))))
        return self._log_moments[theta]

    @cached_property
    def _log_moments(self) -> dict[float, float]:
        return {}

    def tilted(self, theta: float, log_scale: float) -> Array:
        """The masses times exp(theta L - log_scale)."""
        # raised where it would end in denormal numbers, which are slow
        return self.masses * np.exp(np.maximum(theta * self.values - log_scale, _SMALLEST))


def unit_mass(masses: Array, infinite: float) -> tuple[Array, float]:
    """Masses and the infinite mass, with every repair upwards, for masses that a library's transforms have made.

    Negative masses become zero and the noise that they show, four standard errors of it, becomes infinite loss. Excess
    is cut at the lowest losses. Missing mass may belong anywhere, so it becomes infinite loss. The mass that the
    rounding of sums loses is relative, and raises every bin.
    """
    infinite = max(0.0, infinite)  # rounding leaves it below zero at times
    infinite += 4.0 * max(0.0, -float(np.min(masses))) * math.sqrt(masses.size)
    masses = cut_to(np.maximum(masses, 0.0), 1.0 - infinite)
    missing = max(0.0, 1.0 - infinite - float(np.sum(masses)))
    return (masses * (1.0 + missing), infinite) if missing < 1e-12 else (masses, infinite + missing)


def cut_to(masses: Array, total: float) -> Array:
    """Lower the first masses until their sum is at most `total`, summing from the last."""
    tails = np.cumsum(masses[::-1])[::-1]
    return np.clip(total - (tails - masses), 0.0, masses) if tails[0] > total else masses


class BothLosses(NamedTuple):
    """A privacy-loss distribution: the losses of P against P', removing a row, and of P' against P."""

    remove: Losses
    add: Losses

    @property
    def symmetric(self) -> bool:
        """Whether both are the same."""
        return self.add is self.remove


def compose_distributions(parts: Sequence[tuple[BothLosses, int]]) -> BothLosses:
    """The composition of privacy-loss distributions, each with how often it runs, pessimistic.

    All on one mesh (you must ensure this).
    """
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    remove = compose_losses([(both.remove.repaired(), count) for both, count in parts])
    if all(both.symmetric for both, _ in parts):
        return BothLosses(remove, remove)
    return BothLosses(remove, compose_losses([(both.add.repaired(), count) for both, count in parts]))


def compose_losses(parts: Sequence[Part]) -> Losses:
    """An upper bound on a sum of independent losses on one mesh, each part `count` times (see the module)."""
    return by_tree(parts, _compose_together)


def by_tree(parts: Sequence[Part], compose: Callable[[Sequence[Part]], Losses]) -> Losses:
    """Compose all parts, a few at a time: those of the fewest cells first, and then the sums of them.

    `compose` must give a bound that may take the place of its parts in a further composition.
    """
    parts = list(parts)
    while len(parts) > _TOGETHER:
        parts.sort(key=lambda part: part[0].masses.size * math.sqrt(part[1]))
        groups = -(-len(parts) // _TOGETHER)
        ends = [len(parts) * k // groups for k in range(groups + 1)]
        parts = [(compose(parts[start:end]), 1) for start, end in itertools.pairwise(ends)]
    return compose(parts)


def _compose_together(parts: Sequence[Part]) -> Losses:
    """The sum of a few parts, by transforms of its own size."""
    from scipy import fft  # here, or each price would wait for its import

    width = parts[0][0].width
    infinite = (
        -math.expm1(sum(count * math.log1p(-part.infinite) for part, count in parts))
        if all(part.infinite < 1.0 for part, _ in parts)
        else 1.0
    )
    if infinite >= 1.0 - 1e-9:  # the rest is of the size of what rounding loses
        return Losses(width, 0, np.zeros(1), 1.0)
    lowest = sum(count * part.first for part, count in parts)
    highest = sum(count * part.last for part, count in parts)
    start, end, tilts, beyond = window(parts, width, lowest, highest)
    masses = np.full(end - start + 1, np.inf)
    size = fft.next_fast_len(max(masses.size, *(part.masses.size for part, _ in parts)), real=True)
    for theta in tilts:
        np.minimum(masses, _tilted(parts, theta, size, start, lowest)[: masses.size], out=masses)
    infinite = min(1.0, (infinite + beyond) * (1.0 + 1e-12))
    masses[0] = max(float(masses[0]), 1.0 - infinite - float(np.sum(masses[1:])))
    return Losses(width, start, masses, infinite)


def cumulant(parts: Sequence[Part], theta: float) -> float:
    """log E[exp(theta L)] of the sum of the losses, where they are finite."""
    return sum(count * part.log_moment(theta) for part, count in parts)


def window(parts: Sequence[Part], width: float, lowest: int, highest: int) -> tuple[int, int, list[float], float]:
    """First and last index of the losses that matter, tilts that cover their tail, and a bound on the mass above."""

    def reach(sign: float, log_mass: float) -> tuple[float, float]:
        def at(logs: Array) -> Array:
            return np.array([(cumulant(parts, sign * t) - log_mass) / t for t in np.exp(logs).tolist()])

        log_theta, value = minimise(at, math.log(1e-3), math.log(1e4), points=9, zooms=3, shrink=5)
        return math.exp(log_theta), value

    strongest, high = reach(1.0, _ABOVE)
    _, low = reach(-1.0, _BELOW)
    start = max(math.floor(-low / width), lowest)
    end = min(max(math.ceil(high / width), start), highest)
    # beyond a tilt under which the largest sum is about as likely as any, none helps; what rounding has put above the
    # largest loss of a part is not counted
    tops = [(part, int(np.flatnonzero(part.masses > 1e-9 * np.max(part.masses))[-1])) for part, _ in parts]
    log_top = sum(c * math.log(float(p.masses[top])) for (p, top), (_, c) in zip(tops, parts, strict=True))
    loss_top = sum(c * float(p.values[top]) for (p, top), (_, c) in zip(tops, parts, strict=True))
    useful = strongest
    while useful > 1e-3 and cumulant(parts, 0.5 * useful) - 0.5 * useful * loss_top < log_top + 1.0:
        useful *= 0.5  # searches: a scale to a factor of two; powers by repeated squaring
    tilts = _tilts(parts, useful)
    if end == highest:
        return start, end, tilts, 0.0
    count = sum(count for _, count in parts)
    rounding = 4.0 * _UNIT * count * (max(p.masses.size for p, _ in parts) + strongest * abs(highest) * width / count)
    beyond = math.exp(cumulant(parts, strongest) - strongest * end * width + rounding)
    return start, end, tilts, beyond


def _tilts(parts: Sequence[Part], strongest: float) -> list[float]:
    """Tilts from 0 to `strongest`, so close that between two of them the tilted laws are not yet far down.

    The bounds of two tilts cross at one loss, where the law's convex envelope is below both by a deficit.
    """

    def between(a: float, log_a: float, b: float, log_b: float, depth: int) -> list[float]:
        middle = 0.5 * (a + b)
        log_middle = cumulant(parts, middle)
        if depth == 0 or log_middle >= 0.5 * (log_a + log_b) - _DEFICIT:
            return []
        first = between(a, log_a, middle, log_middle, depth - 1)
        return [*first, middle, *between(middle, log_middle, b, log_b, depth - 1)]

    ends = cumulant(parts, 0.0), cumulant(parts, strongest)
    return [0.0, *between(0.0, ends[0], strongest, ends[1], 12), strongest]


def _tilted(parts: Sequence[Part], theta: float, size: int, start: int, lowest: int) -> Array:
    """Upper bounds on the masses of the losses from `start` on, by the transforms of the masses tilted by theta."""
    found = transformed(parts, theta, size, start, lowest)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(
            (np.maximum(found.masses, 0.0) + found.error * (1.0 + 1e-9)) * np.exp(found.exponents + found.slack)
        )


@dataclass(frozen=True, eq=False)
class Transformed:
    """A cyclic convolution of tilted masses, a bound on its absolute error, and how to tilt it back.

    The masses of the losses congruent to start, start + 1, ... are those here, give or take `error`, times
    exp(exponents), give or take a factor exp(slack).
    """

    masses: Array
    error: float
    exponents: Array
    slack: float


def transformed(parts: Sequence[Part], theta: float, size: int, start: int, lowest: int) -> Transformed:
    """The composition of masses tilted by theta, by transforms of a size."""
    from scipy import fft

    transform_error = _UNIT * _FACTOR * math.log2(max(size, 2))
    spectra, errors, shift, argument_error, count = [], [], 0.0, 0.0, 0
    logs = np.zeros(size // 2 + 1)
    for part, times in parts:
        log_scale = part.log_moment(theta)
        tilted = part.tilted(theta, log_scale)
        spectrum = fft.rfft(tilted, size)
        error = transform_error * math.sqrt(size) * _norm(tilted)
        logs += times * np.log(np.abs(spectrum) + error)
        spectra.append((spectrum, times))
        errors.append(error)
        largest = theta * max(abs(part.first), abs(part.last)) * part.width
        argument_error += times * _UNIT * (3.0 * largest + 2.0 * abs(log_scale) + 6.0)
        shift, count = shift + times * log_scale, count + times
    kept = np.flatnonzero(logs > _LEFT_OUT)
    sizes = np.exp(logs[kept])
    product = np.ones(kept.size, dtype=np.complex128)
    frequency_error = 3.0 * _UNIT * count * 2.0 * float(np.sum(sizes))
    for (spectrum, times), error in zip(spectra, errors, strict=True):
        values = spectrum[kept]
        product *= _power(values, times)
        share = _norm(sizes / (np.abs(values) + error))
        frequency_error += times * error * math.sqrt(2.0) * share
    full = np.zeros(logs.size, dtype=np.complex128)
    full[kept] = product
    found = fft.irfft(full, size)
    bin_error = frequency_error / size + math.exp(_LEFT_OUT) + transform_error * _norm(found)
    # bin k of the transform stands for the losses congruent to lowest + k
    found = np.roll(found, (lowest - start) % size)
    exponent = shift - theta * ((start + np.arange(size)) * parts[0][0].width)
    slack = argument_error + 4.0 * _UNIT * (abs(shift) + float(np.max(np.abs(exponent))) + 8.0)
    raised = 2.0 * count * math.exp(_SMALLEST)  # tilted masses are raised to that share of themselves
    return Transformed(np.asarray(found), bin_error + raised, np.asarray(exponent, dtype=np.float64), slack)


def _norm(values: Array) -> float:
    """The Euclidean norm, rounded up. NumPy sums it, since a threaded BLAS loses more than it gains here."""
    return math.sqrt(float(np.sum(np.square(values)))) * (1.0 + 1e-9)


def _power(values: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """values^exponent by repeated squaring."""
    result, square = np.ones_like(values), values.copy()
    with np.errstate(under="ignore"):
        while exponent:
            if exponent & 1:
                result *= square
            exponent >>= 1  # searches: a scale to a factor of two; powers by repeated squaring
            if exponent:
                square *= square
    return result
