"""Finding the reader of a record."""

import pytest

from dpselect.decoding.limits import LimitError
from dpselect.errors import ArgumentError, ContentError
from dpselect.integrations.sweeps.read import read_sweep
from tests.integrations.sweeps import tool_records as made

YAML = ("mlflow-folder", "hydra")
RECORDS = {
    "csv": made.csv_file,
    "mlflow-folder": made.mlflow_store,
    "mlflow-sqlite": made.mlflow_database,
    "wandb": made.wandb_offline,
    "ray": made.ray_experiment,
    "hydra": made.hydra_multirun,
    "keras-tuner": made.keras_project,
}


@pytest.mark.parametrize("form", RECORDS)
def test_the_format_of_a_record_is_recognised(form, tmp_path):
    if form in YAML:
        pytest.importorskip("yaml")
    source = str(RECORDS[form](tmp_path))
    found = read_sweep(source)
    assert found.tool == form
    assert found == read_sweep(source, form=form)
    assert [float(run.values[name]) for run in found.runs for name in run.values if "noise" in name] == [1.0, 2.0, 2.0]


def test_a_pickle_is_not_opened(tmp_path):
    path = tmp_path / "search.joblib"
    path.write_bytes(b"\x80")
    with pytest.raises(ArgumentError, match=r"is a pickle.*to_csv"):
        read_sweep(str(path), form="csv")


def test_what_is_absent_unknown_or_of_no_format(tmp_path):
    with pytest.raises(ArgumentError, match="no file or folder"):
        read_sweep(str(tmp_path / "absent"))
    with pytest.raises(ArgumentError, match=r"none of a CSV file.*mlruns"):
        read_sweep(str(tmp_path))
    with pytest.raises(ArgumentError, match="unknown sweep format 'x'; one of csv"):
        read_sweep(str(tmp_path), form="x")


def test_a_source_of_two_formats_must_be_named(tmp_path):
    source = made.ray_experiment(tmp_path)
    made.wrote(source / "trial_9" / "trial.json", "{}")
    with pytest.raises(ArgumentError, match="keras-tuner, ray"):
        read_sweep(str(source))
    assert read_sweep(str(source), form="ray").tool == "ray"


def test_a_study_whose_trials_all_wait_has_no_run(tmp_path):
    path = tmp_path / "a.log"
    path.write_text(
        '{"op_code": 0, "worker_id": "a", "study_name": "s", "directions": [1]}\n'
        '{"op_code": 4, "worker_id": "a", "study_id": 0, "state": 4}\n'
    )
    with pytest.raises(ContentError, match="no run that began"):
        read_sweep(str(path))


def test_the_number_of_runs_is_limited(tmp_path):
    source = made.keras_project(tmp_path, times=(1, 10**9, 1))
    with pytest.raises(LimitError, match="more than 100000 runs"):
        read_sweep(str(source))
