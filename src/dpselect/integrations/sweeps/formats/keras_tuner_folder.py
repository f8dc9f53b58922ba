"""Keras Tuner: the folder of a project, in it a folder for each trial and the state of the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dpselect.decoding.json_text import json_file
from dpselect.decoding.limits import ACCOUNTANT
from dpselect.errors import ContentError
from dpselect.integrations.sweeps.folders import SETTINGS, folders_in, is_plain_file
from dpselect.integrations.sweeps.rows import status_of
from dpselect.integrations.sweeps.sweep import (
    RecordedRun,
    RecordedSweep,
    chosen_part,
    flat_values,
    others_remark,
    sweep_format,
)

__all__ = ["read_keras_tuner_folder"]

_TRIAL, _ORACLE = "trial.json", "oracle.json"
_PREFIX: Final = "trial_"


def _matches(source: str) -> bool:
    path = Path(source)
    return path.is_dir() and any(map(_is_project, [path, *folders_in(path)]))


def _is_project(folder: Path) -> bool:
    return any(is_plain_file(trial / _TRIAL) for trial in folders_in(folder) if trial.name.startswith(_PREFIX))


@sweep_format("keras-tuner", matches=_matches)
def read_keras_tuner_folder(source: str, part: str | None) -> RecordedSweep:
    """The trials of one project. A trial that was tried again counts as often as it ran."""
    path = Path(source)
    found = [path] if _is_project(path) else [folder for folder in folders_in(path) if _is_project(folder)]
    folder = Path(chosen_part({str(each): each.name for each in found}, part))
    oracle = _object(folder / _ORACLE) if is_plain_file(folder / _ORACLE) else {}
    times = oracle.get("run_times")
    trials = {
        str(trial.get("trial_id")): trial
        for trial in (_object(each / _TRIAL) for each in folders_in(folder) if is_plain_file(each / _TRIAL))
    }
    started = oracle.get("start_order")
    if isinstance(started, list) and not set(map(str, started)) <= set(trials):
        raise ContentError(f"{folder.name} lacks trials that it once had: their cost cannot be stated")
    runs = (
        _run(name, trial, times.get(name) if isinstance(times, Mapping) else None) for name, trial in trials.items()
    )
    return RecordedSweep(
        "keras-tuner",
        folder.name,
        tuple(runs),
        rests_on=(
            "must hold: every trial trained one model (executions_per_trial=1)",
            *others_remark(len(found) - 1, "projects"),
        ),
    )


def _run(name: str, trial: Mapping[str, Any], times: object) -> RecordedRun:
    parameters = trial.get("hyperparameters")
    values = parameters.get("values") if isinstance(parameters, Mapping) else None
    if not isinstance(values, Mapping):
        raise ContentError(f"{_TRIAL} of trial {name!r} is not a file of Keras Tuner")
    return RecordedRun(
        name=f"trial {name}",
        values=dict(flat_values(values)),
        status=status_of(trial.get("status")),
        times=max(1, times) if isinstance(times, int) else 1,
    )


def _object(path: Path) -> Mapping[str, Any]:
    found = json_file(path, ACCOUNTANT if path.name == _ORACLE else SETTINGS)
    if not isinstance(found, Mapping):
        raise ContentError(f"{path.name} is not a file of Keras Tuner")
    return found
