"""Step 1 of a study: all that public facts settle before a price is known. Reads names of columns, and no row."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final

import numpy as np

from dpselect.errors import ArgumentError, StudyError
from dpselect.learners.company import depends_on_company, sum_depends_on_company
from dpselect.ledger import Budget, Ledger
from dpselect.ledger.accounting import Amounts
from dpselect.repetitions import Repetitions
from dpselect.repetitions.by_name import law_named
from dpselect.storage.keys import key_place
from dpselect.study.candidates import PortfolioCandidate, candidates_of
from dpselect.study.columns.column import Column
from dpselect.study.data import plan_columns, study_table
from dpselect.study.design import ONE_RUN, designed, signals
from dpselect.study.learners.kind import LEARNERS
from dpselect.study.learners.recipe import Recipe, recipe_of
from dpselect.study.like import check_like
from dpselect.study.metrics import METRICS, Metric
from dpselect.study.problems import Problems
from dpselect.study.schema import Runs, Study
from dpselect.study.user_module import importable, named_modules, refuse_ambiguous
from dpselect.tables import Table, Written
from dpselect.tables.fates import FATES
from dpselect.tables.header import absent
from dpselect.tuning import Execution, Executor, InlineExecutor, Limits, ProcessExecutor, Space
from dpselect.tuning.space import parse_space
from dpselect.tuning.trial import encode_value

__all__ = ["RELEASE", "Settled", "StudyPaths", "budget_of", "law_of", "problems", "space_of", "validate"]

RELEASE: Final = "release.json"
_SPARE_BYTES: Final = 256
_CELL_BYTES: Final = 8 * len(FATES)
"""Counts of the cells of one column."""


@dataclass(frozen=True)
class StudyPaths:
    """The folder of a study's data and ledger (`base`), that of its release, and whether the search continues."""

    base: Path
    folder: Path
    resume: bool = False

    @classmethod
    def of(cls, study: Study, base: Path, folder: Path | None, *, resume: bool = False) -> StudyPaths:
        """The study's own folder, unless there is another one for it."""
        return cls(base, Path(study.output.folder) if folder is None else folder, resume)

    @property
    def store(self) -> Path:
        """The sealed store of the search."""
        return self.folder / "search.sealed"

    @property
    def checkpoints(self) -> Path:
        """The folder for trainings that a kill interrupts, while the search runs."""
        return self.folder / "checkpoints"


@dataclass(frozen=True, repr=False)
class Settled:
    """A study whose names, laws, tables and places are found good.

    `payload_bytes` is the room that a model needs. `candidates` are those of a portfolio, `recipe` is the first one's.
    `second` is how a second stage trains, on all rows. `left` is what the budget that the study names had left,
    `signals` its n mu, `unsearched` are keys of the space that the rule does not search.
    """

    study: Study
    place: StudyPaths
    space: Space
    law: Repetitions
    executor: Executor
    execution: Execution
    table: Table
    columns: Mapping[str, Column]
    public_table: Table | None
    test_table: Table | None
    recipe: Recipe
    metric: Metric
    payload_bytes: int
    candidates: tuple[PortfolioCandidate, ...] = ()
    second: Recipe | None = None
    left: Amounts | None = None
    signals: float | None = None
    unsearched: tuple[str, ...] = ()

    @property
    def design(self) -> str:
        """One run, or how it is searched."""
        return self.study.search.design

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that all runs share: of the learner's table, and steps that follow from the price."""
        named = self.study.learner.parameters
        return named if self.candidates else {**self.recipe.shared, **named}

    @property
    def scored(self) -> bool:
        """Whether a run is scored at all."""
        return self.study.validation.data != "none"

    @property
    def releases_score(self) -> bool:
        """Whether the winner's score is released, where there is one."""
        return self.study.validation.data in ("private", "public") and self.study.validation.release_score

    @property
    def shows_score(self) -> bool:
        """Whether the winner's noisy figure is released: on public rows there is none that was paid for."""
        return self.releases_score and self.study.validation.data == "private"

    @property
    def modules(self) -> list[str]:
        """The code of the user's own that the study names."""
        return named_modules(self.study.learner.parameters, self.study.space)

    def with_columns(self, columns: Mapping[str, Column]) -> Settled:
        """The same with bounds that were bought."""
        candidates = [replace(each, recipe=replace(each.recipe, columns=columns)) for each in self.candidates]
        recipe = replace(self.recipe, columns=columns)
        return replace(self, columns=columns, recipe=recipe, candidates=tuple(candidates))


