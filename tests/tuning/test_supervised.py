"""Limits of one trial, and the padding of the whole search."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dpselect.errors import ArgumentError, StudyError
from dpselect.privacy import pure_dp
from dpselect.repetitions import Harmonic
from dpselect.testing.executor_contract import SPACE, Unloadable, noisy
from dpselect.tuning import (
    Execution,
    InlineExecutor,
    JoblibExecutor,
    Limits,
    ProcessExecutor,
    supervised,
    tune,
)
from dpselect.tuning.supervised import perform, stop_children
from dpselect.tuning.trial import Job
from tests.clusters import wait_until
from tests.tuning.supervised_cases import parameters, stepping, tuned

pytestmark = pytest.mark.skipif(os.name == "nt", reason="limits in seconds and bytes need POSIX")


class Hungry:
    """Sleeps, takes memory or dies where `x` is large; counts attempts in a file."""

    def __init__(self, how, above, folder=None):
        self.how = how
        self.above = above
        self.folder = folder and str(folder)

    def __call__(self, params, random):
        if self.folder:
            with (Path(self.folder) / repr(params["x"])).open("a") as file:
                file.write("x")
        if params["x"] > self.above:
            if self.how == "sleep":
                time.sleep(60)
            elif self.how == "die":
                os.kill(os.getpid(), 9)
            else:
                bytearray(6 << 30)
        return params["x"], params["x"]


@pytest.mark.full
def test_seconds_end_a_trial_and_it_is_not_tried_again(tmp_path):
    found = parameters(3)
    objective = Hungry("sleep", found[-2] + 1e-12, tmp_path)
    result = tuned(objective, key=3, limits=Limits(seconds=1.0, failure_is_private=True))
    assert result.value == found[-2]
    assert (tmp_path / repr(found[-1])).read_text() == "x"


@pytest.mark.full
def test_bytes_end_a_trial():
    found = parameters(3)
    limits = Limits(memory_bytes=4 << 30, failure_is_private=True)
    assert tuned(Hungry("eat", found[-2] + 1e-12), key=3, limits=limits).value == found[-2]


@pytest.mark.slow
def test_a_child_that_dies_is_a_lost_trial(tmp_path):
    found = parameters(3)
    limits = Limits(memory_bytes=4 << 30, failure_is_private=True)
    result = tuned(Hungry("die", found[-2] + 1e-12, tmp_path), key=3, limits=limits)
    assert result.value == found[-2]
    assert (tmp_path / repr(found[-1])).read_text() == "xxxx"  # once, and three replays


@pytest.mark.slow
def test_limits_hold_in_workers(tmp_path):
    found = parameters(3)
    limits = Limits(seconds=2.0, failure_is_private=True)
    for executor in (ProcessExecutor(workers=2), JoblibExecutor(workers=2)):
        assert tuned(Hungry("sleep", found[-2] + 1e-12), key=3, limits=limits, executor=executor).value == found[-2]


class Locked:
    """Cannot be pickled."""

    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, params, random):
        return noisy(params, random)


@pytest.mark.cases(1)
@pytest.mark.parametrize(("objective", "error"), [(Locked(), ArgumentError), (Unloadable(), StudyError)])
def test_what_a_child_cannot_run_is_refused_before_anything_is_charged(objective, error):
    """Not taken for a trial that fails each time: that would be nothing found at the full price."""

    class Ledger:
        def reserve(self, *_, **__):
            raise AssertionError("charged")

        settle = reserve

    with pytest.raises(error, match="objective"):
        tuned(objective, limits=Limits(seconds=60, failure_is_private=True), ledger=Ledger())


SCRIPT = """
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed
from dpselect.tuning import Execution, Limits, ProcessExecutor, Uniform, tune

def objective(params, random):
    return params["x"], params["x"]

if __name__ == "__main__":
    result = tune(
        objective, space={"x": Uniform(0.0, 1.0)}, base=pure_dp(epsilon=1.0), repetitions=Fixed(count=2),
        random=keyed_source(1), executor=ProcessExecutor(workers=1),
        execution=Execution(limits=Limits(seconds=60, failure_is_private=True)),
    )
    print(result.value is not None)
