"""Searches of five trainings, killed at any moment and resumed: the same release, one charge, no noise drawn twice."""

import json
import os
import subprocess
import sys

import pytest

from tests.root import ROOT

pytest.importorskip("torch")
pytest.importorskip("opacus")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs fork and SIGKILL")


def killed_searches(folder, mode, count, seed=1):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m", "tests.integrations.opacus.kill_trainings"]
    command += [str(folder / "searches"), mode, str(count), str(seed)]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    reports = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(reports) == count
    return reports


def wrongs(reports):
    return [report for report in reports if report["wrong"] or report["ended"] != 0]


@pytest.mark.full
def test_kills_around_checkpoints_and_at_random_instants(tmp_path):
    reports = killed_searches(tmp_path, "checkpoints", 4) + killed_searches(tmp_path, "random", 2)
    assert wrongs(reports) == []
    assert all(report["killed"] for report in reports)


@pytest.mark.full
def test_zoo_a_training_that_draws_again_is_caught(tmp_path):
    """Broken: after a kill it begins again, with noise from the system."""
    reports = killed_searches(tmp_path, "broken", 2)
    assert all("not the release of the uninterrupted search" in report["wrong"] for report in reports)
    assert all("a step with two noisy gradients" in report["wrong"] for report in reports)


@pytest.mark.slow
def test_a_hundred_kills(tmp_path):
    everywhere = killed_searches(tmp_path, "checkpoints", 60)
    anytime = killed_searches(tmp_path, "random", 50)
    assert wrongs(everywhere + anytime) == []
    assert all(report["killed"] for report in everywhere + anytime)