def validate(study: Study, place: StudyPaths) -> Settled:
    """Check all that needs neither a price nor a row, the quickest first. Makes nothing and draws nothing.

    Raises `StudyError` (or `ArgumentError`) that names what is wrong.
    """
    filled = designed(study)
    size, check = signals(filled), Problems()
    settled = _settled(filled, place, check)
    check.none()
    assert settled is not None, "what refused has been raised"
    unsearched = tuple(key for key in study.space if key not in filled.space)
    return replace(settled, signals=size, unsearched=unsearched)


def problems(study: Study, place: StudyPaths, wrong: Sequence[str]) -> list[str]:
    """List the problems that `validate` finds and that do not depend on these wrong keys."""
    check = Problems(wrong)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a figure may be among the wrong keys
        filled = check.of(lambda: designed(study), "privacy", "learner", "data.task")
        _settled(study if filled is None else filled, place, check)
    return check.lines


def _settled(study: Study, place: StudyPaths, check: Problems) -> Settled | None:
    modules = named_modules(study.learner.parameters, study.space)
    for module in modules:
        check.of(partial(refuse_ambiguous, module, place.base), "learner.module")
    with importable(place.base) if modules else nullcontext():
        return _checked(study, place, check)


def _checked(study: Study, place: StudyPaths, check: Problems) -> Settled | None:
    data, tested = study.data, None if study.test is None else study.test.source
    check.of(lambda: _check_folder(place), "output.folder")
    left = check.of(lambda: _left(study, place), "privacy.ledger", "privacy.budget", "privacy.adjacency")
    check.of(lambda: _check_key(study, place), "output.key_variable")
    space = check.of(lambda: space_of(study))
    law = check.of(lambda: _law_for(study), "repetitions", "runs.constant", "search")
    executor = check.of(lambda: _executor(study, law), "runs")
    form = tuple(f"data.{part.name}" for part in fields(Written))
    table = check.of(lambda: study_table(data.source, place.base, "data.source", data), "data.source", *form)
    columns = None if table is None else check.of(lambda: plan_columns(data, table), "data.label", "data.row_key")
    label = ("data.task", "data.classes", "data.label_bounds")
    candidates = check.of(
        lambda: _candidates(study, columns),
        *(*label, "learner.name", "learner.class_weights", "privacy.adjacency"),
    )
    metric = check.of(lambda: _metric(study), "validation.metric", *label)
    public = [
        check.of(partial(_public_table, source, key, study, columns or {}, place.base), key, "data.label", *form)
        for source, key in ((study.validation.source, "validation.source"), (tested, "test.source"))
    ]
    if columns is not None:
        check.of(lambda: check_like(data, place.base, columns), "data.like", "data.label", "data.columns", *form)
    if (
        executor is None
        or space is None
        or law is None
        or table is None
        or columns is None
        or candidates is None
        or metric is None
    ):
        return None
    kept = str(place.checkpoints.absolute())
    candidates = tuple(replace(each, recipe=replace(each.recipe, checkpoints=kept)) for each in candidates)
    recipe = candidates[0].recipe
    check.of(lambda: _check_company(study, recipe, metric), "learner.name", "validation.metric")
    design = study.search.kind
    second = replace(recipe, nominal_rows=study.privacy.nominal_rows) if design.follows else None
    recipes = [*(each.recipe for each in candidates), *([] if second is None else [second])]
    models = check.of(lambda: [_largest(each, space) for each in recipes], "data")
    if models is None:
        return None
    largest = max(models, key=_size)
    bought = 16 * sum(column.private for column in columns.values())
    bought += _CELL_BYTES * (len(columns) + 1) if data.count_cells else 0
    return Settled(
        study=study,
        place=place,
        space=space,
        law=law,
        executor=executor,
        execution=_execution(study.runs),
        table=table,
        columns=columns,
        public_table=public[0],
        test_table=public[1],
        recipe=recipe,
        metric=metric,
        payload_bytes=len(encode_value((*largest, np.zeros(metric.noisy_shape, np.int64)))) + bought + _SPARE_BYTES,
        candidates=tuple(candidates) if design.tries else (),
        second=second,
        left=left,
    )


