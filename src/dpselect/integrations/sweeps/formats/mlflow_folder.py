"""MLflow's file store: a folder for each experiment, in it one for each run, in that a file for each parameter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dpselect.decoding.files import read_content
from dpselect.decoding.yaml_text import yaml_of
from dpselect.errors import ContentError
from dpselect.integrations.sweeps.folders import SETTING, SETTINGS, files_below, folders_in, is_plain_file
from dpselect.integrations.sweeps.rows import status_of
from dpselect.integrations.sweeps.sweep import (
    RecordedRun,
    RecordedSweep,
    chosen_part,
    others_remark,
    sweep_format,
)

__all__ = ["mlflow_sweep", "read_mlflow_folder"]

_META: Final = "meta.yaml"
_STATUSES: Final = {"1": "running", "2": "scheduled", "3": "finished", "4": "failed", "5": "killed"}
"""MLflow's numbers."""
_PARENT: Final = "mlflow.parentRunId"


def _matches(source: str) -> bool:
    path = Path(source)
    return path.is_dir() and any(is_plain_file(folder / _META) for folder in (path, *folders_in(path)))


@sweep_format("mlflow-folder", matches=_matches)
def read_mlflow_folder(source: str, part: str | None) -> RecordedSweep:
    """The runs of one experiment, those that were deleted included. `source` is `mlruns`, or one experiment in it."""
    path = Path(source)
    folders = [path] if is_plain_file(path / _META) else folders_in(path)
    metas = {folder: _meta(folder) for folder in folders if is_plain_file(folder / _META)}
    runs = {folder: list(_runs(folder)) for folder in metas}
    names = {str(folder): str(meta.get("name") or folder.name) for folder, meta in metas.items() if runs[folder]}
    chosen = chosen_part(names, part)
    deleted = folders_in(path / ".trash") if (path / ".trash").is_dir() else []
    others = len(names) - 1 + sum(bool(list(_runs(folder))) for folder in deleted)
    return mlflow_sweep("mlflow-folder", names[chosen], runs[Path(chosen)], others)


def mlflow_sweep(
    tool: str, name: str, found: Sequence[tuple[str, str, Mapping[str, str], Mapping[str, str]]], others: int
) -> RecordedSweep:
    """The sweep of runs, each with its identifier, its status, its parameters and its tags."""
    parents = {tags[_PARENT] for _, _, _, tags in found if _PARENT in tags}
    runs = tuple(
        RecordedRun(
            name=tags.get("mlflow.runName") or identifier,
            values=values,
            status=status_of(status),
            groups=identifier in parents,
        )
        for identifier, status, values, tags in found
    )
    return RecordedSweep(tool, name, runs, rests_on=others_remark(others, "experiments"))


def _runs(folder: Path) -> Iterator[tuple[str, str, Mapping[str, str], Mapping[str, str]]]:
    for run in folders_in(folder):
        if is_plain_file(run / _META):
            meta = _meta(run)
            status = _STATUSES.get(str(meta.get("status")), "unknown")
            yield run.name, status, _texts(run / "params"), _texts(run / "tags")


def _meta(folder: Path) -> Mapping[str, Any]:
    found = yaml_of(read_content(folder / _META, SETTINGS), _META, limits=SETTINGS)
    if not isinstance(found, Mapping):
        raise ContentError(f"{folder.name}/{_META} is not a file of MLflow")
    return found


def _texts(folder: Path) -> dict[str, str]:
    """The content of each file, by its path below the folder."""
    return {
        file.relative_to(folder).as_posix(): read_content(file, SETTING).decode("utf-8", "replace").strip()
        for file in files_below(folder)
    }
