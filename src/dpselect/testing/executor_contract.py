"""The contract of executors, as tests to be run against real workers.

With pytest, subclass and give an executor whose workers share this machine's files:

    class TestMyExecutor(ExecutorContract):
        @pytest.fixture
        def executor(self):
            return MyExecutor(workers=2)

`tmp_path` and `capfd` are pytest's.
"""

from __future__ import annotations

import os
import random as stdlib_random
import sys
import warnings
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpselect.errors import StudyError
from dpselect.privacy import pure_dp
from dpselect.randomness import RandomSource, keyed_source
from dpselect.repetitions import Fixed
from dpselect.testing.ledger_contract import refusal
from dpselect.tuning import Executor, InlineExecutor, Space, TuneResult, Uniform, tune
from dpselect.tuning.supervised import perform
from dpselect.tuning.trial import Job, trial_key

__all__ = ["SPACE", "Dying", "ExecutorContract", "Leaving", "Unloadable", "noisy", "talkative", "tuned"]

SPACE = Space({"x": Uniform(0.0, 1.0)})
TRIALS = 6
MASTER = bytes(range(32))


def noisy(params: Mapping[str, Any], random: RandomSource) -> tuple[float, float]:
    """A trial that draws."""
    return params["x"] + float(random.laplace(1)[0]), params["x"]


def talkative(params: Mapping[str, Any], random: RandomSource) -> tuple[float, float]:
    """Prints in every way, and fails in some trials."""
    print("secret", params["x"])
    os.write(1, b"secret")
    os.write(2, b"secret")
    warnings.warn("secret", stacklevel=1)
    if params["x"] < 0.3:
        raise ValueError("secret")
    return noisy(params, random)


def drawing(params: Mapping[str, Any], random: RandomSource) -> tuple[float, tuple[float, float]]:
    """A trial that draws from the states of NumPy and Python as well, as a network's function may."""
    return noisy(params, random)[0], (float(np.random.rand()), stdlib_random.random())  # noqa: NPY002


def surroundings(params: Mapping[str, Any], random: RandomSource) -> tuple[float, str]:
    """A trial that returns all that its process shows to others of this machine."""
    return noisy(params, random)[0], repr((sys.argv, dict(os.environ), os.getpid()))


class Dying:
    """Kills its process in the trials with `x` in `where`, the first `times` times. Counts attempts in files."""

    def __init__(self, folder: Path, where: tuple[float, float], times: int) -> None:
        self.folder = str(folder)
        self.where = where
        self.times = times

    def __call__(self, params: Mapping[str, Any], random: RandomSource) -> tuple[float, float]:
        """One attempt."""
        attempts = Path(self.folder) / repr(params["x"])
        with attempts.open("a") as file:
            file.write("x")
        if self.where[0] <= params["x"] <= self.where[1] and attempts.stat().st_size <= self.times:
            self.die()
        return noisy(params, random)

    def die(self) -> None:
        """As the kernel does when memory runs out."""
        os.kill(os.getpid(), 9)


class Leaving(Dying):
    """Raises `SystemExit` instead."""

    def die(self) -> None:
        """Leave."""
        raise SystemExit(3)


class Unloadable:
    """Can be pickled, but not loaded."""

    def __call__(self, params: Mapping[str, Any], random: RandomSource) -> tuple[float, None]:
        """Never comes to it."""
        raise AssertionError((params, random))

    def __getstate__(self) -> dict[str, int]:
        return {"a": 1}

    def __setstate__(self, state: dict[str, int]) -> None:
        raise ImportError(f"secret {state}")


def tuned(objective: Any, executor: Executor, key: int = 1, *, trials: int = TRIALS, **options: Any) -> TuneResult:
    """The release of a small search from a key."""
    return tune(
        objective,
        space=SPACE,
        base=pure_dp(epsilon=1.0),
        repetitions=Fixed(count=trials),
        random=keyed_source(key),
        executor=executor,
        **options,
    )


