"""`dpselect tune` killed in mid-search, then resumed: one charge, one release."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

from tests.test_cli import toml
from tests.test_study_schema import STUDY


def start(folder, *arguments):
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    code = "from dpselect.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "tune", "toy.toml", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_killed_search_resumes_with_one_charge(tmp_path):
    slow = {**STUDY, "learner": {"name": "dp-sgd", "sampling_rate": 0.2, "steps": 20_000}}
    (tmp_path / "toy.toml").write_text(toml({**slow, "runs": {"executor": "inline"}}))
    process = start(tmp_path)
    deadline = time.monotonic() + 60
    while not (tmp_path / "out" / "search.sealed").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.5)
    assert process.poll() is None, process.communicate()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "out" / "release.json").exists()

    refused = start(tmp_path)
    assert refused.wait(60) == 2
    assert "resume" in refused.stderr.read()

    (tmp_path / "other.toml").write_text((tmp_path / "toy.toml").read_text())
    (tmp_path / "toy.toml").write_text((tmp_path / "toy.toml").read_text().replace("20000", "20001"))
    changed = start(tmp_path, "--resume")
    assert changed.wait(60) == 2
    assert "the study has changed" in changed.stderr.read()
    (tmp_path / "other.toml").replace(tmp_path / "toy.toml")

    resumed = start(tmp_path, "--resume", "--json")
    out, err = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, err
    assert json.loads(out)["found"] is True
    with sqlite3.connect(tmp_path / "out" / "budget.db") as connection:
        assert connection.execute("select count(*) from reservation").fetchone() == (1,)
