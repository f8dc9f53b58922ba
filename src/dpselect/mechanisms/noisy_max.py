"""Report noisy max: the index of the largest score after adding noise to each."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.errors import ArgumentError
from dpselect.mechanisms.bounded_range_price import bounded_range
from dpselect.mechanisms.exponential import draw_exponential
from dpselect.mechanisms.flipping import draw_permute_and_flip
from dpselect.mechanisms.mechanism import released_value
from dpselect.mechanisms.noisy_max_price import flipping_guarantee, laplace_max_guarantee
from dpselect.mechanisms.noisy_ranking import FEW_BITS, WINDOW, Contender, ranking
from dpselect.mechanisms.score_mechanism import Method, ScoreMechanism, check_method
from dpselect.mechanisms.scores import ScoreChunks, Scores
from dpselect.numerics import Array
from dpselect.privacy import Guarantee, Spender
from dpselect.randomness import RandomSource
from dpselect.randomness.lazy import LazyLaplace

__all__ = ["ReportNoisyMax", "report_noisy_max"]

Noise = Literal["laplace", "exponential", "gumbel"]


@dataclass(frozen=True, kw_only=True)
class ReportNoisyMax(ScoreMechanism):
    """argmax of score + noise, the noise drawn afresh for each candidate; only the index leaves.

    Scale 2 sensitivity / epsilon, or sensitivity / epsilon for monotonic scores; parameters as in `ScoreMechanism`.

    - "laplace": epsilon-private (Dwork, Roth 2014, Claim 3.9, for monotonic counts; twice the scale for others).
    - "exponential": epsilon-private; the law of permute-and-flip (Ding et al. 2021), and drawn as such.
    - "gumbel": the law of the exponential mechanism, drawn as such, with its range-epsilon guarantee.

    The first two do not have range epsilon. Laplace noise has a profile below that of pure privacy
    (docs/theory/sparse-vector.md, Theorem 8), exponential noise hardly one.

    >>> ReportNoisyMax(sensitivity=1.0, epsilon=0.5, noise="laplace").guarantee.epsilon(delta=0)
    0.5
    """

    noise: Noise = "laplace"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise not in _DRAWS:
            raise ArgumentError(f"noise must be one of {', '.join(map(repr, _DRAWS))}, got {self.noise!r}")

    @property
    def guarantee(self) -> Guarantee:
        """Pure epsilon, with a profile for Laplace noise; range epsilon for Gumbel noise."""
        name = f"report-noisy-max-{self.noise}"
        if self.noise == "gumbel":
            return replace(bounded_range(epsilon=self.epsilon, adjacency=self.adjacency), terms=self.terms(name))
        priced = laplace_max_guarantee if self.noise == "laplace" else flipping_guarantee
        return priced(self, name, _THEOREMS[self.noise])

    def _chosen(self, scores: Scores, random: RandomSource) -> int:
        return _DRAWS[self.noise](scores, self.rate, random)


def report_noisy_max(
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
    """The index of the largest noisy score, with the exact law of real-valued noise.

    `scores`, NaN, infinities and errors are as in `exponential_mechanism`; `ReportNoisyMax` with the same arguments
    has the guarantee. `method="float"` is the same exact draw.

    >>> from dpselect.randomness import keyed_source
    >>> report_noisy_max([0.0, 90.0, 3.0], sensitivity=1.0, epsilon=1.0, random=keyed_source(1))
    1
    """
    check_method(method)
    mechanism = ReportNoisyMax(sensitivity=sensitivity, epsilon=epsilon, monotonic=monotonic, noise=noise)
    return int(released_value(mechanism, scores, spender=spender, label=label, random=random))


def _draw_laplace(scores: Scores, rate: Fraction, random: RandomSource) -> int:
    """argmax of rate * score + standard Laplace, exactly.

    One pass estimates every noisy score from one 64-bit word; the few that could be the largest are then compared as
    real numbers, with as many more bits of their noise as the comparison needs.
    """
    if scores.best == -math.inf:
        return random.below(scores.count)
    contenders: list[tuple[float, Contender]] = []
    floor, start = -math.inf, 0
    best, slope = Fraction(scores.best), float(rate)
    for score in scores.chunks():
        words = random.words(len(score))
        estimate = _estimates(score, words, scores.best, slope)
        floor = max(floor, float(estimate.max()) - WINDOW)
        coarse = words >> np.uint64(1) < FEW_BITS
        for place in np.flatnonzero(((estimate >= floor) | coarse) & (score > -np.inf)):
            word = int(words[place])
            noise = LazyLaplace(random, word >> 1, 63, bool(word & 1))
            centre = rate * (Fraction(float(score[place])) - best)
            certain = math.inf if coarse[place] else float(estimate[place])
            contenders.append((certain, Contender(start + int(place), centre, noise)))
        contenders = [c for c in contenders if c[0] >= floor]
        start += len(score)
    return ranking([contender for _, contender in contenders], 1)[0]


def _estimates(score: Array, words: NDArray[np.uint64], best: float, rate: float) -> Array:
    """rate * (score - best) + noise in double precision; the lowest bit of a word is the sign, the rest the size."""
    magnitude = np.log(((words >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-63)
    with np.errstate(over="ignore"):
        exponent = (score - best) * rate
    return np.asarray(exponent + np.where(words & np.uint64(1), magnitude, -magnitude))


_DRAWS = {"laplace": _draw_laplace, "exponential": draw_permute_and_flip, "gumbel": draw_exponential}
_THEOREMS = {
    "laplace": "report noisy max with Laplace noise (Dwork, Roth 2014, Claim 3.9)",
    "exponential": "permute-and-flip (McKenna, Sheldon 2020, Theorem 1; Ding et al. 2021)",
}
