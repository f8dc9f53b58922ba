"""The sparse vector technique in its corrected form (Lyu, Su, Li 2017, Algorithm 7 without the released counts)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.errors import ArgumentError, BudgetError, flag, integer, number, secret_number
from dpselect.mechanisms.scores import ScoreChunks, as_score, read_parts
from dpselect.mechanisms.sparse_vector_game.renyi import GameUsed
from dpselect.mechanisms.sparse_vector_prices import (
    MOST_POSITIVES,
    refined_sparse_vector_guarantee,
    session_game,
    sparse_vector_guarantee,
    unprotected_threshold_guarantee,
)
from dpselect.mechanisms.threshold_test import ThresholdTest
from dpselect.privacy import Adjacency, Guarantee, OutputGuarantee, Spender
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.privacy.output.amounts import noise_epsilon
from dpselect.privacy.paying import IN_FULL, PaidSession, Payment
from dpselect.randomness import RandomSource, resolve
from dpselect.randomness.session import answers

__all__ = ["SparseVector", "read_thresholds"]

_SMALLEST, _LARGEST = 2.0**-300, 2.0**300
_BATCH = 1 << 22


class SparseVector(PaidSession):
    """Is this query above its threshold? Many answers for the price of the positive ones.

    One noise of scale sensitivity/epsilon_threshold is added to all thresholds, drawn once. Every query gets a new one
    of scale 2 max_positives sensitivity/epsilon_queries (half of that for monotonic queries). The answer is whether
    query + noise >= threshold + noise. After `max_positives` positives nothing is answered. The noise is Laplace with
    its real-valued law: an answer is decided as if in real arithmetic.

    Args:
        epsilon_threshold: spent on the threshold noise. None for none: then no answer has a pure price (only a session
            with `max_queries` does), `guarantee` is a plain `Guarantee`, and a given accuracy may cost less at a delta.
        epsilon_queries: spent on the positives, all together.
        max_positives: how many positives are answered at most (up to 100,000); the session halts there.
        sensitivity: how far one query moves between neighbours at most (you must ensure this).
        monotonic: whether between neighbours all queries of the session move in the same direction (the caller
            must ensure it).
        max_queries: how many queries are answered at most; None for any number.
        adjacency: which data sets are neighbours.
        spender, label: where the session is paid, and its name in the record; see `PaidSession`.
        refined: whether it is paid at `refined_guarantee`, in place of `guarantee`.
        random: the source of randomness. None, the default, is a fresh one from system entropy.

    `guarantee` prices the session by its number of positives, `refined_guarantee` by positives and negatives. You fix
    which one counts before the session (the refined one is never more expensive). With a `spender` it is `guarantee`,
    or with `refined` the other: reserved when the session is made, and settled by `close` at the answers given. Both
    say that they are interactive, so that the ledger keeps other mechanisms out meanwhile. Queries and thresholds may
    depend on earlier answers but on nothing else that is private. While a session is open no other mechanism's output
    on the same data may steer it unless its price is composed with this one's worst case. The object holds the secret
    threshold noise: it cannot be copied or pickled and refuses to answer in a forked child, where it would give two
    sessions one noise.

    A value that is NaN or None counts as -inf, and integers are clipped at 2**53. A threshold that is NaN raises
    `ArgumentError`, as do parameters out of range or thresholds of another length. `BudgetError`: asked after the
    session has halted, or for more than `max_queries`.

    >>> from dpselect.randomness import keyed_source
    >>> sv = SparseVector(epsilon_threshold=1.0, epsilon_queries=2.0, max_positives=2, random=keyed_source(1))
    >>> sv.above(-90.0, 0.0), sv.above(90.0, 0.0), sv.above_many([-90.0, 90.0, 90.0], 0.0).tolist(), sv.halted
    (False, True, [False, True], True)
    >>> sv.guarantee.worst().epsilon(delta=0)
    3.0
    >>> hundred = SparseVector(epsilon_threshold=0.03, epsilon_queries=5, max_positives=100)
    >>> round(hundred.guarantee.worst().epsilon(delta=1e-6), 3)
    1.584
    """

    def __init__(  # noqa: PLR0913
        self,
        *,
        epsilon_threshold: SupportsFloat | None,
        epsilon_queries: SupportsFloat,
        max_positives: int,
        sensitivity: SupportsFloat = 1.0,
        monotonic: bool = False,
        max_queries: int | None = None,
        adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
        spender: Spender | None = None,
        label: str = "sparse vector",
        refined: bool = False,
        random: RandomSource | None = None,
    ) -> None:
        super().__init__()
        self._refined = flag("refined", refined)
        self._epsilon_threshold = (
            None if epsilon_threshold is None else _parameter("epsilon_threshold", epsilon_threshold)
        )
        queries = _parameter("epsilon_queries", epsilon_queries)
        self._max_positives = integer("max_positives", max_positives, at_least=1, at_most=MOST_POSITIVES)
        self._max_queries = (
            None if max_queries is None else integer("max_queries", max_queries, at_least=1, at_most=1 << 1000)
        )
        self._options: dict[str, Any] = {
            "epsilon_queries": queries,
            "max_positives": self._max_positives,
            "monotonic": bool(monotonic),
            "max_queries": self._max_queries,
        }
        self._adjacency = parse_adjacency(adjacency)
        sensitivity = _parameter("sensitivity", sensitivity)
        unit = noise_epsilon(queries) / self._max_positives / (1 if monotonic else 2)
        source = resolve(random)
        if spender is not None or self._refined:  # a price takes longer than a session, and may be refused
            price = replace(self.refined_guarantee, cell=tuple) if self._refined else self.guarantee
            self._pay(Payment.open(price, spender=spender, label=label))
        scale = Fraction(0) if self._epsilon_threshold is None else 1 / noise_epsilon(self._epsilon_threshold)
        self._test = ThresholdTest(ratio=unit * scale, rate=unit / Fraction(sensitivity), random=source)
        self._positives = self._asked = self._answered = 0
        self._interrupted = False

    @property
    def guarantee(self) -> OutputGuarantee | Guarantee:
        """The price by the number of positives. The cell of the answers so far is `number_of_positives(answers)`.

        `guarantee.worst()` is what the session promises as a whole, much less than the largest price at a delta above
        0: see docs/theory/sparse-vector.md. Without noise on the threshold that is all there is.
        """
        if self._epsilon_threshold is None:
            return replace(
                unprotected_threshold_guarantee(**self._options, adjacency=self._adjacency), interactive=True
            )
        return self._priced(sparse_vector_guarantee, self._epsilon_threshold)

    @property
    def refined_guarantee(self) -> OutputGuarantee:
        """The price by positives and negatives. The cell is `answer_counts(answers)`.

        Raises `ArgumentError` without noise on the threshold: no answer has a pure price then.
        """
        if self._epsilon_threshold is None:
            raise ArgumentError("epsilon_threshold must be given for a price by answers: without it none is pure")
        return self._priced(refined_sparse_vector_guarantee, self._epsilon_threshold)

    def _priced(self, form: Callable[..., OutputGuarantee], epsilon_threshold: float) -> OutputGuarantee:
        """With what of its Renyi divergence the answers have used."""
        priced = form(epsilon_threshold=epsilon_threshold, **self._options, adjacency=self._adjacency)
        game = session_game(epsilon_threshold, **self._options)
        return replace(priced, interactive=True, used=GameUsed(game))

    @property
    def positives(self) -> int:
        """How many answers were positive so far."""
        return self._positives

    @property
    def halted(self) -> bool:
        """Whether all positives are used up."""
        return self._positives >= self._max_positives

    @answers
    def above(self, value: SupportsFloat, threshold: SupportsFloat) -> bool:
        """Whether the noisy value reaches the noisy threshold."""
        query, level = as_score("value", value), _public(threshold)
        self._check(1)
        before, interrupted = self._positives, self._interrupted
        # an answer that is interrupted was a positive one, for all that anyone may know
        self._asked, self._positives, self._interrupted = self._asked + 1, before + 1, True
        answer = self._test.single(query, level)
        self._positives, self._interrupted, self._answered = before + answer, interrupted, self._answered + 1
        return answer

    @answers
    def above_many(self, values: ArrayLike | ScoreChunks, thresholds: ArrayLike) -> NDArray[np.bool_]:
        """The answers to a batch of queries, in order: as `above` one by one, at the speed of a comparison.

        `values` may be an array, a memory map, an Arrow column or `ScoreChunks`, which is read in parts (its lengths
        first). `thresholds` is one number or as many as there are values. The batch is fixed before any of its answers
        is known. The result ends with the last positive that the session may give, so it may be shorter than `values`.
        """
        parts = read_parts(values, "values")
        count = sum(map(len, parts()))
        threshold = read_thresholds(thresholds, count)
        self._check(count)
        before, interrupted = self._positives, self._interrupted
        # a batch that is interrupted ends the session: how many of its answers were positive is then not to be seen
        self._asked, self._positives, self._interrupted = self._asked + count, self._max_positives, True
        found = self._found(parts, threshold, count, self._max_positives - before)
        self._positives, self._interrupted = before + len(found), interrupted
        result = np.zeros(int(found[-1]) + 1 if self.halted else count, dtype=bool)
        self._answered += len(result)
        result[found] = True
        return result

    def _found(
        self, parts: Callable[[], Iterator[NDArray[Any]]], threshold: NDArray[np.float64], count: int, most: int
    ) -> NDArray[np.intp]:
        """The places of the first `most` positives."""
        found: list[NDArray[np.intp]] = [np.empty(0, dtype=np.intp)]
        start, left = 0, most
        for part in _batches(parts()):
            stop = start + len(part)
            if stop > count:
                break
            here = self._test.many(part, threshold[start:stop] if threshold.ndim else threshold, left)
            found.append(start + here)
            left -= len(here)
            if not left:
                return np.concatenate(found)
            start = stop
        if start != count:
            raise RuntimeError("values changed while they were read")
        return np.concatenate(found)

    def _outcome(self) -> Any:
        if not self._refined:
            return [True] * self._positives
        return IN_FULL if self._interrupted else (self._positives, self._answered - self._positives)

    def _check(self, queries: int) -> None:
        self._refuse_when_closed()
        if self._positives >= self._max_positives:
            raise BudgetError("the sparse vector has given all its positive answers; open and charge a new one")
        if self._max_queries is not None and self._asked + queries > self._max_queries:
            raise BudgetError(
                f"the sparse vector answers {self._max_queries} queries, no more; open and charge a new one"
            )

    def __repr__(self) -> str:
        return f"<SparseVector {'halted' if self.halted else 'open'}>"


def _parameter(name: str, value: SupportsFloat) -> float:
    rounding: Literal["up", "down"] = "up" if name == "sensitivity" else "down"
    return number(name, value, at_least=_SMALLEST, at_most=_LARGEST, rounding=rounding)


def _public(threshold: SupportsFloat) -> float:
    """A threshold without its value in an error message, which may be read by someone who must not see it."""
    parsed = threshold if type(threshold) is float else secret_number("threshold", threshold)
    if math.isnan(parsed):
        raise ArgumentError("threshold must not be NaN")
    return parsed


def read_thresholds(thresholds: ArrayLike, count: int) -> NDArray[np.float64]:
    """One public threshold, or one for each of `count` queries. Errors do not show them."""
    try:
        threshold = np.asarray(thresholds, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        raise TypeError("thresholds must be doubles") from None  # without their values
    if threshold.shape not in ((), (count,)):
        raise ArgumentError("thresholds must be one number or as many as values")
    if np.isnan(threshold.sum()) and np.isnan(threshold).any():
        raise ArgumentError("thresholds must not be NaN")
    return threshold


def _batches(parts: Iterator[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    for part in parts:
        for start in range(0, len(part), _BATCH):
            yield part[start : start + _BATCH]
