"""Sparse vectors as they are found in the wild, wrong and right, with the exact law of their answers.

A `SparseVectorLaw` is what a program does with a batch of gaps (query minus threshold): which noise, drawn how often,
and when it stops. `pattern_probability` integrates over the threshold noise, so a wrong one is caught without sampling.
Each function below takes the price that the program claims and a cap c, and returns what it really does; sensitivity
is one. The claim of all of them is (epsilon_threshold + epsilon_queries)-privacy.

Lyu, Su, Li, "Understanding the Sparse Vector Technique for Differential Privacy" (2017), compare six published
variants in their Figure 1; their Algorithms 3 to 6 are wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import laplace

from dpselect.audit import FiniteSubject
from dpselect.mechanisms.sparse_vector_game.game import SparseVectorGame
from dpselect.numerics.search import Array
from dpselect.privacy import pure_dp
from tests.audits.score_laws import piecewise_nodes

__all__ = ["BROKEN", "Game", "SparseVectorLaw", "corrected", "published_games"]


@dataclass(frozen=True)
class Game:
    """Some queries that are answered no, then some yes; on the neighbour every gap has moved against its answer.

    Attributes:
        negatives, low: how many, and their gap.
        positives, high: the same.
        ceiling: where positives are released with their value, it is at most so much.
    """

    negatives: int
    low: float
    positives: int
    high: float
    ceiling: float | None = None


@dataclass(frozen=True, kw_only=True)
class SparseVectorLaw:
    """One way to run a sparse vector.

    Attributes:
        threshold_scale: scale of the Laplace noise on the threshold; 0 for none.
        query_scale: scale of the Laplace noise on a query; 0 for none.
        max_positives: after how many positives it halts; None for never.
        threshold_noise: drawn "once", or a "fresh" one for each query.
        query_noise: a "fresh" one for each query, or one drawn "once" for all.
        releases_value: whether a positive answer is the noisy query itself.
        game: where its defect shows most, at the default arguments of the functions below.
    """

    threshold_scale: float
    query_scale: float
    max_positives: int | None
    threshold_noise: Literal["once", "fresh"] = "once"
    query_noise: Literal["once", "fresh"] = "fresh"
    releases_value: bool = False
    game: Game = Game(4, 0.0, 2, 0.0)

    def audit_subject(self, game: Game | None = None, *, epsilon: float = 1.0) -> FiniteSubject:
        """Whether the answers of a game (its own one) come out, on the gaps and on their neighbour.

        `epsilon` is the claim, as of the functions below at their default arguments.
        """
        played = game or self.game
        positives = played.positives if self.max_positives is None else min(played.positives, self.max_positives)
        pattern = [False] * played.negatives + [True] * positives  # a program that halts gives no more
        gaps = np.array([played.low] * played.negatives + [played.high] * positives)
        ceiling = played.ceiling if self.releases_value else None
        told, told_less = (
            self.pattern_probability(at, pattern, ceiling=ceiling) for at in (gaps, gaps - np.where(pattern, 1.0, -1.0))
        )
        return FiniteSubject(
            name="sparse vector",
            data={"these answers": told, "others": 1.0 - told},
            neighbour={"these answers": told_less, "others": 1.0 - told_less},
            claim=pure_dp(epsilon=epsilon),
        )

    def pattern_probability(
        self,
        gaps: Sequence[float] | Array,
        pattern: Sequence[bool],
        values: Sequence[float] = (),
        *,
        ceiling: float | None = None,
    ) -> float:
        """The probability of these answers to these gaps; a density in `values` where positives release them.

        With a `ceiling` in place of `values`: the probability that all values released are at most that.

        `pattern` ends where the program does: it has at most `max_positives` positives, and none before its end if it
        has that many.
        """
        if self.max_positives is not None and sum(pattern[:-1]) >= self.max_positives:
            return 0.0
        gap, answers = np.array(gaps, dtype=np.float64), np.array(pattern, dtype=bool)
        if self.threshold_noise == "fresh":
            single = (slice(i, i + 1) for i in range(len(gap)))
            return float(np.prod([self._with_common(gap[one], answers[one]) for one in single]))
        return self._with_common(gap, answers, values, ceiling)

    def _with_common(
        self,
        gap: Array,
        answers: NDArray[np.bool_],
        values: Sequence[float] = (),
        ceiling: float | None = None,
    ) -> float:
        """With one threshold noise for these queries: integrate over it (and over a query noise drawn once)."""
        noises = [s for s in (self.threshold_scale, self.query_scale if self.query_noise == "once" else 0.0) if s]
        scale = max(noises, default=1.0)
        if len(noises) == 2:
            return self._difference(gap, answers)
        if not noises:
            return float(np.prod(self._answers(np.zeros(1), gap, answers, values), axis=0)[0])
        ends = values if ceiling is None else [ceiling]
        breaks = np.concatenate([gap, [0.0], np.asarray(ends, dtype=np.float64)])
        x, weights = piecewise_nodes(breaks / scale)
        sure = self._answers(x * scale, gap, answers, values, ceiling)
        return float(np.sum(weights * laplace.pdf(x) * np.prod(sure, axis=0)))

    def _answers(
        self,
        noise: Array,
        gap: Array,
        answers: NDArray[np.bool_],
        values: Sequence[float],
        ceiling: float | None = None,
    ) -> Array:
        """P(answer of each query | threshold noise), one row for each query."""
        if self.query_scale == 0.0 or self.query_noise == "once":
            return np.where((gap[:, None] >= noise) == answers[:, None], 1.0, 0.0)
        above = self._reach(noise - gap[:, None])
        result = np.where(answers[:, None], above, 1.0 - above)
        if ceiling is not None:
            higher = self._reach(np.maximum(noise, ceiling) - gap[:, None])
            return np.where(answers[:, None], above - higher, result)
        if self.releases_value:
            for row, value in zip(np.flatnonzero(answers), values, strict=True):
                result[row] = np.where(noise <= value, laplace.pdf(value - gap[row], scale=self.query_scale), 0.0)
        return np.asarray(result)

    def _reach(self, height: Array) -> Array:
        """P(query noise >= height)."""
        return np.asarray(laplace.sf(height, scale=self.query_scale))

    def _difference(self, gap: Array, answers: NDArray[np.bool_]) -> float:
        """Both noises drawn once: only their difference matters, and answers are sure given it."""
        low = np.max(gap[~answers], initial=-np.inf)
        high = np.min(gap[answers], initial=np.inf)
        if low >= high:
            return 0.0
        return self._difference_tail(low) - self._difference_tail(high)

    def _difference_tail(self, z: float) -> float:
        """P(threshold noise - query noise > z) for two independent Laplace noises."""
        if np.isinf(z):
            return 1.0 if z < 0 else 0.0
        a, b, size = self.threshold_scale, self.query_scale, abs(float(z))
        if a == b:
            tail = 0.25 * np.exp(-size / a) * (2.0 + size / a)
        else:
            tail = 0.5 * (a * a * np.exp(-size / a) - b * b * np.exp(-size / b)) / (a * a - b * b)
        return float(tail if z >= 0 else 1.0 - tail)

    def log_ratio(
        self,
        gaps: Sequence[float] | Array,
        neighbour: Sequence[float] | Array,
        pattern: Sequence[bool],
        values: Sequence[float] = (),
    ) -> float:
        """The loss at one answer pattern; inf where only the neighbour cannot give it."""
        ours = self.pattern_probability(gaps, pattern, values)
        theirs = self.pattern_probability(neighbour, pattern, values)
        if ours == 0.0:
            return -np.inf
        return float(np.log(ours / theirs)) if theirs > 0.0 else float("inf")


Variant = Callable[..., SparseVectorLaw]


def corrected(epsilon_threshold: float = 0.5, epsilon_queries: float = 0.5, c: int = 2) -> SparseVectorLaw:
    """What `dpselect.mechanisms.SparseVector` does (Lyu, Su, Li 2017, Algorithm 7)."""
    return SparseVectorLaw(
        threshold_scale=1.0 / epsilon_threshold, query_scale=2.0 * c / epsilon_queries, max_positives=c
    )


def releases_noisy_value(epsilon_threshold: float = 0.5, epsilon_queries: float = 0.5, c: int = 1) -> SparseVectorLaw:
    """Their Algorithm 3 (lecture notes of 2011): a positive answer is the noisy query that was compared."""
    return replace(
        corrected(epsilon_threshold, epsilon_queries, c),
        query_scale=c / epsilon_queries,
        releases_value=True,
        game=Game(4, 0.0, 1, 2.0, ceiling=8.0),
    )


def query_noise_without_c(epsilon_threshold: float = 0.5, epsilon_queries: float = 0.5, c: int = 2) -> SparseVectorLaw:
    """Their Algorithm 4 (Lee, Clifton 2014): the query noise does not grow with the cap."""
    return replace(
        corrected(epsilon_threshold, epsilon_queries, c), query_scale=1.0 / epsilon_queries, game=Game(4, -3.0, 2, 0.0)
    )


def no_query_noise(epsilon_threshold: float = 0.5, epsilon_queries: float = 0.5, c: int = 2) -> SparseVectorLaw:
    """Their Algorithm 5 (Stoddard, Chen, Machanavajjhala 2014): no query noise and no cap."""
    return replace(
        corrected(epsilon_threshold, epsilon_queries, c),
        query_scale=0.0,
        max_positives=None,
        game=Game(1, -3.0, 1, 0.0),
    )


def no_cap(epsilon_threshold: float = 0.5, epsilon_queries: float = 0.5, c: int = 2) -> SparseVectorLaw:
    """Their Algorithm 6 (Chen et al. 2015): query noise without the cap in it, and no halting."""
    return replace(
        corrected(epsilon_threshold, epsilon_queries, c),
        query_scale=1.0 / epsilon_queries,
        max_positives=None,
        game=Game(8, -3.0, 8, 3.0),
    )


def keeps_every_positive_of_a_pass(
    epsilon_threshold: float = 0.5, epsilon_queries: float = 0.5, c: int = 1
) -> SparseVectorLaw:
    """The right noise for c positives, but all of a batch's positives are accepted, not the first c."""
    return replace(corrected(epsilon_threshold, epsilon_queries, c), max_positives=None, game=Game(4, -2.0, 4, 0.0))


