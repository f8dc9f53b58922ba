"""The large entries of a vector: a sparse vector finds them, and what it left of the budget pays for their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.errors import ArgumentError, integer, number
from dpselect.mechanisms.grid import grid_at_most, round_to_grid
from dpselect.mechanisms.mechanism import Mechanism, real, whole
from dpselect.mechanisms.scores import as_vector
from dpselect.mechanisms.sparse_vector import SparseVector, read_thresholds
from dpselect.mechanisms.sparse_vector_game.price import game_guarantee
from dpselect.mechanisms.sparse_vector_prices import AnswerPrice, answer_counts
from dpselect.privacy import Adjacency, Guarantee, OutputGuarantee, compose, pure_dp
from dpselect.privacy.output.amounts import charged_amount, charged_price, noise_epsilon
from dpselect.randomness import RandomSource
from dpselect.randomness.integers import discrete_laplace

__all__ = ["SparseAnswers", "SparseRelease", "SparseReleasePrice", "balanced_split"]

Spend = Literal["all", "release", "each"]
AnswerOne = Callable[[int, Fraction, RandomSource], Any]
"""(index, epsilon, random) -> what is released of the entry, by a mechanism that the caller makes epsilon-private."""

_FINENESS = 1024.0
"""Grid steps in one sensitivity."""


@dataclass(frozen=True, eq=False)
class SparseAnswers:
    """The large entries (up to the end of the session), and the values released for them."""

    answers: NDArray[np.bool_]
    values: Mapping[int, Any]


def released_counts(output: SparseAnswers) -> tuple[int, int]:
    """The cell: (positives, negatives)."""
    if not isinstance(output, SparseAnswers):
        raise ArgumentError("the output must be the SparseAnswers that the release gave")
    return answer_counts(output.answers)


@dataclass(frozen=True, kw_only=True)
class SparseReleasePrice:
    """The price of p positives and n negatives with their values: the session's, see `AnswerPrice`, plus the values'.

    `epsilon_each` is what each of the p values may cost: by `spend`,

    - "all": everything that the session left, `(total - session) / p`.
    - "release": `epsilon_release / p`, and what the session left comes back.
    - "each": `epsilon_release / max_positives`, and what was not released comes back too.
    """

    session: AnswerPrice
    epsilon_release: float
    spend: Spend = "all"

    @property
    def total(self) -> Fraction:
        """The epsilon to reserve: the session's supremum plus epsilon_release."""
        return self.session.supremum + charged_amount("epsilon_release", self.epsilon_release)

    def epsilon_each(self, positives: int, negatives: int) -> Fraction:
        """The price of each value, for at least one positive."""
        release = charged_amount("epsilon_release", self.epsilon_release)
        rules = {
            "all": (self.total - self.session.exact(positives, negatives)) / positives,
            "release": release / positives,
            "each": release / self.session.max_positives,
        }
        return rules[self.spend]

    def __call__(self, cell: Hashable) -> float:
        """The price of a cell, rounded up."""
        self.session(cell)  # a cell that cannot be is refused
        positives, negatives = cast(tuple[int, int], cell)
        values = positives * self.epsilon_each(positives, negatives) if positives else Fraction(0)
        return charged_price(self.session.exact(positives, negatives) + values)


