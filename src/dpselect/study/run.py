"""Run a study: settle what is public, read the rows, search, write the release."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpselect.errors import StudyError
from dpselect.ledger import Ledger
from dpselect.privacy import Adjacency, Receipt, Spender
from dpselect.randomness import RandomSource
from dpselect.report import search_facts
from dpselect.study.data import Rows, load
from dpselect.study.model_file import model_bytes
from dpselect.study.objective import Run
from dpselect.study.outputs import RELEASE, check_folder, describe_release, write_model, write_release
from dpselect.study.prepare import STORE, Prepared, check_budget, executor_of, ledger_place, prepare
from dpselect.study.price import Price
from dpselect.study.public_test import public_test
from dpselect.study.schema import Study
from dpselect.study.split import validation_mask
from dpselect.tuning import FileSpender, TuneResult, check_store, tune

__all__ = ["StudyRun", "run_study"]

_BUDGET = "budget.db"
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
) -> StudyRun:
    """Tune the study's learner on its data and write the release to its folder.

    `base_folder` is where the study's relative data paths start; `folder` overrides the study's output folder, which
    is relative to the working directory. `random` is a keyed source in tests only.

    Raises `StudyError` before a row is read, `ContentError` before anything is drawn or charged, `BudgetError` when
    the budget does not allow the search.
    """
    folder = Path(study.output.folder) if folder is None else folder
    check_folder(folder, resume=resume)
    prepared = prepare(study, base_folder=base_folder)
    price, recipe, search = prepared.price, prepared.recipe, prepared.search
    _LOG.info("study %r costs epsilon %.6g at delta %g", study.name, price.epsilon, price.delta)
    if study.privacy.ledger is not None and not resume:
        check_budget(study, price, base_folder)
    spender = _spender(study, price, folder, base_folder)
    check_store(folder / STORE, resume=resume, key_variable=study.output.key_variable, has_ledger=True, **search)

    _LOG.info("reading the rows of study %r", study.name)
    rows = load(study.data, prepared.table, prepared.columns)
    if study.privacy.nominal_rows is None and study.privacy.delta >= 1.0 / len(rows.labels):
        raise StudyError("privacy.delta must be below one over the number of rows, which is public under replace_one")

    tested = public_test(study, prepared.test_table, prepared.columns)

    def write(result: TuneResult) -> None:
        test = None
        if result.value is not None:
            content = model_bytes(
                recipe,
                noise=price.noise,
                parameters=result.params or {},
                weights=result.value,
                columns=prepared.columns,
                classes=study.data.classes,
            )
            written = write_model(folder, content)
            test = None if tested is None else tested.of(written)
        release = describe_release(
            study.name,
            result,
            price,
            declare_score=study.validation.release_score,
            ledger=study.privacy.ledger is not None,
            test=test,
        )
        facts = search_facts(
            parts=price.parts,
            search=price.search,
            law=prepared.law,
            delta=price.delta,
            budget=_budget_moved(study, base_folder, result.receipt),
        )
        write_release(folder, release, facts)

    _LOG.info("study %r: the search begins", study.name)
    result = tune(
        _objective(study, prepared, rows),
        store=folder / STORE,
        resume=resume,
        executor=executor_of(study.runs),
        pad_seconds=study.runs.pad_seconds,
        ledger=spender,
        label=study.name,
        random=random,
        release=write,
        key_variable=study.output.key_variable,
        progress=progress,
        operator_progress=operator_progress,
        **search,
    )
    _LOG.info("study %r: released", study.name)
    release = json.loads((folder / RELEASE).read_text(encoding="utf-8"))
    return StudyRun(folder, release, result.key_variable)


def _spender(study: Study, price: Price, folder: Path, base_folder: Path) -> Spender:
    """The budget that the study names, or a file of its own that has room for this search and no other."""
    where, name = study.privacy.ledger, study.privacy.budget
    if where is None or name is None:
        return FileSpender(folder / _BUDGET, epsilon=price.epsilon, delta=price.delta)
    return Ledger.open(ledger_place(where, base_folder)).budget(name).at(delta=price.delta)


def _budget_moved(study: Study, base_folder: Path, receipt: Receipt | None) -> dict[str, Any] | None:
    """The named budget before and after this search, read off the record at its own entry.

    Not as it stands now: what others spent meanwhile depends on how long the search took.
    """
    where, name = study.privacy.ledger, study.privacy.budget
    if where is None or name is None or receipt is None or receipt.sequence is None:
        return None
    with Ledger.open(ledger_place(where, base_folder), create=False) as ledger:
        budget = ledger.budget(name)
        moments = [(0, (0.0, 0.0))]
        moments += [(n, (float(spent.epsilon), float(spent.delta))) for n, spent, _ in ledger.history(name)]
    before = [spent for n, spent in moments if n < receipt.sequence][-1]
    after = [spent for n, spent in moments if n <= receipt.sequence][-1]
    return {
        "name": name,
        "accounting": budget.accounting,
        "epsilon": float(budget.epsilon),
        "delta": float(budget.delta),
        "before": {"epsilon": before[0], "delta": before[1]},
        "after": {"epsilon": after[0], "delta": after[1]},
    }


def _objective(study: Study, prepared: Prepared, rows: Rows) -> Run:
    price = prepared.price
    if prepared.public_table is not None:
        public = load(study.data, prepared.public_table, prepared.columns)
        training, validation = np.ones(len(rows.labels), dtype=bool), (public.features, public.labels)
        score_rows = float(len(public.labels))
    else:
        mask = validation_mask(
            rows, fraction=study.validation.fraction, adjacency=study.privacy.adjacency, salt=study.name
        )
        training, validation = ~mask, (rows.features[mask], rows.labels[mask])
        replace = study.privacy.adjacency is Adjacency.REPLACE_ONE
        nominal = len(rows.labels) if replace else study.privacy.nominal_rows or 1
        score_rows = max(1.0, nominal * study.validation.fraction)
    return Run(
        recipe=prepared.recipe,
        noise=price.noise,
        training=(rows.features[training], rows.labels[training]),
        validation=validation,
        score_rows=score_rows,
        score_epsilon=price.score_epsilon,
    )
