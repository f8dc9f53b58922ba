"""The executor that `n_jobs` means; on clusters tests/tuning/test_worker_check.py tries it."""

import joblib
import pytest
from joblib.parallel import BACKENDS, LokyBackend

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn.executors import executor_of
from dpselect.tuning import InlineExecutor, JoblibExecutor


def test_one_job_is_this_process_and_several_are_loky():
    assert executor_of(None) == executor_of(1) == InlineExecutor()
    assert executor_of(2) == JoblibExecutor(backend="loky", workers=2)
    with joblib.parallel_config(backend="loky", n_jobs=3):
        assert executor_of(None) == JoblibExecutor(workers=3)


@pytest.mark.parametrize(("backend", "reason"), [("threading", "this process"), ("multiprocessing", "hangs")])
def test_a_backend_that_cannot_be_used_is_refused_with_a_reason(backend, reason):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        with pytest.raises(ArgumentError, match=f"n_jobs.*{backend}.*{reason}"):
            executor_of(None)
        assert executor_of(1) == InlineExecutor()


def test_a_backend_of_another_package_is_used_by_its_name(monkeypatch):
    class Other(LokyBackend):
        pass

    with joblib.parallel_config(backend=Other(), n_jobs=2):
        with pytest.raises(ArgumentError, match=r"Other.*not registered"):
            executor_of(None)
        monkeypatch.setitem(BACKENDS, "other", Other)
        assert executor_of(None) == JoblibExecutor(backend="other", workers=2)


def test_a_search_within_a_worker_of_joblib_is_not_refused():
    (found,) = joblib.Parallel(n_jobs=2, backend="threading")([joblib.delayed(executor_of)(1)])
    assert found == InlineExecutor()
    with joblib.parallel_config(backend=BACKENDS["threading"](nesting_level=1), n_jobs=2):
        assert executor_of(None) == JoblibExecutor(workers=2)


class DaskDistributedBackend(LokyBackend):
    """Joblib's has these attributes."""

    client = None
    submit_kwargs = None


class RayBackend(LokyBackend):
    """Ray's has these attributes."""

    ray_remote_args = None


@pytest.mark.parametrize(
    ("kind", "name", "settings", "resources"),
    [
        (DaskDistributedBackend, "submit_kwargs", {"resources": {"GPU": 1}}, {"GPU": 1}),
        (DaskDistributedBackend, "submit_kwargs", {"workers": ["tcp://x"], "resources": {"GPU": 1}}, None),
        (RayBackend, "ray_remote_args", {"num_gpus": 1, "resources": {"fast": 2}}, {"num_gpus": 1, "fast": 2}),
        (RayBackend, "ray_remote_args", {"max_restarts": 3}, None),
    ],
)
def test_resources_of_the_active_backend_are_used_and_other_settings_refused(kind, name, settings, resources):
    backend = kind()
    setattr(backend, name, settings)
    cluster = "dask" if kind is DaskDistributedBackend else "ray"
    with joblib.parallel_config(backend=backend, n_jobs=4):
        if resources is None:
            with pytest.raises(ArgumentError, match=f"{cluster}.*(workers|max_restarts)"):
                executor_of(None)
        else:
            assert executor_of(None) == JoblibExecutor(backend=cluster, workers=4, resources=resources)
            assert executor_of(-1) == JoblibExecutor(backend=cluster, resources=resources)
