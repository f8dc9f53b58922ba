"""What of a study goes with a classification, what with a regression; what with one run, and what with a search."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpselect.searching.design import DESIGNS, design_names
from dpselect.study.metrics import METRICS
from dpselect.study.schema import Study
from dpselect.study.schema_data import Data
from dpselect.tables.categories import category

__all__ = ["design_clashes", "task_clashes"]


def task_clashes(study: Study) -> Iterator[tuple[str, str]]:
    """What does not go with the task of a study, key by key: (the key, what is wrong with it)."""
    data = study.data
    if data.task == "regression":
        for key, declared in (("classes", data.classes), ("class_shares", data.class_shares)):
            if declared is not None:
                yield f"data.{key}", 'goes with task = "classification"'
        if "class_weights" in study.learner.parameters:
            yield "learner.class_weights", 'goes with task = "classification"'
        if data.label_bounds is None:
            yield "data.label_bounds", "needed for a regression: the least and the largest label, public"
        elif not _in_order(*data.label_bounds):
            yield "data.label_bounds", "must be two numbers between -1e300 and 1e300, the lower one first"
    else:
        if data.label_bounds is not None:
            yield "data.label_bounds", 'goes with task = "regression"'
        yield from _classes(data)
    fitting = [name for name in METRICS if METRICS.facts(name).get("task", data.task) == data.task]
    if study.metric not in fitting:
        yield "validation.metric", f"{study.metric} is not for a {data.task}; there are {', '.join(fitting)}"


def design_clashes(study: Study) -> Iterator[tuple[str, str]]:
    """What does not go with one run, or with a search, key by key as `task_clashes` has it."""
    kind = study.search.kind
    searched = [key for key, table in (("space", study.space), ("repetitions", study.repetitions)) if table]
    chosen, follows = study.search.design != "auto", kind.follows or "refit" in study.model_fields_set
    if "learner" in study.space and (follows or (kind.draws if chosen else "repetitions" in searched)):
        yield "space.learner", 'only a portfolio chooses among learners: take search.design = "portfolio"'
        return
    if follows:
        yield from _followed(study)
    if kind.tries or (kind.draws and "learner" in study.space):
        yield from _tried(study)
        return
    if not kind.draws:
        for key in searched:
            yield key, 'goes with a search: leave it out, or take search.design = "one-stage"'
    elif not follows and (chosen or "repetitions" in searched) and "space" not in study.model_fields_set:
        yield "space", "needed for a search: the parameters that a run draws; without [repetitions] it is one run"
    yield from _compared(study, one_run=not searched and not (chosen and kind.draws))


def _compared(study: Study, *, one_run: bool) -> Iterator[tuple[str, str]]:
    if study.space and study.validation.data == "none":
        yield "validation.data", "a search compares runs: private, training or public"
    if one_run and study.validation.data == "training":
        yield "validation.data", 'of one run nothing is compared, and a figure needs rows aside: "private"'


def _tried(study: Study) -> Iterator[tuple[str, str]]:
    if study.repetitions:
        yield "repetitions", "a portfolio tries each candidate once: leave it out"
    if study.validation.data in ("public", "training"):
        yield "validation.data", 'a portfolio chooses by the rows that train it: "private" or "none"'
    if study.privacy.noise_multiplier is not None:
        yield "privacy.noise_multiplier", "a portfolio has a noise for each candidate: give epsilon"


def _followed(study: Study) -> Iterator[tuple[str, str]]:
    if study.search.design != "auto" and not study.search.kind.follows:
        design = next(name for name in design_names() if DESIGNS[name].follows)
        yield "refit", f'goes with a search in two stages: leave it out, or take search.design = "{design}"'
    if not study.space:
        yield "space", "needed for a search: the parameters that a run draws"
    if study.validation.release_score and "release_score" in study.validation.model_fields_set:
        yield "validation.release_score", "of a search in two stages the score is not that of the model released"
    if study.privacy.noise_multiplier is not None:
        yield "privacy.noise_multiplier", "each of two stages has a noise of its own: give epsilon"


def _in_order(low: float, high: float) -> bool:
    return -1e300 <= low < high <= 1e300 and high / 2.0 - low / 2.0 > 0.0


def declared_shares(data: Data) -> list[float | None]:
    """The declared share of each class. The share of one class that is not named follows from the others."""
    declared = {category(name): share for name, share in (data.class_shares or {}).items()}
    shares = [declared.get(category(name)) for name in data.classes or ()]
    rest = max(0.0, 1.0 - sum(declared.values()))
    return [rest if share is None else share for share in shares] if shares.count(None) == 1 else shares


def _classes(data: Data) -> Iterator[tuple[str, str]]:
    if data.classes is None:
        yield (
            "data.classes",
            'needed: every class that may occur, public (or task = "regression", with label_bounds); '
            'write classes = ["no", "yes"]',
        )
        return
    known, shares = [category(each) for each in data.classes], data.class_shares or {}
    unknown = [name for name in shares if category(name) not in known]
    if unknown:
        yield "data.class_shares", f"{unknown[0]!r} is none of data.classes, {', '.join(map(repr, data.classes))}"
    if not math.fsum(shares.values()) <= 1.0 + 1e-9:
        yield "data.class_shares", "the shares add up to more than 1"
