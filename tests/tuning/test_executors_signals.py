"""`dpselect tune` stopped by Ctrl-C, by SIGTERM and by SIGKILL, wherever its trials run.

Nothing is lost, nothing is charged twice, no process is left behind, and the resumed study releases what an undisturbed
one does. CI runs one of Ctrl-C and SIGTERM (SIGKILL is in study/test_resume.py); the rest is slow.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

import dpselect.study.run
from dpselect.randomness import keyed_source
from dpselect.study import parse_study, run_study
from tests.budgets import charges
from tests.cli.test_app import toml
from tests.clusters import dask_cluster, wait_until
from tests.root import ROOT
from tests.study.schema_cases import STUDY
from tests.tuning.waiting_study import KEY, waiting_objective

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
psutil = pytest.importorskip("psutil")

COUNT = 4
QUICK = {
    **STUDY,
    "privacy": {"noise_multiplier": 1.0, "delta": 1e-5, "nominal_rows": 150},
    "repetitions": {"law": "fixed", "count": COUNT},
}
PATIENCE = 300  # seconds, for a loaded machine; what is waited for takes a few


def model_of(folder):
    with np.load(folder / "model.npz", allow_pickle=False) as model:
        return {name: model[name].tobytes() for name in model.files}


def released(folder, *, resume=False):
    """The model of a study that is run, or resumed, in this process."""
    study = parse_study({**QUICK, "runs": {"executor": "inline"}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        patch.setattr(dpselect.study.run, "prepared", waiting_objective(folder))
        run_study(study, base_folder=folder, folder=folder / "out", random=keyed_source(KEY), resume=resume)
    return model_of(folder / "out")


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The model of the undisturbed study."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "go").touch()
    return released(folder)


class Command:
    """`dpselect tune` in a session of its own, with a mark by which all of its processes are found."""

    def __init__(self, folder, runs, *arguments):
        (folder / "toy.toml").write_text(toml({**QUICK, "runs": runs}))
        self.mark = f"DPSELECT_TEST_{secrets.token_hex(8)}"
        root = ROOT
        environment = {
            **os.environ,
            "XDG_STATE_HOME": str(folder / "state"),
            "PYTHONPATH": f"{root}{os.pathsep}{root / 'src'}",
            self.mark: "1",
        }
        self.errors = folder / "errors"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, str(root / "tests" / "tuning" / "waiting_study.py"), "tune", "toy.toml", *arguments],
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def said(self, text):
        assert self.process.poll() is None, self.errors.read_text()
        return text in self.errors.read_text()

    def left(self):
        """Its processes that are still there."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if self.mark in process.environ() and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(" ".join(process.cmdline()))
        return found

    def end(self):
        """No matter what happened."""
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if self.mark in process.environ():
                    process.kill()
        self.process.wait()
        self.process.stdout.close()


def stage(folder):
    with contextlib.closing(sqlite3.connect(folder / "out" / "search.sealed")) as connection:
        return connection.execute("SELECT stage FROM search").fetchone()[0]


def begun(folder):
    return (folder / "begun").read_text().splitlines() if (folder / "begun").exists() else []


def stopped(folder, number, runs):
    """Stop a search after one trial, while others run: its exit status."""
    command = Command(folder, runs, "--operator-progress")
    try:
        wait_until(lambda: command.said(f"1 of {COUNT}") and len(begun(folder)) > 1, PATIENCE)
        if number == signal.SIGINT:
            os.killpg(command.process.pid, number)  # as a terminal does
        else:
            command.process.send_signal(number)
        status = command.process.wait(PATIENCE)
        wait_until(lambda: not command.left(), PATIENCE)
        said = command.errors.read_text()
        assert ("--resume continues" in said) == (number != signal.SIGKILL), said
        assert "Traceback" not in said
        return status
    finally:
        command.end()


STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -signal.SIGKILL}
WITHIN_CI = [("inline", signal.SIGINT), ("process", signal.SIGTERM)]


@pytest.mark.full
@pytest.mark.parametrize(
    ("executor", "number"),
    [
        pytest.param(executor, number, marks=() if (executor, number) in WITHIN_CI else pytest.mark.slow)
        for executor in ("inline", "process", "loky", "dask", "ray")
        for number in STATUS
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_stopped_study_leaves_nothing_behind_and_loses_nothing(executor, number, expected, tmp_path):
    if executor == "ray":
        pytest.importorskip("ray")
    with contextlib.ExitStack() as undo:
        runs = {"executor": executor}
        if executor == "dask":
            cluster = undo.enter_context(dask_cluster(workers=2))
            runs["address"] = cluster.address
        assert stopped(tmp_path, number, runs) == STATUS[number]
        if executor == "dask" and number != signal.SIGKILL:
            assert jobs_on(cluster.address) == [0, 0]
    assert charges(tmp_path / "out" / "budget.db") == [False]
    assert stage(tmp_path) == ("running" if number == signal.SIGKILL else "reserved")
    finished = (tmp_path / "begun").read_text().splitlines()
    (tmp_path / "go").touch()
    assert released(tmp_path, resume=True) == expected
    assert charges(tmp_path / "out" / "budget.db") == [True]
    attempts = begun(tmp_path)
    assert len(set(attempts)) == COUNT
    assert len(attempts) == len(finished) + COUNT - 1  # the trial that was done is not run again


def jobs_on(address):
    """How many jobs, and so copies of the data, each worker of a Dask cluster keeps."""
    import distributed

    with distributed.Client(address, set_as_default=False) as client:
        return list(client.run(jobs_here).values())


def jobs_here():
    from dpselect.tuning import remote_trial

    return len(remote_trial._jobs)
