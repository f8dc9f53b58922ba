"""Ray Tune: the folder of an experiment."""

import json

import pytest

from dpselect.errors import ArgumentError, ContentError
from dpselect.integrations.sweeps.read import read_sweep
from tests.integrations.sweeps import tool_records as made


def test_trials_and_their_states(tmp_path):
    sweep = read_sweep(str(made.ray_experiment(tmp_path)))
    assert [run.values for run in sweep.runs] == list(made.RUNS)
    assert [run.status for run in sweep.runs] == list(made.STATUSES)
    assert [run.times for run in sweep.runs] == [1, 1, 1]
    assert "grid or by random draws" in sweep.independent


def test_another_searcher_may_have_seen_results(tmp_path):
    assert read_sweep(str(made.ray_experiment(tmp_path, plain=False))).independent is None


def test_failures_that_were_tried_again_count(tmp_path):
    assert [run.times for run in read_sweep(str(made.ray_experiment(tmp_path, failures=(2, 3, 0)))).runs] == [3, 3, 1]


def test_iterations_that_were_trained_again_count(tmp_path):
    root = made.ray_experiment(tmp_path)
    again = [{"training_iteration": at} for at in (1, 2, 3, 2, 3, 4)]
    made.wrote(root / "trial_0" / "result.json", "".join(json.dumps(each) + "\n" for each in again))
    assert read_sweep(str(root)).runs[0].times == 2


def test_settings_that_population_based_training_changes(tmp_path):
    root = made.ray_experiment(tmp_path)
    result = {"training_iteration": 3, "config": {**made.RUNS[0], "noise_multiplier": 0.5}}
    with (root / "trial_0" / "result.json").open("a") as file:
        file.write(json.dumps(result) + "\n")
    assert read_sweep(str(root)).runs[0].rewritten == {"noise_multiplier"}


def test_a_trial_whose_folder_is_gone_counts_unless_it_never_began(tmp_path):
    root = made.ray_experiment(tmp_path, statuses=("TERMINATED", "PENDING", "ERROR"), failures=(0, 0, 1))
    for at in (1, 2):
        for file in (root / f"trial_{at}").iterdir():
            file.unlink()
        (root / f"trial_{at}").rmdir()
    runs = read_sweep(str(root)).runs
    assert [(run.name, run.status) for run in runs] == [("trial_0", "finished"), ("trial_2", "failed")]
    assert runs[1].values == made.RUNS[2]


def test_one_experiment_of_several(tmp_path):
    made.ray_experiment(tmp_path)
    made.ray_experiment(tmp_path / "x")
    (tmp_path / "x" / "exp").rename(tmp_path / "exp2")
    with pytest.raises(ArgumentError, match="'exp', 'exp2'"):
        read_sweep(str(tmp_path))
    assert "1 other experiments" in read_sweep(str(tmp_path), part="exp").rests_on[0]


@pytest.mark.parametrize(("file", "text"), [("params.json", "[]"), ("result.json", "1\n"), ("result.json", "{\n")])
def test_a_damaged_file(tmp_path, file, text):
    root = made.ray_experiment(tmp_path)
    made.wrote(root / "trial_0" / file, text)
    with pytest.raises(ContentError):
        read_sweep(str(root))


def test_the_state_of_another_version(tmp_path):
    root = made.ray_experiment(tmp_path)
    made.wrote(root / "experiment_state-2027.json", '{"trial_data": [1]}')
    with pytest.raises(ContentError, match="another version"):
        read_sweep(str(root))


@pytest.mark.full
def test_what_ray_writes(tmp_path):
    ray = pytest.importorskip("ray")
    tune = pytest.importorskip("ray.tune")

    def train(config):
        if config["noise_multiplier"] == 2.0:
            raise ValueError
        tune.report({"accuracy": 0.5})

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        tune.Tuner(
            train,
            param_space={"noise_multiplier": tune.grid_search([1.0, 2.0]), "dp": {"sampling_rate": 0.01, "steps": 100}},
            run_config=tune.RunConfig(
                storage_path=str(tmp_path), name="exp", verbose=0, failure_config=tune.FailureConfig(max_failures=1)
            ),
        ).fit()
    finally:
        ray.shutdown()
    sweep = read_sweep(str(tmp_path))
    found = sorted((run.values["noise_multiplier"], run.status, run.times) for run in sweep.runs)
    assert found == [(1.0, "finished", 1), (2.0, "failed", 2)]
    assert sweep.runs[0].values["dp.steps"] == 100
    assert sweep.independent