@dataclass(frozen=True, kw_only=True)
class SparseRelease(Mechanism):
    """Find the entries of a vector f(x) with |f_i(x)| above a threshold, and release them (Hartmann et al. 2022, 5.1).

    Each of p released values has noise of scale sensitivity/epsilon_each, and the p prices compose. The entries are
    found in the order given. After the last one of `max_positives` nothing more is looked at. The vector is fixed
    before the run. For queries that depend on answers use `SparseVector` with a budget that is locked meanwhile.

    `guarantee` prices the cell (positives, negatives): see `SparseReleasePrice`. Pure: at every output the session's
    ratio and the values' multiply. `guarantee.worst()` is less than that at a delta for "release" and "each". For "all"
    hardly anything could be.

    Values are rounded to multiples of a power of two, at most 1/1024 of the sensitivity, and get discrete Laplace noise
    on that grid: exact.

    Args:
        epsilon_threshold: the price of the noise on the threshold, in [2**-20, 2**10]. `balanced_split` gives it and
            the next.
        epsilon_queries: the price of all positives together, in [2**-20, 2**10].
        epsilon_release: the price of the released values, in [2**-20, 2**10].
        max_positives: how many entries are found at most, an integer in [1, 100000].
        sensitivity: how far every entry moves between neighbours at most, all of them together, in [2**-300, 2**300].
            The default is 1. You must ensure this.
        monotonic: whether all |f_i| move in the same direction between neighbours, as those of counts do. False by
            default. Entries that move alike but differ in sign do not. You must ensure this.
        spend: how to use what the sparse vector left. "all", the default: on less noise in the values. "release": it
            comes back. "each": each value costs epsilon_release / max_positives, and what was not released comes back
            too.
        adjacency: which data sets are neighbours, as `Adjacency` or its text. The default is add_or_remove_one.

    Raises:
        ArgumentError: for a parameter out of range or another `spend`.
        AdjacencyError: if `adjacency` is neither of the two.

    >>> from dpselect.randomness import keyed_source
    >>> first, second = balanced_split(epsilon=0.5, max_positives=20)
    >>> search = SparseRelease(epsilon_threshold=first, epsilon_queries=second, epsilon_release=0.5, max_positives=20)
    >>> found = search([0.0] * 60 + [1000.0] * 5 + [0.0] * 35, threshold=500.0, random=keyed_source(3)).value
    >>> set(found.values) >= {60, 61, 62, 63, 64}, round(search.scale(5, 95), 2)
    (True, 5.91)
    >>> search.guarantee.observed(found).epsilon(delta=0)
    1.0
    """

    epsilon_threshold: float = field(metadata=real(at_least=2.0**-20, at_most=2.0**10, rounding="down"))
    epsilon_queries: float = field(metadata=real(at_least=2.0**-20, at_most=2.0**10, rounding="down"))
    epsilon_release: float = field(metadata=real(at_least=2.0**-20, at_most=2.0**10, rounding="down"))
    max_positives: int = field(metadata=whole(at_least=1, at_most=100_000))
    sensitivity: float = field(default=1.0, metadata=real(at_least=2.0**-300, at_most=2.0**300, rounding="up"))
    monotonic: bool = False
    spend: Spend = "all"
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE

    def __post_init__(self) -> None:
        super().__post_init__()
        self._parsed(monotonic=bool(self.monotonic))
        if self.spend not in ("all", "release", "each"):
            raise ArgumentError(f"spend must be 'all', 'release' or 'each', got {self.spend!r}")

    @property
    def price(self) -> SparseReleasePrice:
        """The cost of a cell, and the most that each value may cost."""
        session = AnswerPrice(
            epsilon_threshold=self.epsilon_threshold,
            epsilon_queries=self.epsilon_queries,
            max_positives=self.max_positives,
            monotonic=self.monotonic,
        )
        return SparseReleasePrice(session=session, epsilon_release=self.epsilon_release, spend=self.spend)

    @property
    def guarantee(self) -> OutputGuarantee:
        """The price by (positives, negatives). The class of outputs is known from the output."""
        total = charged_price(self.price.total)
        return OutputGuarantee(
            cell=released_counts,
            epsilons=self.price,
            supremum=total,
            adjacency=self.adjacency,
            ordinary=self._ordinary(total),
        )

    def _ordinary(self, total: float) -> Guarantee | None:
        """The guarantee at a delta: the search is a game, and values share a pure epsilon or have one each in it."""
        if self.spend == "all":
            return None  # one value found alone gets nearly the total, and attains it: a delta has nothing to save
        game = self.price.session.game
        if self.spend == "each":
            game = replace(game, release_epsilon=self.epsilon_release / self.max_positives * (1.0 + 2.0**-50))
        searched = game_guarantee(game, pure_epsilon=total, adjacency=self.adjacency)
        if self.spend == "each":
            return searched
        values = pure_dp(epsilon=self.epsilon_release, adjacency=self.adjacency)
        return replace(compose(searched, values), pure_epsilon=total, lower_profile=None)

    def scale(self, positives: int, negatives: int) -> float:
        """The scale of the noise on each value after a session with so many answers of either kind."""
        positives = integer("positives", positives, at_least=1, at_most=self.max_positives)
        negatives = integer("negatives", negatives, at_least=0)
        return float(Fraction(self.sensitivity) / self.price.epsilon_each(positives, negatives))

    def prepared(
        self, values: ArrayLike, *, threshold: ArrayLike, answer: AnswerOne | None = None
    ) -> Callable[[RandomSource], SparseAnswers]:
        """Find the large entries and release them. `threshold` is one number or one for each entry.

        `answer(index, epsilon, random)` replaces the noisy value by another epsilon-private mechanism (you must ensure
        this). Its exceptions pass through and may reveal data.
        """
        vector = as_vector("values", values)
        levels = read_thresholds(threshold, len(vector))
        return lambda random: self._found(vector, levels, answer, random)

    def _found(
        self, vector: NDArray[np.float64], threshold: ArrayLike, answer: AnswerOne | None, random: RandomSource
    ) -> SparseAnswers:
        session = SparseVector(
            epsilon_threshold=self.epsilon_threshold,
            epsilon_queries=self.epsilon_queries,
            max_positives=self.max_positives,
            sensitivity=self.sensitivity,
            monotonic=self.monotonic,
            adjacency=self.adjacency,
            random=random,
        )
        answers = session.above_many(np.abs(vector), threshold)
        positives, negatives = answer_counts(answers)
        if not positives:
            return SparseAnswers(answers, {})
        epsilon = self.price.epsilon_each(positives, negatives)

        def noisy(index: int, epsilon: Fraction, source: RandomSource) -> float:
            return self._noisy(float(vector[index]), epsilon, source)

        one = answer or noisy
        return SparseAnswers(answers, {int(i): one(int(i), epsilon, random) for i in np.flatnonzero(answers)})

    def _noisy(self, value: float, epsilon: Fraction, random: RandomSource) -> float:
        """Rounding to the grid keeps a distance of at most `steps` grid steps at that."""
        granularity = grid_at_most(self.sensitivity) / _FINENESS
        steps = math.ceil(Fraction(self.sensitivity) / Fraction(granularity))
        rounded = int(round_to_grid(value, granularity).item() / granularity)
        return float((rounded + discrete_laplace(steps / noise_epsilon(epsilon), random)) * Fraction(granularity))


