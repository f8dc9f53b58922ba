"""Asking hundreds of questions of one data set, each chosen after the last answers (Feldman, Steinke 2017)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, SupportsFloat, Unpack

import numpy as np

from dpselect.adaptive.blocks import Mechanism, splitting_blocks
from dpselect.adaptive.certificate import Certificate, choose_mechanism
from dpselect.adaptive.choosing import choice_guarantee, draw_choice, summed_ranks
from dpselect.adaptive.grids import AnswerGrid, plain_median, read_grid
from dpselect.adaptive.medians import ExponentialMedian, SearchMedian
from dpselect.adaptive.subsamples import Blocks, Estimator, cut_into_blocks, evaluate
from dpselect.adaptive.verification import Verification
from dpselect.adaptive.verification_plan import plan_verification
from dpselect.errors import ArgumentError, BudgetError, integer, number, public_text
from dpselect.privacy import Guarantee, Release, Spender, paid
from dpselect.public_api import options_of
from dpselect.randomness import RandomSource, resolve
from dpselect.randomness.session import Session, answers

__all__ = ["AdaptiveAnalysis", "Verified"]


@dataclass(frozen=True)
class Verified:
    """A guess that was confirmed, or the answer that corrects it. None if no answer was left."""

    agrees: bool
    value: Any


class AdaptiveAnalysis(Session):
    """One data set, many adaptive questions, every answer as good as one on new rows.

    The rows are cut once, without looking at them, into m blocks of `subsample_size` rows. A question is any function
    of that many rows to a number. Its answer is a private approximate median of its m values. Answers that are private
    for a block cannot depend on what is peculiar to the sample: see `transfer_bound`.

    Args:
        data: a NumPy array, a list, a pandas or polars frame, or a tuple of such with equally many rows. The rows must
            be independent draws from one population (you must ensure this); keep rows that belong together out, or
            in one row.
        queries: how many questions may be asked (estimates and choices together).
        subsample_size: rows a block. Larger ones answer more precisely and leave fewer blocks.
        failure_probability: that some answer is not valid, all questions (and verifications) together.
        grid_size: the most grid points that a question may have, 4096 by default. A public choice, made before the
            first question. The noise and the blocks needed depend on its logarithm. A question with a finer grid is
            refused, and costs nothing.
        rank: answers are in qi(rank, 1 - rank) of the estimator on new rows; 1/4 is the inter-quartile interval. A
            small rank is cheaper per row for estimators with light tails (`plan_concentrated`).
        upper_rank: answers are in qi(rank, upper_rank) instead, around another quantile than the median: the plan's
            `quantile`, chosen to need the fewest blocks. By the binary search.
        mechanism: "binary_search", "exponential", "splitting" (exact medians of fresh blocks) or "best".
        accounting: "optimal", or "paper" for the constants of Theorem 4.3.
        validity_only: allow exact answers from fresh blocks when they are cheaper; they promise nothing to a row.
        verifications, refusals: how many guesses may be verified and how many of them refused, on blocks of their own.
        verification_rank, margin: see `VerificationPlan`.
        order: "random" permutes the rows before cutting, "given" does not.
        jobs: joblib processes over the blocks.
        spender: where the privacy of a row is paid, question by question.
        label: the name of the analysis in the spender's record.
        random: the source of randomness. None, the default, is a fresh one from system entropy.

    `certificate` says what is certified before the first question. Raises `ArgumentError` when the blocks are too few,
    naming the number that is needed. The number of rows is public (replace-one).

    >>> import numpy as np
    >>> from dpselect.randomness import keyed_source
    >>> rows = np.random.default_rng(1).normal(0.3, 1.0, 60_000)
    >>> analysis = AdaptiveAnalysis(rows, queries=10, subsample_size=20, failure_probability=0.05,
    ...                             grid_size=2001, random=keyed_source(1))
    >>> release = analysis.estimate(np.median, lower=-10, upper=10, granularity=0.01)
    >>> abs(release.value - 0.3) < 0.19, analysis.remaining, analysis.certificate.plan.certified
    (True, 9, True)
    """

    def __init__(  # noqa: PLR0913
        self,
        data: Any,
        *,
        queries: int,
        subsample_size: int,
        failure_probability: SupportsFloat,
        grid_size: int = 4096,
        rank: SupportsFloat = 0.25,
        upper_rank: SupportsFloat | None = None,
        mechanism: Mechanism | Literal["best"] = "best",
        accounting: Literal["optimal", "paper"] = "optimal",
        validity_only: bool = False,
        verifications: int = 0,
        refusals: int = 10,
        verification_rank: SupportsFloat = 0.25,
        margin: SupportsFloat = 0.125,
        order: Literal["random", "given"] = "random",
        jobs: int | None = 1,
        spender: Spender | None = None,
        label: str = "adaptive-analysis",
        random: RandomSource | None = None,
    ) -> None:
        super().__init__()
        label = public_text("label", label, longest=190)  # verifications add to it
        source = resolve(random)
        self._random, self._jobs, self._spender, self._label = source, jobs, spender, label
        beta = number("failure_probability", failure_probability, above=0.0, below=1.0)
        checks = integer("verifications", verifications, at_least=0, at_most=1 << 1000)
        if validity_only and spender is not None:
            raise ArgumentError("validity_only=True promises nothing to a row, so there is nothing to spend")
        share = beta / 2.0 if checks else beta
        plan, reason = choose_mechanism(
            queries=queries,
            grid_size=grid_size,
            failure_probability=share,
            rank=rank,
            upper_rank=upper_rank,
            mechanism=mechanism,
            accounting=accounting,
            validity_only=validity_only,
        )
        blocks = cut_into_blocks(data, subsample_size=subsample_size, order=order, random=source)
        check_plan = None
        if checks:
            check_plan = plan_verification(
                queries=checks, refusals=refusals, failure_probability=share, rank=verification_rank, margin=margin
            )
        needed = plan.blocks + (check_plan.blocks if check_plan else 0)
        if blocks.count < needed:
            raise ArgumentError(
                f"data has {blocks.count} blocks of {blocks.size} rows, and this certificate needs {needed}: give more "
                "rows, or take a smaller subsample_size, fewer queries or a larger failure_probability"
            )
        # spare blocks go to both parts in proportion: more noise, and so more privacy, for the same certificate
        cut = blocks.count if check_plan is None else blocks.count * plan.blocks // needed
        cut = min(max(cut, plan.blocks), blocks.count - (check_plan.blocks if check_plan else 0))
        self._blocks = blocks.part(0, cut)
        self._plan = plan.at(cut)
        self._verification: Verification | None = None
        if check_plan is not None:
            self._verification = Verification(
                blocks.part(cut, blocks.count), check_plan, random=source, spender=spender, label=f"{label}/verify"
            )
        self._certificate = Certificate(
            plan=self._plan,
            subsample_size=blocks.size,
            verification=None if self._verification is None else self._verification.plan,
            reason=reason,
        )
        self._fresh = splitting_blocks(plan.queries, share, plan.rank) if plan.mechanism == "splitting" else 0
        self._asked = 0

    @property
    def certificate(self) -> Certificate:
        """The certificate of validity and the guarantee, both fixed before the first question."""
        return self._certificate

    @property
    def remaining(self) -> int:
        """How many estimates and choices may still be asked for."""
        return self._plan.queries - self._asked

    @answers
    def resume(self, *, asked: int, random: RandomSource) -> None:
        """Continue from the point at which another process stopped: `asked` questions were asked, and the next draws
        come from `random`.

        For anyone who keeps count durably (`dpselect.holdout.SavedAnalysis`). No two questions may draw the same (you
        must ensure this).
        """
        self._asked = integer("asked", asked, at_least=0, at_most=self._plan.queries)
        self._random = random

    @property
    def verification(self) -> Verification | None:
        """The verification with its remaining guesses. None if none was planned."""
        return self._verification

    @answers
    @options_of(read_grid)
    def estimate(
        self,
        estimator: Estimator,
        *,
        axis: bool = False,
        **grid: Unpack[AnswerGrid],
    ) -> Release:
        """A private approximate median of the estimator over the blocks, one question of the budget.

        The answer is a multiple of `granularity` between `lower` and `upper`, or any double between them, or a point
        of `grid` (`dpselect.adaptive.grids`). Bounds and grid must not come from the data, but may come from earlier
        answers. An interval that holds qi(rank, 1 - rank) of the estimator costs no validity.

        `axis=True`: the estimator is called once, with all blocks along the first axis and `axis=1`. It must treat each
        block by itself and keep nothing between blocks (you must ensure this). A block on which it fails counts as
        the lowest grid point.

        Raises `BudgetError` when no question is left or the spender refuses, `ArgumentError` for a grid that is larger
        than planned. Its guarantee is that of this one answer, for a row.
        """
        _check_callable(estimator)
        points = read_grid(**grid)
        if points.size > self._plan.grid_size:
            raise ArgumentError(
                f"the grid has {points.size} points and grid_size={self._plan.grid_size} was planned for: take a "
                f"larger granularity, or make the analysis with grid_size={points.size}"
            )

        def answer(blocks: Blocks) -> Any:
            values = evaluate(estimator, blocks, axis=axis, jobs=self._jobs)
            if self._plan.noise is not None:
                search = SearchMedian(noise=self._plan.noise, quantile=self._plan.quantile)
                return search.draw(values, points, random=self._random)
            if self._plan.epsilon:
                return ExponentialMedian(epsilon=self._plan.epsilon).draw(values, points, random=self._random)
            return plain_median(values, points)

        return self._ask(answer, self._certificate.answer)

    @answers
    def choose(
        self,
        candidates: Sequence[Estimator] | Mapping[Any, Estimator],
        *,
        maximize: bool = True,
        axis: bool = False,
    ) -> Release:
        """Choose the estimator that is best on most blocks. K estimators cost one question, not K.

        On each block the candidates are ranked by their value (failures last, ties shared). The exponential mechanism
        draws one by the sum of its ranks, which a block moves by at most the range of ranks. The value is the position
        in a sequence or the key in a mapping. `choice_error` bounds how far from the best it is. Only an `estimate`
        measures how good it is.
        """
        names = list(candidates.keys()) if isinstance(candidates, Mapping) else list(range(len(candidates)))
        functions = list(candidates.values()) if isinstance(candidates, Mapping) else list(candidates)
        if not functions:
            raise ArgumentError("candidates must not be empty")
        _check_callable(*functions)

        def answer(blocks: Blocks) -> Any:
            values = np.array([evaluate(one, blocks, axis=axis, jobs=self._jobs) for one in functions])
            ranks = summed_ranks(values if maximize else -values)
            return names[draw_choice(ranks, blocks.count, self._plan, self._random)]

        return self._ask(answer, choice_guarantee(self._plan))

    @answers
    def verify(self, estimator: Estimator, guess: SupportsFloat, *, axis: bool = False) -> Release:
        """Whether the guess is a plausible value of the estimator on new rows: True or False.

        True: within qi(rank - margin, 1 - rank + margin). False: outside qi(rank, 1 - rank). In between either is
        possible. Only False uses up a refusal. The guarantee is that of the run up to its refusal, paid once for all
        its answers.

        Raises `ArgumentError` when no verifications were planned, `BudgetError` when none is left.
        """
        verification = self._verification
        if verification is None:
            raise ArgumentError("no verification was planned: give verifications= and refusals=")
        _check_callable(estimator)
        return verification.check(lambda: evaluate(estimator, verification.blocks, axis=axis, jobs=self._jobs), guess)

    @options_of(read_grid)
    def verify_or_correct(
        self,
        estimator: Estimator,
        guess: SupportsFloat,
        *,
        axis: bool = False,
        **grid: Unpack[AnswerGrid],
    ) -> Release:
        """`verify`, and after a no an `estimate` while questions are left. The value is a `Verified`."""
        found = self.verify(estimator, guess, axis=axis)
        if found.value:
            return replace(found, value=Verified(True, float(guess)))
        try:
            corrected = self.estimate(estimator, axis=axis, **grid)
        except BudgetError:
            return replace(found, value=Verified(False, None))
        return replace(corrected, value=Verified(False, corrected.value))

    def _ask(self, answer: Callable[[Blocks], Any], guarantee: Guarantee) -> Release:
        """Pay for the question, then count it, then compute it: a crash in between costs, and tells nothing."""
        if self.remaining < 1:
            raise BudgetError(f"all {self._plan.queries} questions of this analysis were asked")

        def run() -> Any:
            place, self._asked = self._asked, self._asked + 1
            blocks = self._blocks
            return answer(blocks.part(place * self._fresh, (place + 1) * self._fresh) if self._fresh else blocks)

        replayable = self._random.replayable
        return paid(run, guarantee, spender=self._spender, label=self._label, replayable=replayable)

    def __repr__(self) -> str:
        return f"<AdaptiveAnalysis {self._plan.mechanism}, {self.remaining} of {self._plan.queries} questions left>"


def _check_callable(*estimators: Any) -> None:
    """Before anything is charged: what fails on every block would cost a question and say nothing."""
    if not all(callable(one) for one in estimators):
        raise ArgumentError("an estimator must be a function of a block")
