"""The certificate of an analysis, stated before its first question, and its guarantee for a row: two things."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, SupportsFloat

from dpselect.adaptive.blocks import BlockPlan, break_even, plan_blocks, splitting_blocks
from dpselect.adaptive.medians import ExponentialMedian, SearchMedian
from dpselect.adaptive.runs import runs_guarantee
from dpselect.adaptive.spread import error_from_standard_deviation
from dpselect.adaptive.verification_plan import VerificationPlan
from dpselect.errors import ArgumentError
from dpselect.privacy import Adjacency, Guarantee, compose, gaussian, zcdp

__all__ = ["Certificate", "choose_mechanism", "no_promise"]

_COMPOSED = 10_000
"""Up to this many answers their loss distributions are composed; beyond, concentrated privacy is as good."""


def no_promise() -> Guarantee:
    """The guarantee of an exact answer: none."""
    return Guarantee(
        adjacency=Adjacency.REPLACE_ONE,
        theorem="none: an exact statistic is released",
        terms={"mechanism": "exact"},
    )


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The two guarantees of an analysis, from public numbers alone.

    Validity: a statement about new rows, for rows that are independent draws from one population (you must ensure
    this). Privacy: a statement about any rows. A small failure probability of the first says nothing about the second.
    """

    plan: BlockPlan
    subsample_size: int
    verification: VerificationPlan | None
    reason: str

    @property
    def statement(self) -> str:
        """The certificate of validity in a sentence."""
        plan = self.plan
        low, high = plan.interval
        text = (
            f"All of up to {plan.queries} adaptive answers are between the {100 * low:g} and "
            f"{100 * high:g} % quantiles of their estimator on {self.subsample_size} new rows "
            f"(so within {error_from_standard_deviation(low, high):.3g} of its standard deviations of its mean), "
            f"except with probability {plan.failure_probability:g}."
        )
        if self.verification is None:
            return text
        check = self.verification
        return text + (
            f" Of up to {check.queries} guesses, all confirmed ones are within the "
            f"{100 * (check.rank - check.margin):g} and {100 * (1 - check.rank + check.margin):g} % quantiles "
            f"and no refused one within the {100 * check.rank:g} and {100 - 100 * check.rank:g} % quantiles, "
            f"except with probability "
            f"{check.failure_probability:g}; at most {check.refusals} refusals."
        )

    @property
    def answer(self) -> Guarantee:
        """The guarantee of one answer for a row: for its block, as if the whole block were replaced."""
        if self.plan.noise is not None:
            return SearchMedian(noise=self.plan.noise).guarantee
        return ExponentialMedian(epsilon=self.plan.epsilon).guarantee if self.plan.epsilon else no_promise()

    @property
    def row_privacy(self) -> Guarantee:
        """The guarantee of all answers for a row. Verifications use other rows and have their own."""
        plan = self.plan
        if plan.noise is not None:
            return gaussian(noise_multiplier=1.0 / plan.mu, adjacency=Adjacency.REPLACE_ONE)
        if plan.mechanism == "splitting":
            return no_promise()
        if plan.queries > _COMPOSED:
            return zcdp(rho=plan.rho * (1.0 + 1e-9), adjacency=Adjacency.REPLACE_ONE)
        return compose(*[self.answer] * plan.queries)

    @property
    def verification_privacy(self) -> Guarantee | None:
        """The guarantee of all verifications for a row of their blocks, once all refusals are used up."""
        check = self.verification
        if check is None:
            return None
        return runs_guarantee(check.epsilon_threshold, check.epsilon_queries, check.refusals)

    def describe(self, *, delta: SupportsFloat) -> Mapping[str, Any]:
        """A JSON-able summary."""
        plan = self.plan
        return {
            "validity": self.statement,
            "failure_probability": plan.failure_probability,
            "rank": plan.rank,
            "upper_rank": plan.interval[1],
            "quantile": float(plan.quantile),
            "mechanism": plan.mechanism,
            "accounting": plan.accounting,
            "queries": plan.queries,
            "grid_size": plan.grid_size,
            "blocks": plan.blocks,
            "subsample_size": self.subsample_size,
            "reason": self.reason,
            "row_privacy": self.row_privacy.describe(delta=delta),
            "verification_privacy": None
            if self.verification_privacy is None
            else self.verification_privacy.describe(delta=delta),
        }


def choose_mechanism(*, validity_only: bool, **options: Any) -> tuple[BlockPlan, str]:
    """The plan with the fewest blocks for these options of `plan_blocks`, and why it was taken.

    Splitting needs `validity_only`: no privacy to a row.
    """
    if options["mechanism"] == "splitting" and not validity_only:
        raise ArgumentError("mechanism 'splitting' promises no privacy to a row; it needs validity_only=True")
    plan = plan_blocks(**options)
    if plan.upper_rank is not None:
        return plan, f"{plan.mechanism} answers the {float(plan.quantile):.4g} quantile: {plan.blocks} blocks"
    if options["mechanism"] != "best" or plan.accounting == "paper":
        return plan, f"{plan.mechanism} with the {plan.accounting} accounting, as asked: {plan.blocks} blocks"
    split = plan.queries * splitting_blocks(plan.queries, plan.failure_probability, plan.rank)
    if split >= plan.blocks:
        return plan, (
            f"{plan.mechanism} needs {plan.blocks} blocks, data splitting {split}: asking the same data is cheaper"
        )
    if validity_only:
        fresh = replace(plan, mechanism="splitting", blocks=split, noise=None, epsilon=0.0)
        even = break_even(grid_size=plan.grid_size, failure_probability=plan.failure_probability, rank=plan.rank)
        return fresh, (
            f"data splitting needs {split} blocks, {plan.mechanism} {plan.blocks}; about {even} questions break even"
        )
    return plan, (
        f"{plan.mechanism} needs {plan.blocks} blocks; data splitting would need {split} but promises no privacy to a "
        "row (validity_only=True allows it)"
    )
