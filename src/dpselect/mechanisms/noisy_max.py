"""Report noisy max: the index of the largest score after adding noise to each."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.caching import CopiedByFields
from dpselect.cures import write_one_of
from dpselect.errors import ArgumentError
from dpselect.mechanisms.bounded_range_price import bounded_range
from dpselect.mechanisms.exponential import draw_exponential
from dpselect.mechanisms.flipping import draw_permute_and_flip
from dpselect.mechanisms.mechanism import configured, released_value
from dpselect.mechanisms.noisy_ranking import FEW_BITS, WINDOW, Contender, ranking
from dpselect.mechanisms.score_mechanism import DOWN, Method, ScoreMechanism, check_method, flipping_guarantee
from dpselect.mechanisms.scores import ScoreChunks, Scores
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array, root_between
from dpselect.privacy import Guarantee, Spender
from dpselect.privacy.below import ClosedFormLowerProfile
from dpselect.privacy.losses.bounded_range import BoundedRangeProfile
from dpselect.privacy.profile import LaplaceProfile, RandomizedResponseProfile, SymmetricProfile
from dpselect.randomness import RandomSource
from dpselect.randomness.lazy import LazyLaplace

__all__ = ["LaplaceMaxProfile", "ReportNoisyMax", "report_noisy_max"]

Noise = Literal["laplace", "exponential", "gumbel"]


_SMALL, _LARGE = 1e-5, 500.0
"""Outside of these epsilons the profile saves nothing that double precision resolves."""


@dataclass(frozen=True)
class LaplaceMaxProfile(CopiedByFields, SymmetricProfile):
    """The privacy profile of report noisy max with Laplace noise: at most randomised response's, and at most

        max( 1 - exp((e - epsilon0)/2),  sup over T > t of  1 - exp(-T) - exp(e) (1 - exp(-k T)) ).

    k is the smallest ratio of -log(1 - exp(s - epsilon0)/4) to s, and t the s at which it is attained.
    Source: docs/theory/sparse-vector.md, Theorem 8.
    """

    epsilon0: float
    theorem: str = "report noisy max: the winners against the largest of the others"

    @cached_property
    def _power(self) -> tuple[float, float]:
        """(t, k), k rounded down: where the line through 0 touches g(s) = -log(1 - exp(s - epsilon0)/4)."""
        first = math.log(2.0)

        def past(s: float) -> bool:
            x = 0.25 * math.exp(s - self.epsilon0)
            return s * x / (1.0 - x) + math.log1p(-x) >= 0.0

        t = root_between(past, safe=first + self.epsilon0, unsafe=first)
        return t, -math.log1p(-0.25 * math.exp(t - self.epsilon0)) / t * (1.0 - 1e-12)

    def at(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0, rounded up."""
        epsilons = np.asarray(epsilons, dtype=np.float64)
        pure = RandomizedResponseProfile(self.epsilon0).at(epsilons)
        if not _SMALL <= self.epsilon0 <= _LARGE:
            return pure
        one = LaplaceProfile(self.epsilon0).at(epsilons)
        least, power = self._power
        near = np.minimum(epsilons, self.epsilon0)
        exponent = np.maximum(-(near + math.log(power)) / (1.0 - power), least)
        # exp(e) (1 - exp(-k T)), in one exponent where epsilon is large
        missed = np.exp(near + np.log(-np.expm1(-power * exponent)))
        several = -np.expm1(-exponent) - missed * (1.0 - 1e-15 * (1.0 + near)) + 1e-15
        found = np.where(exponent > least, np.maximum(one, several * ROUND_UP), one)
        return np.asarray(np.where(epsilons < self.epsilon0, np.minimum(pure, found), pure))


