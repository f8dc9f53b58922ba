"""Privacy losses from below: discrete laws that a mechanism's own pair can be processed into, and their compositions.

The mirror of `connect_the_dots` and `loss_composition`, for what some mechanism attains. A reading of a loss
distribution does not grow when a mass shrinks or moves to a smaller loss. A pair with a smaller hockey-stick curve at
every order is a post-processing of the other (Blackwell). Both facts carry over to compositions. Proofs:
docs/theory/brackets.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpselect.numerics.search import Array
from dpselect.privacy.losses.composition import Losses, Part, by_tree, cumulant, transformed, window
from dpselect.privacy.losses.discretise import DominatingPair

__all__ = ["Band", "Positive", "compose_below", "dots_below", "joined", "lattice", "positive_losses"]

Band = tuple[Array, Array]
"""Bounds from below and above on a hockey-stick curve at 0, w/2, w, 3w/2, ..."""

_UNIT = 2.0**-53
_TILT_SHARES = tuple(2.0**k for k in (0, -1, -2, 1, -3, -4, -5, -6, -7))
"""Of the strongest tilt, the one first that mostly does."""
_NO_MATTER = math.log(1e-7)


@dataclass(frozen=True, eq=False)
class Positive:
    """Masses of the losses width, 2 width, ... and of infinite loss, under the first law of a pair."""

    width: float
    masses: Array
    infinite: float = 0.0

    @property
    def values(self) -> Array:
        """The losses."""
        return np.asarray(np.arange(1, self.masses.size + 1) * self.width, dtype=np.float64)

    def hockey_stick(self, epsilons: Array) -> Array:
        """The divergence at each epsilon >= 0, rounded down."""
        values = self.values
        tails = np.append(np.cumsum(self.masses[::-1])[::-1], 0.0)
        far = np.append(np.cumsum((self.masses * np.exp(-values))[::-1])[::-1], 0.0)
        start = np.searchsorted(values, epsilons, side="right")
        rounding = (self.masses.size + 100) * 2.0 * _UNIT
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            cost = np.where(far[start] > 0.0, np.exp(epsilons) * far[start], 0.0) * (1.0 + rounding)
            result = self.infinite + tails[start] * (1.0 - rounding) - cost
        return np.asarray(np.where(result > 1e-299, result, 0.0) * (1.0 - 1e-14))

    def scaled(self, factor: float) -> Positive:
        """Every mass times a factor of at most 1."""
        return Positive(self.width, self.masses * factor, self.infinite * factor)


def dots_below(width: float, band: Band, infinite: float = 0.0) -> Positive:
    """The positive losses of a discrete law whose hockey-stick curve is below one that is known at half steps.

    From 0 on, w the width: lower the curve at the mesh points until its chords in exp(epsilon) are below it. A chord
    exceeds a convex curve by a concave function. So the excess is nowhere above 1 / min(r, 1 - r) times the excess at a
    share r of the way. `infinite` is a lower bound on the curve's limit.
    """
    low, high = band
    growth, share = math.expm1(width), 1.0 / (1.0 + math.exp(0.5 * width))
    above = (1.0 - share) * high[:-2:2] + share * high[2::2] * (1.0 + 4.0 * _UNIT) - low[1::2]
    gaps = np.maximum(above + 4.0 * _UNIT * high[:-2:2], 0.0) / share
    lowered = low[::2] - np.maximum(np.append(gaps, gaps[-1]), np.append(gaps[0], gaps))
    # the chord that leads to where nothing is left may be above the curve: nothing from its start on
    spent = np.flatnonzero(lowered <= infinite)
    lowered[max(int(spent[0]) - 1, 0) if spent.size else -1 :] = infinite
    tails = lowered[:-1] + (lowered[:-1] - lowered[1:]) / growth * (1.0 - 8.0 * _UNIT)
    tails = tails - 4.0 * _UNIT * lowered[:-1] * (1.0 + 1.0 / growth)
    tails = np.minimum.accumulate(np.minimum(np.maximum(tails, 0.0), 1.0))
    infinite = min(infinite, float(tails[-1]))
    return Positive(width, np.append(tails[:-1] - tails[1:], tails[-1] - infinite), infinite)


def positive_losses(width: float, pair: DominatingPair) -> Positive:
    """The positive losses of a finite pair, each moved down to a multiple of the width."""
    finite = np.isfinite(pair.losses) & (pair.losses > 0.0) & (pair.upper > 0.0)
    places = np.floor(pair.losses[finite] / width * (1.0 - 8.0 * _UNIT)).astype(np.int64)
    masses = np.bincount(places, pair.upper[finite], 2)[1:]
    return Positive(width, np.asarray(masses), float(np.sum(pair.upper[pair.losses == np.inf])))


def joined(here: Positive, other: Positive) -> DominatingPair:
    """The pair with these positive losses in the two directions, and the rest of its mass at loss 0.

    Both must be below the same mechanism. They are scaled down to one total variation, and so far that there is room
    for loss 0. A smaller share of the losses has a smaller curve.
    """
    variations = [float(np.sum(d.masses * -np.expm1(-d.values))) + d.infinite for d in (here, other)]
    least = min(variations)
    here, other = (d.scaled(least / v if v > 0.0 else 0.0) for d, v in zip((here, other), variations, strict=True))
    far, near = here.masses * np.exp(-here.values), other.masses * np.exp(-other.values)
    full = max(
        float(np.sum(here.masses)) + here.infinite + float(np.sum(near)),
        float(np.sum(other.masses)) + other.infinite + float(np.sum(far)),
    )
    share = min(1.0, (1.0 - 1e-13) / full) if full > 0.0 else 1.0
    rest = 1.0 - share * full
    return DominatingPair(
        losses=np.concatenate(([-np.inf], -other.values[::-1], [0.0], here.values, [np.inf])),
        upper=np.concatenate(([0.0], near[::-1] * share, [rest], here.masses * share, [here.infinite * share])),
        lower=np.concatenate(([other.infinite * share], other.masses[::-1] * share, [rest], far * share, [0.0])),
    )


def lattice(width: float, pair: DominatingPair) -> Losses:
    """The first law of a pair made by `joined`, as losses."""
    first = -int(np.flatnonzero(pair.losses == 0.0)[0]) + 1
    return Losses(width, first, pair.upper[1:-1], float(pair.upper[-1]))


def compose_below(parts: Sequence[Part]) -> Positive:
    """The positive losses of the composition of laws on one mesh, each part `count` times, as a lower bound on each
    mass. Sums of parts, too, have lower bounds on each mass, so they may take the place of their parts.
    """
    found = by_tree(parts, _compose_together)
    start, masses = found.first, found.masses
    padding = np.zeros(max(start - 1, 0))
    return Positive(found.width, np.concatenate((padding, masses[max(1 - start, 0) :])) * (1.0 - 1e-14), found.infinite)


def _compose_together(parts: Sequence[Part]) -> Losses:
    """The sum of a few parts.

    For each tilt, take the computed cyclic convolution, less its rounding and its wrap-around (Chernoff's bound). It is
    a lower bound on every mass, and so is the largest over the tilts.
    """
    from scipy import fft  # here, or each price would wait for its import

    width = parts[0][0].width
    infinite = -math.expm1(sum(count * math.log1p(-part.infinite) for part, count in parts)) * (1.0 - 1e-12)
    if infinite >= 1.0 - 1e-9:  # the rest, which hardly matters, may be less than any window holds
        return Losses(width, 0, np.zeros(1), infinite)
    lowest = sum(count * part.first for part, count in parts)
    highest = sum(count * part.last for part, count in parts)
    start, end, tilts, _ = window(parts, width, lowest, highest)
    length = end - start + 1
    size = fft.next_fast_len(max(2 * length, *(part.masses.size for part, _ in parts)), real=True)
    masses = np.zeros(length)
    for theta in tilts:
        found = transformed(parts, theta, size, start, lowest)
        error = found.error
        if size <= highest - lowest:
            enough = math.log(error) + _NO_MATTER
            error += sum(
                _beyond(parts, theta, t, enough) for t in ((tilts[-1], start + size), (-tilts[-1], end - size))
            )
        sure = found.masses[:length] - error * (1.0 + 1e-9)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            bound = np.where(sure > 0.0, sure * np.exp(found.exponents[:length] - found.slack), 0.0)
        np.maximum(masses, np.minimum(bound, 1.0), out=masses)
    return Losses(width, start, masses, infinite)


def _beyond(parts: Sequence[Part], theta: float, side: tuple[float, int], enough: float) -> float:
    """A bound on the tilted mass of the losses past an edge that a transform adds to any loss inside the window.

    `side` is the strongest tilt towards the edge, and the edge. The logarithm need not be below `enough`.
    """
    (strongest, edge), width, here, found = side, parts[0][0].width, cumulant(parts, theta), 0.0
    for share in _TILT_SHARES:
        tilt = strongest * share
        log = cumulant(parts, theta + tilt) - here - tilt * edge * width
        found = min(found, log + 1e-9 * (abs(here) + 1.0))
        if found <= enough:
            break
    return math.exp(found)