def threshold_noise_refreshed(
    epsilon_threshold: float = 0.5, epsilon_queries: float = 0.5, c: int = 1
) -> SparseVectorLaw:
    """A new threshold noise for every query, charged once: negative answers are no longer free."""
    return replace(
        corrected(epsilon_threshold, epsilon_queries, c), threshold_noise="fresh", game=Game(16, -4.0, 1, 4.0)
    )


def no_threshold_noise(epsilon_threshold: float = 0.5, epsilon_queries: float = 0.5, c: int = 1) -> SparseVectorLaw:
    """Only the queries are noisy: every negative answer leaks."""
    return replace(corrected(epsilon_threshold, epsilon_queries, c), threshold_scale=0.0, game=Game(8, -2.0, 1, 0.0))


def query_noise_reused(epsilon_threshold: float = 0.5, epsilon_queries: float = 0.5, c: int = 2) -> SparseVectorLaw:
    """One noise for all queries: the answers sort the queries exactly."""
    return replace(corrected(epsilon_threshold, epsilon_queries, c), query_noise="once", game=Game(1, -3.0, 1, 0.0))


def query_noise_halved(epsilon_threshold: float = 0.5, epsilon_queries: float = 0.5, c: int = 1) -> SparseVectorLaw:
    """The scale for monotonic queries, used for any."""
    return replace(
        corrected(epsilon_threshold, epsilon_queries, c), query_scale=c / epsilon_queries, game=Game(8, -2.0, 1, 0.0)
    )


