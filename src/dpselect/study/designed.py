"""Step 0 of a study: what it leaves open is filled in by rule, from public facts alone.

One run of the default learner has all of the rows and all of the budget. A search pays for the choice with noise, which
comes back only where its candidates really differ; so a study searches where it says what for (`[space]`), and is one
run where it does not. A few unlike candidates are a portfolio, each trained once.
"""

from __future__ import annotations

from typing import Any, Final

from dpselect.study.candidates import MOST_CANDIDATES, combinations
from dpselect.study.rules import ALONE, default_map, signals, smooth_map
from dpselect.study.schema import Study, Validation

__all__ = ["designed"]

_ONE_RUN: Final = {"law": "fixed", "count": 1}
_SEARCH: Final = {"law": "harmonic", "limit": 10}
_FIRST_STAGE: Final = {"law": "zero-truncated-poisson", "mean": 5.0}
_PORTFOLIO_SIGNALS: Final = 80.0
"""n mu from which a few candidates that really differ are better trained once each than drawn, on measured tables."""
_MANY_SIGNALS: Final = 5000.0
"""n mu from which noisy sums are a candidate for a table."""
_ALIKE: Final = frozenset({"direction", "cos4", "joint"})
"""Maps for smooth functions of the columns: a choice among them alone decides little."""


def designed(study: Study) -> Study:
    """The same study with its design, its law, its map and how it is scored; one that says them all is unchanged.

    Without `[space]` it is one run: all rows train, and none scores unless there is a `[validation]` table, whose noisy
    figure is then released. With a `[space]` of a few unlike candidates and rows enough it is a portfolio of them, and
    with another one a search of a harmonic number of runs. `[repetitions]` say a search themselves; with `[refit]` it
    is one in two stages.
    """
    asked = study.search.design
    if asked == "portfolio" and study.repetitions:
        return study  # it has been here
    if asked == "portfolio" or (asked == "auto" and _pays(study)):
        listed = study.space or _unlike(study)
        return _with(study, design="portfolio", space=listed, repetitions=_ONE_RUN, validation=_figure(study))
    if asked == "two-stage" or (asked == "auto" and study.space and "refit" in study.model_fields_set):
        scored = study.validation.model_copy(update={"release_score": False})
        return _with(study, design="two-stage", repetitions=study.repetitions or _FIRST_STAGE, validation=scored)
    if study.repetitions:
        return _with(study, design="one-run" if study.repetitions == _ONE_RUN and not study.space else "one-stage")
    if study.space:
        return _with(study, design="one-stage", repetitions=_SEARCH)
    filled = _with(study, design="one-run", repetitions=_ONE_RUN, validation=_figure(study))
    chosen = default_map(study)
    if chosen is not None:
        filled = filled.model_copy(update={"learner": study.learner.model_copy(update={"map": chosen})})
    return filled


def _pays(study: Study) -> bool:
    """Whether a portfolio is what this study, which names no design, should be: see docs/study-file.md."""
    listed, compared = combinations(study.space), study.validation
    if study.repetitions or "refit" in study.model_fields_set:
        return False
    if "learner" in study.space:
        return True  # which nothing else searches
    if listed is None or not 2 <= len(listed) <= MOST_CANDIDATES:
        return False
    if compared.data != "private" or compared.metric is not None:
        return False
    if {each.get("map") for each in listed} <= {None, *_ALIKE}:
        return False
    return (signals(study) or 0.0) >= _PORTFOLIO_SIGNALS


def _unlike(study: Study) -> dict[str, Any]:
    """The candidates of a portfolio that names none: the default first, and what is least like it."""
    told = study.learner.parameters
    if "image_shape" in told:
        choices, key = ["oriented-gradients", "standardized"], "map"
    elif (signals(study) or 0.0) >= _MANY_SIGNALS and set(told) <= ALONE:
        choices, key = ["dp-sgd", "ridge"], "learner"
    else:
        first = smooth_map(study)
        choices, key = [first, "joint" if first == "cos4" else "cos4"], "map"
    return {key: {"law": "categorical", "choices": choices}}


def _figure(study: Study) -> Validation:
    """Of one run nothing is scored where no `[validation]` table asks for a figure."""
    asked = study.validation
    return asked if "validation" in study.model_fields_set else asked.model_copy(update={"data": "none"})


def _with(study: Study, *, design: str, **filled: Any) -> Study:
    return study.model_copy(update={"search": study.search.model_copy(update={"design": design}), **filled})
