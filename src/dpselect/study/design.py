"""Step 0 of a study: what it leaves open is filled in by rule, from public facts alone.

One run of the default learner has all of the rows and all of the budget. A search pays for the choice with noise, which
comes back only if its candidates really differ and trials can tell them apart. So a study that names no design is one
run if it names nothing to choose from, or nothing by which a search would win. A few unlike candidates are a portfolio,
each tried once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from dpselect.accounting.planning.portfolio import MOST_CANDIDATES, trial_shares
from dpselect.accounting.planning.search_prices import SearchPrice, least_noise
from dpselect.learners.balanced_weights import BALANCED
from dpselect.privacy import Adjacency, gaussian
from dpselect.repetitions import Fixed
from dpselect.searching.design import DESIGNS, listed
from dpselect.searching.stages import FIRST_STAGE
from dpselect.study.columns.column import TEXT
from dpselect.study.learners.recipe import BALANCING
from dpselect.study.schema import DEFAULT_FIGURES, Study, Validation
from dpselect.study.task import declared_shares

__all__ = ["ONE_RUN", "combinations", "default_map", "designed", "signals"]

ONE_RUN: Final = {"law": "fixed", "count": 1}
_SEARCH: Final = {"law": "harmonic", "limit": 10}
_FEW_SIGNALS: Final = 200.0
"""n mu below which a classification has directions beside cosines."""
_TRIAL_SIGNALS: Final = 200.0
"""n mu of the first trial from which trials tell candidates apart that really differ, on measured tables.
Figures: `python -m benchmarks.portfolio_rule`."""
_MANY_SIGNALS: Final = 5000.0
"""n mu from which noisy sums are a candidate for a table."""
_ALIKE: Final = frozenset({"direction", "cos4", "joint"})
"""Maps for smooth functions of the columns: a choice among them alone decides little."""
_ALONE: Final = frozenset({"class_weights"})
"""Keys of the learner's table that go with the default of all others."""
_WITH_WEIGHTS: Final = frozenset({"boosted-trees", "dp-sgd", "naive-bayes", "ridge"})
"""Learners that take class weights."""
_IMAGES: Final = frozenset({"image_shape", "cell", "orientations"})
"""Keys that say that rows are images, and how their gradients are counted."""
_SIGNALS_OF_TREES: Final = {"classification": 1000.0, "regression": 1500.0}
"""n mu from which `boosted-trees` is the default. Figures: `python -m benchmarks.better_models --real`."""
_OF_LEAST_SQUARES: Final = frozenset({"map", "waves", "bins", "row_norm", "intercept_scale"})
"""Keys that leave a regression to the rule, which then takes `least-squares`."""
_SIGNALS_OF_LEAST_SQUARES: Final = 600.0
"""n mu from which `least-squares` is the default. Below, `dp-sgd` was better on four of five regressions."""
_BY_RULE: Final = {
    "dp-sgd": frozenset({"learning_rate", "clip_norm", "averaged_share", "intercept_scale", "momentum"}),
}
"""What a learner chooses by a rule, or what hardly matters beside it."""


def designed(study: Study) -> Study:
    """The same study with its design, its distribution of runs, its map and its scoring. Stated ones are unchanged.

    Without `[space]` it is one run: all rows train, and none scores unless there is a `[validation]` table, whose noisy
    score is then released. With a `[space]` of a few unlike candidates and enough rows it is a portfolio of them. With
    fewer rows, or with candidates that a rule can choose from, it is one run. With any other `[space]` it is a search
    of a harmonic number of runs. `[repetitions]` ask for a search, and with `[refit]` it is a search in two stages.
    """
    asked = study.search.design
    if asked == "auto" and study.space:
        asked, study = _planned(study)
    study = _with_class_weights(_with_learner(study))
    name = "one-stage" if asked == "auto" else asked
    kind = DESIGNS[name]
    if kind.tries:
        if study.repetitions:
            return study  # it has been here
        space = study.space or _unlike(study)
        return _with(study, design=name, space=space, repetitions=ONE_RUN, validation=_figure(study))
    if kind.follows:
        scored, first = study.validation.model_copy(update={"release_score": False}), FIRST_STAGE.describe()
        return _with(study, design=name, repetitions=study.repetitions or first, validation=scored)
    if study.space or study.repetitions not in ({}, ONE_RUN):
        return _with(study, design=name if kind.draws else "one-stage", repetitions=study.repetitions or _SEARCH)
    name = "one-run" if kind.draws else name
    if study.repetitions:
        return _with(study, design=name)
    learner = study.learner.model_copy(update=default_map(study))
    return _with(study, design=name, repetitions=ONE_RUN, validation=_figure(study), learner=learner)


