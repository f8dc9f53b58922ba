"""The privacy-loss distribution of Gaussian noise under random allocation, pessimistic in both directions.

A row takes part in one of t steps, drawn uniformly. P, the mean over i of N(s e_i, I), against Q = N(0, I), s =
1/noise_multiplier, dominates an epoch under adding or removing a row (docs/theory/random-allocation.md, Theorem 1).
Under Q the likelihood ratio is a mean R of t independent lognormal L = exp(s x - s^2/2), and

    H_a(P || Q) = E (R - a)_+        and        H_a(Q || P) = E (1 - a R)_+.

Both are expectations of convex functions of R. So any R' that is above R in the convex order bounds both (Theorem 2).
Here is one on a geometric mesh, where it has masses under Q:

1. The mass of L between two points of the mesh moves to these points, keeping its mean. Below the mesh it moves to 0
   and the first point. Above it, to the last point, and its mean counts as infinite.
2. The mean of m and of n lognormals gives that of m + n: all pairs of points, each pair's mean moved to the points
   around it. The ratio of a pair's mean to its first point depends on the distance of its points only.
3. All terms are positive. So the rounding of a sum is relative, and every mass is raised by more than that. The points
   of pairs are rounded by a relative error. At the end each mass counts, in proportion to that error, at both
   neighbours as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np
from scipy.special import ndtr

from dpselect.errors import number
from dpselect.numerics.search import Array
from dpselect.privacy.losses.composition import BothLosses, Losses, compose_distributions
from dpselect.privacy.losses.pld import LossSource

__all__ = ["LEAST_NOISE", "MOST_NOISE", "MeanRatio", "allocation_mesh", "mean_ratio", "random_allocation_loss"]

LEAST_NOISE = 0.05
"""For less noise the masses leave the range of float64."""
MOST_NOISE = 1e6
"""For more noise the meshes are finer than compositions can use."""

_REACH = 12.0
"""Standard deviations kept on either side: 2e-33 of the mass is beyond."""

_NEGLIGIBLE = 1e-33
_UNIT = 2.0**-53
_PER_DEVIATION = 32.0
_FEWEST = 32.0
"""Points of one lognormal in its standard deviation, at least."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


@dataclass(frozen=True, eq=False)
class MeanRatio:
    """Masses under Q of the likelihood ratios exp((first + i) width) and 0, and the mass under P of infinite ones."""

    width: float
    first: int
    masses: Array
    zero: float
    infinite: float

    @property
    def losses(self) -> Array:
        """The logarithms of the positive ratios."""
        return np.asarray((self.first + np.arange(self.masses.size)) * self.width, dtype=np.float64)

    def both(self) -> BothLosses:
        """The losses of P against Q, and of Q against P."""
        remove = self.masses * np.exp(self.losses) * (1.0 + 64.0 * _UNIT * (1.0 + np.abs(self.losses)))
        add = Losses(self.width, -(self.first + self.masses.size - 1), self.masses[::-1], self.zero)
        return BothLosses(Losses(self.width, self.first, remove, self.infinite), add)


@dataclass(frozen=True)
class random_allocation_loss(LossSource):
    """The privacy-loss distribution of so many epochs, under adding or removing a row."""

    noise_multiplier: float
    steps: int
    epochs: int = 1

    def __call__(self, interval: float) -> BothLosses:
        finest = allocation_mesh(self.noise_multiplier, self.steps)
        width = interval * 2.0 ** math.floor(math.log2(finest / interval))
        one = _on_mesh(mean_ratio(self.noise_multiplier, self.steps, width), interval)
        return compose_distributions([(one.both(), self.epochs)])

    @property
    def parts(self) -> int:
        """How many distributions are added up."""
        return self.epochs


def allocation_mesh(noise_multiplier: float, steps: int) -> float:
    """A mesh width, the 32nd part of the standard deviation of the loss.

    It costs about 1e-3 of epsilon, and 1e-2 for 100,000 steps.
    """
    s = 1.0 / noise_multiplier
    spread = s if s > 20.0 else math.sqrt(math.log1p(math.expm1(s * s) / steps))
    return spread / _PER_DEVIATION


