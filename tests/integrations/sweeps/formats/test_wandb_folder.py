"""Weights & Biases: offline logs and configuration files."""

import pytest

from dpselect.errors import ContentError
from dpselect.integrations.sweeps.read import read_sweep
from tests.integrations.sweeps import tool_records as made


def test_the_log_of_an_offline_run(tmp_path):
    folder = made.wandb_offline(tmp_path)
    sweep = read_sweep(str(folder))
    assert [run.values for run in sweep.runs] == list(made.RUNS)
    assert [run.status for run in sweep.runs] == ["finished", "failed", "running"]
    assert read_sweep(str(tmp_path)).runs == sweep.runs
    one = next(folder.iterdir())
    assert len(read_sweep(str(one)).runs) == 1


def test_a_setting_that_changed_is_known_as_such(tmp_path):
    updates = ({}, {"noise_multiplier": 3.0, "lr": 0.2}, {})
    run = read_sweep(str(made.wandb_offline(tmp_path, updates=updates))).runs[1]
    assert run.rewritten == {"noise_multiplier"}


def test_configuration_files(tmp_path):
    pytest.importorskip("yaml")
    runs = read_sweep(str(made.wandb_synced(tmp_path))).runs
    assert [run.values for run in runs] == [{name: str(value) for name, value in run.items()} for run in made.RUNS]


def test_a_run_without_its_configuration_still_counts(tmp_path):
    (tmp_path / "wandb" / "run-1-a" / "files").mkdir(parents=True)
    assert [dict(run.values) for run in read_sweep(str(tmp_path)).runs] == [{}]


def test_a_damaged_log(tmp_path):
    folder = made.wandb_offline(tmp_path)
    log = next(folder.rglob("*.wandb"))
    content = bytearray(log.read_bytes())
    content[30] ^= 1
    log.write_bytes(content)
    with pytest.raises(ContentError, match="checksum"):
        read_sweep(str(folder))


@pytest.mark.full
def test_what_weights_and_biases_writes(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    for run in made.RUNS:
        with wandb.init(mode="offline", project="p", config={"dp": run, "layers": [1, 2]}) as began:
            began.log({"accuracy": 0.5})
    sweep = read_sweep(str(tmp_path / "wandb"))
    assert [run.status for run in sweep.runs] == ["finished"] * 3
    found = [{name.removeprefix("dp."): value for name, value in run.values.items()} for run in sweep.runs]
    assert sorted(map(str, found)) == sorted(map(str, made.RUNS))
