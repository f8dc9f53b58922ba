"""The public terms of a holdout: questions, certificate and guarantee, and the choice of the mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from dpselect.adaptive.blocks import BlockPlan
from dpselect.adaptive.means import MeanPlan
from dpselect.adaptive.search_noise import SearchNoise
from dpselect.capabilities import field_values
from dpselect.cures import write_one_of
from dpselect.errors import ArgumentError, BoundUnavailableError, integer, number
from dpselect.holdout.block_medians import BlockMedianPlan, plan_block_medians
from dpselect.holdout.claim_checks import CheckedPlan, plan_checked
from dpselect.holdout.counting import CountingPlan, plan_counting
from dpselect.holdout.gaussian import GaussianPlan, plan_gaussian
from dpselect.holdout.ratios import RatioPlan, plan_ratios
from dpselect.holdout.scores import METRICS, HoldoutMetric
from dpselect.numerics.search import root_between
from dpselect.privacy import Adjacency, gaussian

__all__ = ["MECHANISMS", "Choice", "HoldoutRequest", "PlannedMechanism", "Terms"]


PlannedMechanism = CountingPlan | GaussianPlan | CheckedPlan | BlockMedianPlan | RatioPlan
"""A mechanism with its numbers, all public. Scores are shares of the metric's bound.

`answers` is how many of the `questions` may be answered by a score. The others are confirmed claims. `error` is the
certified distance from the population's score, where there is one. `certified` says whether the certificate's
inequalities hold, evaluated once more.
"""
_PLANS: Mapping[str, type[PlannedMechanism]] = {
    plan.mechanism: plan for plan in (CountingPlan, GaussianPlan, CheckedPlan, BlockMedianPlan, RatioPlan)
}
_PARTS = {"counting": CountingPlan, "means": MeanPlan, "blocks": BlockPlan, "noise": SearchNoise}
"""Fields of plans that are dataclasses themselves."""
MECHANISMS = tuple(_PLANS)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Everything about a holdout that anyone may know."""

    metric: HoldoutMetric
    """The first one, which is asked for where no other is named."""
    bound: float
    """The largest error of a row, for metrics that have one."""
    rows: int
    id_column: str
    plan: PlannedMechanism
    reason: str
    delta: float = 1e-6
    """With which the privacy of a row is described."""
    further: Mapping[str, PlannedMechanism] = field(default_factory=dict)
    """Metrics that may be asked for too. All questions count together, regardless of their metric."""

    def of(self, name: str | None) -> tuple[HoldoutMetric, PlannedMechanism]:
        """A metric with its plan (the first one for None). Raises `ArgumentError` for one that was not declared."""
        if name is None or name == self.metric.name:
            return self.metric, self.plan
        if name not in self.further:
            known = ", ".join((self.metric.name, *self.further))
            raise ArgumentError(f"metric must be one of {known}, which this holdout was made for, got {name!r}")
        return METRICS[name], self.further[name]

    def scale(self, metric: HoldoutMetric) -> float:
        """The factor of a share of the bound."""
        return self.bound if metric.bounded else 1.0

    @property
    def statement(self) -> str:
        """The certificate of validity in a sentence."""
        plan = self.plan
        chance = f"except with probability {plan.failure_probability:g}"
        if isinstance(plan, BlockMedianPlan):
            return (
                f"All of up to {plan.questions} adaptive answers are between the 25 and 75 % quantiles of the "
                f"{self.metric.name} on {plan.subsample_size} new rows, {chance}."
            )
        few = "" if plan.answers == plan.questions else f", at most {plan.answers} of them scores,"
        error = plan.error * self.scale(self.metric)
        others = "".join(f", or within {other:.4g} of its {name}" for name, other in self._further_errors.items())
        return (
            f"All of up to {plan.questions} adaptive answers{few} are within {error:.4g} of the "
            f"population's {self.metric.name}{others}, {chance}."
        )

    @property
    def _further_errors(self) -> dict[str, float]:
        return {name: (plan.error or 0.0) * self.scale(METRICS[name]) for name, plan in self.further.items()}

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
            "error": None if plan.error is None else plan.error * self.scale(self.metric),
            "tolerance": plan.tolerance * self.scale(self.metric),
            "further_errors": self._further_errors,
            "validity": self.statement,
            "reason": self.reason,
            "row_privacy": None if plan.row_privacy is None else plan.row_privacy.describe(delta=self.delta),
        }

    def fields(self) -> dict[str, Any]:
        """JSON-able. `parse` reads it."""
        return {
            "metric": self.metric.name,
            "mechanism": self.plan.mechanism,
            "plan": _fields(self.plan),
            "further": {name: [plan.mechanism, _fields(plan)] for name, plan in self.further.items()},
            **field_values(self, _AS_THEY_ARE),
        }

    @staticmethod
    def parse(fields: dict[str, Any]) -> Terms:
        """The terms of a file. Raises `ArgumentError` when their certificate does not hold."""
        plan = _made(_PLANS[fields["mechanism"]], fields["plan"])
        further = {name: _made(_PLANS[kind], given) for name, (kind, given) in fields.get("further", {}).items()}
        if not all(one.certified for one in (plan, *further.values())):
            raise ArgumentError("the holdout's terms are not certified")
        others = {name: fields[name] for name in _AS_THEY_ARE}
        return Terms(metric=METRICS[fields["metric"]], plan=plan, further=further, **others)


