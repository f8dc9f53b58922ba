"""A past Optuna search as its storage holds it, read without Optuna and without writing.

A relational storage is read by plain SELECTs (SQLite files opened read-only), a journal file line by line. Optuna's
own readers would create what is missing and upgrade what is old.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import sqlalchemy

from dpselect.decoding.files import read_content
from dpselect.decoding.json_text import json_of
from dpselect.decoding.limits import ACCOUNTANT
from dpselect.errors import ArgumentError, ContentError, missing_extra

__all__ = ["PastStudy", "PastTrial", "read_study"]

MARK: Final = "dpselect:independent"
"""A system attribute of a trial that `IndependentSampler` began, in a study without a pruner.

Its value is the study's name and the trial's number: a run that was copied out of another study is told apart.
"""

DRAWN: Final = "dpselect:drawn:"
"""Followed by a parameter's name: a system attribute for a parameter that it drew."""

MARK_VERSION: Final = 1

_SCHEMA: Final = 12  # of Optuna's tables, from 2.6 to 5
_STATES: Final = ("RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING")  # in the order of Optuna's numbers for them
_SQLITE: Final = b"SQLite format 3\0"


@dataclass
class PastTrial:
    """One trial. `parameters` as the objective saw them, `distributions` as JSON text."""

    number: int
    state: str = "RUNNING"
    parameters: dict[str, Any] = field(default_factory=dict)
    distributions: dict[str, str] = field(default_factory=dict)
    user_attributes: dict[str, Any] = field(default_factory=dict)
    system_attributes: dict[str, Any] = field(default_factory=dict)
    intermediate_values: int = 0
    begun: int | None = None  # how often it was started, where the storage shows it
    rewritten: set[str] = field(default_factory=set)  # user attributes that had another value before

    @property
    def runs(self) -> int:
        """How many runs it stands for: one that waits may have begun before and been put back into the queue."""
        return int(self.state != "WAITING") if self.begun is None else self.begun

    @property
    def requeued(self) -> bool:
        """Whether a run that had begun was put back into the queue."""
        return self.runs > (self.state != "WAITING")

    @property
    def retried(self) -> bool:
        """Whether it runs an earlier trial again."""
        return "failed_trial" in self.system_attributes or bool(self.system_attributes.get("retry_history"))

    @property
    def enqueued(self) -> bool:
        """Whether someone chose parameters for it."""
        return "fixed_params" in self.system_attributes

    @property
    def marked(self) -> bool:
        """Whether `IndependentSampler` began it, in a study without a pruner."""
        return isinstance(self.system_attributes.get(MARK), list)

    def copied(self, study: str) -> bool:
        """Whether its mark is that of another study or place, so that other runs may have been left behind."""
        return self.marked and self.system_attributes[MARK] != [study, self.number]

    @property
    def not_drawn(self) -> tuple[str, ...]:
        """The parameters that `IndependentSampler` did not draw, other than those with one possible value."""
        return tuple(
            name
            for name, law in self.distributions.items()
            if self.system_attributes.get(DRAWN + name) != MARK_VERSION and not _single(_decoded(law))
        )


@dataclass(frozen=True)
class PastStudy:
    """One study: its trials in order, the names of other studies in the same storage, and how many were deleted."""

    name: str
    directions: int
    trials: tuple[PastTrial, ...]
    others: tuple[str, ...] = ()
    deleted: int = 0


def read_study(location: str, *, name: str | None = None) -> PastStudy:
    """Read a study from an SQLite file, a journal file or a database URL. Nothing is written.

    Raises `ArgumentError` if there is no such study, or several and no `name`. Raises `ContentError` if the storage is
    not Optuna's, is damaged, or trials are missing from it. Raises `OSError` if it cannot be read.
    """
    path = Path(location)
    if "://" in location:
        url = _parse_url(location)
        if url.get_backend_name() != "sqlite" or not url.database:
            return _from_database(url, name)
        path = Path(url.database)  # as a file, or a wrong name would be created as an empty database
    with path.open("rb") as file:
        is_database = file.read(len(_SQLITE)) == _SQLITE
    if is_database:
        read_only = {"mode": "ro", "uri": "true"}
        return _from_database(sqlalchemy.URL.create("sqlite", database=path.resolve().as_uri(), query=read_only), name)
    return _from_journal(path, name)


