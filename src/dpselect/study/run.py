"""Run a study: check what is public, price it, read the rows, search, write the release."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dpselect.accounting.named import law_named
from dpselect.errors import ArgumentError, BudgetError, StudyError
from dpselect.ledger import Ledger
from dpselect.privacy import Adjacency, Spender
from dpselect.randomness import RandomSource
from dpselect.repetitions import Repetitions
from dpselect.study.data import Rows, Table, load, open_table, plan_columns
from dpselect.study.learners import Recipe, recipe_of
from dpselect.study.model import model_bytes
from dpselect.study.objective import Run
from dpselect.study.outputs import RELEASE, check_folder, describe_release, write_release
from dpselect.study.price import Price, price_study
from dpselect.study.schema import Runs, Study
from dpselect.study.split import validation_mask
from dpselect.tuning import (
    Executor,
    FileSpender,
    InlineExecutor,
    JoblibExecutor,
    Limits,
    ProcessExecutor,
    Space,
    TuneResult,
    check_store,
    parse_space,
    tune,
)
from dpselect.tuning.trial import encode_value

__all__ = ["StudyRun", "run_study"]

_WHERE = {"executor", "workers", "address", "resources"}
_STORE, _BUDGET = "search.sealed", "budget.db"


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
    table = open_table(study.data.source, base_folder)
    columns = plan_columns(study.data, table)
    public_table = _public_validation(study, base_folder)
    space, law = _space(study), _law(study)
    nominal = study.privacy.nominal_rows
    private_share = study.validation.fraction if study.validation.data == "private" else 0.0
    recipe = recipe_of(study, nominal_rows=None if nominal is None else nominal * (1.0 - private_share))
    price = price_study(study, recipe, law)

    features = sum(len(column.categories or (0,)) for column in columns.values())
    example = _largest(recipe, price.noise, space, features)
    search: dict[str, Any] = {
        "space": space,
        "base": price.parts,
        "repetitions": law,
        "payload_bytes": len(encode_value(example)) + 256,
        "declare_score": study.validation.release_score,
        "constant_runs": study.runs.constant,
        "limits": _limits(study.runs),
        "fingerprint": _fingerprint(study),
    }
    spender = _spender(study, price, folder, base_folder, resume=resume)
    check_store(folder / _STORE, resume=resume, key_variable=study.output.key_variable, has_ledger=True, **search)

    rows = load(study.data, table)
    if nominal is None and study.privacy.delta >= 1.0 / len(rows.labels):
        raise StudyError("privacy.delta must be below one over the number of rows, which is public under replace_one")

    def write(result: TuneResult) -> None:
        release = describe_release(
            study.name,
            result,
            price,
            declare_score=study.validation.release_score,
            ledger=study.privacy.ledger is not None,
        )
        model = None
        if result.value is not None:
            model = model_bytes(
                recipe,
                noise=price.noise,
                parameters=result.params or {},
                weights=result.value,
                columns=columns,
                classes=study.data.classes,
            )
        write_release(folder, release, model=model, price=price, law=law)

    runs = study.runs
    result = tune(
        _objective(study, recipe, price, rows, public_table),
        store=folder / _STORE,
        resume=resume,
        executor=_executor(runs),
        pad_seconds=runs.pad_seconds,
        ledger=spender,
        label=study.name,
        random=random,
        release=write,
        key_variable=study.output.key_variable,
        progress=progress,
        operator_progress=operator_progress,
        **search,
    )
    release = json.loads((folder / RELEASE).read_text(encoding="utf-8"))
    return StudyRun(folder, release, result.key_variable)


def _spender(study: Study, price: Price, folder: Path, base_folder: Path, *, resume: bool) -> Spender:
    """The budget that the study names, or a file of its own that has room for this search and no other."""
    where, name = study.privacy.ledger, study.privacy.budget
    if where is None or name is None:
        return FileSpender(folder / _BUDGET, epsilon=price.epsilon, delta=price.delta)
    ledger = Ledger.open(where if "://" in where else base_folder / where)
    budget = ledger.budget(name).at(delta=price.delta)
    left = ledger.budget(name).remaining()
    if not resume and (left.epsilon < Fraction(price.epsilon) or left.delta < Fraction(price.delta)):
        raise BudgetError(
            f"the search costs epsilon {price.epsilon:.6g} at delta {price.delta:g}; budget {name!r} has epsilon "
            f"{float(left.epsilon):.6g} and delta {float(left.delta):g} left"
        )
    return budget


def _executor(runs: Runs) -> Executor:
    if runs.executor == "inline":
        return InlineExecutor()
    if runs.executor == "process":
        return ProcessExecutor(workers=runs.workers)
    return JoblibExecutor(
        backend=runs.executor, workers=runs.workers, address=runs.address, resources=dict(runs.resources)
    )


def _limits(runs: Runs) -> Limits | None:
    if runs.limit_seconds is None and runs.limit_bytes is None:
        return None
    return Limits(seconds=runs.limit_seconds, memory_bytes=runs.limit_bytes, failure_is_private=runs.failure_is_private)


def _public_validation(study: Study, base_folder: Path) -> Table | None:
    if study.validation.source is None:
        return None
    table = open_table(study.validation.source, base_folder)
    plan_columns(study.data, table)
    return table


def _space(study: Study) -> Space:
    try:
        return parse_space(study.space)
    except ArgumentError as error:
        raise StudyError(str(error)) from None


def _law(study: Study) -> Repetitions:
    settings = dict(study.repetitions)
    name = settings.pop("law", None)
    if not isinstance(name, str):
        raise StudyError("repetitions.law: give the name of a law, such as harmonic")
    try:
        return law_named(name, settings)
    except (ArgumentError, TypeError) as error:
        raise StudyError(f"repetitions: {error}") from None


def _objective(study: Study, recipe: Recipe, price: Price, rows: Rows, public_table: Table | None) -> Run:
    if public_table is not None:
        public = load(study.data, public_table)
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
        recipe=recipe,
        noise=price.noise,
        training=(rows.features[training], rows.labels[training]),
        validation=validation,
        score_rows=score_rows,
        score_epsilon=price.score_epsilon,
    )


def _largest(recipe: Recipe, noise: float, space: Space, features: int) -> tuple[Any, ...]:
    """The weights of the largest model in the space, made without data: what every slot must have room for."""
    sizes = space.describe().get("hidden_units", {})
    widest = max(sizes.get("choices", [sizes.get("high", 0)]))
    drawn = {"hidden_units": widest} if sizes else {}
    try:
        return tuple(recipe.empty_fit(noise, drawn, features).weights_)
    except (ArgumentError, TypeError) as error:
        raise StudyError(f"learner: {error}") from None


def _fingerprint(study: Study) -> str:
    """What must not change before a resume: all of the study but its place and how it is executed."""
    document = study.model_dump(mode="json", exclude={"output": True, "runs": _WHERE})
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
