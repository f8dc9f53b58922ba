"""Keras Tuner: the folder of a project."""

import json
import os

import pytest

from dpselect.errors import ArgumentError, ContentError
from dpselect.integrations.sweeps.read import read_sweep
from tests.integrations.sweeps import tool_records as made


def test_trials_and_how_often_they_ran(tmp_path):
    folder = made.keras_project(tmp_path)
    sweep = read_sweep(str(folder))
    assert [run.values for run in sweep.runs] == list(made.RUNS)
    assert [run.status for run in sweep.runs] == list(made.STATUSES)
    assert [run.times for run in sweep.runs] == [1, 3, 1]
    assert "executions_per_trial" in sweep.rests_on[0]
    assert read_sweep(str(folder / "project")).runs == sweep.runs


def test_a_trial_that_is_gone(tmp_path):
    folder = made.keras_project(tmp_path)
    (folder / "project" / "trial_1" / "trial.json").unlink()
    with pytest.raises(ContentError, match="lacks trials"):
        read_sweep(str(folder))


def test_one_project_of_several(tmp_path):
    folder = made.keras_project(tmp_path)
    made.keras_project(tmp_path / "x")
    (tmp_path / "x" / "tuning" / "project").rename(folder / "other")
    with pytest.raises(ArgumentError, match="'other', 'project'"):
        read_sweep(str(folder))
    assert "1 other projects" in read_sweep(str(folder), part="other").rests_on[1]


@pytest.mark.parametrize("text", ["[]", '{"trial_id": "0"}', '{"hyperparameters": {"values": 1}}'])
def test_a_damaged_file(tmp_path, text):
    folder = made.keras_project(tmp_path)
    made.wrote(folder / "project" / "trial_0" / "trial.json", text)
    with pytest.raises(ContentError):
        read_sweep(str(folder))


@pytest.mark.full
def test_what_keras_tuner_writes(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", os.environ.get("KERAS_BACKEND", "jax"))
    tuner = pytest.importorskip("keras_tuner", exc_type=ImportError)

    class Sweep(tuner.RandomSearch):
        def run_trial(self, trial, *_, **__):
            noise = trial.hyperparameters.Float("noise_multiplier", 1.0, 3.0)
            trial.hyperparameters.Fixed("sampling_rate", 0.01)
            if noise > 2.0:
                raise tuner.errors.FailedTrialError
            return noise

    sweep = Sweep(
        objective=tuner.Objective("score", "min"),
        max_trials=5,
        hypermodel=lambda given: given.Float("noise_multiplier", 1.0, 3.0),
        directory=str(tmp_path),
        project_name="p",
        seed=1,
    )
    sweep.search(verbose=0)
    found = read_sweep(str(tmp_path / "p"))
    assert len(found.runs) == 5
    for run in found.runs:
        assert run.status == ("failed" if run.values["noise_multiplier"] > 2.0 else "finished")
        trial = json.loads((tmp_path / "p" / run.name.replace(" ", "_") / "trial.json").read_text())
        assert run.values == trial["hyperparameters"]["values"]
