"""A study as far as it can be checked without a row: the first three steps of `run_study`, and what they found."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from dpselect.accounting.planning.search_prices import SearchPrice
from dpselect.numerics.digits import rounded_up
from dpselect.storage.keys import key_place
from dpselect.study.expected import expected_figure, figure_warning
from dpselect.study.forecast import search_loss_warning, unsearched_warning
from dpselect.study.in_database.reasons import rows_note
from dpselect.study.price import Price, check_budget, price
from dpselect.study.render import accuracy_warning, class_weights_warning
from dpselect.study.schema import Study
from dpselect.study.validate import Settled, StudyPaths, validate

__all__ = ["check_study"]

_UNLIKE: Final = frozenset({"map", "hidden_units"})


def check_study(study: Study, *, base_folder: Path, folder: Path | None = None, resume: bool = False) -> dict[str, Any]:
    """Return everything about a study that can be checked without reading a row, and its price.

    Draws, charges and makes nothing.

    Args:
        study: the parsed study. Public.
        base_folder: the folder where the study's relative data paths start.
        folder: the output folder, in place of the study's own. By default the study's.
        resume: check for a search that is continued, as in `run_study`.

    Returns:
        A JSON-able and public dictionary: epsilon and delta of the whole, design, learner, metric, noise, number of
            runs, notes and the like.

    Raises:
        StudyError: what `run_study` would raise for this study.
        ArgumentError: for values out of range.
        BudgetError: when a total cannot be met or the ledger has too little left.
    """
    settled = validate(study, StudyPaths.of(study, base_folder, folder, resume=resume))
    priced = check_budget(price(settled))
    settled, found = priced.settled, priced.price
    if study.output.key_variable is not None:
        key_place(study.output.key_variable).check()
    recipe, law, bought = settled.recipe, settled.law, found.purchase
    notes = (
        accuracy_warning(settled.study),
        class_weights_warning(settled.study),
        unsearched_warning(settled),
        _pays(settled, found),
        search_loss_warning(settled),
        _unmeasured(settled),
        rows_note(priced),
        figure_warning(settled.study, settled.metric, priced.score_noise, law.mean) if settled.shows_score else None,
    )
    return {
        "study": study.name,
        "epsilon": found.epsilon,
        "delta": found.delta,
        "adjacency": study.privacy.adjacency.value,
        "person": study.person,
        "theorem": found.search.statement(delta=found.delta).theorem,
        "single_run_epsilon": found.single.epsilon(found.delta),
        "task": study.data.task,
        "design": settled.design,
        "learner": settled.study.learner.name,
        "parameters": settled.settings,
        "metric": settled.study.metric if settled.scored else None,
        "score_released": settled.releases_score,
        "noise": recipe.noise_setting(found.noise),
        "candidates": _candidates(settled, found),
        "choice_epsilon": None if found.portfolio is None else found.portfolio.choice.epsilon,
        "stages": _stages(settled, found),
        "score_epsilon": found.score_epsilon,
        "score_multiplier": found.score_multiplier,
        "expected_figure": expected_figure(settled.study, settled.metric, priced.score_noise, law.mean)
        if settled.shows_score
        else None,
        "repetitions": law.describe(),
        "mean_runs": law.mean,
        "runs_99": law.quantile(0.99),
        "max_runs": law.limit,
        "feature_columns": len(settled.columns),
        "preparation": None if bought is None else bought.describe(study.privacy.nominal_rows, found.delta),
        "cells": None if found.cells is None else found.cells.describe(found.delta),
        "declared": _declared(study),
        "notes": [said for said in notes if said is not None],
    }


def _declared(study: Study) -> list[str]:
    """The declared texts of cells, in words. A row with another text raises no error, and nothing tells of it."""
    said = []
    if study.data.classes:
        classes = ", ".join(map(repr, study.data.classes))
        said.append(f"labels {classes}; a row with another trains nothing")
    for name, column in study.data.columns.items():
        if column.categories is not None and not column.other:
            said.append(f"{name} {', '.join(map(repr, column.categories))}; another cell becomes zeros")
    return said


def _candidates(settled: Settled, found: Price) -> list[dict[str, Any]]:
    """Those of a portfolio, with the noise that each has."""
    noises = () if found.portfolio is None else found.portfolio.noises
    return [
        {"learner": one.recipe.kind, **one.parameters, **one.recipe.noise_setting(noise)}
        for one, noise in zip(settled.candidates, noises, strict=True)
    ]


def _stages(settled: Settled, found: Price) -> list[dict[str, Any]] | None:
    """The cost of each of two stages by itself. Together they cost less than the sum."""
    if found.second is None:
        return None
    first, second = SearchPrice(found.parts, settled.law).epsilon(found.delta), found.second
    return [
        {"epsilon": first, "noise": settled.recipe.noise_setting(found.noise)},
        {"epsilon": second.guarantee.epsilon(found.delta), "noise": settled.recipe.noise_setting(second.noise)},
    ]


def _unmeasured(settled: Settled) -> str | None:
    if settled.releases_score or settled.study.test is not None:
        return None
    kept = "[validation]" if settled.study.validation.data == "none" else '[validation] data = "private"'
    return f"nothing will say how good the model is: {kept} keeps some rows for a figure, [test] names public rows"


def _pays(settled: Settled, found: Price) -> str | None:
    """Compare a search with one run, if a rule knows its parameters: rates and strengths, but not maps."""
    if settled.design != "one-stage" or set(settled.space.describe()) & _UNLIKE:
        return None
    data = settled.study.validation.data
    rows = " and all the rows" if data == "private" else ""
    done = "trained and scored" if data == "training" else "trained"
    one, alone = (rounded_up(each, digits=4) for each in (found.single.epsilon(found.delta), found.epsilon))
    return (
        f"a run of this search is {done} at epsilon {one}; one run alone, which a study without [space] and "
        f"[repetitions] is, would have all of {alone}{rows}"
    )
