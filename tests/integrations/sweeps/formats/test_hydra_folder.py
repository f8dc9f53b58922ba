"""Hydra's multiruns."""

import subprocess
import sys

import pytest

pytest.importorskip("yaml")

from dpselect.errors import ArgumentError, ContentError
from dpselect.integrations.sweeps.read import read_sweep
from tests.integrations.sweeps import tool_records as made

APP = """
import hydra

@hydra.main(version_base=None, config_path=".", config_name="conf")
def main(config):
    pass

main()
"""


def test_jobs_have_the_composed_configuration(tmp_path):
    sweep = read_sweep(str(made.hydra_multirun(tmp_path)))
    assert sweep.name == "multirun/2026-01-01/00-00-00"
    assert [run.values["dp.noise_multiplier"] for run in sweep.runs] == ["1.0", "2.0", "2.0"]
    assert sweep.runs[0].values["name"] == "a: b # c"
    assert "fixed in advance" in sweep.independent


def test_another_sweeper_may_have_seen_results(tmp_path):
    sweeper = "hydra_plugins.hydra_optuna_sweeper.optuna_sweeper.OptunaSweeper"
    assert read_sweep(str(made.hydra_multirun(tmp_path, sweeper=sweeper))).independent is None


def test_jobs_in_folders_of_any_depth_belong_to_one_multirun(tmp_path):
    root = made.hydra_multirun(tmp_path) / "2026-01-01" / "00-00-00"
    (root / "lr=1").mkdir()
    (root / "0").rename(root / "lr=1" / "seed=0")
    assert len(read_sweep(str(root)).runs) == 3


def test_one_multirun_of_several(tmp_path):
    folder = made.hydra_multirun(tmp_path) / "2026-01-01"
    made.hydra_multirun(tmp_path / "x")
    (tmp_path / "x" / "multirun" / "2026-01-01" / "00-00-00").rename(folder / "00-00-01")
    with pytest.raises(ArgumentError, match="00-00-01"):
        read_sweep(str(folder))
    sweep = read_sweep(str(folder), part="2026-01-01/00-00-01")
    assert "1 other sweeps" in sweep.rests_on[0]


def test_a_damaged_file(tmp_path):
    root = made.hydra_multirun(tmp_path)
    made.wrote(root / "2026-01-01" / "00-00-00" / "0" / ".hydra" / "config.yaml", "- 1\n")
    with pytest.raises(ContentError, match="configuration of Hydra"):
        read_sweep(str(root))


@pytest.mark.full
def test_what_hydra_writes(tmp_path):
    pytest.importorskip("hydra")
    made.wrote(tmp_path / "app.py", APP)
    made.wrote(tmp_path / "conf.yaml", "noise_multiplier: 1\ndp:\n  steps: 100\n  rate: 1e-2\nlayers: [1, 2]\n")
    words = [sys.executable, "app.py", "-m", "noise_multiplier=1.0,2.0", "dp.steps=100,200"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    sweep = read_sweep(str(tmp_path / "multirun"))
    found = [(float(run.values["noise_multiplier"]), run.values["dp.steps"]) for run in sweep.runs]
    assert found == [(1.0, "100"), (1.0, "200"), (2.0, "100"), (2.0, "200")]
    assert float(sweep.runs[0].values["dp.rate"]) == 0.01
    assert sweep.independent
