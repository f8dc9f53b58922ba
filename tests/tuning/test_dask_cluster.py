"""Trials on Dask: resources, workers that come, go and die, and how often a trial is begun."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import time

import pytest

from dpselect.errors import StudyError
from dpselect.testing.executor_contract import Dying, noisy, one_trial_of
from dpselect.tuning import ExecutorLostError, InlineExecutor, JoblibExecutor
from tests.clusters import dask_cluster
from tests.grouped import tuned

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="kills workers with SIGKILL"),
    pytest.mark.filterwarnings("ignore::dpselect.tuning.OperatorProgressWarning"),
]


@pytest.fixture(scope="module")
def dask_executor():
    with dask_cluster(workers=2) as cluster:
        yield JoblibExecutor(backend="dask", address=cluster.address)


@pytest.mark.full
def test_resources_that_no_worker_has_are_refused(dask_executor):
    executor = dataclasses.replace(dask_executor, resources={"GPU": 1})
    with pytest.raises(StudyError, match="resources"):
        tuned(noisy, executor, 1)


@pytest.mark.full
@pytest.mark.parametrize("workers", [1, 50])
def test_more_or_fewer_trials_at_once_than_there_are_workers(workers, dask_executor):
    executor = dataclasses.replace(dask_executor, workers=workers)
    assert tuned(noisy, executor, 1, trials=40).value == tuned(noisy, InlineExecutor(), 1, trials=40).value


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
def test_a_trial_that_kills_its_worker_has_four_attempts(threads, tmp_path):
    """With others in the same process too, which are not blamed. The tuner leaves nothing on the scheduler."""
    distributed = pytest.importorskip("distributed")
    where = one_trial_of(4, trials=12)
    with dask_cluster(workers=1, options=("--nthreads", str(threads))) as cluster:
        executor = JoblibExecutor(backend="dask", address=cluster.address)
        result = tuned(Dying(tmp_path, where, times=99), executor, 4, trials=12)
        with distributed.Client(cluster.address, set_as_default=False) as client:
            assert client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.extensions["events"]._events)) == 0
    attempts = {float(file.name): file.stat().st_size for file in tmp_path.iterdir()}
    (killer,) = [x for x in attempts if where[0] <= x <= where[1]]
    assert attempts.pop(killer) == 4
    assert result.value in attempts
    assert len(attempts) == 11
    assert max(attempts.values()) <= 3


@pytest.mark.slow
def test_a_search_whose_workers_all_leave_waits_for_a_stated_time_and_can_be_resumed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    store = tmp_path / "search.sealed"
    with dask_cluster(workers=1) as cluster:
        executor = JoblibExecutor(backend="dask", address=cluster.address, patience=3.0)

        def leave(done, total):
            if done == 2:
                for nanny in cluster.nannies:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(nanny.pid, signal.SIGKILL)

        begun = time.monotonic()
        with pytest.raises(ExecutorLostError, match=r"no Dask worker has taken trials for 3 s \(patience=\)"):
            tuned(napping, executor, 1, operator_progress=leave, store=store, trials=30)
        assert time.monotonic() - begun < 60.0
    assert tuned(napping, InlineExecutor(), 1, store=store, resume=True, trials=30).value is not None


def napping(params, random):
    time.sleep(0.2)
    return noisy(params, random)