"""


@pytest.mark.slow
def test_limits_with_the_objective_of_a_script(tmp_path):
    """It is in the worker's `__main__`, which the child does not have."""
    (tmp_path / "script.py").write_text(SCRIPT)
    ran = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, "True")


@pytest.mark.slow
def test_a_search_that_ends_leaves_the_trials_of_another_alone(tmp_path):
    """Searches on one cluster share its workers, and there the threads that trials run in."""
    limits = Limits(seconds=60, failure_is_private=True)
    go = tmp_path / "go"

    def waiting(params, random):
        wait_until(go.exists)
        return noisy(params, random)

    other, ending = (Job(objective, SPACE, 1 << 16, limits) for objective in (waiting, noisy))
    found = []
    thread = threading.Thread(target=lambda: found.append(perform(other, 0, bytes(32))))
    thread.start()
    perform(ending, 0, bytes(32))
    try:
        wait_until(lambda: any(child.job is other and child.busy for child in supervised._children))
        stop_children(ending)
        assert [child.job is other for child in supervised._children] == [True]
        go.touch()
        thread.join()
        assert found[0] is not None
        stop_children(ending)  # an idle child that no one is left to end
        assert not supervised._children
    finally:
        stop_children()


@pytest.mark.slow
def test_what_a_trial_has_started_ends_with_it(tmp_path):
    def starting(params, random):
        started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        (tmp_path / str(started.pid)).touch()
        started.wait()

    assert tuned(starting, trials=1, limits=Limits(seconds=1.0, failure_is_private=True)).value is None
    (started,) = tmp_path.iterdir()
    wait_until(lambda: not_running(int(started.name)))


def not_running(process):
    """Dead, or a zombie whose new parent has not yet looked."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.full
def test_the_outcome_of_a_limit_is_recorded(tmp_path, monkeypatch):
    """Resumed after the limit was met, a search does not try that trial again, though it would now succeed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "attempts"
    folder.mkdir()
    found = parameters(3)
    objective = Hungry("sleep", found[-2] + 1e-12, folder)

    def interrupted(result):
        raise KeyboardInterrupt

    options = {"key": 3, "limits": Limits(seconds=1.0, failure_is_private=True), "store": tmp_path / "s.db"}
    with pytest.raises(KeyboardInterrupt):
        tuned(objective, release=interrupted, **options)
    objective.above = 2.0
    assert tuned(objective, resume=True, **options).value == found[-2]
    assert (folder / repr(found[-1])).read_text() == "x"


def test_limits_must_not_change_before_a_resume(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def interrupted(result):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tuned(stepping, limits=Limits(counts={"steps": 3}), release=interrupted, store=tmp_path / "s.db")
    with pytest.raises(StudyError, match="changed"):
        tuned(stepping, limits=Limits(counts={"steps": 4}), resume=True, store=tmp_path / "s.db")


def test_padding_comes_before_the_release_is_written():
    moments = []
    started = time.monotonic()
    tuned(noisy, pad_seconds=1.0, release=lambda result: moments.append(time.monotonic() - started))
    assert moments[0] >= 1.0


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_bad_padding(seconds):
    with pytest.raises(ArgumentError, match="pad_seconds"):
        tuned(noisy, pad_seconds=seconds)


def test_padding_to_a_public_number_of_runs(monkeypatch):
    """`constant_runs` executes the law's limit no matter what K is, and counts the first K only."""
    runs = []

    def counted(params, random):
        runs.append(params["x"])
        return params["x"], params["x"]

    monkeypatch.setattr(Harmonic, "sample", lambda self, random=None: 2)
    result = tune(
        counted, space=SPACE, base=pure_dp(epsilon=1.0), repetitions=Harmonic(limit=7),
        execution=Execution(constant_runs=True), executor=InlineExecutor(),
    )  # fmt: skip
    assert len(runs) == 7
    assert result.value == max(runs[:2])
