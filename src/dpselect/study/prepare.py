"""All of a study that is settled by public facts: names, space, law, noise and price. Reads no row, draws nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpselect.accounting.named import law_named
from dpselect.errors import ArgumentError, BudgetError, StudyError
from dpselect.ledger import Ledger
from dpselect.numerics.digits import rounded_up
from dpselect.repetitions import Repetitions
from dpselect.storage.keys import key_place
from dpselect.study.data import Table, open_table, plan_columns
from dpselect.study.learners import Recipe, recipe_of
from dpselect.study.outputs import check_folder
from dpselect.study.price import Price, price_study
from dpselect.study.schema import Column, Runs, Study
from dpselect.tuning import (
    Executor,
    InlineExecutor,
    JoblibExecutor,
    Limits,
    ProcessExecutor,
    Space,
    check_store,
    parse_space,
)
from dpselect.tuning.trial import encode_value

__all__ = ["STORE", "Prepared", "check_study", "executor_of", "law_of", "prepare", "space_of"]

STORE = "search.sealed"
_WHERE = {"executor", "workers", "address", "resources"}


@dataclass(frozen=True, repr=False)
class Prepared:
    """A study whose public part is settled. `search` holds the arguments that `tune` and `check_store` share."""

    table: Table
    columns: Mapping[str, Column]
    public_table: Table | None
    test_table: Table | None
    law: Repetitions
    recipe: Recipe
    price: Price
    search: Mapping[str, Any]


def prepare(study: Study, *, base_folder: Path) -> Prepared:
    """Find the columns, settle noise and price. Raises `StudyError` or `BudgetError`; no row is read."""
    table = open_table(study.data.source, base_folder)
    columns = plan_columns(study.data, table)
    public_table = _public_table(study.validation.source, "validation.source", study, columns, base_folder)
    tested = None if study.test is None else study.test.source
    test_table = _public_table(tested, "test.source", study, columns, base_folder)
    space, law = space_of(study), law_of(study)
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
        "fingerprint": _fingerprint(study, columns),
    }
    return Prepared(table, columns, public_table, test_table, law, recipe, price, search)


def check_study(study: Study, *, base_folder: Path, folder: Path | None = None, resume: bool = False) -> dict[str, Any]:
    """Everything that can be checked without reading a row, and the price. Draws, charges and makes nothing.

    Raises what `run_study` would: `StudyError`, `ArgumentError`, `BudgetError` when a total cannot be met or the ledger
    has too little left. What it returns is JSON-able and public.
    """
    folder = Path(study.output.folder) if folder is None else folder
    check_folder(folder, resume=resume, make=False)
    prepared = prepare(study, base_folder=base_folder)
    executor_of(study.runs)
    price, law = prepared.price, prepared.law
    if study.privacy.ledger is not None:
        check_budget(study, price, base_folder)
    check_store(
        folder / STORE, resume=resume, key_variable=study.output.key_variable, has_ledger=True, **prepared.search
    )
    if study.output.key_variable is not None:
        key_place(study.output.key_variable).check()
    return {
        "study": study.name,
        "epsilon": price.epsilon,
        "delta": price.delta,
        "adjacency": study.privacy.adjacency.value,
        "theorem": price.search.statement(delta=price.delta).theorem,
        "single_run_epsilon": price.single.epsilon(price.delta),
        "learner": study.learner.name,
        "noise": {prepared.recipe.noise_name: prepared.recipe.noise_parameter(price.noise)},
        "score_epsilon": price.score_epsilon,
        "repetitions": law.describe(),
        "mean_runs": law.mean,
        "runs_99": law.quantile(0.99),
        "max_runs": law.limit,
        "feature_columns": len(prepared.columns),
    }


def check_budget(study: Study, price: Price, base_folder: Path) -> None:
    """Raise `BudgetError` when the budget that the study names has less left than the search costs."""
    assert study.privacy.ledger is not None
    assert study.privacy.budget is not None
    name = study.privacy.budget
    with Ledger.open(ledger_place(study.privacy.ledger, base_folder), create=False) as ledger:
        left = ledger.budget(name).remaining()
    if left.epsilon < Fraction(price.epsilon) or left.delta < Fraction(price.delta):
        raise BudgetError(
            f"the search costs epsilon {rounded_up(price.epsilon)} at delta {price.delta:g}; budget {name!r} "
            f"has epsilon {float(left.epsilon):.6g} and delta {float(left.delta):g} left"
        )


def ledger_place(where: str, base_folder: Path) -> str | Path:
    """A URL as it is, a path relative to the study's folder."""
    return where if "://" in where else base_folder / where


def executor_of(runs: Runs) -> Executor:
    """Where trials run. Raises `ArgumentError` for settings that cannot work, and for a missing extra."""
    if runs.executor == "inline":
        return InlineExecutor()
    if runs.executor == "process":
        return ProcessExecutor(workers=runs.workers)
    return JoblibExecutor(
        backend=runs.executor, workers=runs.workers, address=runs.address, resources=dict(runs.resources)
    )


def space_of(study: Study) -> Space:
    """The space that parameters are drawn from; raises `StudyError`."""
    try:
        return parse_space(study.space)
    except ArgumentError as error:
        raise StudyError(str(error)) from None


def law_of(study: Study) -> Repetitions:
    """The law of the number of runs; raises `StudyError`."""
    settings = dict(study.repetitions)
    name = settings.pop("law", None)
    if not isinstance(name, str):
        raise StudyError("repetitions.law: give the name of a law, such as harmonic")
    try:
        return law_named(name, settings)
    except (ArgumentError, TypeError) as error:
        raise StudyError(f"repetitions: {error}") from None


def _limits(runs: Runs) -> Limits | None:
    if runs.limit_seconds is None and runs.limit_bytes is None:
        return None
    return Limits(seconds=runs.limit_seconds, memory_bytes=runs.limit_bytes, failure_is_private=runs.failure_is_private)


def _public_table(
    source: str | None, key: str, study: Study, columns: Mapping[str, Column], folder: Path
) -> Table | None:
    """A public table with the columns and the label of the private one. Raises `StudyError` that names the key."""
    if source is None:
        return None
    table = open_table(source, folder, key)
    missing = [name for name in (*columns, study.data.label) if name not in table.columns]
    if missing:
        raise StudyError(f"{key} {source!r}: no such column: {', '.join(map(repr, missing))}")
    return table


def _largest(recipe: Recipe, noise: float, space: Space, features: int) -> tuple[Any, ...]:
    """The weights of the largest model in the space, made without data: what every slot must have room for."""
    sizes = space.describe().get("hidden_units", {})
    widest = max(sizes.get("choices", [sizes.get("high", 0)]))
    drawn = {"hidden_units": widest} if sizes else {}
    try:
        return tuple(recipe.empty_fit(noise, drawn, features).weights_)
    except (ArgumentError, TypeError) as error:
        raise StudyError(f"learner: {error}") from None


def _fingerprint(study: Study, columns: Mapping[str, Column]) -> str:
    """What must not change before a resume: all of the study but its place and how it is executed.

    The order of the columns is part of it, because weights belong to columns by it; `tune` adds that of the space.
    """
    document = study.model_dump(mode="json", exclude={"output": True, "runs": _WHERE})
    text = json.dumps([document, list(columns)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
