"""`dpselect tune` killed in mid-search, then resumed: one charge, one release."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from tests.budgets import charges
from tests.cli.test_app import toml
from tests.clusters import wait_until
from tests.root import ROOT
from tests.study.schema_cases import STUDY

PATIENCE = 300  # seconds, for a loaded machine; nothing here depends on how long anything takes
PRIVACY = {"noise_multiplier": 1.0, "delta": 1e-5, "nominal_rows": 150}  # quick to price
LINE = [sys.executable, "-c", "from dpselect.cli import main; main()"]
WAITING = [sys.executable, str(ROOT / "tests" / "tuning" / "waiting_study.py")]


def start(folder, *arguments, command=LINE):
    environment = {
        **os.environ,
        "XDG_STATE_HOME": str(folder / "state"),
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}",
    }
    return subprocess.Popen(
        [*command, "tune", "toy.toml", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process):
    """The exit status, and what went to the standard streams."""
    try:
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err
    finally:
        process.kill()


OF_PERSONS = {"data": {"person": "petal width (cm)"}, "privacy": {"rows_per_person": 2}}


@pytest.mark.full
@pytest.mark.parametrize("tables", [{}, OF_PERSONS], ids=["rows", "persons"])
def test_a_killed_search_resumes_with_one_charge(tables, tmp_path):
    study = {**STUDY, "privacy": PRIVACY, "repetitions": {"law": "fixed", "count": 3}, "runs": {"executor": "inline"}}
    (tmp_path / "toy.toml").write_text(toml(study | {name: study[name] | keys for name, keys in tables.items()}))
    killed = start(tmp_path, command=WAITING)
    try:
        # its second trial, which waits for a file that is not there
        wait_until(lambda: killed.poll() is not None or len(lines(tmp_path / "begun")) == 2, PATIENCE)
        assert killed.poll() is None, killed.communicate()
    finally:
        killed.kill()
    assert ended(killed)[0] < 0 or os.name == "nt"
    assert not (tmp_path / "out" / "release.json").exists()
    (tmp_path / "go").touch()

    status, _, err = ended(start(tmp_path))
    assert status == 2
    assert "resume" in err

    text = (tmp_path / "toy.toml").read_text()
    (tmp_path / "toy.toml").write_text(re.sub(r"(steps\W+)20", r"\g<1>21", text))
    assert (tmp_path / "toy.toml").read_text() != text
    status, _, err = ended(start(tmp_path, "--resume"))
    assert status == 2
    assert "the study has changed" in err
    (tmp_path / "toy.toml").write_text(text)

    status, out, err = ended(start(tmp_path, "--resume", "--json", command=WAITING))
    assert status == 0, err
    assert json.loads(out)["found"] is True
    assert len(lines(tmp_path / "begun")) == 2 + 2  # the first trial was done
    assert charges(tmp_path / "out" / "budget.db") == [True]


def lines(path):
    return path.read_text().splitlines() if path.exists() else []
