"""What the designs of a study can be expected to reach, from public facts alone, before a row is read.

How hard a table is cannot be known without its rows. What can be said is by how much a search has differed from one
default run at the same total on tables that were measured, by n mu, the public number of rows times the Gaussian
differential privacy parameter of the total, and what noise has cost one run, by n mu for each weight of a linear model.
The figures are those of forecast.json, which `python -m benchmarks.planner` writes.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpselect.errors import StudyError
from dpselect.searching.design import design_names
from dpselect.study.schema import Study
from dpselect.study.validate import Settled, StudyPaths, validate

__all__ = [
    "SIGNALS",
    "SIGNALS_A_WEIGHT",
    "forecast_study",
    "search_loss_warning",
    "unsearched_warning",
]

SIGNALS: Final = (200.0, 800.0, 5000.0)
"""The ends of the groups of n mu."""
SIGNALS_A_WEIGHT: Final = (1.0, 4.0, 16.0, 64.0)
"""The ends of the groups of n mu over the number of weights."""
_UNLIKE: Final = frozenset({"learner", "map", "hidden_units"})
"""Parameters whose choices really differ."""

_NOISE: Final = 0.005
"""Smaller differences are those of what was measured."""
_FIGURES: Final = ("median", "low", "high", "releases")
_RULE: Final = {
    "one-run": "the study names nothing to choose from, and one run has all rows and the whole total",
    "portfolio": "a few candidates that really differ, and signals enough to tell which is best",
    "two-stage": "the study has a [refit] table, which asks for a second stage",
    "one-stage": "what the space is of is neither a few unlike candidates nor what a rule knows",
}

_LEFT: Final = (
    "what the study names to choose from is chosen by a rule, or is alike, or the signals are too few for trials to "
    "tell it apart"
)


def forecast_study(study: Study, *, base_folder: Path, folder: Path | None = None) -> dict[str, Any]:
    """Return what each design can be expected to gain over one default run. No row is read.

    Args:
        study: the parsed study, with epsilon, a delta above 0 and `nominal_rows`.
        base_folder: the folder where the study's relative data paths start.
        folder: the output folder, in place of the study's own. By default the study's.

    Returns:
        A JSON-able and public dictionary: the gain of each design, the one the study would take and why, and the
            measurements they come from.

    Raises:
        StudyError: if the study is not good, as in `check_study`. Also if it lacks epsilon, a delta above 0 or a number
            of rows: no measurement applies then.
        ArgumentError: for values out of range, as in `check_study`.
    """
    settled = validate(study, StudyPaths.of(study, base_folder, folder))
    privacy, size, weights = study.privacy, settled.signals, _weights(settled)
    if size is None:
        raise StudyError(
            "privacy: a forecast takes epsilon, a delta above 0, and nominal_rows, a public number of rows"
        )
    found, task = _measured(), study.data.task
    losses = [each for each in found["losses"] if each["task"] == task]
    loss = _group(losses, size / weights, SIGNALS_A_WEIGHT)
    return {
        "study": study.name,
        "task": task,
        "rows": privacy.nominal_rows,
        "person": study.person,
        "columns": len(settled.columns),
        "signals": size,
        "weights": weights,
        "epsilon": privacy.epsilon,
        "delta": privacy.delta,
        "loss_to_noise": None if loss is None else {key: loss[key] for key in _FIGURES},
        "space": _kind(study),
        "designs": [_gain(study, design, size) for design in design_names()],
        "design": settled.design,
        "why": _why(study, settled.design),
        "measured": {key: found[key] for key in ("made_by", "date", "tables")},
    }


def unsearched_warning(settled: Settled) -> str | None:
    """What is to be said of parts of a space that the rule does not search; None where it leaves none out."""
    if not settled.unsearched:
        return None
    return (
        f"{', '.join(settled.unsearched)} under [space] is not searched: from public facts one run with all of the "
        'total is expected to be better (search.design = "one-stage" searches anyway)'
    )


def search_loss_warning(settled: Settled) -> str | None:
    """What is to be said before anything is spent, where searches like this one lost; None where they did not."""
    found = {} if settled.signals is None else _gain(settled.study, settled.design, settled.signals)
    if found.get("median") is None or found["median"] >= -_NOISE:
        return None
    score = "R2" if settled.study.data.task == "regression" else "accuracy"
    low, median, high = (f"{1000 * found[key]:+.0f}" for key in ("low", "median", "high"))
    return (
        f"{settled.design} searches for {_kind(settled.study)} on measured tables with as many rows for their epsilon "
        f"gained {median} thousandths of {score} in the median ({low} to {high} without a tenth at either end) over "
        "one default run, which a study without [space] and [repetitions] is (dpselect tune --forecast)"
    )


def _why(study: Study, design: str) -> str:
    """Why the study has this design, by the rule that stands in docs/reference/study-file.md."""
    if study.search.design != "auto" or study.repetitions:
        return "the study says so"
    return _LEFT if design == "one-run" and study.space else _RULE.get(design, "the rule chose it")


def _weights(settled: Settled) -> int:
    """Numbers of a linear model of the encoded columns."""
    return settled.recipe.features * max(1, len(settled.study.data.target.classes))


def _kind(study: Study) -> str:
    """What the space is of; without one what a search would be for."""
    return "maps" if not study.space or set(study.space) & _UNLIKE else "rates"


def _gain(study: Study, design: str, size: float) -> dict[str, Any]:
    """Over one default run, which gains nothing over itself; None where nothing like it was measured."""
    if design == "one-run":
        return {"design": design, "median": 0.0, "low": 0.0, "high": 0.0, "releases": None}
    asked = {"task": study.data.task, "design": design, "space": _kind(study)}
    known = [each for each in _measured()["gains"] if asked.items() <= each.items()]
    group = _group(known, size, SIGNALS) or {"median": None, "low": None, "high": None, "releases": 0}
    return {"design": design, **{key: group[key] for key in _FIGURES}}


def _group(known: list[dict[str, Any]], value: float, ends: tuple[float, ...]) -> dict[str, Any] | None:
    place = int(np.searchsorted(ends, value, side="right"))
    return next((each for each in known if each["group"] == place), None)


@cache
def _measured() -> dict[str, Any]:
    ours = files("dpselect.study") / "forecast.json"
    return json.loads(ours.read_text(encoding="utf-8"))  # decodes: a file of this package
