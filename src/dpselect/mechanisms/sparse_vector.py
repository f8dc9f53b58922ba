"""The sparse vector technique in its corrected form (Lyu, Su, Li 2017, Algorithm 7 without the released counts)."""

from __future__ import annotations

import math
import os
import threading
from fractions import Fraction
from typing import Any, NoReturn, SupportsFloat, SupportsInt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.errors import ArgumentError, BudgetError, ForkedSourceError, integer, number
from dpselect.mechanisms.threshold_test import ThresholdTest
from dpselect.privacy import Adjacency, OutputGuarantee
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.randomness import RandomSource, resolve

__all__ = ["SparseVector", "number_of_positives", "sparse_vector_guarantee"]

_SMALLEST, _LARGEST = 2.0**-300, 2.0**300
_BATCH = 1 << 22
_MOST_POSITIVES = 100_000


class SparseVector:
    """Is this query above its threshold? Many answers for the price of the positive ones.

    One noise of scale sensitivity/epsilon_threshold is added to all thresholds, drawn once and never again; every
    query gets a fresh one of scale 2 max_positives sensitivity/epsilon_queries (half of that for monotonic queries);
    the answer is whether query + noise >= threshold + noise. After `max_positives` positives nothing is answered. The
    noise is Laplace with its real-valued law: an answer is decided as if in real arithmetic.

    Args:
        epsilon_threshold: spent on the threshold noise.
        epsilon_queries: spent on the positives, all together.
        max_positives: how many positives are answered at most (up to 100,000); the session halts there.
        sensitivity: how far one query moves between neighbours at most (owed by the caller).
        monotonic: whether between neighbours all queries of the session move in the same direction (owed).
        adjacency: which data sets are neighbours.

    `guarantee` prices the session by its number of positives. Queries and thresholds may depend on earlier answers
    but on nothing else that is private. While a session is open no other mechanism's output on the same data may steer
    it unless its price is composed with this one's worst case. The object holds the secret threshold noise: it cannot
    be copied or pickled and refuses to answer in a forked child, where it would give two sessions one noise.

    A value that is NaN counts as -inf; a threshold that is NaN raises `ArgumentError`, as do parameters out of range
    or thresholds of another length. `BudgetError`: asked after the session has halted.

    >>> from dpselect.randomness import keyed_source
    >>> sv = SparseVector(epsilon_threshold=1.0, epsilon_queries=2.0, max_positives=2, random=keyed_source(1))
    >>> sv.above(-90.0, 0.0), sv.above(90.0, 0.0), sv.above_many([-90.0, 90.0, 90.0], 0.0).tolist(), sv.halted
    (False, True, [False, True], True)
    >>> sv.guarantee.worst().epsilon(delta=0)
    3.0
    """

    def __init__(
        self,
        *,
        epsilon_threshold: SupportsFloat,
        epsilon_queries: SupportsFloat,
        max_positives: int,
        sensitivity: SupportsFloat = 1.0,
        monotonic: bool = False,
        adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
        random: RandomSource | None = None,
    ) -> None:
        self._epsilon_threshold = _parameter("epsilon_threshold", epsilon_threshold)
        self._epsilon_queries = _parameter("epsilon_queries", epsilon_queries)
        self._max_positives = integer("max_positives", max_positives, at_least=1, at_most=_MOST_POSITIVES)
        self._adjacency = parse_adjacency(adjacency)
        sensitivity = _parameter("sensitivity", sensitivity)
        unit = Fraction(self._epsilon_queries) / self._max_positives / (1 if monotonic else 2)
        self._test = ThresholdTest(
            ratio=unit / Fraction(self._epsilon_threshold),
            rate=unit / Fraction(sensitivity),
            random=resolve(random),
        )
        self._positives = 0
        self._process = os.getpid()
        self._lock = threading.Lock()

    @property
    def guarantee(self) -> OutputGuarantee:
        """The price by the number of positives; the cell of the answers so far is `number_of_positives(answers)`."""
        return sparse_vector_guarantee(
            epsilon_threshold=self._epsilon_threshold,
            epsilon_queries=self._epsilon_queries,
            max_positives=self._max_positives,
            adjacency=self._adjacency,
        )

    @property
    def positives(self) -> int:
        """How many answers were positive so far."""
        return self._positives

    @property
    def halted(self) -> bool:
        """Whether all positives are used up."""
        return self._positives >= self._max_positives

    def above(self, value: SupportsFloat, threshold: SupportsFloat) -> bool:
        """Whether the noisy value reaches the noisy threshold."""
        parsed = _public(threshold)
        with self._lock:
            self._check()
            answer = self._test.single(float(value), parsed)
            self._positives += answer
        return answer

    def above_many(self, values: ArrayLike, thresholds: ArrayLike) -> NDArray[np.bool_]:
        """The answers to a batch of queries, in order: as `above` one by one, at the speed of a comparison.

        `thresholds` is one number or as many as there are values. The batch is fixed before any of its answers is
        known. The result ends with the last positive that the session may give, so it may be shorter than `values`.
        """
        value, threshold = _batch(values, thresholds)
        with self._lock:
            self._check()
            answers = np.zeros(len(value), dtype=bool)
            for start in range(0, len(value), _BATCH):
                part = slice(start, start + _BATCH)
                left = self._max_positives - self._positives
                found = self._test.many(value[part], threshold[part] if threshold.ndim else threshold, left)
                answers[start + found] = True
                self._positives += len(found)
                if self.halted:
                    return answers[: start + int(found[-1]) + 1].copy()
        return answers

    def _check(self) -> None:
        if os.getpid() != self._process:
            raise ForkedSourceError("this sparse vector was made before a fork: two sessions would share one noise")
        if self.halted:
            raise BudgetError("the sparse vector has given all its positive answers; open and charge a new one")

    def __repr__(self) -> str:
        return f"<SparseVector {'halted' if self.halted else 'open'}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a SparseVector is not copied or pickled: two sessions would share one threshold noise")


