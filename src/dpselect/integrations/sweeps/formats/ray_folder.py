"""Ray Tune: an experiment's folder, in it a folder for each trial and the state of the experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from dpselect.decoding.files import lines_of
from dpselect.decoding.json_text import json_file, json_of
from dpselect.decoding.limits import ACCOUNTANT
from dpselect.errors import ContentError
from dpselect.integrations.sweeps.folders import SETTINGS, folders_in, is_plain_file
from dpselect.integrations.sweeps.rows import status_of
from dpselect.integrations.sweeps.sweep import (
    RecordedRun,
    RecordedSweep,
    Scalar,
    chosen_part,
    flat_values,
    others_remark,
    sweep_format,
)

__all__ = ["read_ray_folder"]

_PARAMS, _RESULTS, _ERROR = "params.json", "result.json", "error.txt"
_STATE: Final = "experiment_state-*.json"
_PLAIN_SEARCH: Final = "basic-variant-state-*.json"
"""Ray writes it for grids and random draws, which see no result."""
_OTHER_SEARCH: Final = ("searcher-state-*", "search_gen_state-*")


def _matches(source: str) -> bool:
    path = Path(source)
    return path.is_dir() and any(map(_is_experiment, [path, *folders_in(path)]))


def _is_experiment(folder: Path) -> bool:
    return any(folder.glob(_STATE)) or any(is_plain_file(trial / _PARAMS) for trial in folders_in(folder))


@sweep_format("ray", matches=_matches)
def read_ray_folder(source: str, part: str | None) -> RecordedSweep:
    """The trials of one experiment. A trial that failed and was tried again counts as often as it began."""
    path = Path(source)
    found = [path] if _is_experiment(path) else [folder for folder in folders_in(path) if _is_experiment(folder)]
    folder = Path(chosen_part({str(each): each.name for each in found}, part))
    states = _states(folder)
    runs = [_trial(trial, states.pop(trial.name, {})) for trial in folders_in(folder) if is_plain_file(trial / _PARAMS)]
    for name, state in states.items():  # it began, and its folder is gone
        if status_of(state.get("status")) != "waiting":
            values = dict(flat_values(_mapping(state.get("config"))))
            runs.append(
                RecordedRun(name=name, values=values, status=status_of(state.get("status")), times=_begun(state))
            )
    plain = any(folder.glob(_PLAIN_SEARCH)) and not any(any(folder.glob(each)) for each in _OTHER_SEARCH)
    return RecordedSweep(
        "ray",
        folder.name,
        tuple(runs),
        rests_on=others_remark(len(found) - 1, "experiments"),
        independent="recorded: Ray chose the settings by a grid or by random draws" if plain else None,
    )


def _trial(folder: Path, state: Mapping[str, Any]) -> RecordedRun:
    configs = [dict(flat_values(_mapping(json_file(folder / _PARAMS, SETTINGS))))]
    iterations = list[int]()
    for result in _results(folder / _RESULTS):
        config, iteration = result.get("config"), result.get("training_iteration")
        if isinstance(config, Mapping):
            configs.append(dict(flat_values(config)))
        if isinstance(iteration, int):
            iterations.append(iteration)
    # an iteration that is not above the one before was trained again
    again = sum(later <= earlier for earlier, later in pairwise(iterations))
    status = "failed" if is_plain_file(folder / _ERROR) else status_of(state.get("status"))
    return RecordedRun(
        name=folder.name,
        values=configs[0],
        status=status,
        times=max(1 + again, _begun(state)),
        rewritten=frozenset(_changed(configs)),
    )


def _results(path: Path) -> Iterable[Mapping[str, Any]]:
    if is_plain_file(path):
        for line in lines_of(path, ACCOUNTANT):
            if line.strip():
                yield _mapping(json_of(line, SETTINGS, path.name))


def _changed(configs: list[dict[str, Scalar]]) -> Iterable[str]:
    """The settings that a trial had with two values, as population-based training changes them."""
    for config in configs[1:]:
        yield from (name for name in config.keys() | configs[0].keys() if config.get(name) != configs[0].get(name))


def _begun(state: Mapping[str, Any]) -> int:
    """How often a trial began, by its recorded failures. A last one that was not tried again is among them."""
    failures = state.get("num_failures")
    failed = failures if isinstance(failures, int) and not isinstance(failures, bool) and failures > 0 else 0
    return max(1, failed + (status_of(state.get("status")) != "failed"))


def _states(folder: Path) -> dict[str, dict[str, Any]]:
    """The latest state of each trial, by the name of its folder, with the most failures of all states."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(each for each in folder.glob(_STATE) if is_plain_file(each)):
        for trial in _mapping(json_file(file, ACCOUNTANT)).get("trial_data", []):
            if not isinstance(trial, list) or not all(isinstance(part, str) for part in trial):
                raise ContentError(f"{file.name} is the state of another version of Ray")
            parts = [_mapping(json_of(part, ACCOUNTANT, file.name)) for part in trial]
            merged = {name: value for part in parts for name, value in part.items()}
            name = str(merged.get("relative_logdir") or merged.get("trial_id"))
            earlier = found.get(name, {}).get("num_failures", 0)
            merged["num_failures"] = max(
                (each for each in (earlier, merged.get("num_failures")) if isinstance(each, int)), default=0
            )
            found[name] = merged
    return found


def _mapping(found: object) -> Mapping[str, Any]:
    if not isinstance(found, Mapping):
        raise ContentError("the source holds a file that Ray did not write")
    return found
