"""Permute-and-flip (McKenna, Sheldon 2020): pure privacy, never worse in expectation than the exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.mechanisms.exponential import relative_weights
from dpselect.mechanisms.mechanism import configured, released_value
from dpselect.mechanisms.score_mechanism import Method, ScoreMechanism, check_method, flipping_guarantee
from dpselect.mechanisms.scores import ScoreChunks, Scores
from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee, Spender
from dpselect.randomness import RandomSource
from dpselect.randomness.lazy import LazyUniform, exponential_enclosure

__all__ = ["PermuteAndFlip", "draw_permute_and_flip", "permute_and_flip"]

_WORD = 2.0**32
_LEAST = math.exp(-40.0)
"""Smaller probabilities are taken for this one, which is below 2**-57, and decided exactly."""
_MARGIN = 2.0**-8
"""In units of 2**-32: how far a computed probability may be off, 2**-40; NumPy's exp is far better than that."""


@dataclass(frozen=True, kw_only=True)
class PermuteAndFlip(ScoreMechanism):
    """In a random order, take the first candidate whose coin of probability exp(-rate * (best - score)) lands heads.

    rate = epsilon / (2 sensitivity), or epsilon / sensitivity for monotonic scores. It is epsilon-private, with an
    expected score at least that of the exponential mechanism at the same epsilon. It does not have range epsilon, and
    two candidates attain the profile of Laplace noise, so nothing better than pure privacy is claimed. Its distribution
    is that of report-noisy-max with exponential noise (Ding et al. 2021). Source: McKenna, Sheldon 2020, Theorems 1 and
    2.

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
    >>> mechanism = PermuteAndFlip(sensitivity=1.0, epsilon=0.5)
    >>> mechanism.guarantee.epsilon(delta=0), mechanism([0.0, 90.0, 3.0], random=keyed_source(1)).value
    (0.5, 1)
    """

    @property
    def guarantee(self) -> Guarantee:
        """Pure epsilon."""
        return flipping_guarantee(self, "permute-and-flip", "permute-and-flip (McKenna, Sheldon 2020, Theorem 1)")

    def _chosen(self, scores: Scores, random: RandomSource) -> int:
        return draw_permute_and_flip(scores, self.rate, random)


def permute_and_flip(
    scores: ArrayLike | ScoreChunks,
    *,
    sensitivity: float,
    epsilon: float,
    monotonic: bool = False,
    method: Method = "exact",
    spender: Spender | None = None,
    label: str = "permute and flip",
    random: RandomSource | None = None,
) -> int:
    """Choose an index by permute-and-flip, exactly.

    `PermuteAndFlip` with the same arguments has the guarantee.

    Args:
        scores: private, one for each candidate, as in `exponential_mechanism`, which also says how NaN and infinities
            count.
        sensitivity: how far one score moves between neighbouring data sets at most, in [2**-300, 2**300]. You must
            ensure this for the scores as you pass them: rounding in their computation counts.
        epsilon: the price, in [2**-300, 2**300].
        monotonic: whether all scores move in the same direction between neighbours, which halves the noise. False by
            default. You must ensure this. It is rarely true under replace-one.
        method: "exact", the default, or "float". It is accepted for symmetry: being exact costs nothing here, so
            "float" is the exact draw too.
        spender: the budget that pays before the scores are read. None, the default, charges nothing.
        label: its public name in the spender's record.
        random: the source of randomness. None, the default, is a fresh one from system entropy. Only tests should fix
            it.

    Returns:
        The position of the chosen score, from 0. It is private at this price, so you may release it.

    Raises:
        ArgumentError: for a parameter out of range, an unknown `method`, or scores that are empty or not
            one-dimensional.
        TypeError: for a parameter or a dtype of the scores that is not numeric. As in `exponential_mechanism`, neither
            error depends on the values of the scores.
        BudgetError: if the spender refuses.

    >>> from dpselect.randomness import keyed_source
    >>> permute_and_flip([0.0, 90.0, 3.0], sensitivity=1.0, epsilon=1.0, random=keyed_source(1))
    1
    """
    check_method(method)
    mechanism = configured(PermuteAndFlip, sensitivity=sensitivity, epsilon=epsilon, monotonic=monotonic)
    return int(released_value(mechanism, scores, spender=spender, label=label, random=random))


def draw_permute_and_flip(scores: Scores, rate: Fraction, random: RandomSource) -> int:
    """The law of permute-and-flip, exactly, in two passes and constant extra memory.

    Coins and order are independent, so flipping every coin first changes nothing: the result is uniform among the
    candidates whose coin landed heads, and the best one's always does. A coin is 32 bits against a probability in
    float64. If the two are too close for the rounding, more bits and rational arithmetic decide.
    """
    if scores.best == -math.inf:
        return random.below(scores.count)
    if scores.few is not None:
        return _drawn_of_few(scores.few, scores.best, rate, random)
    heads, chosen, start = 0, 0, 0
    slope = float(rate)
    for score in scores.chunks():
        weights = relative_weights(score, scores.best, slope, -40.0)
        landed = _flip(score, weights, scores.best, rate, random)
        count = int(np.count_nonzero(landed))
        heads += count
        # reservoir of one: every candidate so far that landed heads is kept with probability 1/heads
        if count and random.below(heads) < count:
            chosen = start + int(np.flatnonzero(landed)[random.below(count)])
        start += len(score)
    return chosen


def _drawn_of_few(scores: list[float], best: float, rate: Fraction, random: RandomSource) -> int:
    """`draw_permute_and_flip` for one chunk, in plain Python."""
    slope, landed = float(rate), []
    words = random.words((len(scores) + 1) // 2).view(np.uint32).tolist()
    for place, score in enumerate(scores):
        exponent = (score - best) * slope
        # `math.exp` is within a factor 1 +- 2**-44 (in use are functions within a few units of 2**-53)
        excess = (math.exp(exponent) if exponent > -40.0 else _LEAST) * _WORD - words[place]
        if excess >= 1.0 + _MARGIN or (excess > -_MARGIN and _heads(score, best, rate, words[place], random)):
            landed.append(place)
    random.below(len(landed))  # whether the first chunk that has heads is taken: it is
    return landed[random.below(len(landed))]


def _flip(score: Array, weights: Array, best: float, rate: Fraction, random: RandomSource) -> NDArray[np.bool_]:
    """Return the coins that land heads. `weights` are the probabilities in float64 and are used up."""
    words = random.words((len(weights) + 1) // 2).view(np.uint32)[: len(weights)]
    np.multiply(weights, _WORD, out=weights)
    np.subtract(weights, words, out=weights)
    landed = weights >= 1.0 + _MARGIN
    possible = weights > -_MARGIN
    if np.count_nonzero(possible) != np.count_nonzero(landed):
        for index in np.flatnonzero(possible & ~landed):
            landed[index] = _heads(float(score[index]), best, rate, int(words[index]), random)
    return landed


def _heads(score: float, best: float, rate: Fraction, word: int, random: RandomSource) -> bool:
    if score == -math.inf:
        return False
    exponent = rate * (Fraction(best) - Fraction(score))
    return LazyUniform(random, word, 32).below(lambda bits: exponential_enclosure(exponent, bits))