def scales_swapped(epsilon_threshold: float = 0.5, epsilon_queries: float = 0.5, c: int = 2) -> SparseVectorLaw:
    """The query's scale on the threshold and the threshold's on the queries."""
    right = corrected(epsilon_threshold, epsilon_queries, c)
    return replace(
        right, threshold_scale=right.query_scale, query_scale=right.threshold_scale, game=Game(4, -3.0, 2, 0.0)
    )


BROKEN: tuple[Variant, ...] = (
    releases_noisy_value,
    query_noise_without_c,
    no_query_noise,
    no_cap,
    keeps_every_positive_of_a_pass,
    threshold_noise_refreshed,
    no_threshold_noise,
    query_noise_reused,
    query_noise_halved,
    scales_swapped,
)


def published_games(*, epsilon: float, c: int, queries: int) -> dict[int, SparseVectorGame | None]:
    """What the six variants of Lyu, Su, Li 2017, Figure 1, and their own (7) cost at most as games, by their numbers.

    Each with the noise that it takes for `epsilon` and `c` positives; half of epsilon for the threshold (a quarter in
    4). The third shows a positive's noisy query, whose law, given the answer and the threshold, moves by twice the rate
    of its noise: something released after each positive. Its threshold must not move, since a value below the other
    one cannot be shown. The sixth never halts, and answers `queries`. None for the fifth, which no noise protects.
    """
    half = epsilon / 2.0
    return {
        1: SparseVectorGame(threshold_rate=half, query_rate=half / (2 * c), positives=c),
        2: SparseVectorGame(threshold_rate=half / c, query_rate=half / (2 * c), positives=c, restarts=True),
        3: SparseVectorGame(query_rate=half / c, positives=c, release_epsilon=2.0 * half / c),
        4: SparseVectorGame(threshold_rate=epsilon / 4.0, query_rate=0.75 * epsilon, positives=c),
        5: None,
        6: SparseVectorGame(threshold_rate=half, query_rate=half, positives=queries, queries=queries),
        7: SparseVectorGame(threshold_rate=half, query_rate=half / (2 * c), positives=c),
    }
