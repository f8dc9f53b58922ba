"""Doors open lazily: what is loaded by importing a room and by each command, each in a fresh process."""

import json
import os
import subprocess
import sys

import pytest

HEAVY = {
    "sklearn",
    "matplotlib",
    "sqlalchemy",
    "pydantic",
    "pandas",
    "scipy.stats",
    "scipy.signal",
    "scipy.optimize",
    "dp_accounting",
    "mpmath",
}
"""Each takes from a twentieth of a second to two to import."""

TYPER = {"pydantic"}
"""What the library of the command line loads itself."""

REPORT = "; import sys, json; sys.stderr.write('\\n' + json.dumps(sorted(sys.modules)))"
COMMAND = """
import sys
sys.argv = ["dpselect", *sys.argv[1:]]
from dpselect.cli import main
try:
    main()
except SystemExit as left:
    assert not left.code, left.code
"""


def loaded(code: str, *arguments: str, **environment: str) -> tuple[set[str], str]:
    """The modules that are loaded at the end, and what was printed."""
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert ran.returncode == 0, ran.stderr
    return set(json.loads(ran.stderr.splitlines()[-1])), ran.stdout


def heavy(modules: set[str]) -> set[str]:
    return modules & HEAVY


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.startswith("dpselect")}


def test_rooms_load_nothing_heavy():
    """One after the other in one process: what the last may load, none before it did."""
    for room in ("dpselect", "dpselect.privacy", "dpselect.accounting", "dpselect.repetitions", "dpselect.mechanisms"):
        modules, _ = loaded(f"import {room}" + REPORT)
        assert not heavy(modules)
        assert len(ours(modules)) <= 4, "a face loads what is asked for"


@pytest.mark.full
def test_what_prices_a_search_loads_no_tuner_and_no_learner():
    modules, _ = loaded(
        "from dpselect.accounting import best_of, plan, calibrate\n"
        "from dpselect.privacy import pure_dp, gaussian, compose\n"
        "from dpselect.repetitions import Poisson\n"
        "best_of(gaussian(noise_multiplier=4), Poisson(mean=10), bound='renyi').epsilon(delta=1e-6)" + REPORT
    )
    assert not heavy(modules)
    assert not {name for name in ours(modules) if name.split(".")[1:2] in (["tuning"], ["learners"], ["ledger"])}


@pytest.mark.cases(1)
@pytest.mark.parametrize("arguments", [("--version",), ("--help",)])
def test_the_command_line_is_not_loaded_to_say_what_it_is(arguments):
    modules, said = loaded(COMMAND + REPORT[2:], *arguments)
    assert said
    assert not heavy(modules)
    rooms = {name.split(".")[1] for name in ours(modules) - {"dpselect"}}
    assert rooms <= {"cli", "errors", "public_api", "version"}
    assert {name for name in ours(modules) if ".cli." in name} == {
        "dpselect.cli.app",
        "dpselect.cli.commands",
        "dpselect.cli.terminal",
    }


@pytest.mark.full
def test_completion_of_a_command_loads_none():
    code = (
        "import atexit, json, sys\natexit.register(lambda: sys.stderr.write('\\n' + json.dumps(sorted(sys.modules))))"
    )
    asked = {"_DPSELECT_COMPLETE": "complete_bash", "COMP_WORDS": "dpselect a", "COMP_CWORD": "1"}
    modules, said = loaded(code + COMMAND, **asked)
    assert said.split() == ["account", "audit"]
    assert not heavy(modules) - TYPER
    assert "dpselect.cli.account" not in modules


