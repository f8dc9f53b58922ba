"""DP-SGD in a study."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dpselect.learners.dp_sgd import DPSGDClassification
from dpselect.learners.dp_sgd_regressor import DPSGDRegression
from dpselect.learners.training_rules import CLASSIFICATION, REGRESSION
from dpselect.study.learners.kind import LEARNERS, StudyLearner


def _schedule(parameters: Mapping[str, Any]) -> tuple[int, float]:
    """The steps with these parameters, and what the rule's learning rate is proportional to."""
    rule = REGRESSION if "label_bounds" in parameters else CLASSIFICATION
    rows, sampled = parameters["nominal_rows"], parameters.get("sampling_rate", 1.0)
    noise = parameters["noise_multiplier"] / sampled
    steps = parameters["steps"] or math.ceil(rule.steps_for(rows, noise))
    return steps, rule.reach_for(rows, math.sqrt(steps) / noise) / steps


def _carried(drawn: dict[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """A rate that was searched, by the factor by which the rule's own changes; what the rule decides follows it."""
    if drawn.get("learning_rate") is None:
        return drawn
    (_, old), (_, new) = _schedule(before), _schedule(after)
    return {**drawn, "learning_rate": min(float(drawn["learning_rate"]) * new / old, 1e6)}


LEARNERS.register("dp-sgd")(
    StudyLearner(
        DPSGDClassification,
        "noise_multiplier",
        priced=frozenset({"sampling_rate", "steps"}),
        regressor=DPSGDRegression,
        carry=_carried,
    )
)
