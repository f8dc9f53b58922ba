"""SIGKILL at every write, torn writes, a full disk, loss of power; cut and garbled files; eight processes at once.

After each: the record verifies (or names the damage), every acknowledged entry is there, and what is spent covers what
was released.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from dpselect.ledger import Ledger, LedgerError
from dpselect.testing.ledger_contract import GATE

HARNESS = Path(__file__).with_name("kill_ledger.py")
SHIM = Path(__file__).with_name("kill_writes.c")
PROCESSES = 8

linux = pytest.mark.skipif(sys.platform != "linux", reason="counts system calls by preloading")


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to count writes with")
    library = tmp_path_factory.mktemp("shim") / "kill_writes.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SHIM, "-ldl"], check=True)
    return str(library)


def harness(*arguments, preload=None):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if preload is not None:
        environment["LD_PRELOAD"] = preload
    command = [sys.executable, str(HARNESS), *map(str, arguments)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def wrongs(reports):
    return [report for report in reports if report["wrong"]]


def kills(shim, folder, count):
    reports = harness("kill", folder / "kills", count, preload=shim)
    assert wrongs(reports) == []
    assert [report["status"] for report in reports] == [-signal.SIGKILL] * count
    return reports


@pytest.mark.full
@linux
def test_fifty_kills_spread_over_all_writes(shim, tmp_path):
    kills(shim, tmp_path, 50)


@pytest.mark.slow
@linux
def test_a_thousand_kills_at_every_write(shim, tmp_path):
    reports = kills(shim, tmp_path, 1000)
    instants = {tuple(report["instant"]) for report in reports}
    assert len(instants) == 3 * reports[0]["operations"]


@pytest.mark.full
@linux
@pytest.mark.parametrize("count", [8, pytest.param(200, marks=pytest.mark.slow)])
def test_a_full_disk(shim, tmp_path, count):
    reports = harness("full", tmp_path / "full", count, preload=shim)
    assert wrongs(reports) == []
    # the process lives on and says so
    assert all("LedgerUnavailableError" in report["errors"][0] for report in reports if report["status"])
    assert sum(report["status"] == 1 for report in reports) > count // 2


@pytest.mark.full
@linux
@pytest.mark.parametrize("count", [30, pytest.param(1000, marks=pytest.mark.slow)])
def test_loss_of_power(shim, tmp_path, count):
    reports = harness("power", tmp_path / "power", count, 1, preload=shim)
    assert wrongs(reports) == []
    assert max(report["acknowledged"] for report in reports) == 4


@pytest.mark.full
@linux
def test_zoo_commits_that_are_not_synced_are_caught(shim, tmp_path):
    assert wrongs(harness("broken", tmp_path / "broken", 20, 1, preload=shim))


def hammered(where, each):
    (report,) = harness("hammer", where, PROCESSES, each)
    granted = sum(count for count, _ in report["counts"])
    assert sum(map(sum, report["counts"])) == PROCESSES * each  # each was answered
    assert granted == PROCESSES * each // 2  # never overdrawn by a unit, none lost
    assert Fraction(report["spent"]) == Fraction(granted, 1000)
    assert report["entries"] == 2 + 2 * granted


@pytest.mark.full
def test_eight_processes_on_one_budget(tmp_path):
    hammered(tmp_path / "budget.db", 6)


@pytest.mark.slow
def test_eight_processes_ten_thousand_reservations(tmp_path):
    hammered(tmp_path / "budget.db", 1250)


@pytest.mark.full
@pytest.mark.skipif("DPSELECT_TEST_POSTGRES" not in os.environ, reason="DPSELECT_TEST_POSTGRES names no server")
@pytest.mark.parametrize("each", [6, pytest.param(1250, marks=pytest.mark.slow)])
def test_eight_processes_on_a_server(each):
    from tests.ledger.test_contract import empty_schema

    with empty_schema() as where:
        hammered(where, each)


def spent_ledger(path, rounds=30):
    """A ledger of several pages, closed, and the receipt of its last entry."""
    with Ledger.open(path) as ledger:
        budget = ledger.create_budget("b", epsilon=100, delta="1e-3")
        for _ in range(rounds):
            receipt = budget.reserve(GATE, label="s").settle(None)
    return receipt


def judged(path, receipt, spent):
    """True if the record verifies with all that was acknowledged; else it must say that it is damaged."""
    try:
        with Ledger.open(path, create=False, timeout=1, witness=False) as ledger:
            ledger.verify(receipt)
            assert ledger.budget("b").spent().epsilon >= spent
        return True
    except LedgerError:
        return False


def test_a_file_cut_at_every_page_is_found_damaged(tmp_path):
    receipt = spent_ledger(tmp_path / "budget.db")
    content = (tmp_path / "budget.db").read_bytes()
    assert len(content) > 10 * 4096
    for size in range(0, len(content), 4096):
        cut = tmp_path / f"{size}.db"
        cut.write_bytes(content[:size])
        assert not judged(cut, receipt, 3)
    whole = tmp_path / "whole.db"
    whole.write_bytes(content)
    assert judged(whole, receipt, 3)


def test_a_garbled_page_is_found_or_does_not_matter(tmp_path):
    receipt = spent_ledger(tmp_path / "budget.db")
    content = (tmp_path / "budget.db").read_bytes()
    found = 0
    for page in range(len(content) // 4096):
        garbled = bytearray(content)
        garbled[page * 4096 + 100 : (page + 1) * 4096] = bytes(4096 - 100)
        path = tmp_path / f"{page}.db"
        path.write_bytes(garbled)
        found += not judged(path, receipt, 3)
    assert found >= len(content) // 4096 - 1


def test_copies_at_every_step_verify_and_old_ones_are_found(tmp_path):
    """File and log are copied after every call, as a backup would; a later receipt shows that a copy is old."""
    path = tmp_path / "budget.db"
    receipts, copies = [], []
    with Ledger.open(path) as ledger:
        budget = ledger.create_budget("b", epsilon=100, delta="1e-3")
        for number in range(6):
            receipts.append(budget.reserve(GATE, label="s", identifier=str(number)))
            folder = tmp_path / str(number)
            folder.mkdir()
            for suffix in ("", "-wal"):
                shutil.copy(f"{path}{suffix}", folder / f"budget.db{suffix}")
            copies.append(folder / "budget.db")
    for number, copy in enumerate(copies):
        with Ledger.open(copy, create=False, witness=False) as ledger:
            assert ledger.verify(receipts[number])
            assert ledger.budget("b").spent().epsilon == number + 1
            for later in receipts[number + 1 :]:
                with pytest.raises(LedgerError, match="lacks"):
                    ledger.verify(later)
                with pytest.raises(LedgerError, match="older"):
                    ledger.budget("b").reserve(GATE, label="s", after=later)
            assert ledger.budget("b").spent().epsilon == number + 1


def test_a_child_process_goes_on_by_itself(tmp_path):
    """The parent opens, forks and leaves first: a child must not write into a log that its parent deletes."""
    with Ledger.open(tmp_path / "budget.db") as ledger:
        budget = ledger.create_budget("b", epsilon=100, delta="1e-3")
        budget.reserve(GATE, label="parent")
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.read(reading, 1)
                budget.reserve(GATE, label="child")
            finally:
                os._exit(0)
        budget.reserve(GATE, label="parent")
    os.write(writing, b"!")
    assert os.waitpid(child, 0)[1] == 0
    with Ledger.open(tmp_path / "budget.db") as ledger:
        assert ledger.verify()
        assert ledger.budget("b").spent().epsilon == 3
