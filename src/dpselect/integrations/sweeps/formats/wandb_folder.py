"""Weights & Biases: the local folders of runs, with a configuration file or the event log of an offline run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpselect.decoding.event_log import event_records, message_of
from dpselect.decoding.files import read_content
from dpselect.decoding.json_text import json_of
from dpselect.decoding.limits import ACCOUNTANT
from dpselect.decoding.yaml_text import yaml_of
from dpselect.errors import ContentError
from dpselect.integrations.sweeps.folders import SETTINGS, folders_in, is_plain_file
from dpselect.integrations.sweeps.sweep import (
    RecordedRun,
    RecordedSweep,
    Scalar,
    flat_values,
    refuse_part,
    sweep_format,
)

__all__ = ["read_wandb_folder"]

_RUN, _CONFIG, _EXIT = 17, 5, 18
"""Fields of a record."""
_OF_RUN, _UPDATE, _KEY, _NESTED, _VALUE, _CODE = 4, 1, 1, 2, 16, 1
"""The configuration of a run, its items, their parts, and the exit status."""


def _matches(source: str) -> bool:
    path = Path(source)
    return path.is_dir() and bool(_run_folders(path))


def _run_folders(path: Path) -> list[Path]:
    """The folder itself if it is that of a run, or those of runs in it, or in `wandb` below it."""
    for folders in ([path], folders_in(path), folders_in(path / "wandb") if (path / "wandb").is_dir() else []):
        found = [folder for folder in folders if folder.name.startswith(("run-", "offline-run-"))]
        if found:
            return found
    return []


@sweep_format("wandb", matches=_matches)
def read_wandb_folder(source: str, part: str | None) -> RecordedSweep:
    """Every run in the folder. A run that was resumed has several folders, and each counts."""
    refuse_part(part, "a folder of Weights & Biases")
    runs = tuple(_run(folder) for folder in _run_folders(Path(source)))
    if not runs:
        raise ContentError("the source holds no run of Weights & Biases")
    return RecordedSweep("wandb", Path(source).name, runs)


def _run(folder: Path) -> RecordedRun:
    logs = sorted(file for file in folder.glob("run-*.wandb") if is_plain_file(file))
    if logs:
        return _logged(folder.name, logs)
    config = folder / "files" / "config.yaml"
    if not is_plain_file(config):
        return RecordedRun(name=folder.name, values={})  # it began, and its configuration is lost
    found = yaml_of(read_content(config, SETTINGS), "config.yaml", limits=SETTINGS)
    if not isinstance(found, Mapping):
        raise ContentError(f"{folder.name}/files/config.yaml is not a file of Weights & Biases")
    return RecordedRun(name=folder.name, values=_settings(found))


def _logged(name: str, logs: list[Path]) -> RecordedRun:
    values, rewritten, status = dict[str, Scalar](), set[str](), "running"
    for log in logs:
        for record in event_records(log, ACCOUNTANT):
            message = message_of(record, ACCOUNTANT, log.name)
            configs = [inner for run in _messages(message, _RUN, log) for inner in _messages(run, _OF_RUN, log)]
            for config in [*configs, *_messages(message, _CONFIG, log)]:
                for item in _messages(config, _UPDATE, log):
                    for key, value in _item(item, log).items():
                        if key in values and values[key] != value:
                            rewritten.add(key)
                        values[key] = value
            for left in _messages(message, _EXIT, log):
                status = "failed" if left.get(_CODE) else "finished"
    return RecordedRun(name=name, values=values, status=status, rewritten=frozenset(rewritten))


def _messages(message: Mapping[int, list[Any]], number: int, log: Path) -> list[dict[int, list[Any]]]:
    parts = message.get(number, [])
    if not all(isinstance(part, bytes) for part in parts):
        raise ContentError(f"{log.name} is not the log of a Weights & Biases run")
    return [message_of(part, ACCOUNTANT, log.name) for part in parts]


def _item(item: Mapping[int, list[Any]], log: Path) -> dict[str, Scalar]:
    """The scalars of one item: a key, or the parts of a nested one, and a value in JSON."""
    keys, values = item.get(_KEY) or item.get(_NESTED, []), item.get(_VALUE, [])
    if not keys or not values or not all(isinstance(part, bytes) for part in (*keys, *values)):
        return {}
    name = ".".join(key.decode("utf-8", "replace") for key in keys)
    return _settings({name: json_of(values[-1], SETTINGS, log.name)})


def _settings(found: Mapping[str, Any]) -> dict[str, Scalar]:
    """The scalars, without what the tool writes for itself."""
    return {name: value for name, value in flat_values(found) if not name.startswith("_wandb")}
