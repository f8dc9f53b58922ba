"""Trials as tasks: a cluster of this process that dies, refuses and falls silent as told."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from concurrent.futures import CancelledError, Future

import pytest

from dpselect.errors import StudyError
from dpselect.tuning import task_session
from dpselect.tuning.executors import Attempt
from dpselect.tuning.machine import REPLAYS
from dpselect.tuning.remote_trial import Answer
from dpselect.tuning.task_session import TaskCluster, TaskSession, WorkerDiedError
from dpselect.tuning.worker_check import ExecutorLostError, Unequal, UnequalWorkerError


@pytest.fixture(autouse=True)
def short_turns(monkeypatch):
    monkeypatch.setattr(task_session, "_TURN", 0.001)


class Fake(TaskCluster):
    """Runs tasks in batches of `beside`, which die together if one of them holds a trial in `killers`."""

    def __init__(self, *, killers=(), beside=1, seconds=1e-5, answers=None, patience=60.0, living=True):
        self.killers, self.beside, self.seconds, self.answers = set(killers), beside, seconds, answers
        self.patience, self.living = patience, living
        self.waiting, self.groups, self.attempts, self.abandoned, self.checks = [], [], Counter(), False, 0
        self.deaths, self.company = Counter(), []

    workers = room = 4

    def greetings(self):
        return [Unequal()]

    def submit(self, trials):
        future = Future()
        self.waiting.append((trials, future))
        beside = {trial.index for task, _ in self.waiting for trial in task}
        for index in beside & {index for index, lost in self.deaths.items() if lost == REPLAYS}:
            self.company.append((index, beside - {index}))
        self.groups.append(tuple(trial.index for trial in trials))
        if len(self.waiting) == self.beside:
            self.work()
        return future

    def work(self):
        batch, self.waiting = self.waiting, []
        dies = any(trial.index in self.killers for trials, _ in batch for trial in trials)
        for trials, future in batch:
            self.attempts.update(trial.index for trial in trials)
            answer = self.answers.popleft() if self.answers else None
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            elif answer is not None:
                future.set_result(None if answer == "unloadable" else answer)
            elif dies:
                self.deaths.update(trial.index for trial in trials)
                future.set_exception(WorkerDiedError())
            else:
                future.set_result(Answer(tuple(Attempt(t.index) for t in trials), self.seconds * len(trials)))

    def check(self):
        self.checks += 1
        self.work()
        if not self.living:
            raise ExecutorLostError("silent")

    def alive(self):
        return self.living

    def abandon(self):
        self.abandoned = True


def settled(session, count):
    """The trials that came back, and those that had failed when each loss is replayed as by the tuner."""
    trials, losses, done = deque((index, b"") for index in range(count)), Counter(), []
    for attempt in session.run(trials):
        losses[attempt.index] += attempt.lost
        if not attempt.lost:
            done.append(attempt.index)
        elif losses[attempt.index] <= REPLAYS:
            trials.append((attempt.index, b""))
    return sorted(done), sorted(index for index, lost in losses.items() if lost > REPLAYS)


@pytest.mark.parametrize(("beside", "count"), [(1, 1), (1, 40), (3, 40), (4, 7)])
def test_every_trial_comes_back_once(beside, count):
    cluster = Fake(beside=beside)
    assert settled(TaskSession(cluster), count) == (list(range(count)), [])
    assert not cluster.abandoned


def test_short_trials_travel_in_groups_and_long_ones_alone():
    short, long = Fake(seconds=1e-5), Fake(seconds=1.0)
    settled(TaskSession(short), 400)
    settled(TaskSession(long), 40)
    assert len(short.groups) < 100
    assert set(map(len, long.groups)) == {1}


@pytest.mark.parametrize("killers", [{0}, {5, 6}, {0, 13, 39}, set(range(0, 40, 7))])
@pytest.mark.parametrize("beside", [1, 2, 4])
def test_a_killer_has_four_attempts_and_no_other_trial_is_blamed(killers, beside):
    """Even if all that is under way dies with it, in groups too."""
    cluster = Fake(killers=killers, beside=beside)
    done, failed = settled(TaskSession(cluster), 40)
    assert failed == sorted(killers)
    assert done == sorted(set(range(40)) - killers)
    assert {cluster.attempts[index] for index in killers} == {REPLAYS + 1}
    assert {index for index, _ in cluster.company} == killers
    assert not any(beside for _, beside in cluster.company), "a last attempt had company"


class Patient(Fake):
    """Trial 1 takes until nothing else happens. Trial 0 kills its worker at once."""

    def submit(self, trials):
        if [trial.index for trial in trials] != [1]:
            return super().submit(trials)
        self.long = trials, Future()
        return self.long[1]

    def check(self):
        self.deaths_beside = self.deaths[0]
        if not self.long[1].done():
            self.long[1].set_result(Answer(tuple(Attempt(trial.index) for trial in self.long[0]), 1.0))


def test_the_last_attempt_waits_until_no_other_trial_is_under_way():
    cluster = Patient(killers={0})
    assert settled(TaskSession(cluster), 3) == ([1, 2], [0])
    assert cluster.deaths_beside == REPLAYS
    assert cluster.deaths[0] == REPLAYS + 1


def test_a_cancelled_task_is_sent_again_and_no_loss():
    cluster = Fake(answers=deque([CancelledError()]))
    assert settled(TaskSession(cluster), 3) == ([0, 1, 2], [])


@pytest.mark.parametrize(
    ("answer", "error"), [("unloadable", ExecutorLostError), (Unequal("differs"), UnequalWorkerError)]
)
def test_an_unfit_worker_ends_the_search(answer, error):
    cluster = Fake(answers=deque([answer]))
    with pytest.raises(error):
        settled(TaskSession(cluster), 3)
    assert cluster.abandoned


def test_a_cluster_that_is_gone_or_runs_nothing_ends_the_search_with_a_message():
    with pytest.raises(ExecutorLostError, match="gone"):
        settled(TaskSession(Fake(answers=deque([OSError()]), living=False)), 3)
    with pytest.raises(ExecutorLostError, match=r"no task for 0.01 s \(patience=, OSError\)"):
        settled(TaskSession(Fake(answers=deque(itertools.repeat(OSError(), 99)), patience=0.01)), 3)
    silent = Fake(beside=9, living=False)
    with pytest.raises(ExecutorLostError, match="silent"):
        settled(TaskSession(silent), 3)
    assert silent.checks == 1


@pytest.mark.parametrize(
    ("greetings", "error"), [([], StudyError), ([None], StudyError), ([Unequal("differs")], UnequalWorkerError)]
)
def test_workers_that_cannot_load_the_job_are_refused(greetings, error, monkeypatch):
    cluster = Fake()
    monkeypatch.setattr(cluster, "greetings", lambda: greetings)
    with pytest.raises(error):
        TaskSession(cluster).check_loaded()


def test_a_caller_that_stops_leaves_nothing_under_way():
    cluster = Fake(beside=2)
    attempts = TaskSession(cluster).run(deque((index, b"") for index in range(9)))
    next(attempts)
    attempts.close()
    assert cluster.abandoned
