"""The plug-in of pytest: the gate's verdict alone is shown, with workers and with a suite that ends its process."""

import importlib.metadata
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dpselect.holdout import Gate, GateRules

PLUGIN = "dpselect.integrations.gates.pytest_plugin"
INSTALLED = any(point.value == PLUGIN for point in importlib.metadata.entry_points(group="pytest11"))
SUITE = """
import os, sys
import pytest

@pytest.mark.parametrize("number", range(40))
def test_number(number):
    print("capybara")
    assert number < int(os.environ["SOLVED"]), "capybara"
"""


@pytest.fixture
def suite(tmp_path, state, monkeypatch):
    """A suite of 40 tests; a function that runs it: exit status and what was printed."""
    (tmp_path / "test_suite.py").write_text(SUITE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(solved, *flags):
        monkeypatch.setenv("SOLVED", str(solved))
        listed = [] if INSTALLED else ["-p", PLUGIN]
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", *listed, *flags],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return ran.returncode, ran.stdout + ran.stderr

    assert run(10, "-q", "--gate-outcomes", "incumbent.csv")[0] == 1
    rows = (tmp_path / "incumbent.csv").read_text().splitlines()
    assert len(rows) == 41
    assert sum(row.endswith(",1") for row in rows) == 10
    outcomes = dict(row.rsplit(",", 1) for row in rows[1:])
    Gate.create("my.gate", outcomes, consultations=4, rules=GateRules(answer_seconds=0))
    shutil.rmtree(".pytest_cache")  # which says what failed: of the incumbent
    return run


@pytest.mark.full
def test_the_plug_in_of_pytest(suite):
    assert suite(40, "--gate", "my.gate") == (0, "gate: accepted\n")
    assert suite(40, "--gate", "my.gate", "-v", "-rA", "--durations=3") == (0, "gate: rejected\n")
    status, said = suite(1, "--gate", "none.gate")
    assert (status, "none.gate does not exist" in said) == (4, True)
    assert suite(1, "--gate", "my.gate", "-s")[0] == suite(1, "--gate", "my.gate", "--capture=tee-sys")[0] == 4
    assert suite(1, "--gate", "my.gate", "nowhere.py")[0] == 4
    assert Gate.open("my.gate").status()["asked"] == 2
    Path("test_suite.py").write_text("import nothing")
    assert suite(1, "--gate", "my.gate", "--gate-stake", "all") == (0, "gate: rejected\n")
    status, said = suite(1, "--gate", "my.gate")
    assert (status, "empty" in said, "capybara" in said) == (3, True, False)


@pytest.mark.full
def test_pytest_keeps_no_list_of_the_tests_that_failed(suite):
    assert suite(5, "--gate", "my.gate", "--stepwise") == (0, "gate: rejected\n")
    kept = [path for path in Path(".pytest_cache").rglob("*") if path.is_file()]
    assert "nodeids" in {path.name for path in kept}  # all of them, in their order
    assert {path.name for path in kept if "test_number" in path.read_text()} == {"nodeids"}


@pytest.mark.full
def test_the_plug_in_of_pytest_with_many_workers(suite):
    pytest.importorskip("xdist")
    assert suite(40, "--gate", "my.gate", "-n", "2") == (0, "gate: accepted\n")


@pytest.mark.full
def test_a_suite_that_ends_its_process_has_been_charged(suite):
    Path("test_suite.py").write_text("import os\ndef test_it():\n    os._exit(0)\n")
    assert suite(1, "--gate", "my.gate")[1] == ""
    assert Gate.open("my.gate").status()["asked"] == 1
