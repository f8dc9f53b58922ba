"""MLflow's SQLite store."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from dpselect.integrations.sweeps.formats.mlflow_folder import mlflow_sweep
from dpselect.integrations.sweeps.sqlite_tables import SqliteTables, has_tables
from dpselect.integrations.sweeps.sweep import RecordedSweep, chosen_part, sweep_format

__all__ = ["read_mlflow_database"]


def _matches(source: str) -> bool:
    return has_tables(source, "experiments", "runs", "params", "tags")


@sweep_format("mlflow-sqlite", matches=_matches)
def read_mlflow_database(source: str, part: str | None) -> RecordedSweep:
    """The runs of one experiment, those that were deleted included."""
    with SqliteTables.opened(Path(source)) as tables:
        names = {str(key): str(name) for key, name in tables.rows("experiments", "experiment_id, name")}
        runs = tables.rows("runs", "run_uuid, status, CAST(experiment_id AS TEXT)")
        params, tags = defaultdict[str, dict[str, str]](dict), defaultdict[str, dict[str, str]](dict)
        for table, found in (("params", params), ("tags", tags)):
            for run, key, value in tables.rows(table, "run_uuid, key, value"):
                found[str(run)][str(key)] = str(value)
    begun = {experiment for _, _, experiment in runs}
    chosen = chosen_part({key: name for key, name in names.items() if key in begun}, part)
    rows = [(str(run), str(status), params[run], tags[run]) for run, status, key in runs if key == chosen]
    return mlflow_sweep("mlflow-sqlite", names[chosen], rows, len(begun) - 1)
