"""The contract of executors, against worker processes, loky, and real Dask and Ray clusters on loopback."""

from __future__ import annotations

import os

import pytest

from dpselect.testing.executor_contract import ExecutorContract
from dpselect.tuning import JoblibExecutor, ProcessExecutor
from tests.clusters import dask_cluster, ray_cluster
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