@contextmanager
def budget_of(study: Study, place: StudyPaths) -> Iterator[tuple[Ledger, Budget] | None]:
    """The ledger and the budget that the study names, None if it names none.

    Raises `LedgerError` or `ArgumentError` if one of them is not there.
    """
    where, name = study.privacy.ledger, study.privacy.budget
    if where is None or name is None:
        yield None
        return
    with Ledger.open(where if "://" in where else place.base / where, create=False) as ledger:
        yield ledger, ledger.budget(name)


def space_of(study: Study) -> Space:
    """The space that parameters are drawn from. Raises `StudyError`. A portfolio draws none."""
    problems = []
    for name, law in study.space.items():
        try:
            parse_space({name: law})
        except ArgumentError as error:
            problems.append(f"space.{name}: {str(error).removeprefix(f'space parameter {name!r}: ')}")
    if problems:
        raise StudyError("\n  ".join(problems))
    return parse_space({} if study.search.kind.tries else study.space)


def law_of(study: Study) -> Repetitions:
    """The distribution of the number of runs. Raises `StudyError`."""
    return _law(designed(study))


def _law(study: Study) -> Repetitions:
    settings = dict(study.repetitions or ONE_RUN)  # none are those of a study with wrong keys
    name = settings.pop("law", None)
    if not isinstance(name, str):
        raise StudyError('repetitions.distribution: needed. Write distribution = "harmonic"')
    try:
        return law_named(name, settings)
    except (ArgumentError, TypeError) as error:
        raise StudyError(f"repetitions: {error}") from None


def _candidates(study: Study, columns: Mapping[str, Column] | None) -> tuple[PortfolioCandidate, ...]:
    """The candidates of a portfolio. Other designs have one way to train."""
    rows = _trained_rows(study)
    if study.search.kind.tries:
        return candidates_of(study, nominal_rows=rows, columns=columns)
    return (PortfolioCandidate({}, recipe_of(study, nominal_rows=rows, columns=columns)),)


def _metric(study: Study) -> Metric:
    try:
        return METRICS[study.metric](study.data.target)
    except ArgumentError as error:
        raise StudyError(f"validation.metric: {error}") from None


def _check_company(study: Study, recipe: Recipe, metric: Metric) -> None:
    """A row moves a score by its own share only if no other row's answer or score changes with it."""
    if study.validation.data != "private":
        return
    try:
        mixed = any(_mixed(study, recipe.made_up_fit(drawn), metric) for drawn in _choices(space_of(study), "module"))
    except Exception as error:
        raise StudyError(f"validation.metric: fails on synthetic rows ({type(error).__name__}: {error})") from error
    if mixed:
        raise StudyError(
            f"learner.name, validation.metric: the answer of {recipe.kind!r} for a row, or its score, depends on the "
            "rows beside it, on their order or on what was asked before, so that one row could move a score by more "
            "than its own share"
        )


def _mixed(study: Study, made: tuple[Any, Any, Any], metric: Metric) -> bool:
    """Whether an answer of a model for one of these rows, or a score, depends on the rows beside it."""
    model, X, y = made
    asked = model.predict if study.data.task == "regression" else model.predict_proba
    return depends_on_company(lambda places: asked(X[places])) or sum_depends_on_company(
        lambda places: metric.cells(model, X[places], y[places])
    )


def _law_for(study: Study) -> Repetitions:
    law = _law(study)
    if study.runs.constant and law.limit is None:
        raise StudyError(
            "runs.constant: needs a distribution with a limit, such as harmonic, or at_most under [repetitions]"
        )
    return law


def _trained_rows(study: Study) -> float | None:
    """The public number of rows that train."""
    private_share = study.validation.fraction if study.validation.data == "private" else 0.0
    nominal = study.privacy.nominal_rows
    return None if nominal is None else nominal * (1.0 - private_share)


def _left(study: Study, place: StudyPaths) -> Amounts | None:
    """What the budget has left, None where none is named.

    It must count under the study's adjacency: a search that is refused later has made its store.
    """
    asked = study.privacy.adjacency
    with budget_of(study, place) as named:
        if named is None:
            return None
        if named[1].adjacency is not asked:
            raise StudyError(
                f"privacy.adjacency: {asked.value} here, but budget {named[1].name!r} is under "
                f"{named[1].adjacency.value}: take that, or another privacy.budget"
            )
        return named[1].remaining()


