"""Exact answers from one data set at a time, moving to the next when a verification says no.

The cost is in rounds of over-fitting that really happen, not in questions (EffectiveRounds of Dwork, Feldman, Hardt,
Pitassi, Reingold, Roth 2015, named by Feldman and Steinke 2017). The answers are exact medians of block values: valid,
with no privacy to a row.
"""

from __future__ import annotations

from typing import Any, Literal, SupportsFloat, Unpack

import numpy as np
from numpy.typing import NDArray

from dpselect.adaptive.blocks import splitting_blocks
from dpselect.adaptive.certificate import no_promise
from dpselect.adaptive.grids import AnswerGrid, filled, plain_median, read_grid
from dpselect.adaptive.subsamples import Estimator, cut_into_blocks, evaluate
from dpselect.adaptive.verification import Verification
from dpselect.adaptive.verification_plan import VerificationPlan, plan_verification
from dpselect.errors import ArgumentError, BudgetError, integer, number
from dpselect.ordered.domains import Domain
from dpselect.privacy import Release
from dpselect.public_api import options_of
from dpselect.randomness import RandomSource, resolve
from dpselect.randomness.session import Session, answers

__all__ = ["EffectiveRounds"]


class EffectiveRounds(Session):
    """Up to `queries` adaptive questions, until they have over-fitted `rounds` data sets.

    One part of the blocks verifies, the others are the sets. An answer is the plain median on the current set, and you
    see it once it is verified there. When it is refused, the question is answered from the next set, which no question
    has touched. With probability at least 1 - failure_probability every answer is in qi(rank - margin, 1 - rank +
    margin) of its estimator on new rows. The answers promise no privacy to a row. `estimate` raises `BudgetError` when
    the sets are used up.

    Args:
        data: private rows: a NumPy array, a list, a pandas or polars frame, or a tuple of such with equally many rows.
            You must ensure that the rows are independent draws from one population. Their number is public.
        rounds: how many sets there are, an integer in [2, 100001].
        queries: how many questions may be asked, an integer of at least 1.
        subsample_size: rows in a block, an integer of at least 1.
        failure_probability: the probability, at most, that some answer is not valid, above 0 and below 1. Half of it is
            for the verification, which needs at least 1e-12.
        rank: an answer from a new set is in qi(rank, 1 - rank), above 0 and below 0.5. The default is 0.25.
        margin: what the verification adds on either side, at least 1e-9 and below `rank`. The default is 0.125.
        order: "random", the default, permutes the rows before cutting. "given" keeps them, for rows whose order has no
            meaning.
        jobs: joblib processes over the blocks, -1 for all cores. The default is 1.
        random: the source of randomness. None, the default, is a fresh one from system entropy. Only tests should fix
            it.

    Raises:
        ArgumentError: if the blocks are too few, naming the number that is needed. Also for a parameter out of range.
        ContentError: if there are fewer rows than `subsample_size`.
        TypeError: if a parameter is not a number, or `random` is not a `RandomSource`.
    """

    def __init__(  # noqa: PLR0913
        self,
        data: Any,
        *,
        rounds: int,
        queries: int,
        subsample_size: int,
        failure_probability: SupportsFloat,
        rank: SupportsFloat = 0.25,
        margin: SupportsFloat = 0.125,
        order: Literal["random", "given"] = "random",
        jobs: int | None = 1,
        random: RandomSource | None = None,
    ) -> None:
        super().__init__()
        source = resolve(random)
        beta = number("failure_probability", failure_probability, above=0.0, below=1.0)
        self._sets = integer("rounds", rounds, at_least=2, at_most=100_001)
        plan = plan_verification(
            queries=queries, refusals=self._sets - 1, failure_probability=beta / 2.0, rank=rank, margin=margin
        )
        # the first question on each set sees new rows; its plain median is then in qi(rank, 1 - rank)
        each = splitting_blocks(self._sets, beta / 2.0, plan.rank)
        blocks = cut_into_blocks(data, subsample_size=subsample_size, order=order, random=source)
        needed = plan.blocks + self._sets * each
        if blocks.count < needed:
            raise ArgumentError(f"data has {blocks.count} blocks, and this certificate needs {needed}")
        size = (blocks.count - plan.blocks) // self._sets
        self._size = size - 1 + size % 2  # odd, so that the median is one of the values
        cut = self._sets * self._size
        self._blocks, self._jobs, self._random = blocks.part(0, cut), jobs, source
        self._left = plan.queries
        self._verification = Verification(blocks.part(cut, blocks.count), plan, random=source)

    @property
    def plan(self) -> VerificationPlan:
        """The certificate of the verification, which has half of the failure probability."""
        return self._verification.plan

    @property
    def rounds_left(self) -> int:
        """Sets that are not used up, the current one included."""
        return self._verification.refusals_left + 1

    @answers
    @options_of(read_grid)
    def estimate(
        self,
        estimator: Estimator,
        *,
        axis: bool = False,
        **grid: Unpack[AnswerGrid],
    ) -> Release:
        """The verified plain median on the current set, or on the next one after a no. See `AdaptiveAnalysis`."""
        points = read_grid(**grid)
        if self._left < 1 or self._verification.remaining < 1:
            raise BudgetError("no answer is left: all questions were asked or all sets but the last are used up")
        self._left -= 1
        value = self._median(estimator, points, axis)

        def held_out() -> NDArray[np.float64]:
            values = filled(evaluate(estimator, self._verification.blocks, axis=axis, jobs=self._jobs), points)
            return np.asarray([points.decode(int(code)) for code in points.encode(values)], float)

        if not self._verification.check(held_out, float(value)).value:
            value = self._median(estimator, points, axis)
        return Release(value=value, guarantee=no_promise(), replayable=self._random.replayable)

    def _median(self, estimator: Estimator, points: Domain, axis: bool) -> Any:
        current = self._sets - self.rounds_left
        here = self._blocks.part(current * self._size, (current + 1) * self._size)
        return plain_median(evaluate(estimator, here, axis=axis, jobs=self._jobs), points)

    def __repr__(self) -> str:
        return f"<EffectiveRounds, {self.rounds_left} of {self._sets} sets left>"
