"""The cost of a sparse vector's session, by its positives, or by its positives and negatives."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import SupportsFloat, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.errors import ArgumentError, integer, number
from dpselect.mechanisms.sparse_vector_game.game import SparseVectorGame
from dpselect.mechanisms.sparse_vector_game.price import game_guarantee
from dpselect.privacy import Adjacency, Guarantee, OutputGuarantee
from dpselect.privacy.output.amounts import charged_amount, charged_price

__all__ = [
    "AnswerPrice",
    "answer_counts",
    "number_of_positives",
    "refined_sparse_vector_guarantee",
    "session_game",
    "sparse_vector_guarantee",
    "unprotected_threshold_guarantee",
]

MOST_POSITIVES = 100_000


def _answers(answers: ArrayLike) -> NDArray[np.bool_]:
    """Check a session's answers. Anything else is refused, since the class of a wrong output may be too cheap."""
    parsed = np.asarray(answers)
    if parsed.ndim != 1 or (parsed.dtype != np.bool_ and parsed.size):
        raise ArgumentError("answers must be the session's answers: a one-dimensional array of booleans")
    return parsed.astype(np.bool_)


def number_of_positives(answers: ArrayLike) -> int:
    """The cell of a session's answers: how many of them are positive.

    Raises `ArgumentError`, without quoting them, unless they are a one-dimensional array of booleans.

    >>> number_of_positives([False, True, False, True])
    2
    """
    return int(np.count_nonzero(_answers(answers)))


def answer_counts(answers: ArrayLike) -> tuple[int, int]:
    """The finer cell: (positives, negatives). Raises as `number_of_positives`.

    >>> answer_counts([False, True, False])
    (1, 2)
    """
    parsed = _answers(answers)
    positives = int(np.count_nonzero(parsed))
    return positives, len(parsed) - positives


def sparse_vector_guarantee(
    *,
    epsilon_threshold: float,
    epsilon_queries: float,
    max_positives: int,
    monotonic: bool | None = None,
    max_queries: int | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
) -> OutputGuarantee:
    """Return what a sparse vector's session costs by its number of positives.

    The price is epsilon_threshold + epsilon_queries * (number of positives) / max_positives, rounded up. Moving the
    threshold noise by one sensitivity costs epsilon_threshold and makes every negative answer at least as likely. Each
    positive is then off by two sensitivities (one, for monotonic queries) against its own noise, which costs
    epsilon_queries/max_positives. Source: Lyu, Su, Li 2017, Theorems 4 and 5 (the worst case, the latter for monotonic
    queries); Hartmann et al. 2022, Lemma 8 (by output).

    The ordinary guarantee, `worst()`, costs less at a delta if you give `monotonic`, as `SparseVector` does: it is then
    the game's. Source: docs/theory/sparse-vector.md, Theorem 1.

    Args:
        epsilon_threshold: the price of the noise on the threshold, in [0, 1e300].
        epsilon_queries: the price of all positives together, in [0, 1e300].
        max_positives: how many positives the session answers at most, an integer in [1, 100000].
        monotonic: whether all queries move in the same direction between neighbours, and which noise was drawn. None,
            the default, if that is not known: `worst()` is then the largest price.
        max_queries: how many queries the session answers at most. A small number lowers `worst()` if `monotonic` is
            given. None, the default, for any number.
        adjacency: which data sets are neighbours, as `Adjacency` or its text. The default is add_or_remove_one.

    Raises:
        ArgumentError: for a number out of range, or an epsilon_queries so small that the share of one positive is 0.
        AdjacencyError: if `adjacency` is neither of the two.
        TypeError: if an argument is not a number.

    >>> sparse_vector_guarantee(epsilon_threshold=1.0, epsilon_queries=2.0, max_positives=2).epsilons[1]
    2.0
    """
    most = integer("max_positives", max_positives, at_least=1, at_most=MOST_POSITIVES)
    epsilon_threshold = number("epsilon_threshold", epsilon_threshold, at_least=0.0, at_most=1e300, rounding="up")
    epsilon_queries = number("epsilon_queries", epsilon_queries, at_least=0.0, at_most=1e300, rounding="up")
    first, total = (charged_amount("epsilon", epsilon) for epsilon in (epsilon_threshold, epsilon_queries))
    prices: dict[Hashable, float] = {c: charged_price(first + total * c / most) for c in range(most + 1)}
    priced = OutputGuarantee(cell=number_of_positives, epsilons=prices, adjacency=adjacency)
    if monotonic is None or not (epsilon_threshold and epsilon_queries):
        return priced
    game = session_game(epsilon_threshold, epsilon_queries, most, monotonic=monotonic, max_queries=max_queries)
    return replace(priced, ordinary=game_guarantee(game, pure_epsilon=prices[most], adjacency=adjacency))


def unprotected_threshold_guarantee(
    *,
    epsilon_queries: float,
    max_positives: int,
    monotonic: bool = False,
    max_queries: int | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
) -> Guarantee:
    """The guarantee of a sparse vector without noise on its threshold. At a delta it is the game's value.

    A pure epsilon only with `max_queries`: that of so many answers.

    The game's value is attained. The computed bound is above it by what polygons and the mesh add. Refunds have nothing
    to come from. Source: docs/theory/sparse-vector.md, Theorem 2.

    >>> round(unprotected_threshold_guarantee(epsilon_queries=4.0, max_positives=100).epsilon(delta=1e-6), 3)
    1.423
    """
    most = integer("max_positives", max_positives, at_least=1, at_most=MOST_POSITIVES)
    queries = number("epsilon_queries", epsilon_queries, above=0.0, at_most=1e300, rounding="up")
    game = session_game(None, queries, most, monotonic=monotonic, max_queries=max_queries)
    return game_guarantee(game, adjacency=adjacency)


