"""Reading the record of a sweep, by the reader that its form or its name calls for."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dpselect.decoding.limits import LimitError
from dpselect.errors import ArgumentError, ContentError
from dpselect.integrations.sweeps.sweep import SWEEP_FORMATS, RecordedSweep

__all__ = ["read_sweep"]

_PICKLES: Final = (".pkl", ".pickle", ".joblib", ".pt", ".pth")
_MOST_RUNS: Final = 100_000
_WORDS: Final = {
    "csv": "a CSV file",
    "hydra": "a multirun folder of Hydra",
    "json": "a JSON file",
    "keras-tuner": "a project folder of Keras Tuner",
    "mlflow-folder": "mlruns",
    "mlflow-sqlite": "MLflow's SQLite file",
    "optuna": "a storage of Optuna",
    "ray": "an experiment folder of Ray Tune",
    "wandb": "a folder of Weights & Biases",
}


def read_sweep(source: str, *, part: str | None = None, form: str | None = None) -> RecordedSweep:
    """Read the record that a tool left of a sweep. Nothing is written and no code in it runs.

    Args:
        source: a file, a folder, or a database URL of Optuna.
        part: the name of the study, experiment or sweep, if the source holds several.
        form: the name of the format. None, the default, finds the one that the source has.

    Returns:
        The sweep with all its runs.

    Raises:
        ArgumentError: if there is no such source, if no format or several fit it, or if a part must be named.
        ContentError: if the source is damaged, or holds something else than its format.
        OSError: if it cannot be read.
    """
    path = Path(source)
    if form is not None:
        reader = SWEEP_FORMATS[form]
    if "://" not in source and not path.exists():
        raise ArgumentError(f"sweep: there is no file or folder {source!r}")
    if path.suffix.lower() in _PICKLES:
        raise ArgumentError(
            f"sweep: {path.name} is a pickle. It could run any program, so it is not opened. Write CSV in place of it: "
            "pandas.DataFrame(search.cv_results_).to_csv('sweep.csv')"
        )
    if form is None:
        fitting = [name for name in SWEEP_FORMATS if SWEEP_FORMATS.facts(name)["matches"](source)]
        if not fitting:
            known = ", ".join(_WORDS.get(name, name) for name in SWEEP_FORMATS)
            raise ArgumentError(f"sweep: {path.name or source} is none of {known}")
        if len(fitting) > 1:
            raise ArgumentError(
                f"sweep_format: {path.name} may be one of {', '.join(fitting)}. Give the one that it is"
            )
        reader = SWEEP_FORMATS[fitting[0]]
    sweep = reader(source, part)
    if not sweep.runs:
        raise ContentError(f"{sweep.name} holds no run that began: there is nothing to price")
    if sum(run.times for run in sweep.runs) > _MOST_RUNS:
        raise LimitError(f"{path.name} holds more than {_MOST_RUNS} runs")
    return sweep