@dataclass(frozen=True, kw_only=True)
class ReportNoisyMax(ScoreMechanism):
    """argmax of score + noise, with fresh noise for each candidate. It releases only the index.

    The noise has scale 2 sensitivity / epsilon, or sensitivity / epsilon for monotonic scores.

    - "laplace": epsilon-private (Dwork, Roth 2014, Claim 3.9, for monotonic counts, with twice the scale for others).
    - "exponential": epsilon-private, with the distribution of permute-and-flip (Ding et al. 2021). It is drawn as such.
    - "gumbel": the distribution of the exponential mechanism, drawn as such, with its range-epsilon guarantee.

    The first two do not have range epsilon. Laplace noise has a profile below that of pure privacy
    (docs/theory/sparse-vector.md, Theorem 8), exponential noise hardly one.

    Args:
        sensitivity: how far one score moves between neighbouring data sets at most, in [2**-300, 2**300]. You must
            ensure this for the scores as you pass them: rounding in their computation counts.
        epsilon: the price, in [2**-300, 2**300].
        monotonic: whether all scores move in the same direction between neighbours, which halves the noise. False by
            default. You must ensure this. It is rarely true under replace-one.
        adjacency: which data sets are neighbours, as `Adjacency` or its text. The default is add_or_remove_one.
        noise: "laplace", the default, "exponential" or "gumbel".

    Raises:
        ArgumentError: for a number out of range or another `noise`.
        AdjacencyError: if `adjacency` is neither of the two.

    >>> from dpselect.randomness import keyed_source
    >>> mechanism = ReportNoisyMax(sensitivity=1.0, epsilon=0.5, noise="laplace")
    >>> mechanism.guarantee.epsilon(delta=0), mechanism([0.0, 90.0, 3.0], random=keyed_source(1)).value
    (0.5, 1)
    """

    noise: Noise = "laplace"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise not in _DRAWS:
            said = f"noise must be one of {', '.join(map(repr, _DRAWS))}, got {self.noise!r}"
            raise ArgumentError(said + write_one_of("noise", self.noise, _DRAWS))

    @property
    def guarantee(self) -> Guarantee:
        """Pure epsilon, with a profile for Laplace noise. Range epsilon for Gumbel noise."""
        name = f"report-noisy-max-{self.noise}"
        if self.noise == "gumbel":
            return replace(bounded_range(epsilon=self.epsilon, adjacency=self.adjacency), terms=self.terms(name))
        flipping = flipping_guarantee(self, name, _THEOREMS[self.noise])
        if self.noise == "exponential":
            return flipping
        # far down in the tails the exponential mechanism's law is attained
        lower = ClosedFormLowerProfile(BoundedRangeProfile(self.epsilon * DOWN))
        return replace(flipping, profile=LaplaceMaxProfile(self.epsilon), lower_profile=lower)

    def _chosen(self, scores: Scores, random: RandomSource) -> int:
        return _DRAWS[self.noise](scores, self.rate, random)


def report_noisy_max(  # noqa: PLR0913
    scores: ArrayLike | ScoreChunks,
    *,
    sensitivity: float,
    epsilon: float,
    monotonic: bool = False,
    method: Method = "exact",
    noise: Noise = "laplace",
    spender: Spender | None = None,
    label: str = "report noisy max",
    random: RandomSource | None = None,
) -> int:
    """Choose the index of the largest noisy score, with the exact distribution of real-valued noise.

    `ReportNoisyMax` with the same arguments has the guarantee.

    Args:
        scores: private, one for each candidate, as in `exponential_mechanism`, which also says how NaN and infinities
            count.
        sensitivity: how far one score moves between neighbouring data sets at most, in [2**-300, 2**300]. You must
            ensure this for the scores as you pass them: rounding in their computation counts.
        epsilon: the price, in [2**-300, 2**300].
        monotonic: whether all scores move in the same direction between neighbours, which halves the noise. False by
            default. You must ensure this. It is rarely true under replace-one.
        method: "exact", the default, or "float", which is the same exact draw.
        noise: "laplace", the default, "exponential" or "gumbel", as in `ReportNoisyMax`.
        spender: the budget that pays before the scores are read. None, the default, charges nothing.
        label: its public name in the spender's record.
        random: the source of randomness. None, the default, is a fresh one from system entropy. Only tests should fix
            it.

    Returns:
        The position of the chosen score, from 0. It is private at this price, so you may release it.

    Raises:
        ArgumentError: for a parameter out of range, an unknown `method` or `noise`, or scores that are empty or not
            one-dimensional.
        TypeError: for a parameter or a dtype of the scores that is not numeric. As in `exponential_mechanism`, neither
            error depends on the values of the scores.
        BudgetError: if the spender refuses.

    >>> from dpselect.randomness import keyed_source
    >>> report_noisy_max([0.0, 90.0, 3.0], sensitivity=1.0, epsilon=1.0, random=keyed_source(1))
    1
    """
    check_method(method)
    mechanism = configured(ReportNoisyMax, sensitivity=sensitivity, epsilon=epsilon, monotonic=monotonic, noise=noise)
    return int(released_value(mechanism, scores, spender=spender, label=label, random=random))