def one_trial_of(key: int, *, trials: int = TRIALS) -> tuple[float, float]:
    """An interval around the `x` of one trial, which is the one that wins in the search from `key`."""
    best = tuned(noisy, InlineExecutor(), key, trials=trials).value
    assert best is not None
    return best - 1e-12, best + 1e-12


def job_of(objective: Any) -> Job:
    """The job of such a search."""
    return Job(objective, SPACE, 1 << 16)


class ExecutorContract:
    """Tests of one executor. `executor` is a fixture."""

    def test_the_release_is_that_of_this_process(self, executor: Executor, capfd: Any) -> None:
        """Failed runs included, and nothing that a trial prints or warns comes out."""
        expected = tuned(talkative, InlineExecutor(), 2)
        capfd.readouterr()
        result = tuned(talkative, executor, 2)
        assert (result.params, result.value) == (expected.params, expected.value)
        out, err = capfd.readouterr()
        assert "secret" not in out + err

    def test_every_trial_comes_back_once_and_is_what_its_key_makes_of_it(self, executor: Executor) -> None:
        """Those too that are added while others run."""
        job = job_of(noisy)
        keys = {index: trial_key(MASTER, index) for index in range(TRIALS)}
        trials = deque(list(keys.items())[:-2])
        late = list(keys.items())[-2:]
        found = {}
        with executor.session(job) as session:
            for outcome in session.run(trials):
                assert outcome.index not in found
                assert not outcome.lost
                found[outcome.index] = outcome.candidate
                trials.extend(late)
                late = []
            assert list(session.run(deque())) == []
            again = list(session.run(deque([(0, keys[0])])))
        assert sorted(found) == sorted(keys)
        for index, candidate in found.items():
            assert candidate == perform(job, index, keys[index])
        assert [outcome.candidate for outcome in again] == [found[0]]

    def test_draws_from_other_states_are_those_of_this_process(self, executor: Executor) -> None:
        """NumPy's and Python's: a trial seeds them, and leaves them as they were."""
        expected, other = (tuned(drawing, InlineExecutor(), key).value for key in (7, 8))
        assert tuned(drawing, executor, 7).value == expected != other

    def test_a_trial_whose_worker_dies_is_run_again(self, executor: Executor, tmp_path: Path) -> None:
        """With its own key, so that it can still win. The others do not notice."""
        expected = tuned(noisy, InlineExecutor(), 3)
        result = tuned(Dying(tmp_path, one_trial_of(3), times=1), executor, 3)
        assert (result.params, result.value) == (expected.params, expected.value)
        assert (tmp_path / repr(expected.value)).stat().st_size >= 2
        assert len(list(tmp_path.iterdir())) == TRIALS

    def test_a_trial_that_leaves_its_process_is_lost_in_the_end(self, executor: Executor, tmp_path: Path) -> None:
        """`SystemExit` each time: the trial has failed, and the tuner lives on."""
        where = one_trial_of(4)
        result = tuned(Leaving(tmp_path, where, times=99), executor, 4)
        assert len(list(tmp_path.iterdir())) == TRIALS
        assert result.value is not None
        assert not where[0] <= result.value <= where[1]

    def test_no_key_in_arguments_or_environment(self, executor: Executor) -> None:
        """Of the processes that run trials, which are not this one."""
        shown = str(tuned(surroundings, executor, 5).value)
        keys = [trial_key(master, index).hex() for master in (MASTER, bytes(32)) for index in range(TRIALS)]
        assert not any(key in shown for key in keys)
        assert not shown.endswith(f"{os.getpid()})")

    def test_what_cannot_be_loaded_is_refused_before_anything_is_charged(self, executor: Executor, capfd: Any) -> None:
        """And why is not shown."""

        class UnwillingLedger:
            def reserve(self, *_: Any, **__: Any) -> Any:
                raise AssertionError("charged")

            def settle(self, *_: Any, **__: Any) -> Any:
                raise AssertionError("settled")

        error = refusal(lambda: tuned(Unloadable(), executor, 6, ledger=UnwillingLedger()), StudyError)
        assert "secret" not in str(error)
        out, err = capfd.readouterr()
        assert "secret" not in out + err