def _parse_url(location: str) -> sqlalchemy.URL:
    try:
        return sqlalchemy.make_url(location)
    except sqlalchemy.exc.ArgumentError:
        raise ArgumentError("optuna: this is no file and no database URL, such as sqlite:///study.db") from None


def _choose(names: Mapping[Any, str], name: str | None) -> Any:
    """The identifier of the study that is meant."""
    meant = [identifier for identifier, known in names.items() if name in (None, known)]
    if len(meant) == 1:
        return meant[0]
    listed = ", ".join(map(repr, names.values())) or "none"
    if name is None:
        raise ArgumentError(f"study_name: the storage holds {len(names)} studies; give one of {listed}")
    raise ArgumentError(f"study_name: no study {name!r} in this storage, which holds {listed}")


def _whole(study: PastStudy) -> PastStudy:
    if [trial.number for trial in study.trials] != list(range(len(study.trials))):
        raise ContentError(f"study {study.name!r} lacks trials that it once had: what they cost cannot be said")
    return study


def _from_database(url: sqlalchemy.URL, name: str | None) -> PastStudy:
    if url.get_backend_name() == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    try:
        engine = sqlalchemy.create_engine(url)
    except (ImportError, sqlalchemy.exc.ArgumentError):
        if url.get_backend_name() == "postgresql":
            raise missing_extra("postgres", "reading a study on PostgreSQL") from None
        raise ArgumentError(f"no driver is installed for {url.drivername} databases") from None
    try:
        with engine.connect() as connection:
            return _whole(_select_study(connection, name))
    except sqlalchemy.exc.DatabaseError as error:
        raise ContentError(f"this database cannot be read as an Optuna storage ({type(error.orig).__name__})") from None
    finally:
        engine.dispose()


def _select_study(connection: sqlalchemy.Connection, name: str | None) -> PastStudy:
    def rows(query: str, **values: Any) -> Iterable[Any]:
        return connection.execute(sqlalchemy.text(query), values)

    versions = [version for (version,) in rows("SELECT schema_version FROM version_info")]
    if versions != [_SCHEMA]:
        raise ContentError(f"Optuna's tables have version {versions}; known is {_SCHEMA}")
    names = {row.study_id: row.study_name for row in rows("SELECT study_id, study_name FROM studies")}
    study = _choose(names, name)
    trials = {
        identifier: PastTrial(number=number, state=str(state), begun=int(state != "WAITING" or start is not None))
        for identifier, number, state, start in rows(
            "SELECT trial_id, number, state, datetime_start FROM trials WHERE study_id = :study ORDER BY number",
            study=study,
        )
    }

    # a trial that begins between these statements is not in the answer
    def details(columns: str, table: str) -> Iterable[tuple[PastTrial, Any]]:
        of_study = "trial_id IN (SELECT trial_id FROM trials WHERE study_id = :study)"
        query = f"SELECT trial_id, {columns} FROM {table} WHERE {of_study}"
        return ((trials[row.trial_id], row) for row in rows(query, study=study) if row.trial_id in trials)

    for trial, row in details("param_name, param_value, distribution_json", "trial_params"):
        trial.parameters[row.param_name] = _external(row.param_value, row.distribution_json)
        trial.distributions[row.param_name] = row.distribution_json
    for trial, row in details("key, value_json", "trial_user_attributes"):
        trial.user_attributes[row.key] = _decoded(row.value_json)
    for trial, row in details("key, value_json", "trial_system_attributes"):
        trial.system_attributes[row.key] = _decoded(row.value_json)
    for trial, _ in details("step", "trial_intermediate_values"):
        trial.intermediate_values += 1
    (directions,) = next(iter(rows("SELECT COUNT(*) FROM study_directions WHERE study_id = :study", study=study)))
    return PastStudy(
        name=names[study],
        directions=directions,
        trials=tuple(trials.values()),
        others=tuple(known for identifier, known in names.items() if identifier != study),
    )


