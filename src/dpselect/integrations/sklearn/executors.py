"""The executor that scikit-learn's `n_jobs` and joblib's active backend mean."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from joblib import effective_n_jobs
from joblib.parallel import get_active_backend

from dpselect.tuning import Executor, InlineExecutor, JoblibExecutor

__all__ = ["executor_of"]


def executor_of(n_jobs: int | None) -> Executor:
    """Return the executor for `n_jobs` as in scikit-learn: on the cluster of a `joblib.parallel_config`, if any."""
    backend = get_active_backend()[0]
    cluster = {"DaskDistributedBackend": "dask", "RayBackend": "ray"}.get(type(backend).__name__)
    if cluster is not None:  # of `joblib.parallel_config`
        count = None if n_jobs is None or n_jobs < 0 else max(2, n_jobs)
        return JoblibExecutor(backend=cluster, workers=count, address=_address(backend))
    workers = effective_n_jobs(n_jobs)
    return InlineExecutor() if workers == 1 else JoblibExecutor(workers=workers)


def _address(backend: Any) -> str | None:
    """The address of a Dask scheduler that is not the current client's, or None if the executor finds it by itself."""
    client = getattr(backend, "client", None)
    if client is None:
        return None
    with suppress(ValueError):  # there is no current one
        if type(client).current() is client:
            return None
    return str(client.scheduler.address)
