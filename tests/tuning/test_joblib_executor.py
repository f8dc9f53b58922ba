"""Trials through joblib: workers end, and a scheduler sees only names."""

from __future__ import annotations

import os
import re

import pytest

from dpselect.testing.executor_contract import noisy, talkative
from dpselect.tuning import InlineExecutor, JoblibExecutor, OperatorProgressWarning
from dpselect.tuning.trial import trial_key
from tests.clusters import dask_cluster
from tests.grouped import tuned

pytestmark = pytest.mark.skipif(os.name == "nt", reason="kills workers with SIGKILL")


@pytest.fixture(scope="module")
def dask_executor():
    with dask_cluster(workers=2) as cluster:
        yield JoblibExecutor(backend="dask", address=cluster.address)


@pytest.mark.full
def test_loky_takes_a_lambda_and_leaves_no_worker_behind():
    psutil = pytest.importorskip("psutil")
    result = tuned(lambda params, random: noisy(params, random), JoblibExecutor(workers=2), 1)
    assert result.value == tuned(noisy, InlineExecutor(), 1).value
    running = [each for each in psutil.Process().children(recursive=True) if each.status() != psutil.STATUS_ZOMBIE]
    commands = [" ".join(child.cmdline()) for child in running]
    assert not [command for command in commands if "loky" in command and "resource_tracker" not in command]


@pytest.mark.full
def test_what_a_scheduler_shows_of_a_trial_is_a_name(dask_executor):
    """Names of tasks, their arguments' `repr` and the logs of scheduler and workers, while trials run and fail."""
    distributed = pytest.importorskip("distributed")
    shown = []
    with distributed.Client(dask_executor.address, set_as_default=False) as client:

        def look(done, total):
            shown.append(client.run_on_scheduler(everything))

        with pytest.warns(OperatorProgressWarning):
            result = tuned(talkative, dask_executor, 2, operator_progress=look)
        shown.append(str((client.get_worker_logs(), client.get_scheduler_logs())))
    text = "".join(shown)
    names = set(re.findall(r"\btrial-\w+", text))
    assert names
    assert all(len(name) == len("trial-") + 32 for name in names)
    for secret in ("secret", str(result.value)[:8], trial_key(bytes(32), 0).hex()):
        assert secret not in text


def everything(dask_scheduler):
    return str([(str(task.key), repr(task.run_spec), task.annotations) for task in dask_scheduler.tasks.values()])
