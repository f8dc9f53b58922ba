"""DP-SGD in a study."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dpselect.learners.dp_sgd import DPSGDClassification
from dpselect.learners.dp_sgd_regressor import DPSGDRegression
from dpselect.learners.training_rules import CLASSIFICATION, REGRESSION
from dpselect.study.learners.kind import LEARNERS, StudyLearner


def _rate(parameters: Mapping[str, Any]) -> float:
    """What the rule's learning rate is proportional to with these parameters."""
    rule = REGRESSION if "label_bounds" in parameters else CLASSIFICATION
    rows, noise = parameters["nominal_rows"], parameters["noise_multiplier"] / parameters.get("sampling_rate", 1.0)
    steps = parameters["steps"] or rule.steps_for(rows, noise)
    return rule.reach_for(rows, math.sqrt(steps) / noise) / math.ceil(steps)


def _carried(drawn: dict[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """A rate that was searched, by the factor by which the rule's own changes; what the rule decides follows it."""
    if drawn.get("learning_rate") is None:
        return drawn
    return {**drawn, "learning_rate": min(float(drawn["learning_rate"]) * _rate(after) / _rate(before), 1e6)}


LEARNERS.register("dp-sgd")(
    StudyLearner(
        DPSGDClassification,
        "noise_multiplier",
        priced=frozenset({"sampling_rate", "steps"}),
        regressor=DPSGDRegression,
        carry=_carried,
    )
)
