"""A study from its file to its release, as one pass: every step takes what the one before returned.

`validate` and `price` know public facts only, so they refuse before a row is read. `open_rows` refuses before anything
is charged. `dpselect tune --check` takes the first three steps (`check.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpselect.randomness import RandomSource
from dpselect.study.forecast import search_loss_warning, unsearched_warning
from dpselect.study.load import open_rows
from dpselect.study.price import check_budget, price
from dpselect.study.refit import followed, refit
from dpselect.study.render import class_weights_warning
from dpselect.study.schema import Study
from dpselect.study.search import search
from dpselect.study.split import prepared
from dpselect.study.validate import StudyPaths, validate
from dpselect.study.write import read_release, write
from dpselect.tuning import TuneResult

__all__ = ["StudyRun", "run_study"]

# what is logged is public: never a count of rows or trials, a score, a key, or the path of one
_LOG = logging.getLogger("dpselect.study")


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

    Until the search begins nothing is written, not even the folder.

    Args:
        study: the parsed study. Public.
        base_folder: the folder where the study's relative data paths start.
        folder: the output folder, relative to the working directory, in place of the study's own. By default the
            study's.
        resume: continue a search that was killed.
        random: a keyed source in tests only. By default the operating system's.
        progress: `progress(seconds)` is called about once a second, with public facts only.
        operator_progress: `operator_progress(done, total)` gets counts that reveal the number of runs, for the
            operator's eyes only.
        stage: called with the name of each stage when it begins. The names are "finding the price", "reading the rows",
            then "searching" or, if the number of runs is public, "training", then "writing the release".

    Returns:
        A `StudyRun`: the folder, the release as written there, and the environment variable of a key that you must
            drop.

    Raises:
        StudyError: if the study is not good, before a row is read.
        ContentError: for rows that cannot be used, before anything is drawn or charged.
        ArgumentError: for values out of range.
        BudgetError: when the budget does not allow the search.
    """
    begins = stage or (lambda _: None)
    begins("finding the price")
    settled = validate(study, StudyPaths.of(study, base_folder, folder, resume=resume))
    priced = check_budget(price(settled))
    _LOG.info("study %r costs epsilon %.6g at delta %g", study.name, priced.price.epsilon, priced.price.delta)
    for said in (class_weights_warning(settled.study), unsearched_warning(settled), search_loss_warning(settled)):
        if said is not None:
            _LOG.warning("note: %s", said)
    begins("reading the rows")
    opened = open_rows(priced)
    run = followed(opened, prepared(opened))
    begins("searching" if settled.study.search.kind.draws else "training")

    def release(result: TuneResult) -> None:
        begins("writing the release")
        write(opened, refit(opened, result), result)

    # the tuner calls it between the last trial and the end of its key
    watched = replace(settled.execution, progress=progress, operator_progress=operator_progress)
    found = search(priced, run, rows_digest=opened.rows.digest(), execution=watched, write=release, random=random)
    return StudyRun(settled.place.folder, read_release(settled.place.folder), found.key_variable)