def balanced_split(*, epsilon: float, max_positives: int, monotonic: bool = False) -> tuple[float, float]:
    """Return epsilon as (epsilon_threshold, epsilon_queries) in the ratio 1 : (2 max_positives)^(2/3).

    That makes the variance of a comparison smallest (Lyu, Su, Li 2017, section 4.2). For monotonic queries the ratio is
    1 : max_positives^(2/3). The two add up to `epsilon` at most.

    Args:
        epsilon: the price of the search, above 0.
        max_positives: how many positives the search answers at most, an integer of at least 1.
        monotonic: whether all queries move in the same direction between neighbours. False by default.

    Raises:
        ArgumentError: for a number out of range.
        TypeError: if an argument is not a number.

    >>> [round(part, 10) for part in balanced_split(epsilon=0.5, max_positives=20)]
    [0.0393822626, 0.4606177374]
    """
    epsilon = number("epsilon", epsilon, above=0.0, rounding="down")
    most = integer("max_positives", max_positives, at_least=1, at_most=1 << 1000)
    first = epsilon / (1.0 + (most if monotonic else 2.0 * most) ** (2.0 / 3.0))
    second = epsilon - first
    while charged_amount("epsilon", first) + charged_amount("epsilon", second) > charged_amount("epsilon", epsilon):
        second = math.nextafter(second, 0.0)
    return first, second
