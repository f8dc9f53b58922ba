"""Real kills of a gate's process at every durable write, a full disk, many processes at once."""

from __future__ import annotations

import os

import pytest

from tests.holdout import test_kills as holdouts
from tests.holdout.test_kills import harness, killed, shim, wrongs  # noqa: F401 - a fixture among them

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs fork and SIGKILL")


@pytest.fixture(autouse=True)
def gates(monkeypatch):
    monkeypatch.setattr(holdouts, "HARNESS", "tests.holdout.gate.kill_gate")


@pytest.mark.full
def test_kills_around_durable_writes(tmp_path):
    reports = harness("writes", tmp_path / "kills", 16, 1)
    assert wrongs(reports) == []
    assert killed(reports) == 16


@pytest.mark.full
@pytest.mark.parametrize("count", [6, pytest.param(80, marks=pytest.mark.slow)])
def test_kills_inside_the_writes_of_the_database(shim, tmp_path, count):  # noqa: F811
    reports = harness("inside", tmp_path / "kills", count, 1, preload=shim)
    assert wrongs(reports) == []
    assert killed(reports) == count


@pytest.mark.full
@pytest.mark.parametrize("count", [4, pytest.param(30, marks=pytest.mark.slow)])
def test_a_full_disk(shim, tmp_path, count):  # noqa: F811
    reports = harness("full", tmp_path / "full", count, 1, preload=shim)
    assert wrongs(reports) == []
    assert all("StudyError" in report["errors"][0] for report in reports if report["status"])


@pytest.mark.full
def test_zoo_a_record_that_forgets_is_caught(tmp_path):
    reports = harness("broken", tmp_path / "kills", 3, 1)
    assert {"not charged once"} <= {wrong for report in reports for wrong in report["wrong"]}


@pytest.mark.slow
def test_kills_around_every_durable_write_and_by_the_clock(tmp_path):
    everywhere = harness("writes", tmp_path / "writes", 120, 1)
    assert len({tuple(report["instant"]) for report in everywhere}) == 2 * everywhere[0]["writes"]
    anytime = harness("random", tmp_path / "random", 40, 2)
    assert wrongs(everywhere + anytime) == []


@pytest.mark.full
@pytest.mark.parametrize(("processes", "each"), [(4, 3), pytest.param(8, 8, marks=pytest.mark.slow)])
def test_many_processes_share_one_purse(tmp_path, processes, each):
    (report,) = harness("hammer", tmp_path / "hammer", processes, each)
    assert report["statuses"] == [0] * processes, report["errors"]
    assert report["shown"] == report["asked"] == processes * each
    assert report["purse"] == 0.0  # even stakes, one after another, use it up exactly
