"""The contract of executors: the trials that it runs, and executors with a defect, which are caught."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import deque

import pytest

from dpselect.randomness import keyed_source
from dpselect.testing.executor_contract import (
    Dying,
    ExecutorContract,
    Leaving,
    Unloadable,
    noisy,
    one_trial_of,
    tuned,
)
from dpselect.tuning import InlineExecutor, ProcessExecutor

ORDER = "test_every_trial_comes_back_once_and_is_what_its_key_makes_of_it"


class Wrong:
    """The executor of this process with one defect: `spoil` changes what comes back."""

    def __init__(self, spoil):
        self.spoil = spoil

    @contextlib.contextmanager
    def session(self, job):
        with InlineExecutor().session(job) as session:
            yield WrongSession(session, self.spoil)


class WrongSession:
    def __init__(self, session, spoil):
        self.session, self.spoil = session, spoil

    def run(self, trials):
        yield from self.spoil(self.session, trials)


def forgets_those_added_later(session, trials):
    first = deque(trials)
    trials.clear()
    yield from list(session.run(first))


def answers_twice(session, trials):
    for outcome in session.run(trials):
        yield outcome
        yield outcome


def draws_with_another_key(session, trials):
    while trials:
        yield from session.run(deque([(trials.popleft()[0], bytes(32))]))


def loses_one(session, trials):
    for outcome in session.run(trials):
        yield dataclasses.replace(outcome, lost=outcome.index == 0)


def test_the_executor_of_this_process_keeps_the_order():
    getattr(ExecutorContract(), ORDER)(InlineExecutor())


@pytest.mark.full
def test_draws_from_other_states_are_seeded_in_a_process_of_their_own():
    ExecutorContract().test_draws_from_other_states_are_those_of_this_process(ProcessExecutor(workers=1))


@pytest.mark.parametrize("spoil", [forgets_those_added_later, answers_twice, draws_with_another_key, loses_one])
def test_zoo_executors_with_a_defect_are_caught(spoil):
    with pytest.raises(AssertionError):
        getattr(ExecutorContract(), ORDER)(Wrong(spoil))


def test_the_trial_of_an_interval_is_the_one_that_wins():
    low, high = one_trial_of(3)
    assert low < tuned(noisy, InlineExecutor(), 3).value < high
    assert high - low == pytest.approx(2e-12, rel=1e-3)


def test_attempts_are_counted_in_files(tmp_path):
    class Told(Dying):
        def die(self):
            raise MemoryError

    trial = Told(tmp_path, (0.4, 0.6), times=2)
    for x, deaths in ((0.5, 2), (0.7, 0), (0.6, 2), (0.4, 2)):
        for _ in range(deaths):
            with pytest.raises(MemoryError):
                trial({"x": x}, keyed_source(1))
        assert trial({"x": x}, keyed_source(1))[1] == x
        assert (tmp_path / repr(x)).read_text() == "x" * (deaths + 1)
    with pytest.raises(SystemExit, match="3"):
        Leaving(tmp_path, (0.0, 1.0), times=9)({"x": 0.1}, keyed_source(1))


def test_what_cannot_be_loaded_is_not_run():
    with pytest.raises(AssertionError):
        Unloadable()({}, None)
    with pytest.raises(ImportError, match="secret"):
        Unloadable().__setstate__(Unloadable().__getstate__())
