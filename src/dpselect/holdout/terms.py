"""The public terms of a holdout: what may be asked, what is certified and promised; and the choice of the mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, SupportsFloat

from dpselect.errors import ArgumentError, BoundUnavailableError, integer, number
from dpselect.holdout.block_medians import BlockMedianPlan, plan_block_medians
from dpselect.holdout.checked import CheckedPlan, plan_checked
from dpselect.holdout.counting import CountingPlan, plan_counting
from dpselect.holdout.draws import Draws
from dpselect.holdout.gaussian import GaussianPlan, plan_gaussian
from dpselect.holdout.scores import METRICS, HoldoutMetric, Scored
from dpselect.numerics import root_between
from dpselect.privacy import Adjacency, Guarantee, gaussian

__all__ = ["MECHANISMS", "Choice", "PlannedMechanism", "Terms", "choose_plan"]


class PlannedMechanism(Protocol):
    """A mechanism with its numbers, all public. Scores are shares of the metric's bound."""

    @property
    def mechanism(self) -> str: ...
    @property
    def questions(self) -> int: ...
    @property
    def answers(self) -> int:
        """How many questions may be answered by a score; the others are confirmed claims."""
        ...

    @property
    def failure_probability(self) -> float: ...
    @property
    def tolerance(self) -> float: ...
    @property
    def error(self) -> float | None:
        """The certified distance from the population's score, where there is one."""
        ...

    @property
    def certified(self) -> bool:
        """Whether the certificate's inequalities hold, evaluated once more."""
        ...

    @property
    def row_privacy(self) -> Guarantee | None: ...
    def answer(self, scored: Scored, claim: float | None, draws: Draws) -> tuple[bool | None, float]: ...
    def interval(self, value: float, agrees: bool | None) -> tuple[float, float] | None: ...
    def fields(self) -> dict[str, Any]: ...