def session_game(
    epsilon_threshold: float | None,
    epsilon_queries: float,
    max_positives: int,
    *,
    monotonic: bool = False,
    max_queries: int | None = None,
) -> SparseVectorGame:
    """A session as a game. Noise is calibrated to slightly less than these amounts, which covers their rounding."""
    rate = epsilon_queries / max_positives / (1 if monotonic else 2)
    if rate == 0.0:
        raise ArgumentError("epsilon_queries must be larger: its share of one positive answer is no float above 0")
    return SparseVectorGame(
        threshold_rate=epsilon_threshold,
        query_rate=rate,
        positives=max_positives,
        monotonic=monotonic,
        queries=max_queries,
    )


@dataclass(frozen=True, kw_only=True)
class AnswerPrice:
    """The price of a session with p positives and n negatives, r = epsilon_queries / max_positives each.

        min(epsilon_threshold + p r, epsilon_threshold + n r, (p + n) r / 2)

    and for monotonic queries (whose noise is half as large)

        max(min(p r, epsilon_threshold + n r), min(n r, epsilon_threshold + p r)).

    Never above Lemma 8 of Hartmann et al. (2022), and 0 for a session that ends at once. Proof. As there, but move the
    threshold noise by any a in [-1, 1] sensitivities. That costs |a| epsilon_threshold, (1 + a) r/2 for a positive and
    (1 - a) r/2 for a negative at most. The sum is piecewise linear in a, so a = 1, -1 or 0 is best. When all queries
    move up, 0 <= a <= 1, a positive costs a r and a negative (1 - a) r. If all move down, the reverse. It is pointwise
    in the answers, so pure. Attained: see the tests.
    """

    epsilon_threshold: float
    epsilon_queries: float
    max_positives: int
    monotonic: bool = False
    max_queries: int | None = None

    @property
    def game(self) -> SparseVectorGame:
        """The session as a game."""
        return session_game(
            self.epsilon_threshold,
            self.epsilon_queries,
            self.max_positives,
            monotonic=self.monotonic,
            max_queries=self.max_queries,
        )

    def exact(self, positives: int, negatives: int) -> Fraction:
        """The price as a rational number."""
        first, each = self._threshold_and_each()
        p, n = positives * each, negatives * each
        if self.monotonic:
            return max(min(p, first + n), min(n, first + p))
        return min(first + p, first + n, (p + n) / 2)

    @property
    def supremum(self) -> Fraction:
        """The largest price of any session: epsilon_threshold + epsilon_queries, or less with few queries."""
        first, each = self._threshold_and_each()
        if self.max_queries is None:
            return first + each * self.max_positives
        # more queries never cost less, so all are asked; the price is then a minimum of lines in the number of
        # positives, or the larger of two such, each highest where its lines cross
        most, shift = min(self.max_positives, self.max_queries), first / each if self.monotonic else Fraction(0)
        crossings = [(self.max_queries + sign * shift) / 2 for sign in (-1, 1)]
        near = {min(max(round_(c), 0), most) for c in crossings for round_ in (math.floor, math.ceil)}
        return max(self.exact(p, self.max_queries - p) for p in near)

    def _threshold_and_each(self) -> tuple[Fraction, Fraction]:
        queries = charged_amount("epsilon_queries", self.epsilon_queries)
        return charged_amount("epsilon_threshold", self.epsilon_threshold), queries / self.max_positives

    def __call__(self, cell: Hashable) -> float:
        """The price of a cell (positives, negatives), rounded up. Raises `ArgumentError` for an impossible one."""
        positives, negatives = cast(tuple[int, int], cell)
        asked = positives + negatives
        if positives > self.max_positives or (self.max_queries is not None and asked > self.max_queries):
            raise ArgumentError("cell: the session cannot have given so many answers")
        return charged_price(self.exact(positives, negatives))


def refined_sparse_vector_guarantee(
    *,
    epsilon_threshold: SupportsFloat,
    epsilon_queries: SupportsFloat,
    max_positives: int,
    monotonic: bool = False,
    max_queries: int | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
) -> OutputGuarantee:
    """The price of a session by `answer_counts`: how many positives and how many negatives it gave.

    See `AnswerPrice` for the prices and their proof. It saves most where a session is shorter than about 2
    max_positives epsilon_threshold / epsilon_queries, or where nearly all answers are positive. `max_queries` lowers
    the reservation. The session must refuse to answer more (`SparseVector(max_queries=...)` does).

    >>> g = refined_sparse_vector_guarantee(epsilon_threshold=1, epsilon_queries=1, max_positives=2)
    >>> [g.observed(answers).epsilon(delta=0) for answers in ([], [False], [False, True], [False] * 10)]
    [0.0, 0.25, 0.5, 1.0]
    """
    price = AnswerPrice(
        epsilon_threshold=number("epsilon_threshold", epsilon_threshold, above=0.0, rounding="up"),
        epsilon_queries=number("epsilon_queries", epsilon_queries, above=0.0, rounding="up"),
        max_positives=integer("max_positives", max_positives, at_least=1, at_most=1 << 1000),
        monotonic=bool(monotonic),
        max_queries=None if max_queries is None else integer("max_queries", max_queries, at_least=1, at_most=1 << 1000),
    )
    most = charged_price(price.supremum)
    ordinary = game_guarantee(price.game, pure_epsilon=most, adjacency=adjacency)
    return OutputGuarantee(cell=answer_counts, epsilons=price, supremum=most, adjacency=adjacency, ordinary=ordinary)
