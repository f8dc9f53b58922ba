"""The rounds of a search: a lost attempt is made again with the same key, and the number of commits tells of none."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from dpselect.tuning import InlineExecutor
from dpselect.tuning.executors import Attempt
from dpselect.tuning.machine import REPLAYS
from dpselect.tuning.sealed_store import MemoryStore
from dpselect.tuning.tuner import OperatorProgressWarning
from tests.tuning.tuner_cases import search


class Losing:
    """An executor that loses the first attempts at each trial, `losses[index]` of them, and keeps the keys of all."""

    def __init__(self, losses):
        self.losses, self.attempts = losses, []

    @contextmanager
    def session(self, job):
        with InlineExecutor().session(job) as inner:
            self.inner = inner
            yield self

    def run(self, trials):
        while trials:
            index, key = trials.popleft()
            self.attempts.append((index, key))
            if sum(seen == index for seen, _ in self.attempts) <= self.losses.get(index, 0):
                yield Attempt(index, lost=True)
            else:
                trials.appendleft((index, key))
                rest = [trials.pop() for _ in range(len(trials) - 1)]
                yield from self.inner.run(trials)
                trials.extend(reversed(rest))


@pytest.fixture
def saves(monkeypatch):
    found, save = [], MemoryStore.save
    monkeypatch.setattr(MemoryStore, "save", lambda self, search: found.append(1) or save(self, search))
    return found


def test_lost_attempts_change_neither_the_release_nor_the_number_of_commits(drawn, saves):
    drawn(4)
    whole = search(executor=Losing({}))
    commits = len(saves)
    executor = Losing({0: 1, 2: REPLAYS})
    again = search(executor=executor)
    assert (again.params, again.value) == (whole.params, whole.value)
    assert len(saves) == 2 * commits
    for index in range(4):
        keys = [key for seen, key in executor.attempts if seen == index]
        assert len(keys) == 1 + executor.losses.get(index, 0)
        assert len(set(keys)) == 1


def test_a_trial_that_is_lost_too_often_is_a_failed_run(drawn, saves):
    drawn(4)
    whole = search(executor=Losing({}))
    commits = len(saves)
    winner = next(i for i in range(4) if search(executor=Losing({i: REPLAYS + 1})).params != whole.params)
    saves.clear()
    executor = Losing({winner: 99})
    without = search(executor=executor)
    assert without.params is not None
    assert sum(index == winner for index, _ in executor.attempts) == REPLAYS + 1
    assert len(saves) == commits


def test_operator_progress_counts_and_warns(drawn, tmp_path):
    drawn(3)
    counts = []
    with pytest.warns(OperatorProgressWarning, match="no privacy guarantee"):
        search(operator_progress=lambda done, total: counts.append((done, total)))
    assert counts == [(1, 3), (2, 3), (3, 3)]
