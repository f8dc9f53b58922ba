"""Workers killed in every phase of a trial, a killed scheduler, a full disk: the released value is the same.

Phases: queued (the worker is stopped before it gets its trial, then killed), running, result in flight (the worker dies
within milliseconds of the end of its trial, while a result of some megabytes is on its way), reduction (while the tuner
commits a result). CI runs one kill on Dask and one on Ray; the rest is slow.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from dpselect.errors import StudyError
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed
from dpselect.storage import durable
from dpselect.testing.executor_contract import SPACE, Dying, noisy, one_trial_of
from dpselect.tuning import (
    ExecutorLostError,
    InlineExecutor,
    JoblibExecutor,
    Limits,
    ProcessExecutor,
    tune,
)
from tests.budgets import budget_at, charges
from tests.clusters import dask_cluster, end_group, ray_cluster, wait_until
from tests.grouped import grouped, tuned
from tests.root import ROOT

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="kills workers with SIGKILL"),
    pytest.mark.filterwarnings("ignore::dpselect.tuning.OperatorProgressWarning"),
]

TRIALS = 8
KEY = 7
HEAVY = 4 << 20


class Phased:
    """A trial that says in files which process it is in, and dies once in the phase it is told."""

    def __init__(self, folder: Path, phase: str) -> None:
        self.folder = str(folder)
        self.phase = phase

    def once(self):
        """True in one trial of all, in one process."""
        try:
            os.close(os.open(Path(self.folder) / "died", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def __call__(self, params, random):
        (Path(self.folder) / f"worker-{os.getpid()}").touch()
        time.sleep(1.0 if self.phase == "slow" else 0.05)
        if self.phase == "running" and self.once():
            os.kill(os.getpid(), signal.SIGKILL)
        score, value = noisy(params, random)
        if self.phase == "in flight" and self.once():
            threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return score, (value, bytes(HEAVY) if self.phase == "in flight" else b"")

    def workers(self):
        return [int(file.name.split("-")[1]) for file in Path(self.folder).glob("worker-*")]


def searched(folder, objective, executor, *, resume=False, **options):
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    return tune(
        objective,
        space=SPACE,
        base=pure_dp(epsilon=0.5),
        repetitions=Fixed(count=TRIALS),
        random=keyed_source(KEY),
        executor=executor,
        ledger=budget_at(folder / "budget.db", epsilon=50),
        **grouped(store=folder / "search.db", payload_bytes=HEAVY + 4096, resume=resume, **options),
    )


@pytest.fixture(autouse=True)
def state_home(monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "")


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", "")
        return searched(folder, Phased(folder, "none"), InlineExecutor()).params


@dataclass
class StopsAWorker:
    """Stops a worker before the first trial is sent, and kills it a second later."""

    executor: JoblibExecutor
    worker_processes: Callable[[], list[int]]
    kill: Callable[[int], None]

    @contextlib.contextmanager
    def session(self, job):
        with self.executor.session(job) as session:
            stopped = self.worker_processes()[0]
            os.kill(stopped, signal.SIGSTOP)
            threading.Timer(1.0, self.kill, (stopped,)).start()
            yield session


def killed_in(phase, folder, executor, worker_processes):
    """The parameters released by a search in which a worker is killed in one phase, and whether one was."""
    objective = Phased(folder, phase)
    killed = []

    def kill(process):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
            killed.append(process)

    def reducing(done, total):
        if phase == "reduction" and not killed:
            kill(objective.workers()[0])

    if phase == "queued":
        executor = StopsAWorker(executor, worker_processes, kill)
    result = searched(folder, objective, executor, operator_progress=reducing)
    if phase == "queued":
        wait_until(lambda: killed)
    assert charges(folder / "budget.db") == [True]
    return result.params, bool(killed) or (folder / "died").exists()


PHASES = ["queued", "running", "in flight", "reduction"]


@pytest.fixture(scope="module")
def running_cluster():
    """One cluster for all, and another after one that was killed."""
    with contextlib.ExitStack() as undo:
        clusters = []

        def running():
            if not clusters or clusters[-1].scheduler.poll() is not None:
                clusters.append(undo.enter_context(dask_cluster(workers=2)))
            clusters[-1].wait_for_workers(2)  # the test before may have killed them
            return clusters[-1]

        yield running


@pytest.fixture
def dask(running_cluster):
    return running_cluster()


@pytest.mark.full
@pytest.mark.parametrize(
    "phase", [pytest.param(phase, marks=[pytest.mark.slow] if phase != "running" else []) for phase in PHASES]
)
def test_dask_worker_killed(phase, dask, expected, tmp_path):
    wait_until(lambda: len(dask.worker_processes()) == 2)
    executor = JoblibExecutor(backend="dask", address=dask.address)
    assert killed_in(phase, tmp_path, executor, dask.worker_processes) == (expected, True)


@pytest.mark.slow
def test_a_trial_that_kills_every_dask_worker_that_it_gets_has_failed(dask, tmp_path):
    """The others are not blamed for what it does to the worker that holds them too."""
    where = one_trial_of(4)
    result = tuned(Dying(tmp_path, where, times=99), JoblibExecutor(backend="dask", address=dask.address), 4)
    others = sorted(float(file.name) for file in tmp_path.iterdir() if not where[0] <= float(file.name) <= where[1])
    assert len(others) == 5
    assert result.value in others


@pytest.mark.slow
def test_two_searches_on_one_dask_cluster_do_not_disturb_each_other(dask):
    """Neither drops the other's job, nor ends the processes that its limited trials run in."""
    executor, limits = JoblibExecutor(backend="dask", address=dask.address), Limits(seconds=60, failure_is_private=True)
    expected = tuned(noisy, InlineExecutor(), 1).value
    found = []

    def several():
        found.extend(tuned(noisy, executor, 1, limits=limits).value for _ in range(3))

    thread = threading.Thread(target=several)
    thread.start()
    found.append(tuned(napping, executor, 1, limits=limits).value)
    thread.join()
    assert found == [expected] * 4


