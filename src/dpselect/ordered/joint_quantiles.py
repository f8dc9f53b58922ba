"""Many quantiles in one draw: the joint exponential mechanism (Gillenwater, Joseph, Kulesza 2021), exactly.

Outputs o_1 <= ... <= o_m cut n rows into m + 1 groups; the score is minus the sum over groups of the distance between
their size and the wanted share of n. A group's size depends on two neighbouring outputs only, so the weights of all
sequences are summed along a chain, in time O(m n + m^2 n) for small constants.

The sums are in double precision. They only propose: a sequence is drawn from whole-number weights, which are known
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
from scipy.signal import lfilter

from dpselect.ordered.intervals import RankedColumn
from dpselect.privacy import Adjacency
from dpselect.randomness import RandomSource
from dpselect.randomness.lazy import Enclosure, coin, exponential_enclosure

__all__ = ["joint_codes", "joint_rate"]

Array = NDArray[np.float64]
_UNITS = 2.0**44
_TINY = 1e-280
_SLACK = Fraction(1 + 2**18, 2**18)


def joint_rate(qs: Sequence[Fraction], epsilon: Fraction, adjacency: Adjacency) -> Fraction:
    """epsilon / (2 D), D being how far the score moves between neighbours at most.

    One row more is in one group, whose distance moves by at most 1 - w for its share w of n; the wanted size of every
    other group moves by its own share, and these add up to 1 - w: D = 2 (1 - the smallest share). A replaced row
    changes two groups by one: D = 2, which also covers a row that becomes missing.
    """
    least = min(_shares(qs))
    moves = 2 * (1 - least) if adjacency is Adjacency.ADD_OR_REMOVE_ONE else Fraction(2)
    return epsilon / (2 * moves) if moves else epsilon


def _shares(qs: Sequence[Fraction]) -> list[Fraction]:
    edges = [Fraction(0), *qs, Fraction(1)]
    return [b - a for a, b in pairwise(edges)]


@dataclass(frozen=True, repr=False)
class _Chain:
    """Upper sums of weights over the ranks 0 .. n; secret.

    Rank i is the piece of the codes with i rows at most, `starts[i]` its first code and `sizes[i]` how many there are,
    `shares[i]` their share of all codes. `placed[j][i] * 2**scales[j]`: the weights of all ways to place the first j
    outputs, the j-th in piece i and the next in a later one. `reach[j][i]`, of the same scale: those with the j-th
    in an earlier piece than i, times the factor of the group that ends in i.
    """

    codes: int
    starts: dict[int, int]
    sizes: dict[int, int]
    shares: Array
    wanted: list[Fraction]
    rate: Fraction
    reach: list[Array]
    placed: list[Array]
    scales: list[int]

    @property
    def rows(self) -> int:
        return len(self.shares) - 1

    @property
    def possible(self) -> NDArray[np.bool_]:
        """Which ranks are pieces."""
        return self.shares > 0.0

    def runs(self, j: int, at: slice | int, scale: int) -> list[Any]:
        """For k = 1 .. j: the weights of outputs j-k+1 .. j being the ones in a piece, in units of 2**scale."""
        shares, slope = self.shares[at], float(self.rate)
        found, ways = [], np.ones_like(shares)
        for k in range(1, j + 1):
            # k outputs in s places can be chosen in (s + k - 1)!/(k! (s - 1)!) ways; a place is 1/total
            ways = ways * (shares + np.where(shares > 0.0, (k - 1) / self.codes, 0.0)) / k
            inner = sum(self.wanted[j - k + 1 : j], Fraction(0))
            shift = self.scales[j - k] - scale
            factor = math.exp(-slope * float(inner) + math.log(2.0) * max(min(shift, 1000), -1000))
            found.append(ways * self.reach[j - k][at] * factor)
        return found


def joint_codes(
    column: RankedColumn, qs: Sequence[Fraction], *, size: int, rate: Fraction, random: RandomSource
) -> list[int]:
    """Increasing codes with probability proportional to exp(rate * score), one for each of the increasing `qs`."""
    chain = _chain(column, qs, size, rate)
    while (runs := _proposal(chain, len(qs), random)) is None:
        pass
    codes: list[int] = []
    for rank, count in runs:
        codes += [chain.starts[rank] + place for place in _with_repetition(chain.sizes[rank], count, random)]
    return codes


def _chain(column: RankedColumn, qs: Sequence[Fraction], size: int, rate: Fraction) -> _Chain:
    window = column.window(1, column.total)
    edges = [0, *(int(code) for code in window.codes), size]
    ranks = [0, *np.cumsum(window.counts).tolist()]
    starts = {rank: edges[place] for place, rank in enumerate(ranks)}
    sizes = {rank: edges[place + 1] - edges[place] for place, rank in enumerate(ranks)}
    shares = np.zeros(column.total + 1)
    shares[ranks] = [sizes[rank] / size for rank in ranks]
    wanted = [share * column.total for share in _shares(qs)]
    chain = _Chain(size, starts, sizes, shares, wanted, rate, [], [], [])
    slope = float(rate)
    for j in range(len(qs) + 1):
        if j:
            scale = chain.scales[j - 1]
            sums = np.sum(chain.runs(j, slice(None), scale), axis=0)
            grown = math.frexp(float(sums.max()))[1]
            placed = np.where(chain.possible, np.ldexp(sums, -grown) + _TINY, 0.0)
            chain.scales.append(scale + grown)
            reached = _reach(placed, float(wanted[j]), slope)
        else:
            placed = np.zeros_like(shares)
            chain.scales.append(0)
            reached = np.exp(np.maximum(-slope * np.abs(np.arange(len(shares)) - float(wanted[0])), -600.0))
        chain.placed.append(placed)
        chain.reach.append(reached + _TINY)
    return chain


def _reach(placed: Array, wanted: float, slope: float) -> Array:
    """The sum over i' < i of placed[i'] * exp(-slope |i - i' - wanted|), from positive terms only."""
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


def _proposal(chain: _Chain, count: int, random: RandomSource) -> list[tuple[int, int]] | None:
    """(rank, number of outputs) of the pieces in order, or None when the correcting coin says no."""
    slope, ranks = float(chain.rate), np.arange(chain.rows + 1)

    def factors(rank: int, upto: int, group: int) -> Array:
        distance = np.abs(rank - ranks[:upto] - float(chain.wanted[group]))
        return np.exp(np.maximum(-slope * distance, -600.0))

    weights = chain.placed[count] * factors(chain.rows, chain.rows + 1, count)
    total = Fraction(float(weights.sum())) * Fraction(2) ** chain.scales[count]
    rank, probability = _choose(weights, chain.possible, random)
    runs: list[tuple[int, int]] = []
    left, choices = count, 1
    while left:
        length, chance = _choose(
            np.array(chain.runs(left, rank, chain.scales[left])), np.ones(left, dtype=bool), random
        )
        runs.append((rank, length + 1))
        left -= length + 1
        probability *= chance
        choices += 2
        if left:
            if not rank:  # nothing lies before the first piece: a proposal that owes itself to rounding upwards
                return None
            earlier = chain.placed[left][:rank] * factors(rank, rank, left)
            rank, chance = _choose(earlier, chain.possible[:rank], random)
            probability *= chance
    runs.reverse()
    bound = probability * total * _SLACK**choices
    return runs if coin(_kept(chain, runs, bound), random) else None


def _kept(chain: _Chain, runs: list[tuple[int, int]], bound: Fraction) -> Enclosure:
    """The true weight of a sequence over a bound on it."""
    ways, places = 1, [0]
    for rank, length in runs:
        ways *= math.comb(chain.sizes[rank] + length - 1, length)
        places += [rank] * length
    places.append(chain.rows)
    groups = zip(places[:-1], places[1:], chain.wanted, strict=True)
    exponent = chain.rate * sum((abs(b - a - want) for a, b, want in groups), Fraction(0))
    share = Fraction(ways, chain.codes ** (len(places) - 2)) / bound
    extra = max(share.numerator.bit_length() - share.denominator.bit_length(), 0) + 2

    def enclosure(bits: int) -> tuple[Fraction, Fraction]:
        low, high = exponential_enclosure(exponent, bits + extra)
        if low * share > 1:
            raise RuntimeError("a proposal was too rare: NumPy's arithmetic is not what it should be")
        return low * share, high * share

    return enclosure


def _choose(weights: Array, possible: NDArray[np.bool_], random: RandomSource) -> tuple[int, Fraction]:
    """A possible index in proportion to whole numbers a little above the weights, and its probability."""
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
