"""Many quantiles in one draw: the joint exponential mechanism (Gillenwater, Joseph, Kulesza 2021), exactly.

Outputs o_1 <= ... <= o_m cut n rows into m + 1 groups. The score is minus the sum over groups of the distance between
their size and the wanted share of n. A group's size depends on two neighbouring outputs only. So the weights of all
sequences are summed along a chain. That takes time O(m^2 r) for small constants, r being how many ranks are looked at.

Those are the ranks near the quantiles, no matter what n is. A sequence with an output w ranks away from its place has a
score of at most -2 w. All such sequences are proposed together, as one that is uniform among all there are. This is so
rare that it does not happen, and a coin makes even that exact.

The sums are in double precision. They only propose: a sequence is drawn from integer weights, which are known
exactly, and kept with the probability that corrects them, by an exact coin. That asks of the sums that none is too
small by more than a factor 1 - 2**-19, for which positive terms are added and nothing is subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics.search import Array, last_true
from dpselect.ordered.order_statistics.equal_scores import relative_coin
from dpselect.ordered.order_statistics.intervals import ASIDE, RankedColumn
from dpselect.ordered.round_values import points_at_most
from dpselect.privacy import Adjacency
from dpselect.randomness import RandomSource
from dpselect.randomness.lazy import Enclosure, coin, exponential_enclosure

__all__ = ["joint_bits", "joint_codes", "joint_error", "joint_rate", "joint_spans", "joint_width"]

_UNITS = 2.0**44
_TINY = 1e-280
_SLACK = Fraction(1 + 2**18, 2**18)
_RARE = Fraction(1, 2**30)
"""With ties they may have more; above this, more ranks are looked at."""


def joint_bits(size: int) -> int:
    """How many bits a row's random place inside a point has: 64 with those of the points, and never below 32.

    Sequences are found by their weights in double precision. Many rows at one place would leave only sequences whose
    weights are too small for that, and 2**32 places hold any column.
    """
    return max(64 - (points_at_most(size) - 1).bit_length(), 32)


def joint_rate(qs: Sequence[Fraction], epsilon: Fraction, adjacency: Adjacency) -> Fraction:
    """epsilon / (2 D), D being how far the score moves between neighbours at most.

    One row more is in one group, whose distance moves by at most 1 - w for its share w of n. The wanted size of every
    other group moves by its own share. These add up to 1 - w: D = 2 (1 - the smallest share). A replaced row changes
    two groups by one: D = 2, which also covers a row that becomes missing.
    """
    least = min(_shares(qs))
    moves = 2 * (1 - least) if adjacency is Adjacency.ADD_OR_REMOVE_ONE else Fraction(2)
    return epsilon / (2 * moves) if moves else epsilon


def _shares(qs: Sequence[Fraction]) -> list[Fraction]:
    edges = [Fraction(0), *qs, Fraction(1)]
    return [b - a for a, b in pairwise(edges)]


def joint_width(count: int, size: int, rate: Fraction) -> int:
    """How many ranks to look at on each side of each of `count` quantiles.

    The best sequence has a weight of at least exp(-rate (m + 1)) if there are few ties, as some sequence is off by less
    than one row a group. One with an output more than w ranks off weighs exp(-2 rate w) at most, since both the groups
    before it and those after it are off by w together. There are binomial(size + m - 1, m) sequences.
    """
    sequences = count * math.log(size + count) - math.lgamma(count + 1)
    return math.ceil((sequences + ASIDE) / (2.0 * float(rate)) + (count + 1) / 2.0) + 1


def joint_error(count: int, size: int, rate: Fraction, failure: float) -> float:
    """How many ranks any of `count` outputs is off at most, except with this probability (rounded up).

    Some sequence is off by at most one row a group, where no two rows are at one code: its weight is at least
    exp(-rate (m + 1)). There are N = binomial(size + m - 1, m) sequences, and those with a score of -a or less weigh
    exp(-rate a) each. So the score is above -a, a = m + 1 + log(N / failure) / rate, except with probability `failure`.
    An output that is w ranks off costs 2 w: the groups before it and those after it are off by w together.

    N <= (size + m - 1)**m / m!. No proof can have much less than log(N): let the rows around each quantile be at
    consecutive codes, and size/m codes without rows follow the w-th row after it. To be w off everywhere costs 2 w,
    and there are (size/m)**m such sequences beside few better ones.
    """
    sequences = (count * math.log(size + count - 1) - math.lgamma(count + 1)) if size > 1 else 0.0
    total = count + 1 + (sequences * (1.0 + 2.0**-48) + 2.0**-40 - math.log(failure)) / float(rate)
    return total / 2.0 * (1.0 + 2.0**-48)


def joint_spans(total: int, qs: Sequence[Fraction], width: int) -> list[tuple[int, int]]:
    """For each quantile the first and the last rank that are looked at, 0 .. total, increasing in both."""
    return [(max(math.floor(q * total) - width, 0), min(math.ceil(q * total) + width, total)) for q in qs]


@dataclass(frozen=True, repr=False)
class _Pieces:
    """The pieces of the domain at the ranks that are looked at, and where those are. Secret.

    Place i represents a rank, in order. Its piece is the codes with so many rows at most. `starts[i]` is the first of
    them and `sizes[i]` how many there are. `wanted` are the sizes of groups in places: ranks between two places that
    are not looked at are left out of them. `spans` has the first and last place allowed to each output.
    """

    codes: int
    starts: dict[int, int]
    sizes: dict[int, int]
    count: int
    wanted: list[Fraction]
    spans: list[tuple[int, int]]


def _pieces(column: RankedColumn, qs: Sequence[Fraction], size: int, spans: list[tuple[int, int]]) -> _Pieces:
    total = column.total
    merged: list[tuple[int, int]] = []
    for low, high in spans:
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    starts: dict[int, int] = {}
    sizes: dict[int, int] = {}
    shifts = []  # of ranks to places, for each merged span
    count = 0
    for low, high in merged:
        shift = low - count
        window = column.window(low, high + 1)
        codes = [int(code) for code in window.codes]
        ranks = (window.before + np.cumsum(window.counts)).tolist()
        if not window.before:  # the codes below every row
            codes, ranks = [0, *codes], [0, *ranks]
        ends = [*codes[1:], size] if not window.after else codes[1:]
        for rank, first, end in zip(ranks, codes, ends, strict=False):
            if low <= rank <= high:
                starts[rank - shift], sizes[rank - shift] = first, end - first
        shifts.append(shift)
        count += high - low + 1
    which = [next(k for k, (_, high) in enumerate(merged) if low <= high) for low, _ in spans]
    placed = [(low - shifts[k], high - shifts[k]) for k, (low, high) in zip(which, spans, strict=True)]
    moved = [0, *(shifts[k] for k in which), total - count + 1]
    groups = zip(_shares(qs), pairwise(moved), strict=True)
    wanted = [share * total - (after - before) for share, (before, after) in groups]
    return _Pieces(size, starts, sizes, count, wanted, placed)


@dataclass(frozen=True, repr=False)
class _Chain:
    """Upper sums of weights over the places of `pieces`. Secret.

    `shares[i]`: the share of all codes that the piece at place i has. `placed[j][i] * 2**scales[j]`: the weights of all
    ways to place the first j outputs. The j-th is in the piece at the i-th place of its span, the next in a later one.
    `reach[j][i]`, of the same scale, is at the i-th place of the span of output j + 1. It has the ways with the j-th in
    an earlier piece than that, times the factor of the group that ends there.
    """

    pieces: _Pieces
    shares: Array
    rate: Fraction
    reach: list[Array]
    placed: list[Array]
    scales: list[int]

    @property
    def last(self) -> int:
        """The last place."""
        return len(self.shares) - 1

    def span(self, j: int) -> tuple[int, int]:
        """The first and last place of output j, from 1 on, or the last place of all for what comes after them."""
        return self.pieces.spans[j - 1] if j <= len(self.pieces.spans) else (self.last, self.last)

    def possible(self, j: int) -> NDArray[np.bool_]:
        """For each place of the span of output j, whether it is a piece."""
        first, last = self.span(j)
        return self.shares[first : last + 1] > 0.0

    def runs(self, j: int, scale: int, place: int | None = None) -> list[Any]:
        """For k = 1, 2, ...: the weights of outputs j-k+1 .. j being the ones in a piece, in units of 2**scale.

        At the places of the span of j, or at one of them. It is zero if output j-k+1 may not be there.
        """
        first, last = self.span(j)
        low, high = (first, last) if place is None else (place, place)
        shares, slope = self.shares[low : high + 1], float(self.rate)
        found, ways = [], np.ones_like(shares)
        for k in range(1, j + 1):
            # k outputs in s places can be chosen in (s + k - 1)!/(k! (s - 1)!) ways; a place is 1/total
            ways = ways * (shares + np.where(shares > 0.0, (k - 1) / self.pieces.codes, 0.0)) / k
            start, stop = self.span(j - k + 1)
            if stop < low:
                break
            inner = sum(self.pieces.wanted[j - k + 1 : j], Fraction(0))
            shift = self.scales[j - k] - scale
            factor = math.exp(-slope * float(inner) + math.log(2.0) * max(min(shift, 1000), -1000))
            reached = np.zeros_like(shares)
            both = min(stop, high) + 1
            reached[: both - low] = self.reach[j - k][low - start : both - start]
            found.append(ways * reached * factor)
        return found


def joint_codes(
    column: RankedColumn, qs: Sequence[Fraction], *, size: int, rate: Fraction, random: RandomSource
) -> list[int]:
    """Increasing codes with probability proportional to exp(rate * score), one for each of the increasing `qs`."""
    count, width = len(qs), joint_width(len(qs), size, rate)
    while True:
        spans = joint_spans(column.total, qs, width)
        chain = _chain(_pieces(column, qs, size, spans), count, rate)
        weights = _ending(chain, count, chain.last, *chain.span(count))
        # the same for every sequence: 2 * count + 1 choices at most, each a little off
        near = Fraction(float(weights.sum())) * Fraction(2) ** chain.scales[count] * _SLACK ** (2 * count + 1)
        halvings = math.floor(2.0 * float(rate) * width / math.log(2.0) * (1.0 - 2.0**-40))
        far = _far(column.total, spans, size, halvings)
        if far <= _RARE * near:
            break
        # searches: wider windows of rows: part of the draw
        width *= 16  # rows that are tied where a cut should be
    share = far / (near + far) if far else far
    while True:
        if share and random.below(share.denominator) < share.numerator:
            codes = _with_repetition(size, count, random)
            if _kept_far(column, qs, spans, codes, rate, halvings, random):
                return codes
        elif (runs := _proposal(chain, weights, near, random)) is not None:
            codes = []
            for place, length in runs:
                start, width = chain.pieces.starts[place], chain.pieces.sizes[place]
                codes += [start + inside for inside in _with_repetition(width, length, random)]
            return codes


def _far(total: int, spans: list[tuple[int, int]], size: int, halvings: int) -> Fraction:
    """A bound on the weights of all sequences with an output outside its span, where each weighs at most 2**-halvings.

    In units of one over the number of all sequences that need not be increasing.
    """
    if all(span == (0, total) for span in spans):
        return Fraction(0)
    count = len(spans)
    return Fraction(math.comb(size + count - 1, count), size**count << halvings)


def _kept_far(
    column: RankedColumn,
    qs: Sequence[Fraction],
    spans: list[tuple[int, int]],
    codes: list[int],
    rate: Fraction,
    halvings: int,
    random: RandomSource,
) -> bool:
    """Whether any sequence at all, proposed with weight 2**-halvings, is kept: never one that the chain proposes."""
    ranks = [_at_most(column, code) for code in codes]
    if all(low <= rank <= high for rank, (low, high) in zip(ranks, spans, strict=True)):
        return False
    groups = zip(pairwise([0, *ranks, column.total]), _shares(qs), strict=True)
    exponent = rate * sum((abs(b - a - share * column.total) for (a, b), share in groups), Fraction(0))
    return relative_coin(exponent, 1, halvings, random)


def _at_most(column: RankedColumn, code: int) -> int:
    """How many rows are at most this code."""

    def reached(rank: int) -> bool:
        window = column.window(rank, rank)
        place = int(np.searchsorted(window.before + np.cumsum(window.counts), rank))
        return int(window.codes[place]) <= code

    return last_true(reached, 1, column.total) or 0


def _chain(pieces: _Pieces, count: int, rate: Fraction) -> _Chain:
    shares = np.zeros(pieces.count)
    shares[list(pieces.sizes)] = [width / pieces.codes for width in pieces.sizes.values()]
    chain = _Chain(pieces, shares, rate, [], [], [])
    slope = float(rate)
    for j in range(count + 1):
        start, stop = chain.span(j + 1)
        if j:
            first, last = chain.span(j)
            scale, possible = chain.scales[j - 1], chain.possible(j)
            sums = np.sum(chain.runs(j, scale), axis=0)
            grown = math.frexp(float(sums[possible].max(initial=0.0)) or 1.0)[1]
            placed = np.where(possible, np.ldexp(sums, -grown) + _TINY, 0.0)
            chain.scales.append(scale + grown)
            padded = np.zeros(stop - first + 1)
            padded[: last - first + 1] = placed
            reached = _reach(padded, float(pieces.wanted[j]), slope)[start - first :]
        else:
            placed = np.empty(0)
            chain.scales.append(0)
            reached = np.exp(np.maximum(-slope * np.abs(np.arange(start, stop + 1) - float(pieces.wanted[0])), -600.0))
        chain.placed.append(placed)
        chain.reach.append(reached + _TINY)
    return chain


def _reach(placed: Array, wanted: float, slope: float) -> Array:
    """The sum over i' < i of placed[i'] * exp(-slope |i - i' - wanted|), from positive terms only."""
    from scipy.signal import lfilter  # takes a second to import, and one quantile needs none of it

    count, near = len(placed), max(math.ceil(wanted), 1)
    decay = math.exp(-slope)
    found = np.zeros(count)
    if near < count:  # groups of at least the wanted size
        far = lfilter([1.0], [1.0, -decay], placed)
        found[near:] = far[:-near] * math.exp(-slope * (near - wanted))
    length = near - 1  # i - i' = 1 .. length for smaller groups
    if length:
        blocks = -(-count // length)
        padded = np.zeros(blocks * length)
        padded[:count] = placed
        rows = padded.reshape(blocks, length)
        weights = np.exp(np.maximum(-slope * np.arange(length), -700.0))
        # from a place to the end of its block, and from the beginning of a block to a place; both relative to the first
        suffix = lfilter([1.0], [1.0, -decay], rows[:, ::-1], axis=1)[:, ::-1].ravel()
        prefix = np.cumsum(rows * weights, axis=1).ravel()
        ends = np.arange(1, count)  # i; the window is i - length .. i - 1
        first = np.maximum(ends - length, 0)
        boundary = (ends - 1) // length * length
        inside = np.where(first < boundary, suffix[first], 0.0)
        inside += prefix[ends - 1] * np.exp(np.maximum(-slope * (boundary - first), -700.0))
        found[1:] += inside * np.exp(np.maximum(-slope * (wanted - (ends - first)), -700.0))
    return found


def _ending(chain: _Chain, j: int, place: int, low: int, high: int) -> Array:
    """The weights of output j at the places low .. high and the next, or the end of all, at this one."""
    first = chain.span(j)[0]
    distance = np.abs(place - np.arange(low, high + 1) - float(chain.pieces.wanted[j]))
    factors = np.exp(np.maximum(-float(chain.rate) * distance, -600.0))
    return np.asarray(chain.placed[j][low - first : high + 1 - first] * factors)


def _proposal(chain: _Chain, weights: Array, near: Fraction, random: RandomSource) -> list[tuple[int, int]] | None:
    """(place, number of outputs) of the pieces in order, or None when the correcting coin says no."""
    left = len(chain.pieces.wanted) - 1
    found, probability = _choose(weights, chain.possible(left), random)
    runs: list[tuple[int, int]] = []
    while True:
        place = chain.span(left)[0] + found
        lengths = np.array(chain.runs(left, chain.scales[left], place))[:, 0]
        length, chance = _choose(lengths, np.ones(len(lengths), dtype=bool), random)
        runs.append((place, length + 1))
        left -= length + 1
        probability *= chance
        if not left:
            break
        low, high = chain.span(left)
        high = min(high, place - 1)
        possible = chain.possible(left)[: max(high - low + 1, 0)]
        if not possible.any():  # owed to rounding upwards: nothing lies before
            return None
        found, chance = _choose(_ending(chain, left, place, low, high), possible, random)
        probability *= chance
    runs.reverse()
    return runs if coin(_kept(chain, runs, probability * near), random) else None


def _kept(chain: _Chain, runs: list[tuple[int, int]], bound: Fraction) -> Enclosure:
    """The true weight of a sequence over a bound on it."""
    ways, places = 1, [0]
    for rank, length in runs:
        ways *= math.comb(chain.pieces.sizes[rank] + length - 1, length)
        places += [rank] * length
    places.append(chain.last)
    groups = zip(places[:-1], places[1:], chain.pieces.wanted, strict=True)
    exponent = chain.rate * sum((abs(b - a - want) for a, b, want in groups), Fraction(0))
    share = Fraction(ways, chain.pieces.codes ** (len(places) - 2)) / bound
    extra = max(share.numerator.bit_length() - share.denominator.bit_length(), 0) + 2

    def enclosure(bits: int) -> tuple[Fraction, Fraction]:
        low, high = exponential_enclosure(exponent, bits + extra)
        if low * share > 1:
            raise RuntimeError("a proposal was too rare: NumPy's arithmetic is not what it should be")
        return low * share, high * share

    return enclosure


def _choose(weights: Array, possible: NDArray[np.bool_], random: RandomSource) -> tuple[int, Fraction]:
    """A possible index in proportion to integers a little above the weights, and its probability."""
    units = np.where(possible, (weights * (_UNITS / max(float(weights.max()), _TINY))).astype(np.int64) + 1, 0)
    running = np.cumsum(units)
    found = int(np.searchsorted(running, random.below(int(running[-1])), side="right"))
    return found, Fraction(int(units[found]), int(running[-1]))


def _with_repetition(size: int, count: int, random: RandomSource) -> list[int]:
    """`count` places of 0 .. size-1 in order, every such list with repetition equally likely (Floyd's algorithm)."""
    chosen: set[int] = set()
    for last in range(size - 1, size + count - 1):
        drawn = random.below(last + 1)
        chosen.add(last if drawn in chosen else drawn)
    return [place - shift for shift, place in enumerate(sorted(chosen))]
