"""MLflow's SQLite store. Its own database is read in `test_mlflow_folder.py`."""

import sqlite3
from contextlib import closing

import pytest

from dpselect.errors import ArgumentError
from dpselect.integrations.sweeps.read import read_sweep
from tests.integrations.sweeps import tool_records as made


def test_runs_and_their_states(tmp_path):
    sweep = read_sweep(str(made.mlflow_database(tmp_path)))
    assert sweep.name == "digits"
    assert [run.status for run in sweep.runs] == list(made.STATUSES)
    assert sweep.runs[1].values == {name: str(value) for name, value in made.RUNS[1].items()}


def test_one_experiment_of_several(tmp_path):
    path = made.mlflow_database(tmp_path)
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.execute("INSERT INTO runs VALUES ('x', 'KILLED', 0)")
    with pytest.raises(ArgumentError, match="'Default', 'digits'"):
        read_sweep(str(path))
    sweep = read_sweep(str(path), part="Default")
    assert [run.status for run in sweep.runs] == ["failed"]
    assert "1 other experiments" in sweep.rests_on[0]
