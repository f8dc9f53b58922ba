"""Where trials run: the same result everywhere, quiet workers, dead workers, and what is refused at the start."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sqlite3
import sys
import time
import warnings
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from dpselect.errors import ArgumentError, StudyError
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Harmonic
from dpselect.storage import durable
from dpselect.tuning import InlineExecutor, ProcessExecutor, Space, Uniform, tune
from dpselect.tuning.machine import REPLAYS
from dpselect.tuning.trial import Job, trial_key
from tests.grouped import grouped

SPACE = Space({"x": Uniform(0.0, 1.0)})
COUNT = 5
ONE_DEATH = 10
"""A key whose COUNT trials have exactly one `x` below 0.5."""


def noisy(params, random):
    return params["x"] + float(random.laplace(1)[0]), params["x"]


def mixed(params, random):
    """Prints in every way, and fails in some trials."""
    print("secret", params["x"])
    os.write(2, b"secret")
    warnings.warn("secret", stacklevel=1)
    if params["x"] < 0.3:
        raise ValueError("secret")
    return noisy(params, random)


class Deadly:
    """Dies in the trials in which `x` is below 0.5, the first `times` times; counts attempts in files."""

    def __init__(self, folder: Path, times: int) -> None:
        self.folder = folder
        self.times = times

    def __call__(self, params, random):
        attempts = self.folder / str(params["x"])
        with attempts.open("a") as file:
            file.write("x")
        if params["x"] < 0.5 and attempts.stat().st_size <= self.times:
            os.kill(os.getpid(), 9)
        return noisy(params, random)


class Sleepy:
    """In the first trial of all: sends the tuner a Ctrl-C and sleeps on."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __call__(self, params, random):
        if not self.marker.exists():
            time.sleep(0.2)
            self.marker.touch()
            os.kill(os.getppid(), signal.SIGINT)
            time.sleep(60)
        return noisy(params, random)


class Unloadable:
    def __call__(self, params, random):
        return 0.0, None

    def __setstate__(self, state):
        raise ImportError("secret")

    def __getstate__(self):
        return {"a": 1}


def environment(params, random):
    pools = {entry["num_threads"] for entry in threadpool_info()}
    return 0.0, (sorted(pools), sys.argv, dict(os.environ), list(params))


def tuned(objective, executor, key, monkeypatch, **options):
    monkeypatch.setattr(Harmonic, "sample", lambda self, random=None: COUNT)
    law = Harmonic(limit=COUNT)
    return tune(
        objective, space=SPACE, base=pure_dp(epsilon=1.0), repetitions=law, random=keyed_source(key),
        executor=executor, **grouped(**options),
    )  # fmt: skip


@pytest.fixture(scope="module")
def two_workers():
    return ProcessExecutor(workers=2)


@pytest.mark.full
def test_same_release_in_processes_and_inline(two_workers, monkeypatch, capfd):
    inline = tuned(mixed, InlineExecutor(), 1, monkeypatch)
    out, err = capfd.readouterr()
    assert (out, err.replace("secret", "")) == ("", "")  # only what went to the descriptor itself
    processes = tuned(mixed, two_workers, 1, monkeypatch)
    assert inline.params == processes.params
    assert inline.value == processes.value
    assert capfd.readouterr() == ("", "")


@pytest.mark.full
def test_a_dead_worker_costs_a_replay_with_the_same_key(two_workers, monkeypatch, tmp_path):
    expected = tuned(noisy, InlineExecutor(), ONE_DEATH, monkeypatch)
    result = tuned(Deadly(tmp_path, times=1), two_workers, ONE_DEATH, monkeypatch)
    assert result.params == expected.params
    attempts = {float(file.name): file.stat().st_size for file in tmp_path.iterdir()}
    assert len(attempts) == COUNT
    assert all(count == (2 if x < 0.5 else 1) for x, count in attempts.items())
    assert sum(x < 0.5 for x in attempts) == 1


