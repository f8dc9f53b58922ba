"""Real kills (SIGKILL) at every durable write and at random instants; many submitters at once.

After each kill: what is on record is what was shown, or one answer more. After asking all questions again: one answer
to each, charged once.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from tests.root import ROOT

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs fork and SIGKILL")

HARNESS = "tests.holdout.kill_holdout"


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs Linux and a C compiler to count system calls")
    library = tmp_path_factory.mktemp("shim") / "kill_writes.so"
    source = ROOT / "tests" / "ledger" / "kill_writes.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return str(library)


def harness(*arguments, preload=None):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if preload is not None:
        environment["LD_PRELOAD"] = preload
    command = [sys.executable, "-m", HARNESS, *map(str, arguments)]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def wrongs(reports):
    return [report for report in reports if report["wrong"]]


def killed(reports):
    return sum(report["status"] == -signal.SIGKILL for report in reports)


@pytest.mark.full
def test_kills_around_durable_writes(tmp_path):
    reports = harness("writes", tmp_path / "kills", 16, 1)
    assert wrongs(reports) == []
    assert killed(reports) == 16


@pytest.mark.full
@pytest.mark.parametrize("count", [6, pytest.param(80, marks=pytest.mark.slow)])
def test_kills_inside_the_writes_of_the_database(shim, tmp_path, count):
    reports = harness("inside", tmp_path / "kills", count, 1, preload=shim)
    assert wrongs(reports) == []
    assert killed(reports) == count


@pytest.mark.full
@pytest.mark.parametrize("count", [4, pytest.param(30, marks=pytest.mark.slow)])
def test_a_full_disk(shim, tmp_path, count):
    reports = harness("full", tmp_path / "full", count, 1, preload=shim)
    assert wrongs(reports) == []
    # the process lives on and says so
    assert all("StudyError" in report["errors"][0] for report in reports if report["status"])
    assert sum(report["status"] == 1 for report in reports) > count // 2


@pytest.mark.full
def test_zoo_a_record_that_forgets_is_caught(tmp_path):
    reports = harness("broken", tmp_path / "kills", 3, 1)
    assert {"not charged once"} <= {wrong for report in reports for wrong in report["wrong"]}


@pytest.mark.slow
def test_kills_around_every_durable_write_and_by_the_clock(tmp_path):
    everywhere = harness("writes", tmp_path / "writes", 60, 1)
    assert len({tuple(report["instant"]) for report in everywhere}) == 2 * everywhere[0]["writes"]
    anytime = harness("random", tmp_path / "random", 60, 2)
    assert wrongs(everywhere + anytime) == []
    assert killed(everywhere) == 60
    assert killed(anytime) > 30


def hammered(folder, processes, each):
    (report,) = harness("hammer", folder, processes, each)
    assert report["statuses"] == [0] * processes, report["errors"]
    assert report["shown"] == 2 * processes * each  # each was answered
    assert report["answers"] == report["asked"] == processes * each  # the same to all who asked it, charged once


@pytest.mark.full
def test_four_processes_on_one_holdout(tmp_path):
    hammered(tmp_path / "hammer", 4, 4)


@pytest.mark.slow
def test_eight_processes_on_one_holdout(tmp_path):
    hammered(tmp_path / "hammer", 8, 10)
