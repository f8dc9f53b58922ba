"""Optuna: an SQLite file, a journal file or a database URL."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dpselect.integrations.optuna.study import PastTrial, read_study
from dpselect.integrations.sweeps.rows import status_of
from dpselect.integrations.sweeps.sqlite_tables import has_tables
from dpselect.integrations.sweeps.sweep import RecordedRun, RecordedSweep, flat_values, others_remark, sweep_format

__all__ = ["read_optuna_storage"]

_JOURNAL: Final = b'"op_code"'
_START: Final = 1 << 12


def _matches(source: str) -> bool:
    if "://" in source or has_tables(source, "studies", "trials", "version_info"):
        return True
    path = Path(source)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(_START)
    return start.startswith(b"{") and _JOURNAL in start


@sweep_format("optuna", matches=_matches)
def read_optuna_storage(source: str, part: str | None) -> RecordedSweep:
    """The trials of one study that began, each as often as it did."""
    study = read_study(source, name=part)
    begun = [trial for trial in study.trials if trial.runs]
    drawn = bool(begun) and all(_drawn(trial, study.name) for trial in begun)
    return RecordedSweep(
        "optuna",
        study.name,
        tuple(map(_run, begun)),
        rests_on=(*others_remark(len(study.others), "studies"), *others_remark(study.deleted, "deleted studies")),
        independent="recorded: every setting of every run was drawn independently" if drawn else None,
    )


def _drawn(trial: PastTrial, study: str) -> bool:
    """Whether `IndependentSampler` drew each of its settings, in this study."""
    return trial.marked and not (trial.not_drawn or trial.enqueued or trial.copied(study))


def _run(trial: PastTrial) -> RecordedRun:
    return RecordedRun(
        name=f"trial {trial.number}",
        values={**dict(flat_values(trial.user_attributes)), **dict(flat_values(trial.parameters))},
        status=status_of(trial.state),
        times=trial.runs,
        rewritten=frozenset(
            {
                *trial.rewritten,
                *(
                    name
                    for name, value in trial.user_attributes.items()
                    if name in trial.parameters and trial.parameters[name] != value
                ),
            }
        ),
    )