def _check_key(study: Study, place: StudyPaths) -> None:
    if study.output.key_variable is not None and not (place.resume and place.store.exists()):
        try:
            key_place(study.output.key_variable).check()  # a search that is done needs it no longer
        except StudyError as error:
            raise StudyError(f"output.key_variable: {error}") from None


def _check_folder(place: StudyPaths) -> None:
    """The folder can be made and written to, and holds neither a release nor, unless it continues, a search."""
    folder, shown = place.folder, f"output.folder {str(place.folder)!r}"
    there = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not there.is_dir():
        raise StudyError(f"{shown} is not writable: {str(there)!r} is no folder")
    try:
        with TemporaryFile(dir=there):
            pass  # permissions alone say little: of root, and of file systems such as /proc
    except OSError:
        raise StudyError(f"{shown} is not writable: nothing can be made in {str(there)!r}") from None
    held = place.store.exists() and place.store.stat().st_size > 0
    if place.resume:
        if not held and not (folder / RELEASE).exists():
            raise StudyError(
                f"{shown} holds no search to continue: name the folder of the search, or begin one without --resume"
            )
        return
    if (folder / RELEASE).exists():
        raise StudyError(
            f"{shown} already holds a release: choose another folder; a search that was killed ends by --resume"
        )
    if held:
        raise StudyError(
            f"{place.store} already holds a search: continue with it by --resume, or choose another folder"
        )


def _executor(study: Study, law: Repetitions | None) -> Executor:
    """Where trials run. Raises `ArgumentError` for settings that cannot work, and for a missing extra.

    By default one run, whose number is public, needs no process of its own: starting it would take a second.
    """
    runs, alone = study.runs, law is not None and law.minimum == law.limit == 1
    if runs.executor == "inline" or (runs.executor is None and alone):
        return InlineExecutor()
    if runs.executor in ("process", None):
        return ProcessExecutor(workers=runs.workers)
    if named_modules(study.learner.parameters, study.space):
        raise StudyError(f'runs.executor: {runs.executor!r} may not find learner.module: take "process" or "inline"')
    from dpselect.tuning import JoblibExecutor  # joblib, which most studies do without

    resources = dict(runs.resources)
    return JoblibExecutor(backend=runs.executor, workers=runs.workers, address=runs.address, resources=resources)


def _execution(runs: Runs) -> Execution:
    seconds, size, declared = runs.limit_seconds, runs.limit_bytes, runs.failure_is_private
    limits = None
    if seconds is not None or size is not None:
        limits = Limits(seconds=seconds, memory_bytes=size, failure_is_private=declared)
    return Execution(limits=limits, constant_runs=runs.constant, pad_seconds=runs.pad_seconds)


def _public_table(
    source: str | None, key: str, study: Study, columns: Mapping[str, Column], folder: Path
) -> Table | None:
    """A public table with the columns and the label of the private one. Raises `StudyError` that names the key."""
    if source is None:
        return None
    table = study_table(source, folder, key, study.data, shared=True)
    missing = [name for name in (*columns, study.data.label) if name not in table.columns]
    if missing:
        raise StudyError(f"{key} {source!r}: {absent(missing, table.columns)}")
    return table


def _largest(recipe: Recipe, space: Space) -> tuple[Any, ...]:
    """The weights of the largest model in the space, made without data: what every slot must have room for."""
    sizes = space.describe().get("hidden_units", {})
    drawn = {"hidden_units": max(sizes.get("choices", [sizes.get("high", 0)]))} if sizes else {}
    choices = [drawn | found for found in _choices(space, "map", "module")]
    try:
        noises = LEARNERS[recipe.kind].noises
        models = [tuple(recipe.empty_fit(noise, choice).weights_) for choice in choices for noise in noises]
    except (ArgumentError, TypeError) as error:
        raise StudyError(f"learner: {error}") from None
    return max(models, key=_size)


def _choices(space: Space, *names: str) -> list[dict[str, Any]]:
    """Every combination of the choices of these parameters, as far as they are searched."""
    laws = space.describe()
    searched = [name for name in names if name in laws]
    return [dict(zip(searched, each, strict=True)) for each in product(*(laws[name]["choices"] for name in searched))]


def _size(weights: tuple[Any, ...]) -> int:
    return sum(w.size for w in weights)
