"""Whether query + noise >= threshold + threshold noise, decided as real numbers: one at a time or in bulk."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.mechanisms.scores import as_doubles
from dpselect.numerics.search import Array, last_true
from dpselect.randomness import RandomSource
from dpselect.randomness.lazy import LazyLaplace, LazyUniform, coin, tail_enclosure

__all__ = ["ThresholdTest"]

BLOCK = 512
"""Queries that share one skip; see `ThresholdTest.many`."""

_CHUNK = 1 << 17
_DENSE = 5
_RAREST = 40
_WORD = 2.0**64
_SLACK = 2.0**-38
"""How far a tail probability computed in double precision may be off beside what the exponent's rounding adds."""


class ThresholdTest:
    """One secret threshold noise R (standard Laplace) and fresh noises for the queries.

    In units of the query noise's scale the answer is whether L >= ratio * R - rate * (value - threshold). With L
    standard Laplace it is a coin with the probability of that tail. `ratio` is the scale of the threshold noise over
    that of the query noise, `rate` one over the latter.
    """

    __slots__ = ("_blur", "_margin", "_noise", "_offset", "_random", "_rate", "_ratio", "_slope")

    def __init__(self, *, ratio: Fraction, rate: Fraction, random: RandomSource) -> None:
        self._ratio, self._rate, self._random = ratio, rate, random
        self._noise = LazyLaplace(random)
        low, high = self._noise.enclosure(64)
        self._offset = float(ratio * (low + high) / 2)
        self._blur = float(ratio * (high - low)) + 2.0**-48 * abs(self._offset)
        self._slope = float(rate)
        self._margin = _SLACK + self._blur

    def single(self, value: float, threshold: float) -> bool:
        """One test with fresh noise."""
        return self._decide(value, threshold, self._random.bits(64))

    def _decide(self, value: float, threshold: float, word: int) -> bool:
        """Whether the uniform real that starts with the 64 bits of `word` is below the probability of a positive."""
        gap = value - threshold
        if not gap > -math.inf:  # NaN as well
            return False
        if gap == math.inf:
            return True
        scaled = gap * self._slope
        excess = self._offset - scaled
        small = 0.5 * math.exp(-abs(excess))
        probability = small if excess >= 0.0 else 1.0 - small
        margin = self._margin + 2.0**-48 * abs(scaled)
        if word < (probability - margin) * _WORD:
            return True
        if word > (probability + margin) * _WORD:
            return False
        return LazyUniform(self._random, word, 64).below(lambda bits: self._probability(value, threshold, bits))

    def _probability(self, value: float, threshold: float, bits: int) -> tuple[Fraction, Fraction]:
        scaled = self._rate * (Fraction(value) - Fraction(threshold))
        more = bits + max(self._ratio.numerator.bit_length() - self._ratio.denominator.bit_length(), 0) + 2
        low, high = self._noise.enclosure(more)
        return tail_enclosure(self._ratio * low - scaled, self._ratio * high - scaled, bits)

    def many(self, values: NDArray[Any], thresholds: Array, limit: int) -> NDArray[np.intp]:
        """The places of the first `limit` positives among these queries, with exactly the law of `single` in turn.

        `thresholds` has no dimension, or the shape of `values`. Skip and thin: in a block of 512 queries no one's
        probability exceeds that of the largest gap, nor the next power of two 2**-k above it. Coins of probability
        2**-k are tossed for the whole block by drawing how many queries come before the first that lands heads
        (geometric, exactly). That query is then a positive with probability p * 2**k, decided exactly. A block far
        below the threshold costs one comparison a query. If heads would be frequent, each query gets its own word.
        """
        found: list[int] = []
        rarity = self._rarity(_largest_gaps(values, thresholds))
        words, skips = _skips(self._random, rarity)
        for block in np.flatnonzero((rarity <= _DENSE) | (skips < BLOCK * (1 + 2.0**-20))):
            start, k = int(block) * BLOCK, int(rarity[block])
            queries = as_doubles(values[start : start + BLOCK])
            against = np.broadcast_to(
                thresholds[start : start + BLOCK] if thresholds.ndim else thresholds, queries.shape
            )
            dense = k <= _DENSE
            places = self._dense(queries, against) if dense else self._sparse(queries, against, k, int(words[block]))
            found.extend(start + place for place in places[: limit - len(found)])
            if len(found) >= limit:
                break
        return np.array(found, dtype=np.intp)

    def _rarity(self, gaps: Array) -> NDArray[np.int64]:
        """k for each block: no query in it is positive with probability above 2**-k, and k is at most 40."""
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.nan_to_num(gaps * self._slope, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
            slack = 2.0**-20 + self._blur + 2.0**-40 * np.abs(scaled)
            # -log2 of exp(-excess)/2, which bounds the tail on both sides of zero
            exponent = (self._offset - scaled) / math.log(2.0) + 1.0 - 2.0 * slack
            exponent = np.where(scaled == -np.inf, np.inf, exponent)
        return np.asarray(np.floor(np.clip(np.nan_to_num(exponent, nan=0.0), 0.0, _RAREST)).astype(np.int64))

    def _dense(self, values: Array, thresholds: Array) -> list[int]:
        """The positives of one block, every query with a word of its own."""
        words = self._random.words(len(values))
        with np.errstate(over="ignore", invalid="ignore"):
            gap = values - thresholds
            scaled = np.clip(np.where(np.isnan(gap), -np.inf, gap) * self._slope, -1e300, 1e300)
            excess = self._offset - scaled
            small = 0.5 * np.exp(-np.abs(excess))
            margin = self._margin + 2.0**-48 * np.abs(scaled)
        probability = np.where(excess >= 0.0, small, 1.0 - small)
        uniform = words.astype(np.float64) * 2.0**-64
        positive = uniform < probability - margin
        for place in np.flatnonzero((uniform <= probability + margin) & ~positive):
            positive[place] = self._decide(float(values[place]), float(thresholds[place]), int(words[place]))
        return np.flatnonzero(positive).tolist()

    def _sparse(self, values: Array, thresholds: Array, k: int, word: int) -> list[int]:
        """The positives of one block if coins of probability 2**-k are skipped. `word` starts the first skip."""
        found = []
        place, skip = 0, LazyUniform(self._random, word, 64)
        while (place := place + _geometric(skip, k, len(values) - place)) < len(values):
            if self._kept(float(values[place]), float(thresholds[place]), k):
                found.append(place)
            place, skip = place + 1, LazyUniform(self._random)
        return found

    def _kept(self, value: float, threshold: float, k: int) -> bool:
        """A coin of probability 2**k times that of a positive."""
        if not value - threshold > -math.inf:
            return False

        def probability(bits: int) -> tuple[Fraction, Fraction]:
            low, high = self._probability(value, threshold, bits + k)
            return low * (1 << k), high * (1 << k)

        return coin(probability, self._random)


def _block_maxima(gaps: Array) -> Array:
    whole = len(gaps) // BLOCK * BLOCK
    largest = gaps[:whole].reshape(-1, BLOCK).max(axis=1)
    if whole < len(gaps):
        largest = np.append(largest, gaps[whole:].max())
    if np.isnan(largest).any():
        largest = np.maximum.reduceat(np.fmax(gaps, -np.inf), np.arange(0, len(gaps), BLOCK))
    return np.asarray(largest)


def _largest_gaps(values: NDArray[Any], thresholds: Array) -> Array:
    """The largest gap in each block of queries, up to rounding. NaN gaps do not count."""
    found = []
    for start in range(0, len(values), _CHUNK):
        gaps = as_doubles(values[start : start + _CHUNK])
        if thresholds.ndim:
            gaps = _minus(gaps, thresholds[start : start + _CHUNK])
        found.append(_block_maxima(gaps))
    largest = np.concatenate(found)
    return largest if thresholds.ndim else _minus(largest, thresholds)


def _minus(values: Array, thresholds: Array) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(values - thresholds)


def _skips(random: RandomSource, rarity: NDArray[np.int64]) -> tuple[NDArray[np.uint64], Array]:
    """For each block a word and, nearly, how many coins of probability 2**-rarity land tails before the first head."""
    words = random.words(len(rarity))
    tails = np.log1p(-np.ldexp(1.0, -np.maximum(rarity, 1)))
    return words, np.log((words.astype(np.float64) + 1.0) * 2.0**-64) / tails


def _geometric(uniform: LazyUniform, k: int, limit: int) -> int:
    """How many coins of probability 2**-k land tails before the first head, at most `limit`. The draw is exact.

    It is at least j just when the uniform real is below (1 - 2**-k)**j. A search finds j.
    """
    tails = Fraction((1 << k) - 1, 1 << k)

    def at_least(count: int) -> bool:
        power = tails**count
        return uniform.below(lambda _: (power, power))

    return last_true(at_least, 1, limit) or 0
