"""Checking guesses against held-out blocks: cheap when they are right (Feldman, Steinke 2017, Theorem 5.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import SupportsFloat

import numpy as np
from numpy.typing import NDArray

from dpselect.adaptive.runs import runs_guarantee
from dpselect.adaptive.subsamples import Blocks
from dpselect.adaptive.verification_plan import VerificationPlan
from dpselect.errors import ArgumentError, BudgetError, integer, number
from dpselect.mechanisms import SparseVector
from dpselect.privacy import Adjacency, Guarantee, Release, Spender
from dpselect.privacy.paying import Payment
from dpselect.randomness import RandomSource
from dpselect.randomness.session import Session, answers

__all__ = ["Verification"]

Values = NDArray[np.float64]


class Verification(Session):
    """Answers "is this a plausible value of the estimator?" until `plan.refusals` guesses were refused.

    Each run of the sparse vector ends with its refusal and is charged when it begins. A yes costs nothing more.

    Args:
        blocks: private: at least as many as the plan needs. You must ensure that they were cut without looking at them
            and are used for nothing else. Their number is public.
        plan: the public plan, from `plan_verification`. Spare blocks make it more private.
        random: the source of the noise.
        spender: the budget that pays for each run. None, the default, charges nothing.
        label: the public name of the runs in the spender's record.

    Raises:
        ArgumentError: if the blocks are fewer than the plan needs, or the plan is not certified.
    """

    def __init__(
        self,
        blocks: Blocks,
        plan: VerificationPlan,
        *,
        random: RandomSource,
        spender: Spender | None = None,
        label: str = "verification",
    ) -> None:
        super().__init__()
        self._plan = plan.at(blocks.count)
        if not self._plan.certified:
            raise ArgumentError("plan is not certified")
        self._blocks = blocks
        self._random = random
        self._spender = spender
        self._label = label
        self._asked = self._refused = 0
        self._run: tuple[SparseVector, Payment] | None = None

    @property
    def plan(self) -> VerificationPlan:
        """The certified plan, for the number of blocks that there are."""
        return self._plan

    @property
    def remaining(self) -> int:
        """The number of guesses that may still be checked, 0 once all refusals are used up."""
        return 0 if self._refused >= self._plan.refusals else self._plan.queries - self._asked

    @property
    def refusals_left(self) -> int:
        """How many guesses may still be refused."""
        return self._plan.refusals - self._refused

    @answers
    def resume(self, *, asked: int, refused: int, random: RandomSource) -> None:
        """Continue from the point at which another process stopped, with a new run that draws from `random`.

        An open run of that process counts as refused, since its threshold is gone. For anyone who keeps count durably
        (`dpselect.holdout.SavedAnalysis`). Two runs must not draw the same (you must ensure this).
        """
        self._asked = integer("asked", asked, at_least=0, at_most=self._plan.queries)
        self._refused = integer("refused", refused, at_least=0, at_most=self._plan.refusals)
        self._random, self._run = random, None

    @property
    def run_guarantee(self) -> Guarantee:
        """The guarantee of one run, up to its refusal, for a row of these blocks."""
        return runs_guarantee(self._plan.epsilon_threshold, self._plan.epsilon_queries, 1)

    @property
    def blocks(self) -> Blocks:
        """The blocks that guesses are checked on. Secret."""
        return self._blocks

    @answers
    def check(self, values: Values | Callable[[], Values], guess: SupportsFloat) -> Release:
        """Whether the guess is plausible. `values` is the estimator on `blocks`, NaN counting as below everything.

        `values` may be a function that computes them, which is called when the check is paid for. One that is
        interrupted counts as refused. Raises `BudgetError` when all refusals or checks are used up.
        """
        asked = number("guess", guess)
        if not callable(values) and values.shape != (self._blocks.count,):
            raise ArgumentError("values must hold one number a block")
        if self.remaining < 1:
            raise BudgetError("no verification is left: plan for more refusals or queries on fresh data")
        opened, refused = self._open_run(), self._refused
        run, payment = opened
        self._asked, self._refused, self._run = self._asked + 1, refused + 1, None
        found = values() if callable(values) else values
        filled = np.where(np.isnan(found), -np.inf, found)
        # the second side is asked only after a yes on the first, so that it is public which one failed
        agrees = not (self._fails(run, filled > asked) or self._fails(run, filled < asked))
        receipt = payment.receipt
        if agrees:
            self._refused, self._run = refused, opened
        else:
            receipt = payment.close()
        return Release(
            value=agrees,
            guarantee=self.run_guarantee,
            receipt=receipt,
            replayable=self._random.replayable,
        )

    def _fails(self, run: SparseVector, outside: NDArray[np.bool_]) -> bool:
        """Whether too many blocks are on the wrong side: the noisy share on the right one is below the threshold."""
        allowed = (1.0 - self._plan.threshold) * self._blocks.count
        return run.above(float(np.count_nonzero(outside)), allowed)

    def _open_run(self) -> tuple[SparseVector, Payment]:
        if self._run is None:
            payment = Payment.open(self.run_guarantee, spender=self._spender, label=self._label)
            run = SparseVector(
                epsilon_threshold=self._plan.epsilon_threshold,
                epsilon_queries=self._plan.epsilon_queries,
                max_positives=1,
                adjacency=Adjacency.REPLACE_ONE,
                random=self._random,
            )
            self._run = run, payment
        return self._run

    def __repr__(self) -> str:
        return f"<Verification of {self._plan.queries} guesses, {self.refusals_left} refusals left>"