def default_map(study: Study, *, several: bool = False) -> dict[str, str]:
    """The map of the rows, as a key of the learner's table, if that table leaves all to the rule. Empty otherwise.

    `several`: for one among several learners, each with the map that it is good with.
    """
    told = set(study.learner.parameters)
    if study.learner.name == "least-squares" and not told:
        return {"map": _smooth_map(study)}
    if study.learner.name == "dp-sgd" and told <= _ALONE | _IMAGES:
        return {"map": "oriented-gradients" if "image_shape" in told else _smooth_map(study)}
    if study.learner.name == "naive-bayes" and told <= _ALONE and not _all_text(study):
        return {"map": "bins"}  # which makes indicators of numbers
    return {"map": "bins"} if several and study.learner.name == "ridge" and told <= _ALONE else {}


def signals(study: Study) -> float | None:
    """n mu: the public number of rows times the Gaussian differential privacy parameter that the total allows a row.

    If the total is for a person with k rows, a row has one k-th of the parameter. None where one of them is not known.
    """
    privacy = study.privacy
    if privacy.nominal_rows is None or privacy.epsilon is None or privacy.delta == 0.0:
        return None
    noise = least_noise(
        "one run",
        lambda value: SearchPrice((gaussian(noise_multiplier=value),), Fixed(count=1)),
        epsilon=privacy.epsilon,
        delta=privacy.delta,
    )
    return privacy.nominal_rows / (noise * privacy.per_person)


def combinations(space: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]] | None:
    """Every combination of the choices of a space, those listed first before others. None if it is no list.

    >>> combinations({"map": {"law": "categorical", "choices": ["cos4", "joint"]}})
    [{'map': 'cos4'}, {'map': 'joint'}]
    """
    choices = {name: law.get("choices") if law.get("law") == "categorical" else None for name, law in space.items()}
    if not all(isinstance(each, (list, tuple)) and each for each in choices.values()):
        return None
    return listed(choices)


def _planned(study: Study) -> tuple[str, Study]:
    """The design of a study with a space that names none, and the study with what is left to choose from.

    See docs/reference/study-file.md.
    """
    compared = study.validation
    if "refit" in study.model_fields_set:
        return "two-stage", study
    if study.repetitions or compared.data != "private" or compared.metric is not None:
        return "one-stage", study  # which says how runs are compared
    known = _BY_RULE.get(study.learner.name, frozenset())
    space = {name: law for name, law in study.space.items() if name not in known}
    found, kept = combinations(space), study.model_copy(update={"space": space})
    if "learner" in space:
        return "portfolio", kept  # which nothing else searches
    if not space or found is None or len(found) > MOST_CANDIDATES:
        return ("one-stage", study) if space else ("one-run", kept)
    unlike, size = not {each.get("map") for each in found} <= {None, *_ALIKE}, signals(study)
    if size is None or not (unlike or set(space) == {"map"}):
        return "one-stage", study
    of_first = size * math.sqrt(trial_shares(len(found))[0])
    if unlike and len(found) > 1 and of_first >= _TRIAL_SIGNALS:
        return "portfolio", kept
    return "one-run", _first(study, found[0])