def _parameter(name: str, value: SupportsFloat) -> float:
    return number(name, value, at_least=_SMALLEST, at_most=_LARGEST)


def _public(threshold: SupportsFloat) -> float:
    """A threshold without its value in an error message, which may be read by somebody who must not see it."""
    try:
        parsed = float(threshold)
    except (TypeError, ValueError):
        raise TypeError("threshold must be a number") from None
    if math.isnan(parsed):
        raise ArgumentError("threshold must not be NaN")
    return parsed


def _batch(values: ArrayLike, thresholds: ArrayLike) -> tuple[NDArray[Any], NDArray[np.float64]]:
    value = np.asanyarray(values)
    threshold = np.asarray(thresholds, dtype=np.float64)
    if value.ndim != 1 or value.dtype.kind not in "fiub" or value.dtype.itemsize > 8:
        raise ArgumentError("values must be a one-dimensional array of doubles or whole numbers")
    if threshold.shape not in ((), value.shape):
        raise ArgumentError("thresholds must be one number or as many as values")
    if np.isnan(threshold.sum()) and np.isnan(threshold).any():
        raise ArgumentError("thresholds must not be NaN")
    return value, threshold


def number_of_positives(answers: ArrayLike | SupportsInt) -> int:
    """The cell of a session's answers: how many of them are positive.

    >>> number_of_positives([False, True, False, True])
    2
    """
    return int(np.count_nonzero(np.asarray(answers)))


def sparse_vector_guarantee(
    *,
    epsilon_threshold: float,
    epsilon_queries: float,
    max_positives: int,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
) -> OutputGuarantee:
    """epsilon_threshold + epsilon_queries * (number of positives) / max_positives, by the number of positives.

    Worst case: Lyu, Su, Li (2017), Theorem 4 (their Theorem 5 for monotonic queries). By output: Hartmann et al.,
    "Output differential privacy", Lemma 8: moving the threshold noise by one sensitivity costs epsilon_threshold and
    makes every negative answer at least as likely; each positive is then off by two sensitivities (one, for monotonic
    queries) against its own noise, which costs epsilon_queries/max_positives. Prices are rounded up.

    >>> sparse_vector_guarantee(epsilon_threshold=1.0, epsilon_queries=2.0, max_positives=2).epsilons[1]
    2.0
    """
    first, total = Fraction(epsilon_threshold), Fraction(epsilon_queries)
    return OutputGuarantee(
        cell=number_of_positives,
        epsilons={c: _up(first + total * c / max_positives) for c in range(max_positives + 1)},
        adjacency=adjacency,
    )


def _up(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