_PARSERS: dict[str, Callable[[dict[str, Any]], PlannedMechanism]] = {
    CountingPlan.mechanism: CountingPlan.parse,
    GaussianPlan.mechanism: GaussianPlan.parse,
    CheckedPlan.mechanism: CheckedPlan.parse,
    BlockMedianPlan.mechanism: BlockMedianPlan.parse,
}
MECHANISMS = tuple(_PARSERS)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Everything about a holdout that anybody may know."""

    metric: HoldoutMetric
    bound: float
    rows: int
    id_column: str
    plan: PlannedMechanism
    reason: str
    delta: float = 1e-6
    """With which the privacy of a row is described."""

    @property
    def statement(self) -> str:
        """The certificate of validity in a sentence."""
        plan = self.plan
        chance = f"except with probability {plan.failure_probability:g}"
        if plan.error is None:
            size = plan.fields()["subsample_size"]
            return (
                f"All of up to {plan.questions} adaptive answers lie between the 25 and 75 per cent quantiles of the "
                f"{self.metric.name} on {size} fresh rows, {chance}."
            )
        few = "" if plan.answers == plan.questions else f", at most {plan.answers} of them scores,"
        return (
            f"All of up to {plan.questions} adaptive answers{few} are within {plan.error * self.bound:.4g} of the "
            f"population's {self.metric.name}, {chance}."
        )

    def describe(self) -> dict[str, Any]:
        """A JSON-able summary."""
        plan = self.plan
        return {
            "metric": self.metric.name,
            "rows": self.rows,
            "questions": plan.questions,
            "answers": plan.answers,
            "failure_probability": plan.failure_probability,
            "mechanism": plan.mechanism,
            "error": None if plan.error is None else plan.error * self.bound,
            "tolerance": plan.tolerance * self.bound,
            "validity": self.statement,
            "reason": self.reason,
            "row_privacy": None if plan.row_privacy is None else plan.row_privacy.describe(delta=self.delta),
        }

    def fields(self) -> dict[str, Any]:
        """JSON-able; `parse` reads it."""
        return {
            "metric": self.metric.name,
            "bound": self.bound,
            "rows": self.rows,
            "id_column": self.id_column,
            "mechanism": self.plan.mechanism,
            "plan": self.plan.fields(),
            "reason": self.reason,
            "delta": self.delta,
        }

    @staticmethod
    def parse(fields: dict[str, Any]) -> Terms:
        """The terms of a file. Raises `ArgumentError` when their certificate does not hold."""
        plan = _PARSERS[fields["mechanism"]](fields["plan"])
        if not plan.certified:
            raise ArgumentError("the holdout's terms are not certified")
        return Terms(
            metric=METRICS[fields["metric"]],
            bound=fields["bound"],
            rows=fields["rows"],
            id_column=fields["id_column"],
            plan=plan,
            reason=fields["reason"],
            delta=fields["delta"],
        )


@dataclass(frozen=True)
class Choice:
    """The plan to take, why, and the errors of all that were weighed (None: not certified for these rows)."""

    plan: PlannedMechanism
    reason: str
    errors: dict[str, float | None]


def choose_plan(
    *,
    metric: str,
    rows: int,
    rarer: int | None = None,
    questions: int,
    answers: int,
    failure_probability: SupportsFloat,
    tolerance: SupportsFloat | None = None,
    epsilon: SupportsFloat | None = None,
    delta: SupportsFloat = 1e-6,
    mechanism: str = "best",
    subsample_size: int | None = None,
) -> Choice:
    """The mechanism with the smallest certified error for these rows.

    Args:
        metric: a name of `METRICS`.
        rows: held-out rows.
        rarer: for areas under the curve, the rows of the rarer class (by default half of the rows).
        questions: how many may be asked.
        answers: how many of them may be answered by a score: refused claims and questions without a claim.
        failure_probability: that some interval does not hold the population's score.
        tolerance: a claim so near to the rows' score is confirmed, as a share of the bound; by default one over the
            root of the rows (of the rarer class), about two deviations of the score at least.
        epsilon, delta: what the whole holdout may cost a row (replace-one). Without epsilon nothing is promised.
        mechanism: a name of `MECHANISMS`, or "best".
        subsample_size: rows a block, for block medians; by default the most that are certified.

    Raises `ArgumentError` when nothing is certified.

    >>> found = choose_plan(metric="accuracy", rows=10_000, questions=1000, answers=10, failure_probability=0.05)
    >>> found.plan.mechanism, found.errors["gaussian"] > found.plan.error
    ('counting', True)
    """
    if metric not in METRICS:
        raise ArgumentError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")
    if mechanism not in ("best", *MECHANISMS):
        raise ArgumentError(f"mechanism must be best or one of {', '.join(MECHANISMS)}, got {mechanism!r}")
    rows = integer("rows", rows, at_least=4, at_most=1 << 26)
    questions = integer("questions", questions, at_least=1, at_most=1 << 1000)
    answers = integer("answers", answers, at_least=1, at_most=questions)
    chance = number("failure_probability", failure_probability, at_least=1e-12, at_most=0.25)
    least = rows // 2 if rarer is None else integer("rarer", rarer, at_least=4, at_most=rows // 2)
    if epsilon is not None:
        least = rows // 2  # how many rows a class has is not public then, so nothing public may depend on it
    near = 1.0 / math.sqrt(least if metric == "auc" else rows)
    if tolerance is not None:
        near = number("tolerance", tolerance, at_least=1e-5, at_most=0.25)
    most = None
    if epsilon is not None:
        most = _mu_within(
            number("epsilon", epsilon, above=0.0, at_most=20.0), number("delta", delta, above=0.0, below=1.0)
        )
    public: dict[str, Any] = {"questions": questions, "failure_probability": chance, "tolerance": near}
    ways = _ways(metric, rows, least, answers, most, subsample_size, public)
    if mechanism != "best":
        if mechanism not in ways:
            raise BoundUnavailableError(
                f"mechanism {mechanism!r} does not serve these terms; available: {', '.join(ways)}"
            )
        asked = ways[mechanism]()
        return Choice(asked, f"{mechanism}, as asked", {mechanism: asked.error})
    found: dict[str, PlannedMechanism] = {}
    refused: dict[str, ArgumentError] = {}
    for name, make in ways.items():
        try:
            found[name] = make()
        except ArgumentError as refusal:
            refused[name] = refusal
    errors = {name: found[name].error if name in found else None for name in ways}
    if not found:
        raise ArgumentError(
            "no mechanism is certified for these terms: " + "; ".join(f"{name}: {why}" for name, why in refused.items())
        )
    best = min(found, key=lambda name: math.inf if found[name].error is None else float(found[name].error or 0.0))
    return Choice(found[best], _reason(best, found, refused), errors)


def _ways(
    metric: str,
    rows: int,
    rarer: int,
    answers: int,
    largest_mu: float | None,
    subsample_size: int | None,
    public: dict[str, Any],
) -> dict[str, Callable[[], PlannedMechanism]]:
    """The mechanisms that serve these terms. Without `largest_mu` nothing need be promised to a row."""
    most = 1.0 if largest_mu is None else largest_mu
    ways: dict[str, Callable[[], PlannedMechanism]] = {}
    if largest_mu is None:
        effective = rarer if metric == "auc" else rows
        ways["counting"] = lambda: plan_counting(rows=effective, answers=answers, **public)
    if metric == "auc":
        ways["blocks"] = lambda: plan_block_medians(rows=rows, largest_mu=most, subsample_size=subsample_size, **public)
        return ways
    ways["gaussian"] = lambda: plan_gaussian(rows=rows, largest_mu=most, **public)
    if largest_mu is not None and answers < public["questions"]:
        ways["checked"] = lambda: plan_checked(rows=rows, answers=answers, largest_mu=most, **public)
    return ways


def _reason(best: str, found: dict[str, PlannedMechanism], refused: dict[str, ArgumentError]) -> str:
    known = [f"{name} {plan.error:.3g}" for name, plan in found.items() if plan.error is not None]
    text = f"{best} has the smallest certified error" if len(found) > 1 else f"{best} is certified"
    if known:
        text += f" (of the bound: {', '.join(known)})"
    return text + (f"; not certified here: {', '.join(refused)}" if refused else "")


def _mu_within(epsilon: float, delta: float) -> float:
    """The largest mu whose Gaussian trade-off has this delta at this epsilon, rounded down."""

    def fits(mu: float) -> bool:
        return gaussian(noise_multiplier=1.0 / mu, adjacency=Adjacency.REPLACE_ONE).delta(epsilon) <= delta

    low = root_between(fits, safe=0.0, unsafe=20.0, absolute=20.0 * 2.0**-60)
    if low == 0.0:
        raise ArgumentError("epsilon and delta leave room for no answer")
    return low
