"""The k best candidates in one shot: Gumbel noise added once (Durfee, Rogers 2019)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError
from dpselect.mechanisms.bounded_range_price import bounded_range
from dpselect.mechanisms.mechanism import whole
from dpselect.mechanisms.noisy_ranking import FEW_BITS, WINDOW, Contender, ranking
from dpselect.mechanisms.score_mechanism import DOWN, ScoreMechanism
from dpselect.mechanisms.scores import Scores
from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee, compose
from dpselect.privacy.losses.bounded_range import RepeatedRangeLowerProfile
from dpselect.randomness import RandomSource
from dpselect.randomness.lazy import LazyGumbel

__all__ = ["TopK"]


_MOST_DRAWS_BELOW = 10_000
"""With more draws there is no lower end: all their numbers of one outcome would take gigabytes."""


@dataclass(frozen=True, kw_only=True)
class TopK(ScoreMechanism):
    """The `count` candidates with the largest scores after adding Gumbel noise once, best first.

    The distribution is that of `count` exponential mechanisms with epsilon/count each, every one among the candidates
    that are left. So the guarantee is the composition of that many mechanisms of range epsilon/count: pure epsilon, and
    much less at a positive delta. Source: Durfee, Rogers 2019, Lemma 4.2.

    Scores, NaN and infinities are as in `exponential_mechanism`. If fewer than `count` scores are above -inf, the rest
    is uniform among the others. The noise has its real-valued distribution: scores that are close in double precision
    are ranked exactly.

    Args:
        sensitivity: how far one score moves between neighbouring data sets at most, in [2**-300, 2**300]. You must
            ensure this for the scores as you pass them: rounding in their computation counts.
        epsilon: the price of all the choices together, in [2**-300, 2**300].
        monotonic: whether all scores move in the same direction between neighbours, which halves the noise. False by
            default. You must ensure this. It is rarely true under replace-one.
        adjacency: which data sets are neighbours, as `Adjacency` or its text. The default is add_or_remove_one.
        count: how many candidates to choose, an integer of at least 1. Public.

    Raises:
        ArgumentError: for a parameter out of range. A call raises it if `count` is above the number of scores.
        AdjacencyError: if `adjacency` is neither of the two.

    >>> g = TopK(count=100, sensitivity=1.0, epsilon=10.0).guarantee
    >>> g.epsilon(delta=0) < 10.0001, g.epsilon(delta=1e-6) < 3.0
    (True, True)
    >>> TopK(count=2, sensitivity=1.0, epsilon=2.0)([0.0, 990.0, 3.0, 900.0]).value
    [1, 3]
    """

    count: int = field(metadata=whole(at_least=1))

    @property
    def guarantee(self) -> Guarantee:
        """`count` mechanisms of range epsilon/count, composed.

        Its lower end is attained as the number of candidates grows: each draw then is from the same distribution.
        """
        each = self.epsilon / self.count
        if Fraction(each) * self.count < Fraction(self.epsilon):
            each = math.nextafter(each, math.inf)
        one = bounded_range(epsilon=each, adjacency=self.adjacency)
        terms = {**self.terms("top-k"), "count": self.count}
        known = self.count <= _MOST_DRAWS_BELOW
        lower = RepeatedRangeLowerProfile(float(self.epsilon) / self.count * DOWN, self.count) if known else None
        return replace(compose(*[one] * self.count), terms=terms, lower_profile=lower)

    def _check_count(self, count: int) -> None:
        if self.count > count:
            raise ArgumentError(f"count must be at most the number of scores, got {self.count}")

    def _chosen(self, scores: Scores, random: RandomSource) -> list[int]:
        return _draw(scores, self.rate / self.count, self.count, random)


_CONTENDERS = np.dtype([("index", np.int64), ("score", np.float64), ("word", np.uint64), ("estimate", np.float64)])
"""The estimate of a word that says too little of its noise is infinite."""


def _draw(scores: Scores, rate: Fraction, count: int, random: RandomSource) -> list[int]:
    contenders = np.empty(0, _CONTENDERS)
    start, slope, best = 0, float(rate), scores.best
    for score in scores.chunks():
        words = random.words(len(score))
        estimate = _estimates(score, words, best, slope)
        # words near either end say little of their noise: they have no part in where the contenders end
        coarse = words + np.uint64(FEW_BITS) < 2 * FEW_BITS
        estimate[coarse] = -np.inf
        known = contenders["estimate"][contenders["estimate"] < np.inf]
        floor = _cut(np.concatenate((known, estimate[estimate > -np.inf])), count)
        places = np.flatnonzero(((estimate >= floor) | coarse) & (score > -np.inf))
        more = np.empty(len(places), _CONTENDERS)
        more["index"], more["score"], more["word"] = start + places, score[places], words[places]
        more["estimate"] = np.where(coarse[places], np.inf, estimate[places])
        contenders = np.concatenate((contenders[contenders["estimate"] >= floor], more))
        start += len(score)
    ranked = _ranked(contenders, rate, best, count, random)
    return ranked + _uniform_rest(scores, count - len(ranked), random)


def _ranked(found: NDArray[Any], rate: Fraction, best: float, count: int, random: RandomSource) -> list[int]:
    """The indices of the `count` largest noisy scores, largest first, as `ranking` finds them.

    Estimates decide if they are further apart than their errors. The others, in groups, are ranked as real numbers.
    """

    def exactly(part: NDArray[Any], most: int, words: list[int], bits: int) -> list[int]:
        centres = [rate * (Fraction(score) - Fraction(best)) for score in part["score"].tolist()]
        noises = [LazyGumbel(random, word, bits) for word in words]
        return ranking(list(map(Contender, part["index"].tolist(), centres, noises)), most)

    words = found["word"].tolist()
    if len(found) < 2 or not np.isfinite(found["estimate"]).all():
        return exactly(found, count, words, 64)
    # `ranking` reads 64 bits more of each noise, so these are read in any case and a key gives the same draws
    words = [word << 64 | random.bits(64) for word in words]
    error = _errors(found, best, float(rate))
    order = np.argsort(-found["estimate"], kind="stable")
    low, high = (found["estimate"] - error)[order], (found["estimate"] + error)[order]
    after = np.maximum.accumulate(high[::-1])[::-1]
    ends = np.flatnonzero(np.minimum.accumulate(low)[:-1] > after[1:]) + 1
    ranked: list[int] = []
    for start, stop in pairwise([0, *ends.tolist(), len(found)]):
        if len(ranked) >= count:
            break
        if stop - start == 1:
            ranked.append(int(found["index"][order[start]]))
        else:
            group = np.sort(order[start:stop])
            ranked += exactly(found[group], stop - start, [words[place] for place in group], 128)
    return ranked[:count]


def _errors(found: NDArray[Any], best: float, rate: float) -> Array:
    """How far the estimates may be from the noisy scores, for words that are not near either end.

    As real numbers V is within v 2**-52 + 2**-65 of v, the word as a double. E = -log(1 - V) has the derivative
    1/(1 - V), and (1 - V) E changes by less than a factor 2 in between. `numpy.log` and `numpy.log1p` must be within a
    factor 1 +- 2**-44 (they are documented to be within a few units of 2**-53). The score is rounded three times.
    """
    v = (found["word"].astype(np.float64) + 0.5) * 2.0**-64
    exponential = -np.log1p(-v)
    spread = 2.0 * (2.0**-65 + 2.0**-52 * v) / ((1.0 - v) * exponential)
    centre = (found["score"] - best) * rate
    return np.asarray(spread + 2.0**-43 * (1.0 + np.abs(np.log(exponential))) + 2.0**-50 * np.abs(centre))


def _cut(known: Array, count: int) -> float:
    """A level that the `count` largest estimates are all above, by the window, or -inf if there are fewer."""
    if len(known) < count:
        return -math.inf
    return float(np.partition(known, len(known) - count)[len(known) - count]) - WINDOW


def _estimates(score: Array, words: NDArray[np.uint64], best: float, rate: float) -> Array:
    """rate * (score - best) + Gumbel noise in double precision."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        noise = -np.log(-np.log1p(-(words.astype(np.float64) + 0.5) * 2.0**-64))
        return np.asarray(np.where(score > -np.inf, (score - best) * rate + noise, -np.inf))


def _uniform_rest(scores: Scores, count: int, random: RandomSource) -> list[int]:
    """`count` of the candidates whose score is -inf, in uniform order."""
    if not count:
        return []
    places, start = [], 0
    for score in scores.chunks():
        places.extend((start + np.flatnonzero(score == -np.inf)).tolist())
        start += len(score)
    return [places[i] for i in random.permutation(len(places))[:count]]
