"""MLflow's file store."""

import pytest

pytest.importorskip("yaml")

from dpselect.errors import ArgumentError, ContentError
from dpselect.integrations.sweeps.read import read_sweep
from tests.integrations.sweeps import tool_records as made


def test_runs_and_their_states(tmp_path):
    root = made.mlflow_store(tmp_path)
    sweep = read_sweep(str(root))
    assert (sweep.name, sweep.rests_on) == ("digits: sweep", ())
    assert [run.status for run in sweep.runs] == list(made.STATUSES)
    assert [run.name for run in sweep.runs] == ["run-0", "run-1", "run-2"]
    assert sweep.runs[0].values == {name: str(value) for name, value in made.RUNS[0].items()}
    assert read_sweep(str(root / "1")) == sweep


def test_a_parent_groups_and_does_not_count_as_a_run_without_noise(tmp_path):
    runs = ({}, made.RUNS[0])
    tags = ({}, {"mlflow.parentRunId": "0" * 32})
    root = made.mlflow_store(tmp_path, runs, statuses=(3, 3), tags=tags)
    assert [run.groups for run in read_sweep(str(root)).runs] == [True, False]


def test_one_experiment_of_several_and_deleted_ones(tmp_path):
    root = made.mlflow_store(tmp_path)
    made.mlflow_store(tmp_path, experiment="2", name="other")
    made.mlflow_store(tmp_path / ".x", experiment="3", name="gone")
    (root / ".trash").mkdir()
    (tmp_path / ".x" / "mlruns" / "3").rename(root / ".trash" / "3")
    made.wrote(root / "0" / "meta.yaml", "name: Default\n")
    with pytest.raises(ArgumentError, match="'digits: sweep', 'other'"):
        read_sweep(str(root))
    sweep = read_sweep(str(root), part="other")
    assert "2 other experiments" in sweep.rests_on[0]


def test_a_damaged_file(tmp_path):
    root = made.mlflow_store(tmp_path)
    made.wrote(root / "1" / "meta.yaml", "- a\n")
    with pytest.raises(ContentError, match="not a file of MLflow"):
        read_sweep(str(root))


@pytest.mark.full
def test_what_mlflow_writes(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    for uri in (f"file:{tmp_path}/mlruns", f"sqlite:///{tmp_path}/mlflow.db"):
        mlflow.set_tracking_uri(uri)
        mlflow.set_experiment("digits: sweep")
        for run in made.RUNS:
            with mlflow.start_run():
                mlflow.log_params(run)
        deleted = mlflow.start_run()
        mlflow.end_run("FAILED")
        mlflow.MlflowClient().delete_run(deleted.info.run_id)
    for source in ("mlruns", "mlflow.db"):
        sweep = read_sweep(str(tmp_path / source))
        assert sorted(run.status for run in sweep.runs) == ["failed", "finished", "finished", "finished"]
        found = sorted(run.values.get("noise_multiplier", "") for run in sweep.runs)
        assert found == ["", "1.0", "2.0", "2.0"]