def _with_learner(study: Study) -> Study:
    """The study with the learner that the rule chooses, if it names none, and no key of another one.

    For one run on columns with free text that is `boosted-trees`, or `naive-bayes` for classes of texts alone. Without
    text and with enough signals it is `boosted-trees` for one run, which needs no map. With fewer it is `least-squares`
    for a label that is a number, and `dp-sgd` for classes, or for few signals at all.
    """
    keys, size, task = {*study.learner.parameters, *study.space}, signals(study), study.data.task
    if "name" in study.learner.model_fields_set or study.privacy.epsilon is None:
        return study
    added = study.privacy.adjacency is Adjacency.ADD_OR_REMOVE_ONE
    if keys <= _ALONE and _is_one_run(study) and _has_text(study):
        name = "naive-bayes" if task == "classification" and _all_text(study) else "boosted-trees"
    elif added and size is not None and size >= _SIGNALS_OF_TREES[task] and keys <= _ALONE and _is_one_run(study):
        name = "boosted-trees"
    elif task == "regression" and keys <= _OF_LEAST_SQUARES and not (size or math.inf) < _SIGNALS_OF_LEAST_SQUARES:
        name = "least-squares"
    else:
        return study
    return study.model_copy(update={"learner": study.learner.model_copy(update={"name": name})})


def _has_text(study: Study) -> bool:
    """Whether a declared column holds free text."""
    return any(column.kind == TEXT for column in study.data.columns.values())


def _all_text(study: Study) -> bool:
    """Whether every feature comes from a column of free text."""
    columns = study.data.columns.values()
    return study.data.bounds is None and all(column.kind == TEXT for column in columns)


def _is_one_run(study: Study) -> bool:
    """Whether the study asks for no search."""
    searched = study.space or study.repetitions or "refit" in study.model_fields_set
    return study.search.design in ("auto", "one-run") and not searched


def _with_class_weights(study: Study) -> Study:
    """The study with a weight for each class, one over its share, if its metric counts classes alike.

    Shares that are not all declared, and above 0, are estimated privately by one run, for a part of its cost. In other
    designs the rows keep equal weights then.
    """
    shares = declared_shares(study.data)
    told = "class_weights" in {*study.learner.parameters, *study.space} or study.learner.name not in _WITH_WEIGHTS
    if told or study.metric != "balanced-accuracy" or study.data.task != "classification":
        return study
    weights: Any = BALANCED
    if shares and all(shares):
        weights = {
            str(name): 1.0 / share for name, share in zip(study.data.classes or (), shares, strict=True) if share
        }
    elif study.learner.name not in BALANCING or not _is_one_run(study) or set(study.learner.parameters) - _IMAGES:
        return study
    return study.model_copy(update={"learner": study.learner.model_copy(update={"class_weights": weights})})


def _first(study: Study, told: Mapping[str, Any]) -> Study:
    """The study of one run of the first candidate. A smooth map is replaced by the one that the rule chooses."""
    smooth = default_map(_with_learner(study.model_copy(update={"space": {}}))) if told["map"] in _ALIKE else {}
    return study.model_copy(update={"space": {}, "learner": study.learner.model_copy(update={**told, **smooth})})


def _unlike(study: Study) -> dict[str, Any]:
    """The candidates of a portfolio that names none: the default first, and what is least like it."""
    told = study.learner.parameters
    if "image_shape" in told:
        choices, key = ["oriented-gradients", "standardized"], "map"
    elif (signals(study) or 0.0) >= _MANY_SIGNALS and set(told) <= _ALONE:
        choices, key = [study.learner.name, "ridge"], "learner"
    else:
        first = _smooth_map(study)
        choices, key = [first, "joint" if first == "cos4" else "cos4"], "map"
    return {key: {"law": "categorical", "choices": choices}}


def _smooth_map(study: Study) -> str:
    """The name of the map of numbers and categories for the default learner.

    For a classification with little signal, n mu below 200, directions beside cosines.
    """
    found = None if study.data.task == "regression" else signals(study)
    return "joint" if found is not None and found < _FEW_SIGNALS else "cos4"


def _figure(study: Study) -> Validation:
    """One run is scored only if a `[validation]` table asks for a figure, by a metric that suits few rows."""
    asked = study.validation
    if "validation" not in study.model_fields_set:
        return asked.model_copy(update={"data": "none"})
    return asked.model_copy(update={"metric": asked.metric or DEFAULT_FIGURES[study.data.task]})


def _with(study: Study, *, design: str, **filled: Any) -> Study:
    return study.model_copy(update={"search": study.search.model_copy(update={"design": design}), **filled})
