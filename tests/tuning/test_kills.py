"""Real kills (SIGKILL) at every durable write and at random instants; every search is then resumed to its end.

After each kill: a reservation exists whenever something was drawn, tried or released. After the resume: one draw, one
charge, settled, one released value, the key gone, no trial with two settings; and with a caller's keyed source, the
value of the uninterrupted search. The same for searches whose trials learn from earlier ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.root import ROOT

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs fork and SIGKILL")


def killed_searches(folder, mode, count, seed=1):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.tuning.kill_search", str(folder / "searches"), mode, str(count), str(seed)]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    reports = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(reports) == count
    return reports


def wrongs(reports):
    return [report for report in reports if report["wrong"]]


def kills(reports):
    return sum(sum(report["killed"]) for report in reports)


@pytest.mark.full
def test_kills_around_durable_writes(tmp_path):
    reports = killed_searches(tmp_path, "writes", 20)
    assert wrongs(reports) == []
    assert kills(reports) >= 19


@pytest.mark.full
def test_kills_at_random_instants(tmp_path):
    reports = killed_searches(tmp_path, "random", 6)
    assert wrongs(reports) == []
    assert kills(reports) >= 1


@pytest.mark.full
def test_zoo_a_tuner_that_starts_over_is_caught(tmp_path):
    """Broken: on resume it forgets the store, so K is drawn again and a second charge is made."""
    reports = killed_searches(tmp_path, "broken", 8)
    found = {wrong for report in reports for wrong in report["wrong"]}
    assert {"not exactly one settled charge", "drawn more than once"} <= found


@pytest.mark.full
def test_kills_of_a_search_whose_trials_learn(tmp_path):
    reports = killed_searches(tmp_path, "adaptive-writes", 9)
    assert wrongs(reports) == []
    assert kills(reports) >= 8


@pytest.mark.full
def test_zoo_a_tuner_that_proposes_again_is_caught(tmp_path):
    """Broken: on resume it asks the proposer once more what to try in a trial that was under way."""
    reports = killed_searches(tmp_path, "adaptive-broken", 12)
    assert "a trial with two settings" in {wrong for report in reports for wrong in report["wrong"]}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", ["", "adaptive-"])
def test_two_hundred_kills(tmp_path, seed, kind):
    everywhere = killed_searches(tmp_path, kind + "writes", 140)
    instants = {tuple(report["instant"]) for report in everywhere}
    assert len(instants) == 2 * everywhere[0]["writes"]
    anytime = killed_searches(tmp_path, kind + "random", 60, seed)
    chained = killed_searches(tmp_path, kind + "chain", 20, seed)
    assert wrongs(everywhere + anytime + chained) == []
    assert kills(everywhere + anytime + chained) >= 200