def napping(params, random):
    time.sleep(0.5)
    return noisy(params, random)


@pytest.mark.slow
def test_a_dask_cluster_without_workers_is_refused():
    with dask_cluster(workers=0) as cluster, pytest.raises(StudyError, match="no Dask worker"):
        tuned(noisy, JoblibExecutor(backend="dask", address=cluster.address), 1)


@pytest.mark.full
def test_a_full_disk_of_the_tuner_while_dask_runs_trials(dask, expected, tmp_path, monkeypatch):
    resumed_after_a_full_disk(JoblibExecutor(backend="dask", address=dask.address), 6, expected, tmp_path, monkeypatch)


@pytest.mark.full
def test_a_killed_dask_scheduler_leaves_a_search_to_resume(dask, expected, tmp_path):
    objective = Phased(tmp_path, "slow")
    executor = JoblibExecutor(backend="dask", address=dask.address)

    def reducing(done, total):
        if done == 2:
            dask.kill()

    started = time.monotonic()
    with pytest.raises(ExecutorLostError):
        searched(tmp_path, objective, executor, operator_progress=reducing)
    assert time.monotonic() - started < 300
    assert charges(tmp_path / "budget.db") == [False]
    objective.phase = "none"
    assert searched(tmp_path, objective, InlineExecutor(), resume=True).params == expected
    assert charges(tmp_path / "budget.db") == [True]


@pytest.fixture(scope="module")
def ray():
    with ray_cluster(workers=2) as running:
        yield running


@pytest.mark.full
@pytest.mark.parametrize(
    "phase",
    ["running", pytest.param("in flight", marks=pytest.mark.slow), pytest.param("reduction", marks=pytest.mark.slow)],
)
def test_ray_worker_killed(phase, ray, expected, tmp_path):
    """Ray's workers are made when the search starts, so none can be stopped before."""
    executor = JoblibExecutor(backend="ray", workers=2)
    assert killed_in(phase, tmp_path, executor, list) == (expected, True)


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["running", "in flight", "reduction"])
@pytest.mark.parametrize("executor", [ProcessExecutor(workers=2), JoblibExecutor(workers=2)], ids=["process", "loky"])
def test_local_worker_killed(phase, executor, expected, tmp_path):
    assert killed_in(phase, tmp_path, executor, list) == (expected, True)


RAY_SEARCH = """
import sys
from pathlib import Path
from dpselect.tuning import JoblibExecutor
from tests.tuning.test_executors_kills import Phased, searched
if __name__ == "__main__":
    folder = Path(sys.argv[1])
    searched(folder, Phased(folder, "none"), JoblibExecutor(backend="ray", workers=2))
"""


@pytest.mark.slow
def test_a_killed_ray_cluster_leaves_a_search_to_resume(expected, tmp_path):
    """Ray ends the driver with its cluster; both are killed here, as if the machine were switched off."""
    pytest.importorskip("ray")
    root = ROOT
    environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'src'}"}
    search = subprocess.Popen(
        [sys.executable, "-c", RAY_SEARCH, str(tmp_path)], cwd=root, env=environment, start_new_session=True
    )
    objective = Phased(tmp_path, "none")
    wait_until(objective.workers, 120)
    end_group(search)
    assert search.wait() < 0
    assert len(charges(tmp_path / "budget.db")) == 1
    assert searched(tmp_path, objective, InlineExecutor(), resume=True).params == expected
    assert charges(tmp_path / "budget.db") == [True]


@pytest.mark.full
@pytest.mark.parametrize("commits", [5, 7])
def test_a_full_disk_leaves_a_search_to_resume(commits, expected, tmp_path, monkeypatch):
    resumed_after_a_full_disk(InlineExecutor(), commits, expected, tmp_path, monkeypatch)


def resumed_after_a_full_disk(executor, commits, expected, folder, monkeypatch):
    """A search whose store and ledger can be written `commits` times."""
    real, saves = durable.commit, []

    def commit(connection):
        saves.append(1)
        if len(saves) > commits:
            raise sqlite3.OperationalError("database or disk is full")
        real(connection)

    objective = Phased(folder, "none")
    with monkeypatch.context() as patch:
        patch.setattr(durable, "commit", commit)
        with pytest.raises(StudyError, match="full"):
            searched(folder, objective, executor)
    assert charges(folder / "budget.db") == [False]
    assert searched(folder, objective, executor, resume=True).params == expected
    assert charges(folder / "budget.db") == [True]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="mounts a file system")
def test_a_disk_that_is_really_full(expected, tmp_path):
    """File systems of growing size: wherever the search runs out of room, it continues when there is more."""
    refused, finished = 0, 0
    for kilobytes in [256, 1024, *range(4096, 28000, 2048)]:
        folder = tmp_path / str(kilobytes)
        folder.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(folder)]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("this machine does not let a file system be mounted")
        try:
            try:
                result = searched(folder, noisy, InlineExecutor())
                finished += 1
            except StudyError:
                refused += 1
                subprocess.run(["mount", "-o", "remount,size=100m", str(folder)], check=True)
                result = searched(folder, noisy, InlineExecutor(), resume=True)
            assert result.params == expected
            assert charges(folder / "budget.db") == [True]
        finally:
            subprocess.run(["umount", str(folder)], check=True)
    assert refused >= 3
    assert finished >= 1
