"""Hydra: the folders of a multirun, each with the composed configuration of its job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from dpselect.decoding.files import read_content
from dpselect.decoding.yaml_text import yaml_of
from dpselect.errors import ContentError
from dpselect.integrations.sweeps.folders import SETTINGS, folders_in, is_plain_file
from dpselect.integrations.sweeps.sweep import (
    RecordedRun,
    RecordedSweep,
    chosen_part,
    flat_values,
    others_remark,
    sweep_format,
)

__all__ = ["read_hydra_folder"]

_CONFIG, _HYDRA, _SWEEP = ".hydra/config.yaml", ".hydra/hydra.yaml", "multirun.yaml"
_PLAIN_SWEEPER: Final = "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"
_DEEPEST: Final = 5


def _matches(source: str) -> bool:
    path = Path(source)
    return path.is_dir() and next(_jobs(path), None) is not None


@sweep_format("hydra", matches=_matches)
def read_hydra_folder(source: str, part: str | None) -> RecordedSweep:
    """The jobs of one multirun. `source` is its folder, or one above it."""
    path = Path(source)
    sweeps: dict[Path, list[Path]] = {}
    for job in _jobs(path):
        sweeps.setdefault(_sweep_of(job, path), []).append(job)
    names = {str(sweep): sweep.relative_to(path.parent).as_posix() for sweep in sweeps}
    chosen = Path(chosen_part(names, part))
    jobs = sweeps[chosen]
    plain = is_plain_file(chosen / _SWEEP) and all(_sweeper(job) == _PLAIN_SWEEPER for job in jobs)
    return RecordedSweep(
        "hydra",
        names[str(chosen)],
        tuple(
            RecordedRun(name=job.relative_to(path.parent).as_posix(), values=dict(flat_values(_yaml(job, _CONFIG))))
            for job in jobs
        ),
        rests_on=others_remark(len(sweeps) - 1, "sweeps"),
        independent="recorded: Hydra's basic sweeper ran a list of settings that was fixed in advance"
        if plain
        else None,
    )


def _jobs(folder: Path, deepest: int = _DEEPEST) -> Iterator[Path]:
    """The folders of jobs."""
    if is_plain_file(folder / _CONFIG):
        yield folder
    elif deepest:
        for each in folders_in(folder):
            yield from _jobs(each, deepest - 1)


def _sweep_of(job: Path, source: Path) -> Path:
    """The folder of the multirun that a job belongs to, or the one that it is in."""
    above = [folder for folder in job.parents if folder == source or source in folder.parents]
    return next((folder for folder in above if is_plain_file(folder / _SWEEP)), above[0] if above else job)


def _sweeper(job: Path) -> Any:
    if not is_plain_file(job / _HYDRA):
        return None
    return dict(flat_values(_yaml(job, _HYDRA))).get("hydra.sweeper._target_")


def _yaml(job: Path, name: str) -> Mapping[str, Any]:
    found = yaml_of(read_content(job / name, SETTINGS), name, limits=SETTINGS)
    if not isinstance(found, Mapping):
        raise ContentError(f"{job.name}/{name} is not a configuration of Hydra")
    return found
