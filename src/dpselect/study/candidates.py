"""The candidates of a portfolio: a few unlike ways to train, which a study's space lists, each with its recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpselect.accounting.planning.portfolio import MOST_CANDIDATES
from dpselect.errors import StudyError
from dpselect.preprocessing import MAPS
from dpselect.study.columns.column import Column
from dpselect.study.design import combinations, default_map
from dpselect.study.learners import LEARNERS
from dpselect.study.learners.mapped import map_parameters
from dpselect.study.learners.recipe import Recipe, learner_keys, recipe_of
from dpselect.study.schema import Learner, Study

__all__ = ["PortfolioCandidate", "candidates_of"]


@dataclass(frozen=True)
class PortfolioCandidate:
    """The parameters that tell a candidate from the others, and how it is trained. Public."""

    parameters: Mapping[str, Any]
    recipe: Recipe


def candidates_of(
    study: Study, *, nominal_rows: float | None, columns: Mapping[str, Column] | None
) -> tuple[PortfolioCandidate, ...]:
    """The candidates of a portfolio, the default first. `columns` are the public facts about the features.

    Raises `StudyError` for a space that does not list two to four.
    """
    listed = combinations(study.space)
    if listed is None:
        raise StudyError('space: a portfolio tries every candidate once, so each distribution must be "categorical"')
    if not 2 <= len(listed) <= MOST_CANDIDATES:
        raise StudyError(
            f"space: a portfolio is of 2 to {MOST_CANDIDATES} candidates, and this space has {len(listed)}: each "
            'of them has its share of the total; for more take search.design = "one-stage"'
        )
    if any(one in listed[:place] for place, one in enumerate(listed)):
        raise StudyError("space: two candidates are the same")
    for key in study.space:
        if key in study.learner.parameters:
            raise StudyError(f"space.{key}: is under [learner] too")
    known = frozenset[str]().union(*(_known(study, found) for found in listed))
    for key in study.learner.parameters:
        if key not in known:
            raise StudyError(f"learner.{key}: unknown key; the candidates have {', '.join(sorted(known))}")
    return tuple(_candidate(study, found, nominal_rows, columns) for found in listed)


def _candidate(
    study: Study, found: Mapping[str, Any], nominal_rows: float | None, columns: Mapping[str, Column] | None
) -> PortfolioCandidate:
    """One combination, as a study that trains it alone: of the learner's table what it knows."""
    known = _known(study, found)
    name = found.get("learner", study.learner.name)
    shared = {key: value for key, value in study.learner.parameters.items() if key in known}
    told = {key: value for key, value in found.items() if key != "learner"}
    alone = study.model_copy(update={"learner": Learner(name=name, **shared, **told), "space": {}})
    told |= default_map(alone, several="learner" in found)
    alone = alone.model_copy(update={"learner": Learner(name=name, **shared, **told)})
    try:
        recipe = recipe_of(alone, nominal_rows=nominal_rows, columns=columns)
    except StudyError as error:
        words = ", ".join(f"{key} = {value!r}" for key, value in found.items())
        raise StudyError(f"space, the candidate with {words}: {error}") from None
    return PortfolioCandidate({"learner": name, **told} if "learner" in found else told, recipe)


def _known(study: Study, found: Mapping[str, Any]) -> frozenset[str]:
    """The keys of the learner's table that mean something to this combination."""
    name = found.get("learner", study.learner.name)
    if not isinstance(name, str) or name not in LEARNERS:
        raise StudyError(f"space.learner: no such learner: {name!r}; one of {', '.join(LEARNERS)}")
    table = {**study.learner.parameters, **found}
    named = table.get("map", "oriented-gradients")  # which is the default of images
    maps = [named] if isinstance(named, str) and named in MAPS else []
    return learner_keys(LEARNERS[name], study.data.task) | map_parameters(*maps)