_AS_THEY_ARE = ("bound", "rows", "id_column", "reason", "delta")


def _fields(plan: PlannedMechanism) -> dict[str, Any]:
    found = asdict(plan)
    if isinstance(plan, BlockMedianPlan):
        del found["blocks"]["quantile"]  # the median's
    return found


def _made(kind: Callable[..., Any], fields: Mapping[str, Any]) -> Any:
    """A dataclass from its fields and those of its parts."""
    parts = {name: _made(_PARTS[name], given) for name, given in fields.items() if isinstance(given, dict)}
    return kind(**{**fields, **parts})


@dataclass(frozen=True)
class Choice:
    """The plan to take, why, and the errors of all that were weighed (None: not certified for these rows)."""

    plan: PlannedMechanism
    reason: str
    errors: dict[str, float | None]
    further: dict[str, PlannedMechanism] = field(default_factory=dict)
    """The plans of the metrics after the first."""


@dataclass(frozen=True, kw_only=True)
class HoldoutRequest:
    """The request for a holdout: public, and the same before there are labels as when they are sealed.

    Attributes:
        metric: a name of `METRICS`, or several. Each question asks for one, by default the first.
        questions: how many may be asked.
        answers: how many of them may be answered by a score: refused claims and questions without a claim.
        failure_probability: that some interval does not hold the population's score.
        bound: for errors: the largest error of a row, larger ones count as this. Without it scores are shares of it.
        tolerance: a claim so near to the rows' score is confirmed, in the metric's unit; by default one over the root
            of the rows (of the rarer class), about two deviations of the score at least.
        epsilon, delta: what the whole holdout may cost a row (replace-one). Without epsilon nothing is promised.
        mechanism: a name of `MECHANISMS`, or "best".
        subsample_size: rows a block, for block medians (by default the most that are certified).

    Raises `ArgumentError`.

    >>> request = HoldoutRequest(metric="accuracy", questions=1000, answers=10, failure_probability=0.05)
    >>> found = request.plan(rows=10_000)
    >>> found.plan.mechanism, found.errors["gaussian"] > found.plan.error
    ('counting', True)
    """

    metric: str | Sequence[str]
    questions: int
    answers: int
    failure_probability: float
    bound: float | None = None
    tolerance: float | None = None
    epsilon: float | None = None
    delta: float = 1e-6
    mechanism: str = "best"
    subsample_size: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.metric, str):
            object.__setattr__(self, "metric", tuple(self.metric))
        if not self.metrics or len(set(self.metrics)) != len(self.metrics):
            raise ArgumentError("metric must name one metric, or several that are different")
        for name in self.metrics:
            if name not in METRICS:
                said = f"metric must be one of {', '.join(METRICS)}, got {name!r}"
                raise ArgumentError(said + write_one_of("metric", name, METRICS))
        if self.mechanism not in ("best", *MECHANISMS):
            raise ArgumentError(f"mechanism must be best or one of {', '.join(MECHANISMS)}, got {self.mechanism!r}")
        if len(self.metrics) > 1:
            self._check_several()
        if self.epsilon is not None and "f1" in self.metrics:
            raise ArgumentError("f1 is certified by counting, which promises nothing to a row: leave out epsilon")
        if self.bound is not None and not any(METRICS[name].bounded for name in self.metrics):
            raise ArgumentError(f"bound is not taken for the metric {self.metric!r}")
        questions = integer("questions", self.questions, at_least=1, at_most=1 << 1000)
        parsed: dict[str, Any] = {
            "questions": questions,
            "answers": integer("answers", self.answers, at_least=1, at_most=questions),
            "failure_probability": number(
                "failure_probability", self.failure_probability, at_least=1e-12, at_most=0.25
            ),
            "delta": number("delta", self.delta, above=0.0, below=1.0),
        }
        if self.bound is not None:
            parsed["bound"] = number("bound", self.bound, above=0.0, at_most=1e150)
        if self.tolerance is not None:
            parsed["tolerance"] = number("tolerance", self.tolerance, above=0.0)
            scale = parsed.get("bound", 1.0) if METRICS[self.metrics[0]].bounded else 1.0
            number("tolerance", parsed["tolerance"] / scale, at_least=1e-5, at_most=0.25)
        if self.epsilon is not None:
            parsed["epsilon"] = number("epsilon", self.epsilon, above=0.0, at_most=20.0)
        for name, value in parsed.items():
            object.__setattr__(self, name, value)

    def _check_several(self) -> None:
        if len({METRICS[name].numeric_labels for name in self.metrics}) > 1:
            raise ArgumentError("metric must name metrics of one kind of labels: classes, or numbers")
        if self.epsilon is not None:
            raise ArgumentError("several metrics are certified by counting, which promises nothing to a row")
        if self.mechanism not in ("best", "counting"):
            raise ArgumentError("mechanism must be best or counting for several metrics")

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics by name, the first one first."""
        return (self.metric,) if isinstance(self.metric, str) else tuple(self.metric)

    @property
    def scale(self) -> float:
        """The bound, or 1."""
        return 1.0 if self.bound is None else self.bound

    def plan(self, *, rows: int, rarer: int | None = None) -> Choice:
        """The mechanism with the smallest certified error for so many rows. `ArgumentError` if nothing is certified.

        `rarer`: for areas under the curve, the rows of the rarer class, and for f1 those of the positive class (by
        default half of the rows).
        """
        rows = integer("rows", rows, at_least=4, at_most=1 << 26)
        if len(self.metrics) > 1:
            return self._several(rows, rarer)
        ways = self._ways(rows, rarer)
        if self.mechanism != "best":
            if self.mechanism not in ways:
                raise BoundUnavailableError(
                    f"mechanism {self.mechanism!r} does not serve these terms; available: {', '.join(ways)}"
                )
            asked = ways[self.mechanism]()
            return Choice(asked, f"{self.mechanism}, as asked", {self.mechanism: asked.error})
        found: dict[str, PlannedMechanism] = {}
        refused: dict[str, ArgumentError] = {}
        for name, make in ways.items():
            try:
                found[name] = make()
            except ArgumentError as refusal:
                refused[name] = refusal
        errors = {name: found[name].error if name in found else None for name in ways}
        if not found:
            reasons = "; ".join(f"{name}: {why}" for name, why in refused.items())
            raise ArgumentError(f"no mechanism is certified for these terms: {reasons}")
        best = min(found, key=lambda name: math.inf if found[name].error is None else float(found[name].error or 0.0))
        return Choice(found[best], _reason(best, found, refused), errors)

    def _ways(self, rows: int, rarer: int | None) -> dict[str, Callable[[], PlannedMechanism]]:
        """The mechanisms that serve these terms. Without an epsilon nothing need be promised to a row."""
        (metric,) = self.metrics
        effective = _effective(metric, rows, rarer if self.epsilon is None else None)
        # with epsilon how many rows a class has is not public, so nothing public may depend on it
        public: dict[str, Any] = {
            "questions": self.questions,
            "failure_probability": self.failure_probability,
            "tolerance": self._tolerance(effective),
        }
        if metric == "f1":
            counted = partial(plan_counting, rows=effective, answers=self.answers, **public)
            return {"ratio": lambda: plan_ratios(counted(), rows=rows)}
        priced = public | {"largest_mu": 1.0 if self.epsilon is None else _mu_within(self.epsilon, self.delta)}
        ways: dict[str, Callable[[], PlannedMechanism]] = {}
        if self.epsilon is None:
            ways["counting"] = lambda: plan_counting(rows=effective, answers=self.answers, near=True, **public)
        if metric == "auc":
            ways["blocks"] = lambda: plan_block_medians(rows=rows, subsample_size=self.subsample_size, **priced)
            return ways
        ways["gaussian"] = lambda: plan_gaussian(rows=rows, **priced)
        if self.epsilon is not None and self.answers < self.questions:
            ways["checked"] = lambda: plan_checked(rows=rows, answers=self.answers, **priced)
        return ways

    def _tolerance(self, effective: int) -> float:
        """As a share of the first metric's bound."""
        if self.tolerance is None:
            return 1.0 / math.sqrt(effective)
        return self.tolerance / (self.scale if METRICS[self.metrics[0]].bounded else 1.0)

    def _several(self, rows: int, rarer: int | None) -> Choice:
        """Each metric with its own error. The questions are counted over all of them together."""
        of_rarer = None if rarer is None else min(rarer, rows - rarer)
        effective = {name: _effective(name, rows, rarer if name == "f1" else of_rarer) for name in self.metrics}
        told = any(name in ("auc", "f1") for name in self.metrics)  # how many rows a class has
        found: dict[str, PlannedMechanism] = {}
        for name in self.metrics:
            counted = plan_counting(
                rows=effective[name],
                questions=self.questions,
                answers=self.answers,
                failure_probability=self.failure_probability,
                tolerance=self._tolerance(max(effective.values())),  # one grid for all, so that they are counted alike
                choices=rows if told else 1,
            )
            found[name] = plan_ratios(counted, rows=rows) if name == "f1" else counted
        first, *others = self.metrics
        return Choice(
            plan=found[first],
            reason="the questions of all metrics are counted together",
            errors={found[first].mechanism: found[first].error},
            further={name: found[name] for name in sorted(others)},
        )


def _effective(metric: str, rows: int, rarer: int | None) -> int:
    """Of how many independent values a score is made: all rows, or those of a class."""
    if metric not in ("auc", "f1"):
        return rows
    most = rows - 4 if metric == "f1" else rows // 2
    return rows // 2 if rarer is None else integer("rarer", rarer, at_least=4, at_most=max(most, 4))


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
