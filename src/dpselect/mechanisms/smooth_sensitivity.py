"""Candidates whose sensitivity depends on the data, through a smooth bound (Liu, Talwar 2019, Theorem 5.2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.errors import ArgumentError
from dpselect.mechanisms.mechanism import Mechanism, real, whole
from dpselect.mechanisms.noisy_ranking import FEW_BITS, Contender, ranking
from dpselect.mechanisms.scores import declared_scores
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency, Guarantee, approximate_dp
from dpselect.randomness import RandomSource
from dpselect.randomness.lazy import LazyLaplace
from dpselect.repetitions import Geometric

__all__ = ["SmoothSensitivityMechanism"]

_BATCH = 1 << 16


@dataclass(frozen=True, kw_only=True)
class SmoothSensitivityMechanism(Mechanism):
    """The best of a geometric number of noisy draws, each of a uniformly chosen candidate.

    One draw is candidate i with score q_i - t c s_i + c s_i L. Here s_i is a `smoothness`-smooth bound on q_i's local
    sensitivity (Nissim, Raskhodnikova, Smith 2007), and L is standard Laplace. The price of one draw is e =
    `base_epsilon`, c = 4/e is the `multiplier`, and t = log(4 candidates / failure_probability^2) is the `shift`. A
    call takes the scores q and the smooth bounds s, both private. After each draw the search stops with probability g =
    failure_probability / (4 candidates). The best draw so far wins.

    One draw is (e, base_delta)-private if smoothness is at most `most_smooth`. The unshifted scores move by s_i, the
    shift by t c s_i (exp(smoothness) - 1) <= s_i, together half of e in noise scales. Changing the scale costs at most
    e/2 outside |L| > log(1/base_delta), as log(1/base_delta)(exp(smoothness) - 1) <= e/2 + smoothness and smoothness <=
    e/2.

    All draws together cost e + 2 log((exp(e) + g)/(1 + g exp(e))) (Liu, Talwar 2019, Theorem 3.2, in the exact form for
    a geometric number of draws). Their delta is base_delta/(g + base_delta - g base_delta). Both are rounded up.

    Accuracy: with probability at least 1 - failure_probability the chosen q_i is at least q_j - t c s_j for all j.

    It releases only the index, with exactly this distribution: close noisy scores are compared as real numbers.

    Args:
        candidates: how many there are, an integer in [1, 2**24]. Public.
        smoothness: how fast the bounds change, from 0 to `most_smooth`. You must ensure that s_i is at least the local
            sensitivity of q_i, and that s_i changes by a factor of at most exp(smoothness) between neighbours.
        base_epsilon: the price of one draw, in [1e-9, 1e3]. The whole search costs about three times that.
        base_delta: the price of one draw, in [1e-300, 0.25].
        failure_probability: how often the accuracy above may fail, at least 1e-6 and below 1. The default is 0.05.
        adjacency: which data sets are neighbours, as `Adjacency` or its text. The default is add_or_remove_one.

    Raises:
        ArgumentError: for a parameter out of range, or a `smoothness` above `most_smooth`.
        AdjacencyError: if `adjacency` is neither of the two.

    >>> options = {"smoothness": 1e-3, "base_epsilon": 0.5, "base_delta": 1e-12}
    >>> SmoothSensitivityMechanism(candidates=2, **options)([0.0, 5e4], [0.1, 0.1]).value
    1
    """

    candidates: int = field(metadata=whole(at_least=1, at_most=1 << 24))
    smoothness: float = field(metadata=real(at_least=0.0))
    base_epsilon: float = field(metadata=real(at_least=1e-9, at_most=1e3, rounding="down"))
    base_delta: float = field(metadata=real(at_least=1e-300, at_most=0.25, rounding="down"))
    failure_probability: float = field(default=0.05, metadata=real(at_least=1e-6, below=1.0))
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.smoothness > self.most_smooth:
            raise ArgumentError(f"smoothness must be at most {self.most_smooth!r} here, got {self.smoothness!r}")

    @property
    def multiplier(self) -> float:
        """c: noise per unit of the smooth bound, rounded up."""
        return 4.0 / self.base_epsilon * ROUND_UP

    @property
    def shift(self) -> float:
        """t, in units of the noise."""
        return math.log(4.0 * self.candidates / self.failure_probability**2)

    @property
    def stop_probability(self) -> float:
        """g."""
        return self.failure_probability / (4.0 * self.candidates)

    @property
    def most_smooth(self) -> float:
        """The largest smoothness that the proof allows, rounded down."""
        half, tail = self.base_epsilon / 2.0, -math.log(self.base_delta)
        shifted = math.log1p(1.0 / (self.shift * self.multiplier))
        # tail (exp(x) - 1) - x is convex and 0 at 0, so at most half on an interval; log1p(half/tail) is inside it
        scaled = math.log1p(half / tail)
        return min(half, shifted, scaled) * (1.0 - 1e-12)

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, delta) of the whole search."""
        e, g = self.base_epsilon, self.stop_probability
        # log((exp(e) + g)/(1 + g exp(e))) = e + log1p(g exp(-e)) - log1p(g exp(e))
        factor = e + math.log1p(g * math.exp(-e)) - float(np.logaddexp(0.0, math.log(g) + e))
        epsilon = (e + 2.0 * factor) * ROUND_UP
        delta = self.base_delta / (g + self.base_delta * (1.0 - g)) * ROUND_UP
        terms = {
            "mechanism": "smooth-sensitivity",
            "base_epsilon": e,
            "base_delta": self.base_delta,
            "candidates": self.candidates,
            "stop_probability": g,
        }
        claimed = approximate_dp(epsilon=epsilon, delta=delta, adjacency=self.adjacency)
        theorem = "random stopping (Liu, Talwar 2019, Theorems 3.2 and 5.2)"
        return replace(claimed, theorem=theorem, terms=terms, lower_profile=None)

    def prepared(self, scores: ArrayLike, smooth_bounds: ArrayLike) -> Callable[[RandomSource], int]:
        """The choice. `scores` and `smooth_bounds` have one entry for each candidate, and both are secret.

        The number of draws does not depend on the data and is secret too.
        """
        read = declared_scores(scores, self._check_count)
        read_bounds = declared_scores(smooth_bounds, self._check_count, name="smooth_bounds")

        def run(random: RandomSource) -> int:
            q = read().vector()
            s = np.clip(np.nan_to_num(read_bounds().vector(), nan=0.0), 0.0, 1e150)
            draws = Geometric(gamma=self.stop_probability).sample(random)
            return _best_draw(q, s, Fraction(self.multiplier), Fraction(self.shift), draws, random)

        return run

    def _check_count(self, count: int) -> None:
        if count != self.candidates:
            raise ArgumentError(f"scores and smooth_bounds must have {self.candidates} entries each")


