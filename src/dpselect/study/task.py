"""What of a study goes with a classification, what with a regression; what with one run, and what with a search."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dpselect.study.cells import category

__all__ = ["DEFAULT_METRICS", "design_clashes", "task_clashes"]

DEFAULT_METRICS: Final = {"classification": "accuracy", "regression": "absolute-error"}


def task_clashes(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What does not go with the task of a study, key by key: (the key, what is wrong with it).

    `document` is a study as it was read: whatever has another form than it should is left to the schema.
    """
    data = _table(document, "data")
    task = data.get("task", "classification")
    if task == "regression":
        for key in ("classes", "class_shares"):
            if key in data:
                yield f"data.{key}", 'goes with task = "classification"'
        if "class_weights" in _table(document, "learner"):
            yield "learner.class_weights", 'goes with task = "classification"'
        yield from _bounds(data)
    elif task == "classification":
        if "label_bounds" in data:
            yield "data.label_bounds", 'goes with task = "regression"'
        yield from _classes(data)
    yield from _metric(_table(document, "validation").get("metric"), task)


def design_clashes(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What does not go with one run, or with a search, key by key as `task_clashes` has it."""
    design = _table(document, "search").get("design", "auto")
    searched = [key for key in ("space", "repetitions") if document.get(key)]
    compared = _table(document, "validation").get("data")
    refit, learners = "refit" in document, "learner" in _table(document, "space")
    if learners and (refit or design in ("one-stage", "two-stage") or (design == "auto" and "repetitions" in searched)):
        yield "space.learner", 'only a portfolio chooses among learners: take search.design = "portfolio"'
        return
    if refit and design in ("one-run", "portfolio", "one-stage"):
        yield "refit", 'goes with a search in two stages: leave it out, or take search.design = "two-stage"'
    if refit or design == "two-stage":
        yield from _two_stages(document)
    if design == "one-run":
        for key in searched:
            yield key, 'goes with a search: leave it out, or take search.design = "one-stage"'
    elif design == "portfolio" or learners:
        if "repetitions" in searched:
            yield "repetitions", "a portfolio tries each candidate once: leave it out"
        if compared in ("public", "training"):
            yield "validation.data", 'a portfolio chooses by the rows that train it: "private" or "none"'
        return
    elif (
        design != "two-stage" and not refit and (design == "one-stage" or "repetitions" in searched)
    ) and "space" not in document:
        yield "space", "needed for a search: the parameters that a run draws; without [repetitions] it is one run"
    if "space" in searched and compared == "none":
        yield "validation.data", "a search compares runs: private, training or public"
    if compared == "training" and not searched and design not in ("one-stage", "two-stage"):
        yield "validation.data", 'of one run nothing is compared, and a figure needs rows aside: "private"'


def _two_stages(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not document.get("space"):
        yield "space", "needed for a search: the parameters that a run draws"
    if _table(document, "validation").get("release_score"):
        yield "validation.release_score", "of a search in two stages the score is not that of the model released"
    if "noise_multiplier" in _table(document, "privacy"):
        yield "privacy.noise_multiplier", "each of two stages has a noise of its own: give epsilon"


def _table(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = document.get(name)
    return found if isinstance(found, Mapping) else {}


def _bounds(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "label_bounds" not in data:
        yield "data.label_bounds", "needed for a regression: the least and the largest label, public"
        return
    bounds = data["label_bounds"]
    if not isinstance(bounds, Sequence) or not all(type(each) in (int, float) for each in bounds) or len(bounds) != 2:
        return
    low, high = bounds
    if not (-1e300 <= low < high <= 1e300) or not float(high) / 2.0 - float(low) / 2.0 > 0.0:
        yield "data.label_bounds", "must be two numbers between -1e300 and 1e300, the lower one first"


def _classes(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "classes" not in data:
        yield "data.classes", 'needed: every class that may occur, public (or task = "regression", with label_bounds)'
        return
    classes, shares = data["classes"], data.get("class_shares")
    if not isinstance(classes, Sequence) or not all(type(each) in (str, bool, int, float) for each in classes):
        return
    known = [category(each) for each in classes]
    if not isinstance(shares, Mapping) or not all(type(each) in (int, float) for each in shares.values()):
        return
    unknown = [name for name in shares if category(name) not in known]
    if unknown:
        yield "data.class_shares", f"{unknown[0]!r} is none of data.classes, {', '.join(map(repr, classes))}"
    if not math.fsum(shares.values()) <= 1.0 + 1e-9:
        yield "data.class_shares", "the shares add up to more than 1"


def _metric(name: Any, task: Any) -> Iterator[tuple[str, str]]:
    from dpselect.study.metrics import METRICS

    if not isinstance(name, str) or name not in METRICS or METRICS.facts(name).get("task", task) == task:
        return
    fitting = [each for each in METRICS if METRICS.facts(each).get("task", task) == task]
    yield "validation.metric", f"{name} is not for a {task}; there are {', '.join(fitting)}"
