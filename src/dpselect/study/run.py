"""A study from its file to its release, as one pass: every step takes what the one before returned.

`settle` and `price` know public facts alone, so their refusals come before a row is read. Refusals of `open_rows` come
before anything is charged. `dpselect tune --check` is the first three steps (`checked`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpselect.randomness import RandomSource
from dpselect.study.forecast import left_unsearched, lost_by_searching
from dpselect.study.opened import open_rows
from dpselect.study.priced import admit, price
from dpselect.study.refitted import followed, refit
from dpselect.study.schema import Study
from dpselect.study.searched import search
from dpselect.study.settled import Place, settle
from dpselect.study.shown import unweighted
from dpselect.study.split import prepared
from dpselect.study.written import read_release, write
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

    `base_folder` is where the study's relative data paths start; `folder` overrides the study's output folder, which
    is relative to the working directory. `random` is a keyed source in tests only. `stage` is called when one begins:
    "finding the price", "reading the rows", then "searching" or, where the number of runs is public, "training".

    Raises `StudyError` before a row is read, `ContentError` before anything is drawn or charged, `BudgetError` when
    the budget does not allow the search. Until the search begins nothing is written, not even the folder.
    """
    begins = stage or (lambda _: None)
    begins("finding the price")
    settled = settle(study, Place.of(study, base_folder, folder, resume=resume))
    priced = admit(price(settled))
    _LOG.info("study %r costs epsilon %.6g at delta %g", study.name, priced.price.epsilon, priced.price.delta)
    for said in (unweighted(settled.study), left_unsearched(settled), lost_by_searching(settled)):
        if said is not None:
            _LOG.warning("note: %s", said)
    begins("reading the rows")
    opened = open_rows(priced)
    run = followed(opened, prepared(opened))
    begins("searching" if settled.study.search.kind.draws else "training")

    def release(result: TuneResult) -> None:
        write(opened, refit(opened, result), result)

    # the tuner calls it between the last trial and the end of its key
    watched = replace(settled.execution, progress=progress, operator_progress=operator_progress)
    found = search(priced, run, rows_digest=opened.rows.digest(), execution=watched, write=release, random=random)
    return StudyRun(settled.place.folder, read_release(settled.place.folder), found.key_variable)