@pytest.mark.full
@pytest.mark.parametrize(
    "search",
    [
        ("--base", "pure:epsilon=1", "--repetitions", "poisson:mean=10", "--delta", "0"),
        ("--base", "gaussian:noise_multiplier=4", "--repetitions", "harmonic:limit=20", "--delta", "1e-6"),
        (
            "--base",
            "dp-sgd:noise_multiplier=1,sampling_rate=0.01,steps=9",
            "--repetitions",
            "fixed:count=2",
            "--delta",
            "1e-6",
        ),
    ],
)
def test_account_loads_what_it_prices_by(search):
    modules, said = loaded(COMMAND + REPORT[2:], "account", *search)
    assert said.startswith("epsilon ")
    assert not heavy(modules) - TYPER
    rooms = {name.split(".")[1] for name in ours(modules) - {"dpselect"}}
    assert rooms <= {
        "accounting",
        "cli",
        "capabilities",
        "caching",
        "errors",
        "cures",
        "foreign_names",
        "numerics",
        "public_api",
        "privacy",
        "randomness",
        "registry",
        "repetitions",
        "steps",
        "version",
    }


@pytest.mark.full
@pytest.mark.parametrize("words", ["plan", "ledger", "holdout", "tune", "report"])
def test_help_of_one_command_loads_no_other(words):
    modules, _ = loaded(COMMAND + REPORT[2:], words, "--help")
    others = {"account", "plan", "quantile", "audit", "ledger", "holdout", "tune", "report"} - {words}
    borrowed = {"dpselect.cli.account"} if words == "plan" else set()  # the price of one run is described alike
    assert not {f"dpselect.cli.{other}" for other in others} & modules - borrowed
    assert not heavy(modules) - TYPER


ONE_COLUMN = """source = "rows.csv"
label = "label"
classes = ["a", "b"]
columns = { age = { bounds = [0, 100] } }"""
BUNDLED = """source = "sklearn:digits/train"
classes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
bounds = [0, 16]"""


@pytest.mark.full
@pytest.mark.parametrize(("learner", "data"), [("dp-sgd", BUNDLED), ("ridge", ONE_COLUMN)], ids=["bundled", "csv"])
def test_a_study_is_checked_without_scikit_learn_and_joblib(learner, data, tmp_path):
    """Each takes longer to import than all the rest does; nor is anything loaded that reads, trains or writes."""
    (tmp_path / "rows.csv").write_text("age,label\n1,a\n")
    (tmp_path / "study.toml").write_text(
        f"""[data]
{data}
[privacy]
noise_multiplier = 9.0
delta = 1e-6
nominal_rows = 1000
[learner]
name = "{learner}"
[output]
folder = {str(tmp_path / "out")!r}
"""
    )
    modules, said = loaded(COMMAND + REPORT[2:], "tune", str(tmp_path / "study.toml"), "--check")
    assert "is valid" in said
    assert not heavy(modules) - TYPER
    assert not {"joblib", "rich", "numba", "pyarrow", "dpselect.report"} & modules
    assert not {f"dpselect.study.{step}" for step in ("run", "opened", "prepared", "searched", "written")} & modules


STUDY = """
from pathlib import Path
import dpselect.study.run as run
from dpselect.study import parse_study

def stop(*_):
    raise KeyboardInterrupt

run.write = stop
study = {
    "data": {"source": "sklearn:digits/train", "classes": list(range(10)), "bounds": [0, 16]},
    "privacy": {"noise_multiplier": 9.0, "delta": 1e-5, "nominal_rows": 1440},
    "learner": {"name": "dp-sgd", "sampling_rate": 0.2, "steps": 2},
    "space": {"learning_rate": {"law": "log_uniform", "low": 0.5, "high": 10.0}},
    "repetitions": {"law": "fixed", "count": 1},
    "runs": {"executor": "inline"},
    "output": {"folder": "out"},
}
try:
    run.run_study(parse_study(study), base_folder=Path())
except KeyboardInterrupt:
    pass
"""


@pytest.mark.full
def test_a_study_loads_what_it_uses_until_it_draws_a_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    modules, _ = loaded(STUDY + REPORT[2:], XDG_STATE_HOME=str(tmp_path))
    assert "dpselect.learners.dp_sgd" in modules
    assert not {"matplotlib", "jinja2", "sqlalchemy"} & modules
    rooms = {name.split(".")[1] for name in ours(modules) if "." in name}
    assert not {"ordered", "holdout", "adaptive", "audit", "testing", "cli", "integrations"} & rooms
