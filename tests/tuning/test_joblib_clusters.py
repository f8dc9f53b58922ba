"""Clusters of joblib: options and resources that are refused."""

from __future__ import annotations

import dataclasses
import os

import pytest

from dpselect.errors import ArgumentError, StudyError
from dpselect.testing.executor_contract import noisy
from dpselect.tuning import JoblibExecutor
from tests.clusters import dask_cluster
from tests.grouped import tuned

pytestmark = pytest.mark.skipif(os.name == "nt", reason="kills workers with SIGKILL")


@pytest.fixture(scope="module")
def dask_executor():
    with dask_cluster(workers=2) as cluster:
        yield JoblibExecutor(backend="dask", address=cluster.address)


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