@pytest.mark.full
def test_after_three_replays_it_counts_as_the_worst(two_workers, monkeypatch, tmp_path):
    """And the number of commits is that of an uneventful search."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    commits = {}
    for name, times in (("calm", 0), ("deadly", 99)):
        folder = tmp_path / name
        folder.mkdir()
        with monkeypatch.context() as patch:
            real, count = durable.commit, []
            patch.setattr(durable, "commit", lambda c, real=real, count=count: (real(c), count.append(1)))
            result = tuned(Deadly(folder, times), two_workers, ONE_DEATH, patch, store=tmp_path / f"{name}.db")
            commits[name] = len(count)
        attempts = {float(file.name): file.stat().st_size for file in folder.iterdir()}
        assert all(n == (1 + REPLAYS if x < 0.5 and times else 1) for x, n in attempts.items())
        assert sum(x < 0.5 for x in attempts) == 1
        assert result.params is None or result.params["x"] >= 0.5 or not times
    assert commits["calm"] == commits["deadly"]


@pytest.mark.full
def test_an_interruption_stops_the_workers_and_leaves_a_store_to_resume(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    sleepy, executor = Sleepy(tmp_path / "asleep"), ProcessExecutor(workers=1)
    started = time.monotonic()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background may ignore Ctrl-C
    try:
        with pytest.raises(KeyboardInterrupt):
            tuned(sleepy, executor, 6, monkeypatch, store=tmp_path / "s.db")
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - started < 50
    with contextlib.closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        assert connection.execute("SELECT stage FROM search").fetchone() == ("reserved",)
    result = tuned(sleepy, InlineExecutor(), 6, monkeypatch, store=tmp_path / "s.db", resume=True)
    assert result.params == tuned(noisy, InlineExecutor(), 6, monkeypatch).params


@pytest.mark.full
def test_workers_are_limited_and_learn_no_key_from_their_surroundings(monkeypatch):
    result = tuned(environment, ProcessExecutor(workers=1), 5, monkeypatch)
    pools, arguments, variables, _ = result.value
    assert set(pools) <= {1}
    keys = [trial_key(bytes(32), index).hex() for index in range(COUNT)]
    assert not any(key in str(arguments) + str(variables) for key in keys)
    assert "objective" not in str(arguments)


def test_what_cannot_be_pickled_is_refused_before_anything_is_drawn(two_workers, monkeypatch):
    monkeypatch.setattr(Harmonic, "sample", lambda *_, **__: pytest.fail("drawn"))
    with pytest.raises(ArgumentError, match="picklable"):
        tune(
            lambda params, random: (0, 0), space=SPACE, base=pure_dp(epsilon=1.0), repetitions=Harmonic(limit=2),
            executor=two_workers,
        )  # fmt: skip


@pytest.mark.full
def test_what_cannot_be_loaded_is_refused_before_anything_is_drawn(two_workers, monkeypatch, capfd):
    monkeypatch.setattr(Harmonic, "sample", lambda *_, **__: pytest.fail("drawn"))
    with pytest.raises(StudyError, match="could not load"):
        tune(Unloadable(), space=SPACE, base=pure_dp(epsilon=1.0), repetitions=Harmonic(limit=2), executor=two_workers)
    assert "secret" not in capfd.readouterr().err


@pytest.mark.full
def test_no_worker_outlives_its_session(two_workers):
    job = Job(noisy, SPACE, 1000)
    with two_workers.session(job) as session:
        processes = [worker.process for worker in session._workers]
        pids = [process.pid for process in processes]
        outcomes = list(session.run(deque([(0, bytes(32))])))
    assert [outcome.index for outcome in outcomes] == [0]
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_inline_limits_threads_and_restores_them():
    def pools():
        return sorted(entry["num_threads"] for entry in threadpool_info())

    np.dot(np.ones((2, 2)), np.ones((2, 2)))
    before = pools()
    with InlineExecutor().session(Job(lambda params, random: (0.0, pools()), SPACE, 1000)) as session:
        (outcome,) = session.run(deque([(0, bytes(32))]))
    assert set(pickle.loads(outcome.candidate.payload[1:])) <= {1}
    assert pools() == before


def test_bad_executors():
    with pytest.raises(ValueError, match="workers"):
        ProcessExecutor(workers=0)
    with pytest.raises(ValueError, match="start_method"):
        ProcessExecutor(start_method="fork")
