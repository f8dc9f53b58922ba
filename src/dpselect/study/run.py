"""A study from its file to its release, as one pass: every step takes what the one before returned.

`settle` and `price` know public facts alone, so that whatever they refuse is refused before a row is read, and whatever
`open_rows` refuses before anything is charged. `dpselect tune --check` is the first three steps.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from dpselect.accounting.planning.search_prices import SearchPrice
from dpselect.numerics import rounded_up
from dpselect.privacy import Adjacency
from dpselect.randomness import RandomSource
from dpselect.storage import key_place
from dpselect.study.forecast import left_unsearched, lost_by_searching
from dpselect.study.opened import Opened, open_rows
from dpselect.study.prepared import prepared
from dpselect.study.priced import Price, admit, price
from dpselect.study.schema import Study
from dpselect.study.searched import Watching, search
from dpselect.study.settled import Place, Settled, settle
from dpselect.study.shown import misleading
from dpselect.study.written import read_release, write

__all__ = ["StudyRun", "check_study", "run_study"]

# what is logged is public: never a count of rows or trials, a score, a key, or the path of one
_LOG = logging.getLogger("dpselect.study")
_UNLIKE: Final = frozenset({"map", "hidden_units"})


@dataclass(frozen=True)
class StudyRun:
    """What a finished study released, and where."""

    folder: Path
    release: dict[str, Any]
    key_variable: str | None


def run_study(
    study: Study,
    *,
    base_folder: Path,
    folder: Path | None = None,
    resume: bool = False,
    random: RandomSource | None = None,
    progress: Callable[[float], None] | None = None,
    operator_progress: Callable[[int, int], None] | None = None,
    stage: Callable[[str], None] | None = None,
) -> StudyRun:
    """Tune the study's learner on its data and write the release to its folder.

    `base_folder` is where the study's relative data paths start; `folder` overrides the study's output folder, which
    is relative to the working directory. `random` is a keyed source in tests only. `stage` is called when one begins:
    "finding the price", "reading the rows", then "searching" or, where the number of runs is public, "training".

    Raises `StudyError` before a row is read, `ContentError` before anything is drawn or charged, `BudgetError` when
    the budget does not allow the search. Until the search begins nothing is written, not even the folder.
    """
    begins = stage or _silent
    begins("finding the price")
    settled = settle(study, _place(study, base_folder, folder, resume))
    priced = admit(price(settled))
    _LOG.info("study %r costs epsilon %.6g at delta %g", study.name, priced.price.epsilon, priced.price.delta)
    for said in (left_unsearched(study, settled), lost_by_searching(settled)):
        if said is not None:
            _LOG.warning("note: %s", said)
    begins("reading the rows")
    opened = open_rows(priced)
    _warn_of_bounds(opened)
    run = prepared(opened)
    begins("searching" if settled.design in ("one-stage", "two-stage") else "training")
    watching = Watching(progress, operator_progress, random)
    # the tuner has it written, between the last trial and the end of its key
    found = search(priced, run, write=partial(write, opened), watching=watching)
    return StudyRun(settled.place.folder, read_release(settled.place.folder), found.key_variable)


def check_study(study: Study, *, base_folder: Path, folder: Path | None = None, resume: bool = False) -> dict[str, Any]:
    """Everything that can be checked without reading a row, and the price. Draws, charges and makes nothing.

    Raises what `run_study` would: `StudyError`, `ArgumentError`, `BudgetError` when a total cannot be met or the ledger
    has too little left. What it returns is JSON-able and public.
    """
    settled = settle(study, _place(study, base_folder, folder, resume))
    priced = admit(price(settled))
    settled, found = priced.settled, priced.price
    if study.output.key_variable is not None:
        key_place(study.output.key_variable).check()
    recipe, law, bought = settled.recipe, settled.law, found.purchase
    notes = (
        misleading(settled.study),
        left_unsearched(study, settled),
        _pays(settled, found),
        lost_by_searching(settled),
        _unmeasured(settled),
    )
    return {
        "study": study.name,
        "epsilon": found.epsilon,
        "delta": found.delta,
        "adjacency": study.privacy.adjacency.value,
        "theorem": found.search.statement(delta=found.delta).theorem,
        "single_run_epsilon": found.single.epsilon(found.delta),
        "task": study.data.task,
        "design": settled.design,
        "learner": study.learner.name,
        "parameters": settled.settings,
        "metric": settled.study.metric if settled.scored else None,
        "score_released": settled.releases_score,
        "noise": {recipe.noise_name: recipe.noise_parameter(found.noise)},
        "candidates": _candidates(settled, found),
        "choice_epsilon": None if found.portfolio is None else found.portfolio.choice.epsilon,
        "stages": _stages(settled, found),
        "score_epsilon": found.score_epsilon,
        "repetitions": law.describe(),
        "mean_runs": law.mean,
        "runs_99": law.quantile(0.99),
        "max_runs": law.limit,
        "feature_columns": len(settled.columns),
        "preparation": None if bought is None else bought.describe(study.privacy.nominal_rows, found.delta),
        "notes": [said for said in notes if said is not None],
    }


def _silent(stage: str) -> None:
    """Nobody is told."""


def _warn_of_bounds(opened: Opened) -> None:
    """Said before anything is drawn or charged. The number of rows is a declared figure, or public by the adjacency."""
    privacy, purchase = opened.priced.settled.study.privacy, opened.priced.price.purchase
    rows = len(opened.rows.labels) if privacy.adjacency is Adjacency.REPLACE_ONE else privacy.nominal_rows
    said = None if purchase is None else purchase.too_few(rows)
    if said is not None:
        _LOG.warning("warning: %s", said)


def _candidates(settled: Settled, found: Price) -> list[dict[str, Any]]:
    """Those of a portfolio, with the noise that each has."""
    noises = () if found.portfolio is None else found.portfolio.noises
    return [
        {"learner": one.recipe.kind, **one.parameters, one.recipe.noise_name: one.recipe.noise_parameter(noise)}
        for one, noise in zip(settled.candidates, noises, strict=True)
    ]


def _stages(settled: Settled, found: Price) -> list[dict[str, Any]] | None:
    """What each of two stages costs by itself; together they cost less than the sum."""
    if found.second is None:
        return None
    first, second = SearchPrice(found.parts, settled.law), found.second
    noises = (settled.recipe.noise_parameter(found.noise), settled.recipe.noise_parameter(second.noise))
    epsilons = (first.epsilon(found.delta), second.guarantee.epsilon(found.delta))
    return [
        {"epsilon": epsilon, "noise": {settled.recipe.noise_name: noise}}
        for epsilon, noise in zip(epsilons, noises, strict=True)
    ]


def _unmeasured(settled: Settled) -> str | None:
    if settled.releases_score or settled.study.test is not None:
        return None
    return "nothing will say how good the model is: [validation] keeps some rows for a figure, [test] names public rows"


def _pays(settled: Settled, found: Price) -> str | None:
    """What a search pays beside one run, where a rule knows what it looks for: rates and strengths, but not maps."""
    if settled.design != "one-stage" or set(settled.space.describe()) & _UNLIKE:
        return None
    rows = " and all the rows" if settled.study.validation.data == "private" else ""
    one, alone = (rounded_up(each, digits=4) for each in (found.single.epsilon(found.delta), found.epsilon))
    return (
        f"a run of this search is trained at epsilon {one}; one run alone, which a study without [space] and "
        f"[repetitions] is, would have all of {alone}{rows}"
    )


def _place(study: Study, base: Path, folder: Path | None, resume: bool) -> Place:
    return Place(base, Path(study.output.folder) if folder is None else folder, resume)