@dataclass
class _Journal:
    """The state after the lines of a journal. Late lines about finished trials contribute nothing, as in Optuna."""

    names: dict[int, str] = field(default_factory=dict)
    directions: dict[int, int] = field(default_factory=dict)
    trials: list[tuple[int, PastTrial]] = field(default_factory=list)
    created: int = 0

    def apply(self, line: Mapping[str, Any]) -> None:
        """One operation, by Optuna's numbers. Those about studies' attributes tell nothing here."""
        match line["op_code"]:
            case 0 if line["study_name"] not in self.names.values():
                self.names[self.created] = line["study_name"]
                self.directions[self.created] = len(line["directions"])
                self.created += 1
            case 1:
                self.names.pop(line["study_id"], None)
            case 4 if line["study_id"] in self.names:
                self.trials.append((line["study_id"], self._new_trial(line)))
            case 5 | 6 | 7 | 8 | 9:
                trial = self.trials[line["trial_id"]][1] if 0 <= line["trial_id"] < len(self.trials) else None
                if trial is not None and trial.state in ("RUNNING", "WAITING"):
                    self._change(trial, line)

    def _new_trial(self, line: Mapping[str, Any]) -> PastTrial:
        laws = line.get("distributions", {})
        return PastTrial(
            number=sum(study == line["study_id"] for study, _ in self.trials),
            state=_STATES[line.get("state", 0)],
            begun=int(_STATES[line.get("state", 0)] != "WAITING" or line.get("datetime_start") is not None),
            parameters={name: _external(value, laws[name]) for name, value in line.get("params", {}).items()},
            distributions=dict(laws),
            user_attributes=dict(line.get("user_attrs", {})),
            system_attributes=dict(line.get("system_attrs", {})),
            intermediate_values=len(line.get("intermediate_values", {})),
        )

    @staticmethod
    def _change(trial: PastTrial, line: Mapping[str, Any]) -> None:
        match line["op_code"]:
            case 5:
                trial.parameters[line["param_name"]] = _external(line["param_value_internal"], line["distribution"])
                trial.distributions[line["param_name"]] = line["distribution"]
            case 6:
                state = _STATES[line["state"]]
                if state == "RUNNING" and trial.state == "WAITING":
                    trial.begun = (trial.begun or 0) + 1
                elif trial.state == "WAITING" and state != "WAITING":
                    trial.begun = max(1, trial.begun or 0)
                trial.state = state
            case 7:
                trial.intermediate_values += 1
            case 8:
                known = trial.user_attributes
                trial.rewritten |= {key for key, value in line["user_attr"].items() if known.get(key, value) != value}
                trial.user_attributes.update(line["user_attr"])
            case 9:
                trial.system_attributes.update(line["system_attr"])


def _from_journal(path: Path, name: str | None) -> PastStudy:
    journal = _Journal()
    lines = read_content(path, ACCOUNTANT).split(b"\n")
    # the last piece is empty, or a line whose writing was cut short, which Optuna does not count either
    for position, line in enumerate(lines[:-1], 1):
        try:
            journal.apply(_decoded(line))
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
            raise ContentError(f"line {position} of this file is no entry of an Optuna journal") from None
    if not journal.created:
        raise ContentError("this file is neither an SQLite database nor an Optuna journal with a study")
    study = _choose(journal.names, name)
    return _whole(
        PastStudy(
            name=journal.names[study],
            directions=journal.directions[study],
            trials=tuple(trial for owner, trial in journal.trials if owner == study),
            others=tuple(known for identifier, known in journal.names.items() if identifier != study),
            deleted=journal.created - len(journal.names),
        )
    )


def _decoded(text: str | bytes) -> Any:
    return json_of(text, ACCOUNTANT, "the storage")


def _external(value: float | None, law: str) -> Any:
    """A parameter as the objective saw it. The storage holds a number, for a choice its position."""
    described = _decoded(law)
    if "choices" in described["attributes"]:
        return described["attributes"]["choices"][int(value or 0)]
    return int(value or 0) if described["name"].startswith("Int") else value


def _single(described: Mapping[str, Any]) -> bool:
    """Whether a distribution has one possible value, which Optuna takes without asking the sampler."""
    attributes = described["attributes"]
    if "choices" in attributes:
        return len(attributes["choices"]) == 1
    return bool(attributes["low"] == attributes["high"])
