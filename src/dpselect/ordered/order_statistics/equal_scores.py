"""The exponential mechanism over runs of equal scores, drawn exactly regardless of the scores and the lengths."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.ordered.order_statistics.intervals import ASIDE
from dpselect.randomness import RandomSource
from dpselect.randomness.lazy import coin, exponential_enclosure

__all__ = ["draw_from_runs", "relative_coin", "weight_at_least"]

_MARGIN = 1.0 + 2.0**-30


@dataclass(frozen=True, repr=False)
class _Level:
    """Runs that are proposed together: their places, all they hold, and a bound on each one's weight. Secret."""

    runs: NDArray[np.intp]
    length: int
    weight: int


def draw_from_runs(
    lengths: Sequence[int] | NDArray[Any], scores: NDArray[Any], *, rate: Fraction, random: RandomSource
) -> int:
    """A place in 0 .. sum(lengths)-1, with probability proportional to exp(rate * score of its run), exactly.

    `lengths` are integers >= 0 of any size, not all zero. `scores` are finite doubles or integers below 2**53 in
    magnitude. Runs of one score form a level. A level is proposed with an integer weight that double precision can tell
    to be large enough. It is kept with the exact quotient, decided by as many random bits as that takes. So no rounding
    enters the law. About one proposal is needed.

    >>> from dpselect.randomness import keyed_source
    >>> draw_from_runs([3, 1, 10**30], np.array([0, 500, 0]), rate=Fraction(1), random=keyed_source(1))
    3
    """
    total = sum(int(length) for length in lengths) if not isinstance(lengths, np.ndarray) else _total(lengths)
    exact = np.asarray(lengths, dtype=np.uint64 if total < 1 << 64 else object)
    held = np.flatnonzero(exact != 0)
    best = scores[held].max()
    gaps = best - scores
    scale = total.bit_length() + 64
    levels = _levels(exact, gaps, held, float(rate), (math.log(total) + ASIDE) / float(rate), scale)
    running = list(accumulate(level.length * level.weight for level in levels))
    top = _fraction(best)
    while True:
        level = levels[bisect_right(running, random.below(running[-1]))]
        place = random.below(level.length)
        ends = np.cumsum(exact[level.runs])
        chosen = int(np.searchsorted(ends, exact.dtype.type(place) if exact.dtype != object else place, side="right"))
        run = int(level.runs[chosen])
        if relative_coin(rate * (top - _fraction(scores[run])), level.weight, scale, random):
            inside = place - (int(ends[chosen - 1]) if chosen else 0)
            return int(exact[:run].sum()) + inside


def _total(lengths: NDArray[Any]) -> int:
    """The sum without wrapping round."""
    if lengths.dtype == object:
        return int(lengths.sum())
    high, low = np.divmod(lengths.astype(np.uint64), np.uint64(1 << 32))
    return (int(high.sum()) << 32) + int(low.sum())


def _fraction(score: Any) -> Fraction:
    return Fraction(score.item() if isinstance(score, np.generic) else score)


def _levels(
    lengths: NDArray[Any], gaps: NDArray[Any], held: NDArray[np.intp], rate: float, width: float, scale: int
) -> list[_Level]:
    """One level for each score above best - width and one for all others (a share of exp(-45) at most), best first."""
    near = held[gaps[held] < width]
    far = held[gaps[held] >= width]
    distances, which = np.unique(gaps[near], return_inverse=True)
    order = np.argsort(which, kind="stable")
    parts = np.split(near[order], np.searchsorted(which[order], np.arange(1, len(distances))))
    levels = [
        _Level(part, int(lengths[part].sum()), weight_at_least(rate * float(gap), scale))
        for part, gap in zip(parts, distances, strict=True)
    ]
    if len(far):
        levels.append(_Level(far, int(lengths[far].sum()), weight_at_least(rate * width, scale)))
    return levels


def weight_at_least(exponent: float, scale: int) -> int:
    """An integer that is at least 2**scale * exp(-exponent), and not much above."""
    halvings = math.floor(exponent / math.log(2.0))
    leading = int(math.exp(halvings * math.log(2.0) - exponent) * _MARGIN * 2.0**53) + 1
    shift = scale - halvings - 53
    return leading << shift if shift >= 0 else (leading >> -shift) + 1


def relative_coin(exponent: Fraction, weight: int, scale: int, random: RandomSource) -> bool:
    """A coin of probability 2**scale * exp(-exponent) / weight, which must be at most one."""
    share = Fraction(1 << scale, weight)
    extra = max(scale - weight.bit_length() + 1, 0)

    def probability(bits: int) -> tuple[Fraction, Fraction]:
        low, high = exponential_enclosure(exponent, bits + extra)
        return low * share, high * share

    return coin(probability, random)