def _best_draw(
    scores: Array, bounds: Array, multiplier: Fraction, shift: Fraction, draws: int, random: RandomSource
) -> int:
    """The candidate of the best among `draws` noisy draws, uniform if every score is -inf."""
    contenders: list[tuple[float, Contender]] = []
    floor = -math.inf
    for start in range(0, draws, _BATCH):
        chosen = _uniform_indices(len(scores), min(_BATCH, draws - start), random)
        words = random.words(len(chosen))
        low, high = _estimates(scores[chosen], bounds[chosen] * float(multiplier), float(shift), words)
        floor = max(floor, float(low.max()))
        for place in np.flatnonzero((high >= floor) & (scores[chosen] > -np.inf)):
            index, word = int(chosen[place]), int(words[place])
            scale = multiplier * Fraction(float(bounds[index]))
            noise = LazyLaplace(random, word >> 1, 63, bool(word & 1))
            centre = Fraction(float(scores[index])) - shift * scale
            contenders.append((float(high[place]), Contender(index, centre, noise, scale)))
        contenders = [c for c in contenders if c[0] >= floor]
    found = ranking(_without_ties([c for _, c in contenders]), 1)
    return found[0] if found else random.below(len(scores))


def _without_ties(contenders: list[Contender]) -> list[Contender]:
    """Contenders without noise can tie for ever: of those only the best stays, the first in order among equals."""
    still = [c for c in contenders if not c.scale]
    noisy = [c for c in contenders if c.scale]
    return noisy + ([min(still, key=lambda c: (-c.centre, c.index))] if still else [])


def _estimates(scores: Array, scales: Array, shift: float, words: NDArray[np.uint64]) -> tuple[Array, Array]:
    """Bounds around each noisy score. The lowest bit of a word is the sign of its noise, the rest the size."""
    size = words >> np.uint64(1)
    noise = -np.log((size.astype(np.float64) + 0.5) * 2.0**-63)
    with np.errstate(over="ignore", invalid="ignore"):
        estimate = scores + scales * (np.where(words & np.uint64(1), -noise, noise) - shift)
        error = 2.0**-40 * (np.abs(scores) + scales * (noise + shift))
        high = np.where(size < FEW_BITS, np.inf, estimate + error)
        low = np.where(size < FEW_BITS, -np.inf, estimate - error)
    return np.nan_to_num(low, nan=-np.inf, neginf=-np.inf, posinf=np.inf), high


def _uniform_indices(count: int, size: int, random: RandomSource) -> NDArray[np.intp]:
    """Exactly uniform indices below `count`, by rejection."""
    limit = np.uint64((1 << 64) // count * count - 1)
    drawn = random.words(size)
    while (outside := drawn > limit).any():
        drawn = np.where(outside, random.words(size), drawn)
    return (drawn % np.uint64(count)).astype(np.intp)