def mean_ratio(noise_multiplier: float, steps: int, width: float) -> MeanRatio:
    """A ratio above the mean of `steps` lognormals in the convex order, on a mesh of this width.

    Raises:
        ArgumentError: for noise out of the range from `LEAST_NOISE` to `MOST_NOISE`.
    """
    noise_multiplier = number(
        "noise_multiplier", noise_multiplier, at_least=LEAST_NOISE, at_most=MOST_NOISE, rounding="down"
    )
    return _mean_ratio(1.0 / noise_multiplier, steps, width)


@lru_cache(maxsize=16)
def _mean_ratio(s: float, steps: int, width: float) -> MeanRatio:
    levels = (steps - 1).bit_length()
    widest = max(0, math.floor(math.log2(s / _FEWEST / width)))

    @cache
    def mean_of(count: int, level: int) -> MeanRatio:
        # a mesh is wider where more means are still to be taken, which average its errors out
        coarse = width * 2.0 ** min((levels - level) // 2, widest)
        if count == 1:
            return _single(s, coarse)
        here, other = mean_of(count - count // 2, level - 1), mean_of(count // 2, level - 1)
        return _trimmed(_mean(here, other, (count - count // 2, count // 2), coarse))

    # no two points of a mesh are farther apart
    apart = s * (2.0 * _REACH + s + 1.0)
    return _widened(mean_of(steps, levels), 16.0 * _UNIT * (levels + 2) * apart)


def _single(s: float, width: float) -> MeanRatio:
    """One lognormal. The masses that a bin gives to its ends are integrals of positive functions."""
    first = math.floor((-s * _REACH - 0.5 * s * s) / width)
    bins = math.ceil((s * (s + _REACH) - 0.5 * s * s) / width) - first
    edges = (first + np.arange(bins + 1)) * width
    inside = 0.5 * width * (1.0 + _NODES)
    x = (edges[:-1, None] + inside) / s + 0.5 * s
    density = np.exp(-0.5 * x * x) * (0.5 * width / s / math.sqrt(2.0 * math.pi) * _WEIGHTS)
    high = np.sum(density * (np.expm1(inside) / math.expm1(width)), axis=1)
    low = np.sum(density * (np.exp(inside) * np.expm1(width - inside) / math.expm1(width)), axis=1)
    masses = np.append(low, 0.0) + np.append(0.0, high)
    below, above = edges[0] / s, edges[-1] / s
    masses[0] += float(ndtr(below - 0.5 * s)) * math.exp(-edges[0])
    masses[-1] += float(ndtr(-above - 0.5 * s))
    return MeanRatio(
        width, first, masses * (1.0 + 1e-12), float(ndtr(below + 0.5 * s)) * 1.001, float(ndtr(0.5 * s - above)) * 1.001
    )


def _mean(here: MeanRatio, other: MeanRatio, counts: tuple[int, int], width: float) -> MeanRatio:
    """The mean of two ratios that are means of so many, both on one mesh, on a mesh of this width, which divides it."""
    share, rest = counts[0] / sum(counts), counts[1] / sum(counts)
    stride, same = round(here.width / width), here is other
    a, b, shift = here.masses, other.masses, other.first - here.first
    # of two equal ratios, each pair of points stands for its mirror image too
    distances = np.arange(0 if same else shift - a.size + 1, shift + b.size)
    twice = np.where(distances > 0, 2.0, 1.0) if same else np.ones(distances.size)
    apart = distances * here.width
    near, far = np.minimum(apart, 1.0), np.maximum(apart, 1.0)
    logs = np.where(apart < 1.0, np.log1p(rest * np.expm1(near)), far + np.log(rest + share * np.exp(-far)))
    places = np.floor(logs / width)
    low, high = _split(logs - places * width, width)
    start = stride * min(here.first, other.first)
    end = stride * max(here.first + a.size, other.first + b.size) + 2
    masses = np.zeros(end - start)
    base = stride * here.first - start
    columns = (distances, places.astype(int) + base, low * twice, high * twice)
    for distance, place, below, above in zip(*(column.tolist() for column in columns), strict=True):
        i, j = max(0, shift - distance), min(a.size, shift - distance + b.size)
        product = a[i:j] * b[i + distance - shift : j + distance - shift]
        at = place + stride * i
        masses[at : at + stride * (j - i) : stride] += product * below
        masses[at + 1 : at + 1 + stride * (j - i) : stride] += product * above
    # of a pair with a zero: the share of the other one at its point, and the rest at zero
    for ratio, own, zero in ((here, share, other.zero), (other, rest, here.zero)):
        at = stride * ratio.first - start
        masses[at : at + stride * ratio.masses.size : stride] += ratio.masses * (own * zero)
    zero = here.zero * other.zero + here.zero * share + other.zero * rest
    infinite = share * here.infinite + rest * other.infinite
    raised = 1.0 + 8.0 * _UNIT * (a.size + b.size + 20)
    return MeanRatio(width, start, masses * raised, zero * (1.0 + 1e-9), infinite * (1.0 + 1e-9))


def _split(above: Array, width: float) -> tuple[Array, Array]:
    """The shares of a point so far above a mesh point that it and the next one get, so that the mean stays."""
    above = np.clip(above, 0.0, width)
    return np.exp(above) * np.expm1(width - above) / math.expm1(width), np.expm1(above) / math.expm1(width)


def _trimmed(ratio: MeanRatio) -> MeanRatio:
    """The same with the negligible masses at both ends moved to 0, to infinity and to the last points kept."""
    masses, values = ratio.masses, np.exp(ratio.losses)
    i = int(np.searchsorted(np.cumsum(masses), _NEGLIGIBLE))
    j = masses.size - int(np.searchsorted(np.cumsum((masses * values)[::-1]), _NEGLIGIBLE))
    kept = masses[i:j].copy()
    kept[0] += float(np.sum(masses[:i] * values[:i])) / values[i]
    kept[-1] += float(np.sum(masses[j:]))
    zero = ratio.zero + float(np.sum(masses[:i]))
    infinite = ratio.infinite + float(np.sum(masses[j:] * values[j:]))
    kept[[0, -1]] *= 1.0 + 1e-9
    return MeanRatio(ratio.width, ratio.first + i, kept, zero * (1.0 + 1e-9), infinite * (1.0 + 1e-9))


def _widened(ratio: MeanRatio, error: float) -> MeanRatio:
    """The same with each mass also at both neighbours, for points whose logarithms are wrong by at most `error`."""
    pad = 2.0 * error / -math.expm1(-ratio.width)
    inside = np.concatenate(([0.0, 0.0], ratio.masses, [0.0, 0.0]))
    masses = inside[1:-1] + pad * (inside[:-2] + inside[2:])
    # what underflows is below these
    return replace(
        ratio, first=ratio.first - 1, masses=masses, zero=ratio.zero + 1e-300, infinite=ratio.infinite + 1e-100
    )


def _on_mesh(ratio: MeanRatio, width: float) -> MeanRatio:
    """The same on a mesh whose width is a power of two times its own."""
    if width <= ratio.width:
        stride = round(ratio.width / width)
        masses = np.zeros(stride * (ratio.masses.size - 1) + 1)
        masses[::stride] = ratio.masses
        return replace(ratio, width=width, first=ratio.first * stride, masses=masses)
    stride = round(width / ratio.width)
    places, above = np.divmod(ratio.first + np.arange(ratio.masses.size), stride)
    low, high = _split(np.asarray(above * ratio.width, dtype=np.float64), width)
    size, at = int(places[-1] - places[0]) + 2, places - places[0]
    moved = np.bincount(at, ratio.masses * low, size) + np.bincount(at + 1, ratio.masses * high, size)
    return replace(ratio, width=width, first=int(places[0]), masses=np.asarray(moved) * (1.0 + 1e-10))
