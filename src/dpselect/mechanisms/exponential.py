"""The exponential mechanism (McSherry, Talwar 2007), drawn exactly at the speed of two passes over the scores."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, islice

import numpy as np
from numpy.typing import ArrayLike

from dpselect.mechanisms.bounded_range_price import bounded_range
from dpselect.mechanisms.mechanism import configured, released_value
from dpselect.mechanisms.score_mechanism import Method, ScoreMechanism, check_method
from dpselect.mechanisms.scores import CHUNK, ScoreChunks, Scores
from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee, Spender
from dpselect.randomness import RandomSource
from dpselect.randomness.lazy import LazyUniform, exponential_enclosure

__all__ = ["ExponentialMechanism", "draw_exponential", "exponential_mechanism", "relative_weights"]


_MEMBERS = 8
_UNIT_BITS = 37
_SCALE = 2.0**_UNIT_BITS + 2.0**8
"""Proposal weights are whole multiples of 2**-37, a factor 1 + 2**-29 above the true ones, so that a chunk of them
adds up without rounding: CHUNK * (_SCALE + 2**8) < 2**53."""
_BLUR = 2.0**-42
"""How far a probability computed in double precision may be off: it is at most 1 and within 2**-43."""


@dataclass(frozen=True, kw_only=True)
class ExponentialMechanism(ScoreMechanism):
    """Index i with probability proportional to exp(rate * scores[i]), rate = epsilon / (2 sensitivity).

    Monotonic scores allow rate = epsilon / sensitivity.

    Privacy: between neighbours every log-weight moves by at most epsilon/2 (by 0 to epsilon for monotonic scores), so
    the log-ratios of the probabilities span at most epsilon. The mechanism has range epsilon, is epsilon-private and
    epsilon^2/8-zCDP, and composes better than other epsilon-private mechanisms. It is also report-noisy-max with Gumbel
    noise. Source: Durfee, Rogers 2019, Lemma 4.2.

    Args:
        sensitivity: how far one score moves between neighbouring data sets at most, in [2**-300, 2**300]. You must
            ensure this for the scores as you pass them: rounding in their computation counts.
        epsilon: the price, in [2**-300, 2**300].
        monotonic: whether all scores move in the same direction between neighbours, which halves the noise. False by
            default. You must ensure this. It is rarely true under replace-one.
        adjacency: which data sets are neighbours, as `Adjacency` or its text. The default is add_or_remove_one.

    Raises:
        ArgumentError: for a parameter out of range.
        AdjacencyError: if `adjacency` is neither of the two.

    >>> from dpselect.randomness import keyed_source
    >>> mechanism = ExponentialMechanism(sensitivity=1.0, epsilon=1.0)
    >>> mechanism([0.0, 90.0, 3.0], random=keyed_source(1)).value, mechanism.guarantee.epsilon(delta=0)
    (1, 1.0)
    """

    @property
    def guarantee(self) -> Guarantee:
        """Range epsilon, and so pure epsilon."""
        claimed = bounded_range(epsilon=self.epsilon, adjacency=self.adjacency)
        return replace(claimed, terms=self.terms("exponential"))

    def _chosen(self, scores: Scores, random: RandomSource) -> int:
        return draw_exponential(scores, self.rate, random)


def exponential_mechanism(
    scores: ArrayLike | ScoreChunks,
    *,
    sensitivity: float,
    epsilon: float,
    monotonic: bool = False,
    method: Method = "exact",
    spender: Spender | None = None,
    label: str = "exponential mechanism",
    random: RandomSource | None = None,
) -> int:
    """Choose an index with probability proportional to exp(epsilon * score / (2 sensitivity)).

    The distribution is exactly this one for the scores as you pass them, with no floating-point rounding in it. For
    monotonic scores the probability is proportional to exp(epsilon * score / sensitivity). `ExponentialMechanism` with
    the same arguments has the guarantee.

    The scores can influence the time that it takes. With several chunks of `CHUNK` scores, one is read again for each
    proposal, and 1 to 8 proposals are needed on average. A pass is a few percent slower when NaN or +inf occurs.

    Args:
        scores: private, one for each candidate: a one-dimensional array, a memory map, an Arrow column or
            `ScoreChunks`. They are read twice and a bit, in constant extra memory. NaN ranks as -inf, and +inf counts
            as the largest double. -inf is never selected, unless there is nothing else: then the index is uniform. You
            must ensure that neighbours have their NaN and infinite scores at the same positions, or the scores have no
            finite sensitivity. Their number is public.
        sensitivity: how far one score moves between neighbouring data sets at most, in [2**-300, 2**300]. You must
            ensure this for the scores as you pass them: rounding in their computation counts.
        epsilon: the price, in [2**-300, 2**300].
        monotonic: whether all scores move in the same direction between neighbours, which halves the noise. False by
            default. You must ensure this. It is rarely true under replace-one.
        method: "exact", the default, or "float", which asks for speed and allows an error. The exact draw costs four to
            six passes of `numpy.max`, so both methods do it, with error zero.
        spender: the budget that pays before the scores are read. None, the default, charges nothing.
        label: its public name in the spender's record.
        random: the source of randomness. None, the default, is a fresh one from system entropy. Only tests should fix
            it.

    Returns:
        The position of the chosen score, from 0. It is private at this price, so you may release it.

    Raises:
        ArgumentError: for a parameter out of range, an unknown `method`, or scores that are empty or not
            one-dimensional.
        TypeError: for a parameter or a dtype of the scores that is not numeric. Neither error ever depends on the
            values of the scores.
        BudgetError: if the spender refuses.

    >>> from dpselect.randomness import keyed_source
    >>> exponential_mechanism([0.0, 90.0, 3.0], sensitivity=1.0, epsilon=1.0, random=keyed_source(1))
    1
    """
    check_method(method)
    mechanism = configured(ExponentialMechanism, sensitivity=sensitivity, epsilon=epsilon, monotonic=monotonic)
    return int(released_value(mechanism, scores, spender=spender, label=label, random=random))


def draw_exponential(scores: Scores, rate: Fraction, random: RandomSource) -> int:
    """Index i with probability proportional to exp(rate * scores[i]), exactly, regardless of the scores.

    Propose and thin. Scores stand in groups of 8 (of one where there are few). A group gets an integer v >= 2**37
    exp(rate (its largest score - best)), which float64 can compute with an ample margin. A member is proposed with
    probability proportional to its group's v, by integer arithmetic. The proposal is kept with probability 2**37
    exp(rate (s - best)) / v, decided exactly by as many bits as that takes. So no rounding enters the law as long as v
    is an upper bound, for which NumPy's exp must be within a factor 1 +- 2**-31. On every input a proposal is kept with
    probability at least (1 - 2**-28 - count * 2**-36) / 8.
    """
    if scores.best == -math.inf:
        return random.below(scores.count)
    if scores.few is not None:
        return _drawn_of_few(scores.few, scores.best, rate, random)
    found: list[tuple[int, int]] = []
    for chunk, weights in _proposals(scores, rate):
        found.append((len(chunk), int(weights.sum()) * (len(chunk) // len(weights))))
    starts = list(accumulate((length for length, _ in found), initial=0))
    sums = [total for _, total in found]
    totals = list(accumulate(sums))
    while True:
        target = random.below(totals[-1])
        block = bisect_right(totals, target)
        if len(found) > 1:
            chunk, weights = next(_proposals(scores, rate, block))
        members = len(chunk) // len(weights)
        place, target = divmod(target - (totals[block] - sums[block]), members)
        running = np.cumsum(weights)
        if int(running[-1]) * members != sums[block]:
            raise RuntimeError("scores changed while they were read")
        group = int(np.searchsorted(running, place, side="right"))
        position = target * len(weights) + group
        score = float(chunk[position])
        if score > -math.inf and _kept(rate, scores.best, score, int(weights[group]), random):
            return starts[block] + position


def _drawn_of_few(scores: list[float], best: float, rate: Fraction, random: RandomSource) -> int:
    """`draw_exponential` for groups of one, in plain Python."""
    slope = float(rate)
    exponents = [(score - best) * slope for score in scores]
    weights = [int(math.exp(x) * _SCALE) + 1 if x > -28.0 else 1 for x in exponents]
    totals = list(accumulate(weights))
    while True:
        place = bisect_right(totals, random.below(totals[-1]))
        if scores[place] > -math.inf and _kept(rate, best, scores[place], weights[place], random):
            return place


def _kept(rate: Fraction, best: float, score: float, weight: int, random: RandomSource) -> bool:
    """A coin of probability 2**37 exp(-rate (best - score)) / weight, where that is at most 1.

    In double precision it is within `_BLUR`. The exponent is rounded three times: that moves the probability by less
    than 2**-46, since it is at most 1 for exponents up to 28, and falls beyond. `math.exp` must be within a factor 1 +-
    2**-44 (those in use are within a few units of 2**-53).
    """
    word = random.bits(64)
    probability = math.exp((score - best) * float(rate)) * 2.0**_UNIT_BITS / weight
    if word < (probability - _BLUR) * 2.0**64:
        return True
    if word > (probability + _BLUR) * 2.0**64:
        return False
    exponent, share = rate * (Fraction(best) - Fraction(score)), Fraction(1 << _UNIT_BITS, weight)

    def exact(bits: int) -> tuple[Fraction, Fraction]:
        low, high = exponential_enclosure(exponent, bits + _UNIT_BITS)
        return low * share, high * share

    return LazyUniform(random, word, 64).below(exact)


def _proposals(scores: Scores, rate: Fraction, start: int = 0) -> Iterator[tuple[Array, Array]]:
    """Each chunk with floor(exp(rate (largest of the group - best)) * _SCALE) + 1 for its groups.

    Group g holds the places g, g + w, g + 2w, ... of the chunk, w being the number of groups. One buffer is reused.
    """
    groups = np.empty(CHUNK // _MEMBERS)
    slope = float(rate)
    for chunk in islice(scores.chunks(), start, None):
        largest = np.maximum.reduce(chunk.reshape(_MEMBERS, -1), axis=0, out=groups) if len(chunk) == CHUNK else chunk
        weights = relative_weights(largest, scores.best, slope, -28.0)
        np.multiply(weights, _SCALE, out=weights)
        np.floor(weights, out=weights)
        np.add(weights, 1.0, out=weights)
        yield chunk, weights


def relative_weights(scores: Array, best: float, rate: float, lowest: float) -> Array:
    """exp(max(rate (s - best), lowest)).

    Cutting the exponent off keeps NumPy off its slow paths for exponentials that underflow.
    """
    with np.errstate(over="ignore", under="ignore"):
        weights = scores - best
        np.multiply(weights, rate, out=weights)
        np.maximum(weights, lowest, out=weights)
        np.exp(weights, out=weights)
    return weights
