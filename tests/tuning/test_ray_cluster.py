"""Trials on Ray: its folder, its sockets and its resources."""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
from pathlib import Path

import pytest

from dpselect.errors import StudyError
from dpselect.testing.executor_contract import noisy
from dpselect.tuning import InlineExecutor, JoblibExecutor
from dpselect.tuning.ray_cluster import _folder
from tests.clusters import ray_cluster
from tests.grouped import tuned

pytestmark = pytest.mark.skipif(os.name == "nt", reason="kills workers with SIGKILL")


@pytest.fixture(scope="module")
def ray_executor():
    with ray_cluster(workers=2):
        yield JoblibExecutor(backend="ray", workers=2)


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


@pytest.mark.slow
def test_resources_that_ray_does_not_have_are_refused_after_a_deadline(ray_executor):
    executor = dataclasses.replace(ray_executor, resources={"num_gpus": 1}, patience=2.0)
    begun = time.monotonic()
    with pytest.raises(StudyError, match=r"no node of the Ray cluster has room .* 2 s \(patience=\)"):
        tuned(noisy, executor, 1)
    assert time.monotonic() - begun < 20.0


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"workers": 50}, {"workers": None}, {"resources": {"num_cpus": 2}}])
def test_as_many_trials_run_as_fit(options, ray_executor):
    """More workers than there is room for: the others wait."""
    result = tuned(noisy, dataclasses.replace(ray_executor, **options), 1)
    assert result.value == tuned(noisy, InlineExecutor(), 1).value
