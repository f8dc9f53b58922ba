"""Finite pairs that enclose a pair of distributions: one that dominates it, and one that it dominates.

Everything is done on masses, bin by bin, with differences only where they keep their digits. Connecting the dots
(Doroshenko et al. 2022) moves the masses of a bin to its ends. That raises the hockey-stick curve between them to the
chord. Merging a bin into one atom is post-processing and lowers the curve. Both err by the square of the bin width.
Splitting an atom into pieces of the same loss changes nothing in the curve, but best-of-K bounds work on pieces.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dpselect.errors import ArgumentError
from dpselect.numerics.search import Array

__all__ = [
    "DominatingPair",
    "PairEnclosure",
    "coarsen",
    "enclose_bins",
    "loss_grid",
    "mass_grid",
    "merged_by_mass",
    "pieces",
    "splice",
]

_BINS = 2048


@dataclass(frozen=True, eq=False)
class DominatingPair:
    """Two distributions (P, P') on atoms, whose hockey-stick divergence is at least the mechanism's at every order.

    `upper[i]` and `lower[i]` are the masses of atom i under P and P', `losses[i]` = log(upper[i] / lower[i]) ascending.
    The loss is -inf if only P' has mass, +inf if only P has. Zhu, Dong, Wang 2022, Definition 7.
    """

    losses: Array
    upper: Array
    lower: Array = field(repr=False)

    def __post_init__(self) -> None:
        if not self.losses.shape == self.upper.shape == self.lower.shape or self.losses.ndim != 1:
            raise ArgumentError("losses, upper and lower must be vectors of one length")
        if np.any(self.losses[1:] < self.losses[:-1]) or np.any(self.upper < 0) or np.any(self.lower < 0):
            raise ArgumentError("losses must ascend and masses must be non-negative")

    @classmethod
    def between(
        cls, losses: Array, upper: Array, lower: Array, *, infinite: float, missing: float | None = None
    ) -> DominatingPair:
        """Finite losses with their masses, and what each law has alone: P' by default what its masses lack."""
        missing = max(0.0, 1.0 - float(np.sum(lower))) if missing is None else missing
        return cls(
            losses=np.concatenate(([-np.inf], losses, [np.inf])),
            upper=np.concatenate(([0.0], upper, [infinite])),
            lower=np.concatenate(([missing], lower, [0.0])),
        )

    @cached_property
    def _tails(self) -> tuple[Array, Array]:
        """Masses of the atoms from i on, under P and P', summed from the far end."""
        return (
            np.append(np.cumsum(self.upper[::-1])[::-1], 0.0),
            np.append(np.cumsum(self.lower[::-1])[::-1], 0.0),
        )

    def hockey_stick(self, epsilons: Array, *, slack: float = 0.0) -> Array:
        """H_{exp(epsilon)}(P || P') at each epsilon (any real), with so much of P's tail more for rounding errors."""
        epsilons = np.asarray(epsilons, dtype=np.float64)
        upper_tail, lower_tail = self._tails
        start = np.searchsorted(self.losses, epsilons, side="right")
        # past 700 the product would overflow or rest on denormals: leaving it out only raises the result
        scaled = np.where(epsilons < 700.0, np.exp(np.minimum(epsilons, 700.0)) * lower_tail[start], 0.0)
        return np.maximum(upper_tail[start] * (1.0 + slack) - scaled, 0.0)

    def swapped(self) -> DominatingPair:
        """The pair (P', P): the other direction."""
        return DominatingPair(losses=-self.losses[::-1], upper=self.lower[::-1], lower=self.upper[::-1])


@dataclass(frozen=True)
class PairEnclosure:
    """One direction of a mechanism between two finite pairs.

    `pessimistic` dominates the mechanism at every order. `optimistic` is a post-processing of it, or None if nothing is
    known to be attained.
    """

    pessimistic: DominatingPair
    optimistic: DominatingPair | None

    def swapped(self) -> PairEnclosure:
        """The enclosure of the other direction, (P', P)."""
        optimistic = None if self.optimistic is None else self.optimistic.swapped()
        return PairEnclosure(self.pessimistic.swapped(), optimistic)


def enclose_bins(
    edges: Array, upper: Array, lower: Array, below: tuple[float, float], above: tuple[float, float]
) -> PairEnclosure:
    """Both pairs from exact masses of the bins between loss values `edges` (ascending, finite).

    `upper[k]` and `lower[k]` are the masses of P and P' with edges[k] < loss < edges[k + 1]. `below` and `above` are
    the (P, P') masses outside the edges.
    """
    # ratios relative to the lower edge: no overflow, however large the losses
    width = np.expm1(np.diff(edges))
    scaled = upper * np.exp(-edges[:-1])
    share = np.clip((scaled - lower) / width, 0.0, lower)
    masses = np.zeros(edges.size)
    masses[:-1] += lower - share
    masses[1:] += share
    kept = below[0] * np.exp(-edges[0])
    masses[0] += kept
    masses[-1] += above[1]
    raised = masses * np.exp(edges)
    infinite = max(0.0, above[0] - above[1] * float(np.exp(edges[-1])))
    pessimistic = DominatingPair.between(edges, raised, masses, infinite=infinite, missing=max(0.0, below[1] - kept))
    return PairEnclosure(
        pessimistic,
        _sorted_pair(np.concatenate(([below[0]], upper, [above[0]])), np.concatenate(([below[1]], lower, [above[1]]))),
    )


def _sorted_pair(upper: Array, lower: Array) -> DominatingPair:
    """A pair from masses alone, its losses computed and sorted. Atoms without mass are dropped."""
    kept = (upper > 0.0) | (lower > 0.0)
    upper, lower = upper[kept], lower[kept]
    with np.errstate(divide="ignore"):
        losses = np.log(upper) - np.log(lower)
    order = np.argsort(losses, kind="stable")
    return DominatingPair(losses=losses[order], upper=upper[order], lower=lower[order])


def loss_grid(pair: DominatingPair, atoms: int, *, tail: float = 1e-22) -> Array:
    """`atoms` equally spaced losses that cover all but a mass `tail` of P above and of P' below."""
    finite = np.isfinite(pair.losses)
    losses, upper, lower = pair.losses[finite], pair.upper[finite], pair.lower[finite]
    first = np.searchsorted(np.cumsum(lower), tail, side="right")
    last = losses.size - 1 - np.searchsorted(np.cumsum(upper[::-1]), tail, side="right")
    low, high = float(losses[min(int(first), losses.size - 1)]), float(losses[max(int(last), 0)])
    if not high > low:
        low, high = float(losses[0]), float(losses[-1])
    return np.linspace(low, high, atoms) if high > low else np.array([low])


def mass_grid(pair: DominatingPair, atoms: int) -> Array:
    """`atoms` losses over the same range, closer together where there is more mass.

    Bins of `loss_grid` get a share by the power 1/8 of their mass, and a fifth of the losses is equally spaced. The
    error of a bin goes by its mass and by the square of its width. The low power keeps the tails, which a search or a
    composition multiplies up.
    """
    even = loss_grid(pair, _BINS)
    if even.size < 2:
        return even
    finite = np.isfinite(pair.losses)
    bins = np.clip(np.searchsorted(even, pair.losses[finite], side="right") - 1, 0, _BINS - 2)
    shares = np.bincount(bins, (pair.upper + pair.lower)[finite], _BINS - 1) ** 0.125
    way = np.append(0.0, np.cumsum(0.8 * shares / np.sum(shares) + 0.2 / shares.size))
    return np.interp(np.linspace(0.0, float(way[-1]), atoms), way, even)


def coarsen(pair: DominatingPair, grid: Array) -> PairEnclosure:
    """A pair on about `grid.size` atoms above `pair`, and one below it.

    The finite losses must agree with the masses: upper = lower exp(loss).
    """
    finite = np.isfinite(pair.losses) & ((pair.upper > 0.0) | (pair.lower > 0.0))
    losses, p, q = pair.losses[finite], pair.upper[finite], pair.lower[finite]
    zero = float(np.sum(pair.lower[pair.losses == -np.inf]))
    infinite = float(np.sum(pair.upper[pair.losses == np.inf]))
    size = grid.size
    right = np.clip(np.searchsorted(grid, losses), 1, size - 1) if size > 1 else np.zeros(losses.size, dtype=int)
    left = np.maximum(right - 1, 0)
    a, b = grid[left], grid[right]
    inside = np.clip(losses, a, b)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(b > a, np.expm1(inside - a) / np.expm1(b - a), 1.0)
        rest = np.where(b > a, np.expm1(inside - b) / np.expm1(a - b), 0.0)
    # P-mass below the grid moves up to its first loss, P'-mass above moves down to its last
    q_in = np.where(losses < a, p * np.exp(-a), q)
    p_in = np.where(losses > b, q * np.exp(b), p)
    zero += float(np.sum(np.maximum(q - q_in, 0.0)))
    infinite += float(np.sum(np.maximum(p - p_in, 0.0)))
    upper = np.bincount(left, p_in * rest * np.exp(a - inside), size) + np.bincount(
        right, p_in * share * np.exp(b - inside), size
    )
    lower = np.bincount(left, q_in * rest, size) + np.bincount(right, q_in * share, size)
    pessimistic = DominatingPair.between(
        grid, np.asarray(upper, dtype=np.float64), np.asarray(lower, dtype=np.float64), infinite=infinite, missing=zero
    )
    cell = np.searchsorted(grid, losses)
    merged_upper = np.append(np.bincount(cell, p, size + 1), [0.0, float(np.sum(pair.upper[pair.losses == np.inf]))])
    merged_lower = np.append(np.bincount(cell, q, size + 1), [float(np.sum(pair.lower[pair.losses == -np.inf])), 0.0])
    return PairEnclosure(pessimistic, _sorted_pair(merged_upper, merged_lower))


def merged_by_mass(pair: DominatingPair, atoms: int) -> DominatingPair:
    """A pair above this one on at most about `atoms` atoms, or the pair itself if it has no more."""
    return (
        pair
        if np.count_nonzero(np.isfinite(pair.losses)) <= atoms
        else coarsen(pair, mass_grid(pair, atoms)).pessimistic
    )


def splice(upper_half: DominatingPair, lower_half: DominatingPair) -> DominatingPair:
    """A pair with the atoms of positive loss of the first and of negative loss of the second, made consistent.

    Both must dominate the same mechanism. H_a(P || P') depends only on the atoms of larger loss at a >= 1, and of
    smaller loss at a < 1. So each half keeps its side of the curve. Loss 0 takes the mass that is left. If the two
    disagree on the total variation, the smaller side is raised. If less than no mass is left, the joined curve bends
    the wrong way at 1. The true curve is convex, so it is below the convex hull too, which is taken.
    """
    high, low = upper_half.losses > 0.0, lower_half.losses < 0.0
    p_high, q_high = upper_half.upper[high], upper_half.lower[high]
    p_low, q_low = lower_half.upper[low], lower_half.lower[low]
    gap = float(np.sum(p_high - q_high) - np.sum(q_low - p_low))
    l_high, l_low = upper_half.losses[high], lower_half.losses[low]
    if gap > 0.0:
        l_low, p_low, q_low = _raise(l_low, p_low, q_low, gap)
    elif gap < 0.0:
        flipped = _raise(-l_high[::-1], q_high[::-1], p_high[::-1], -gap)
        l_high, q_high, p_high = -flipped[0][::-1], flipped[1][::-1], flipped[2][::-1]
    p_rest = 1.0 - float(np.sum(p_high)) - float(np.sum(p_low))
    q_rest = 1.0 - float(np.sum(q_high)) - float(np.sum(q_low))
    rest = 0.5 * (p_rest + q_rest)
    if rest < 0.0:
        (l_low, p_low, q_low), (l_high, p_high, q_high), rest = _straighten(
            (l_low, p_low, q_low), (l_high, p_high, q_high), rest
        )
        if rest < 0.0:  # no profile is below both halves: promise nothing
            return DominatingPair(losses=np.array([-np.inf, np.inf]), upper=np.eye(2)[1], lower=np.eye(2)[0])
    return DominatingPair(
        losses=np.concatenate((l_low, [0.0], l_high)),
        upper=np.concatenate((p_low, [rest], p_high)),
        lower=np.concatenate((q_low, [rest], q_high)),
    )


_Half = tuple[Array, Array, Array]


def _straighten(low: _Half, high: _Half, rest: float) -> tuple[_Half, _Half, float]:
    """The hull of a curve that bends the wrong way at 1. Halves are (losses, P-masses, P'-masses).

    A negative mass `rest` of loss 0 is shared by the nearest atoms on either side so that both totals stay. Atoms with
    less than their share are used up. Returns what is left of `rest` too: 0 unless atoms run out.

    Loss 0 has as much mass under P as under P'. So the excess of P' over P in the atoms used on one side equals that of
    P over P' on the other. This excess determines how far atoms are used on both sides.
    """
    finite = np.isfinite(low[0]), np.isfinite(high[0])
    # both from loss 0 outwards
    used = tuple(x[finite[0]][::-1] for x in low), tuple(x[finite[1]] for x in high)
    larger = used[0][2], used[1][1]
    excesses = [
        np.append(0.0, np.cumsum(x * -np.expm1(-np.abs(half[0])))) for x, half in zip(larger, used, strict=True)
    ]
    masses = [np.append(0.0, np.cumsum(q)) for _, _, q in used]
    knots = np.sort(np.concatenate(excesses))
    knots = knots[knots <= min(excesses[0][-1], excesses[1][-1])]
    moved = np.interp(knots, excesses[0], masses[0]) + np.interp(knots, excesses[1], masses[1])
    level = float(np.interp(-rest, moved, knots))
    shares = []
    for found in excesses:
        share = (found[:-1] >= level).astype(np.float64)
        met = np.flatnonzero((found[:-1] < level) & (level < found[1:]))
        share[met] = (found[met + 1] - level) / (found[met + 1] - found[met])
        shares.append(share)
    whole = np.ones(low[0].size), np.ones(high[0].size)
    whole[0][finite[0]], whole[1][finite[1]] = shares[0][::-1], shares[1]
    left, right = ((half[0], half[1] * share, half[2] * share) for half, share in zip((low, high), whole, strict=True))
    return left, right, min(rest + float(moved[-1]), 0.0)


def _raise(losses: Array, upper: Array, lower: Array, gap: float) -> tuple[Array, Array, Array]:
    """Add an atom of finite negative loss with P'-mass minus P-mass equal to `gap`, at the bulk of the excess."""
    finite = np.isfinite(losses)
    excess = np.where(finite, lower - upper, 0.0)
    if not np.sum(excess) > 0.0:
        return np.append(-np.inf, losses), np.append(0.0, upper), np.append(gap, lower)
    index = int(np.searchsorted(np.cumsum(excess), 0.5 * np.sum(excess)))
    index = min(index, losses.size - 1)
    upper, lower = upper.copy(), lower.copy()
    with np.errstate(over="ignore"):
        added = gap / -np.expm1(losses[index])
    lower[index] += added
    upper[index] += added * np.exp(losses[index])
    return losses, upper, lower


def pieces(pair: DominatingPair, levels: Array) -> DominatingPair:
    """The same pair with its large point masses split, so that the mass below or above a loss, under P or P', meets
    each level.

    `levels` are masses in (0, 1). An atom that at most two cuts meet is about as fine as they are, and stays whole.
    """
    finite = np.isfinite(pair.losses) & ((pair.upper > 0.0) | (pair.lower > 0.0))
    atoms = np.flatnonzero(finite)
    owners, fractions = [atoms], [np.zeros(atoms.size)]
    for masses in (pair.upper, pair.lower):
        below = np.concatenate(([0.0], np.cumsum(masses)))
        above = np.concatenate((np.cumsum(masses[::-1])[::-1], [0.0]))
        owner = np.clip(np.searchsorted(below, levels, side="right") - 1, 0, masses.size - 1)
        owners.append(owner)
        fractions.append(_ratio(levels - below[owner], masses[owner]))
        # counted from the top, with a minus sign, where that has the digits
        owner = np.clip(masses.size - np.searchsorted(above[::-1], levels, side="right"), 0, masses.size - 1)
        owners.append(owner)
        fractions.append(-_ratio(levels - above[owner + 1], masses[owner]))
    owner, fraction = np.concatenate(owners), np.concatenate(fractions)
    start = np.arange(owner.size) < atoms.size
    inside = finite[owner] & (np.abs(fraction) < 1.0) & (fraction != 0.0)
    met = np.bincount(owner[inside & ~start], minlength=pair.losses.size)
    good = start | (inside & (met[owner] > 2))
    owner, fraction = owner[good], fraction[good]
    from_bottom = np.where(fraction >= 0.0, fraction, 1.0 + fraction)
    from_top = np.where(fraction >= 0.0, 1.0 - fraction, -fraction)
    order = np.lexsort((-from_top, from_bottom, owner))
    owner, from_bottom, from_top = owner[order], from_bottom[order], from_top[order]
    last = np.append(owner[1:] != owner[:-1], True)
    next_bottom, next_top = np.append(from_bottom[1:], 1.0), np.append(from_top[1:], 0.0)
    end_bottom, end_top = np.where(last, 1.0, next_bottom), np.where(last, 0.0, next_top)
    share = np.where(from_bottom < 0.5, end_bottom - from_bottom, from_top - end_top)
    share = np.maximum(share, 0.0)
    rest = ~finite
    losses = np.concatenate((pair.losses[owner], pair.losses[rest]))
    upper = np.concatenate((pair.upper[owner] * share, pair.upper[rest]))
    lower = np.concatenate((pair.lower[owner] * share, pair.lower[rest]))
    order = np.argsort(losses, kind="stable")
    return DominatingPair(losses=losses[order], upper=upper[order], lower=lower[order])


def _ratio(numerator: Array, denominator: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(denominator > 0.0, numerator / denominator, 2.0))
