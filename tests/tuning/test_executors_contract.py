"""The contract of executors, against worker processes, loky, and real Dask and Ray clusters on loopback."""

from __future__ import annotations

import dataclasses
import os
import pickle
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dpselect.errors import ArgumentError, StudyError
from dpselect.testing.executor_contract import ExecutorContract, job_of, noisy, talkative
from dpselect.tuning import InlineExecutor, JoblibExecutor, OperatorProgressWarning, ProcessExecutor
from dpselect.tuning.executors import Attempt
from dpselect.tuning.ray_cluster import _folder
from dpselect.tuning.remote_trial import Manners, Parcel, Trial, greet, run_trial
from dpselect.tuning.trial import trial_key
from dpselect.tuning.worker_check import expected_of, packed
from tests.clusters import dask_cluster, ray_cluster
from tests.grouped import tuned
from tests.study.test_executors import released

pytestmark = pytest.mark.skipif(os.name == "nt", reason="kills workers with SIGKILL")


@pytest.mark.slow  # tuning/test_executors.py has most of it
class TestProcesses(ExecutorContract):
    @pytest.fixture
    def executor(self):
        return ProcessExecutor(workers=2)


@pytest.mark.slow  # loky starts all its workers again after each that dies
class TestLoky(ExecutorContract):
    @pytest.fixture
    def executor(self):
        return JoblibExecutor(workers=2)


@pytest.fixture(scope="module")
def dask_executor():
    with dask_cluster(workers=2) as cluster:
        yield JoblibExecutor(backend="dask", address=cluster.address)


@pytest.mark.full
class TestDask(ExecutorContract):
    @pytest.fixture
    def executor(self, dask_executor):
        return dask_executor


@pytest.fixture(scope="module")
def ray_executor():
    with ray_cluster(workers=2):
        yield JoblibExecutor(backend="ray", workers=2)


@pytest.mark.slow  # Ray takes some seconds to start
class TestRay(ExecutorContract):
    @pytest.fixture
    def executor(self, ray_executor):
        return ray_executor


@pytest.mark.full
def test_a_study_on_dask_releases_the_same(dask_executor, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    expected = released(tmp_path, executor="inline")
    assert released(tmp_path, executor="dask", address=dask_executor.address) == expected


@pytest.mark.full
def test_loky_takes_a_lambda_and_leaves_no_worker_behind():
    psutil = pytest.importorskip("psutil")
    result = tuned(lambda params, random: noisy(params, random), JoblibExecutor(workers=2), 1)
    assert result.value == tuned(noisy, InlineExecutor(), 1).value
    commands = [" ".join(child.cmdline()) for child in psutil.Process().children(recursive=True)]
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
    assert "batch_of_run_trial_1_calls-" in text
    names = set(re.findall(r"batch_of_run_trial_1_calls-\w+", text))
    assert all(len(name) == len("batch_of_run_trial_1_calls-") + 32 for name in names)
    for secret in ("secret", str(result.value)[:8], trial_key(bytes(32), 0).hex()):
        assert secret not in text


def everything(dask_scheduler):
    return str([(str(task.key), repr(task.run_spec), task.annotations) for task in dask_scheduler.tasks.values()])


def test_what_travels_shows_nothing():
    key = b"k" * 32
    travelling = [Trial(7654321, key), Parcel(b"content"), Attempt(7654321, None, True)]
    text = "".join(repr(thing) for thing in travelling)
    assert not any(secret in text for secret in ("7654321", "kkk", key.hex(), "content", "lost", "True"))


@pytest.mark.full
def test_a_job_is_not_run_in_the_process_that_sends_it():
    """Wherever joblib takes it; host names and process ids may be those of another container."""
    manners = Manners(quiet=False, threads=None, own=True)
    parcel = Parcel(packed(expected_of(job_of(noisy)), pickle.dumps(job_of(noisy))))
    trial = Trial(0, bytes(32))
    for here in (parcel, pickle.loads(pickle.dumps(parcel))):
        assert not greet(here, manners)
        assert run_trial(here, trial, manners) is None
    code = "import pickle, sys; from dpselect.tuning import remote_trial as r\n"
    code += "parcel, manners = pickle.load(sys.stdin.buffer); print(repr(r.greet(parcel, manners)))"
    elsewhere = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps((parcel, manners)), capture_output=True, check=True
    )
    assert elsewhere.stdout.strip() == b"''"  # nothing differs there


@pytest.mark.parametrize("parent", ["/tmp", "long"])
def test_a_ray_of_our_own_leaves_nothing_and_fits_its_sockets(parent, tmp_path, monkeypatch):
    """A path of 107 bytes at most; and logs that count tasks are for no one else's eyes, then or later."""
    parent = parent if parent != "long" else str(tmp_path / ("x" * 100))
    os.makedirs(parent, exist_ok=True)
    monkeypatch.setattr(tempfile, "tempdir", parent)
    with _folder() as folder:
        assert len(f"{folder}/session_2026-11-21_20-57-35_830075_1234567/sockets/plasma_store") <= 103
        Path(folder).mkdir()
        Path(folder).chmod(0o777)  # as Ray does
        assert Path(folder).parent.stat().st_mode & 0o077 == 0
    assert not Path(folder).parent.exists()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"workers": 1}, "workers"),
        ({"backend": "threading"}, "backend"),
        ({"address": "tcp://x"}, "address"),
        ({"resources": {"GPU": 1}}, "resources"),
        ({"backend": "dask", "resources": {"GPU": -1}}, "resources"),
    ],
)
def test_bad_executors(options, name):
    with pytest.raises(ArgumentError, match=name):
        JoblibExecutor(**options)


def test_resources_that_no_worker_has_are_refused(dask_executor):
    executor = dataclasses.replace(dask_executor, resources={"GPU": 1})
    with pytest.raises(StudyError, match="resources"):
        tuned(noisy, executor, 1)


@pytest.mark.slow
def test_resources_that_ray_does_not_have_are_refused(ray_executor):
    for options in ({"resources": {"num_gpus": 1}}, {"workers": 50}):
        with pytest.raises(StudyError, match="no room"):
            tuned(noisy, dataclasses.replace(ray_executor, **options), 1)
