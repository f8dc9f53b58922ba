"""Experimental: very many questions over a small finite universe, by private multiplicative weights.

Feldman and Steinke 2017, Theorem 5.4 (after Hardt, Rothblum 2010). A public law p over the universe of blocks answers
counting queries until the data contradict it. A contradiction costs an update, and there are at most ln|universe|/(2
gap^2) of them regardless of the number of questions. Median questions are answered by binary search. The constants are
ours: by a rough estimate asking by `AdaptiveAnalysis` needs fewer blocks up to some ten million questions. Time and
memory per question grow with the universe.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, SupportsFloat, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.adaptive.grids import AnswerGrid, filled, read_grid
from dpselect.adaptive.median_bounds import search_steps
from dpselect.adaptive.runs import response_trade_off, runs_guarantee
from dpselect.errors import ArgumentError, BudgetError, ContentError, integer, number
from dpselect.mechanisms import SparseVector, noisy_count
from dpselect.numerics.search import root_between
from dpselect.privacy import Adjacency, Guarantee, Release, Spender
from dpselect.privacy.paying import Payment
from dpselect.public_api import options_of
from dpselect.randomness import RandomSource, resolve
from dpselect.randomness.session import Session, answers

__all__ = ["MultiplicativeWeights", "WeightsPlan", "plan_multiplicative_weights"]

_LARGEST = 10**6


@dataclass(frozen=True, kw_only=True)
class WeightsPlan:
    """`queries` median questions over `universe` kinds of blocks, from `blocks` blocks, with at most `updates` updates.

    Every counting query is answered within `error` (a share of the blocks) except with probability accuracy_failure. So
    every answer has a share above 1/2 - error of the values on either side. The transfer bound does the rest. An update
    costs `epsilon`, half of it for a sparse vector run and half for a noisy count.
    """

    queries: int
    universe: int
    grid_size: int
    rank: float
    failure_probability: float
    blocks: int
    error: float
    accuracy_failure: float
    updates: int
    epsilon: float

    @property
    def certified(self) -> bool:
        """Whether the inequalities of the certificate hold, evaluated once more."""
        gap, tests = self.error / 2.0, 2 * self.queries * search_steps(self.grid_size)
        # noise up to error/4 on a test makes tests exact outside [error/2, error]; counts are within error/2
        failures = tests * _laplace_sum_tail(self.error / 4.0 * self.blocks, self.epsilon / 2.0)
        failures += self.updates * math.exp(-self.epsilon / 2.0 * (gap * self.blocks - 1.0))
        level = np.array([self.rank * self.failure_probability])
        power = float(response_trade_off(self.epsilon, self.updates, level)[0])
        return (
            failures <= self.accuracy_failure
            and self.updates >= math.log(self.universe) / (2.0 * gap * gap)
            and (0.5 - self.error) * (self.failure_probability - self.accuracy_failure) > power
        )


def _laplace_sum_tail(width: float, epsilon: float) -> float:
    """P(|threshold noise + query noise| > width) of a run with half of epsilon for each, by union over the two."""
    first, second = 2.0 / epsilon, 4.0 / epsilon
    share = width / (first + second)
    return 2.0 * math.exp(-share)


def plan_multiplicative_weights(
    *,
    queries: int,
    universe: int,
    grid_size: int,
    failure_probability: SupportsFloat,
    rank: SupportsFloat = 0.25,
) -> WeightsPlan:
    """The fewest blocks, roughly, that certify. Refuses a universe of more than a million kinds of blocks."""
    beta = number("failure_probability", failure_probability, at_least=1e-9, below=1.0)
    low_rank = number("rank", rank, at_least=1e-3, below=0.49)
    plan = WeightsPlan(
        queries=integer("queries", queries, at_least=1, at_most=1 << 1000),
        universe=integer("universe", universe, at_least=2, at_most=_LARGEST),
        grid_size=integer("grid_size", grid_size, at_least=2, at_most=1 << 1000),
        rank=low_rank,
        failure_probability=beta,
        blocks=0,
        error=0.0,
        accuracy_failure=beta / 50.0,
        updates=0,
        epsilon=0.0,
    )
    found: list[WeightsPlan] = []
    for part in np.linspace(0.3, 0.8, 11).tolist():
        error = part * (0.5 - low_rank)
        updates = math.ceil(2.0 * math.log(plan.universe) / (error * error) * (1.0 + 1e-9))
        wanted = (0.5 - error) * (beta - plan.accuracy_failure) * (1.0 - 1e-6)

        def answers(epsilon: float, updates: int = updates, wanted: float = wanted) -> bool:
            return float(response_trade_off(epsilon, updates, np.array([low_rank * beta]))[0]) < wanted

        low = root_between(answers, safe=0.0, unsafe=1.0, absolute=2.0**-50)
        tests = 2 * plan.queries * search_steps(plan.grid_size)
        half = low / 2.0
        logarithm = math.log(4.0 * tests / plan.accuracy_failure)
        for_tests = 4.0 / error * (6.0 / half) * logarithm
        for_counts = (math.log(2.0 * updates / plan.accuracy_failure) / half + 1.0) / (error / 2.0)
        blocks = math.ceil(max(for_tests, for_counts)) + 1
        found.append(replace(plan, blocks=blocks, error=error, updates=updates, epsilon=low))
    certified = [one for one in found if one.certified]
    if not certified:
        raise ArgumentError("no certificate was found: take fewer queries, or a smaller rank or universe")
    return min(certified, key=lambda one: one.blocks)


class MultiplicativeWeights(Session):
    """Experimental. Median questions about a distribution on a small universe, as its module describes.

    You give an estimator to `estimate` by its value on every code.

    Args:
        data: private: the code of every block, a one-dimensional array of integers from 0 to universe - 1. Their number
            is public.
        universe: how many codes there are, an integer in [2, 1e6]. Public.
        queries: how many questions may be asked, an integer of at least 1.
        grid_size: the most grid points of a question, an integer of at least 2. Public.
        failure_probability: the probability, at most, that some answer is not valid, all answers together, at least
            1e-9 and below 1.
        rank: answers are in qi(rank, 1 - rank) of their estimators, at least 1e-3 and below 0.49. The default is 0.25.
        spender: the budget that pays for every update when it becomes possible. None, the default, charges nothing.
        label: the public name of the updates in the spender's record.
        random: the source of randomness. None, the default, is a fresh one from system entropy. Only tests should fix
            it.

    Raises:
        ArgumentError: if the blocks are too few, naming the number that is needed. Also if the universe is too large,
            no certificate is found, or another parameter is out of range.
        ContentError: if `data` are not such codes.
        TypeError: if a parameter is not a number, or `random` is not a `RandomSource`.
    """

    def __init__(  # noqa: PLR0913
        self,
        data: ArrayLike,
        *,
        universe: int,
        queries: int,
        grid_size: int,
        failure_probability: SupportsFloat,
        rank: SupportsFloat = 0.25,
        spender: Spender | None = None,
        label: str = "multiplicative-weights",
        random: RandomSource | None = None,
    ) -> None:
        super().__init__()
        self._random, self._spender, self._label = resolve(random), spender, label
        plan = plan_multiplicative_weights(
            queries=queries,
            universe=universe,
            grid_size=grid_size,
            failure_probability=failure_probability,
            rank=rank,
        )
        codes = np.asarray(data)
        if codes.ndim != 1 or codes.dtype.kind not in "iu" or np.any((codes < 0) | (codes >= plan.universe)):
            raise ContentError("data must be integers from 0 to universe - 1")
        if len(codes) < plan.blocks:
            raise ArgumentError(f"data has {len(codes)} blocks, and this certificate needs {plan.blocks}")
        self._plan = replace(plan, blocks=len(codes))
        self._counts = np.bincount(codes, minlength=plan.universe)
        self._law = np.full(plan.universe, 1.0 / plan.universe)
        self._asked = self._updates = 0
        self._run: SparseVector | None = None

    @property
    def plan(self) -> WeightsPlan:
        """The certified plan."""
        return self._plan

    @property
    def update_guarantee(self) -> Guarantee:
        """The guarantee of one update, with the tests before it, for a block. There are at most `plan.updates`."""
        return self._updates_guarantee(1)

    @property
    def row_privacy(self) -> Guarantee:
        """The guarantee of the whole session for a block, and so for a row."""
        return self._updates_guarantee(self._plan.updates)

    def _updates_guarantee(self, count: int) -> Guarantee:
        """A run of tests and the count at its end, so many times."""
        each = self._plan.epsilon / 4.0
        return runs_guarantee(each, each, count, release_epsilon=2.0 * each)

    @answers
    @options_of(read_grid)
    def estimate(
        self,
        values: ArrayLike,
        **grid: Unpack[AnswerGrid],
    ) -> Release:
        """An approximate median of the estimator whose value on code i is `values[i]`. NaN counts as the lowest point.

        The guarantee is that of the whole session. Raises `BudgetError` when all questions or updates are used up.
        """
        points = read_grid(**grid)
        if points.size > self._plan.grid_size:
            raise ArgumentError("the grid has more points than were planned for")
        found = np.asarray(values, dtype=np.float64)
        if found.shape != (self._plan.universe,):
            raise ArgumentError("values must hold one number for every code of the universe")
        codes = np.asarray(points.encode(filled(found, points)), dtype=np.uint64)
        if self._asked >= self._plan.queries:
            raise BudgetError("all questions of this session were asked")
        self._asked += 1
        low, high = 0, points.size - 1
        while low < high:
            middle = (low + high) // 2  # searches: a noisy binary search: the walk is the mechanism
            share = self._share(codes <= np.uint64(middle))
            low, high = (low, middle) if share >= 0.5 else (middle + 1, high)
        return Release(value=points.decode(low), guarantee=self.row_privacy, replayable=self._random.replayable)

    def _share(self, predicate: NDArray[np.bool_]) -> float:
        """The share of blocks with the predicate: the public law's, unless the data contradict it."""
        count, guess = int(self._counts[predicate].sum()), float(self._law[predicate].sum())
        blocks, run = self._plan.blocks, self._open_run()
        limit = 0.75 * self._plan.error * blocks
        # a test that is interrupted ends its run, as a contradiction does
        self._run, self._updates = None, self._updates + 1
        if not (run.above(count - guess * blocks, limit) or run.above(guess * blocks - count, limit)):
            self._run, self._updates = run, self._updates - 1
            return guess
        measured = noisy_count(count, epsilon=self._plan.epsilon / 2.0, random=self._random) / blocks
        direction = math.copysign(1.0, guess - measured)
        self._law = self._law * np.exp(-2.0 * self._plan.error * direction * predicate)
        self._law /= self._law.sum()
        return measured

    def _open_run(self) -> SparseVector:
        if self._run is None:
            if self._updates >= self._plan.updates:
                raise BudgetError("all updates of this session are used up")
            # each run is paid when it opens, with the count at its end
            Payment.open(self.update_guarantee, spender=self._spender, label=self._label).close()
            each: Any = self._plan.epsilon / 4.0
            self._run = SparseVector(
                epsilon_threshold=each,
                epsilon_queries=each,
                max_positives=1,
                adjacency=Adjacency.REPLACE_ONE,
                random=self._random,
            )
        return self._run

    def __repr__(self) -> str:
        return f"<MultiplicativeWeights, {self._plan.queries - self._asked} questions left>"