def _draw_laplace(scores: Scores, rate: Fraction, random: RandomSource) -> int:
    """argmax of rate * score + standard Laplace, exactly.

    One pass estimates every noisy score from one 64-bit word. The few that could be the largest are then compared as
    real numbers, with as many more bits of noise as needed.
    """
    if scores.best == -math.inf:
        return random.below(scores.count)
    if scores.few is not None:
        return _drawn_of_few(scores.few, scores.best, rate, random)
    contenders: list[tuple[float, Contender]] = []
    floor, start, slope = -math.inf, 0, float(rate)
    for score in scores.chunks():
        words = random.words(len(score))
        estimate = _estimates(score, words, scores.best, slope)
        coarse = words >> np.uint64(1) < FEW_BITS
        estimate[coarse] = -np.inf
        floor = max(floor, float(estimate.max()) - WINDOW)
        for place in np.flatnonzero(((estimate >= floor) | coarse) & (score > -np.inf)):
            certain = math.inf if coarse[place] else float(estimate[place])
            one = _contender(start + int(place), float(score[place]), int(words[place]), scores.best, rate, random)
            contenders.append((certain, one))
        contenders = [c for c in contenders if c[0] >= floor]
        start += len(score)
    return ranking([contender for _, contender in contenders], 1)[0]


def _contender(index: int, score: float, word: int, best: float, rate: Fraction, random: RandomSource) -> Contender:
    centre = rate * (Fraction(score) - Fraction(best))
    return Contender(index, centre, LazyLaplace(random, word >> 1, 63, bool(word & 1)))


def _drawn_of_few(scores: list[float], best: float, rate: Fraction, random: RandomSource) -> int:
    """`_draw_laplace` in plain Python."""
    slope, estimates = float(rate), []
    words = random.words(len(scores)).tolist()
    for score, word in zip(scores, words, strict=True):
        if word >> 1 < FEW_BITS:
            estimates.append(math.inf)
            continue
        size = math.log(((word >> 1) + 0.5) * 2.0**-63)
        estimates.append((score - best) * slope + (size if word & 1 else -size))
    floor = max((one for one in estimates if one < math.inf), default=-math.inf) - WINDOW
    near = [place for place, one in enumerate(estimates) if one >= floor and scores[place] > -math.inf]
    if len(near) == 1:
        return near[0]
    return ranking([_contender(place, scores[place], words[place], best, rate, random) for place in near], 1)[0]


def _estimates(score: Array, words: NDArray[np.uint64], best: float, rate: float) -> Array:
    """rate * (score - best) + noise in float64. The lowest bit of a word is the sign, the rest the size."""
    magnitude = np.log(((words >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-63)
    with np.errstate(over="ignore"):
        exponent = (score - best) * rate
    return np.asarray(exponent + np.where(words & np.uint64(1), magnitude, -magnitude))


_DRAWS = {"laplace": _draw_laplace, "exponential": draw_permute_and_flip, "gumbel": draw_exponential}
_THEOREMS = {
    "laplace": "report noisy max with Laplace noise (Dwork, Roth 2014, Claim 3.9)",
    "exponential": "permute-and-flip (McKenna, Sheldon 2020, Theorem 1; Ding et al. 2021)",
}
