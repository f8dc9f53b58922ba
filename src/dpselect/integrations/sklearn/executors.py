"""The executor that scikit-learn's `n_jobs` and joblib's active backend mean."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from joblib import effective_n_jobs
from joblib.parallel import BACKENDS, ThreadingBackend, get_active_backend

from dpselect.errors import ArgumentError
from dpselect.tuning import Executor, InlineExecutor, JoblibExecutor

__all__ = ["executor_of"]


def executor_of(n_jobs: int | None) -> Executor:
    """Return the executor for `n_jobs` as in scikit-learn: on the backend of a `joblib.parallel_config`, if any.

    Raises `ArgumentError` for a backend or a setting of it that a private search cannot use.
    """
    backend, configured = get_active_backend()
    cluster = {"DaskDistributedBackend": "dask", "RayBackend": "ray"}.get(type(backend).__name__)
    if cluster is not None:  # of `joblib.parallel_config`
        jobs = configured if n_jobs is None else n_jobs
        count = None if jobs is None or jobs < 0 else max(1, jobs)
        resources = _dask_resources(backend) if cluster == "dask" else _ray_resources(backend)
        return JoblibExecutor(backend=cluster, workers=count, address=_address(backend), resources=resources)
    if n_jobs == 0:
        raise ArgumentError("n_jobs must not be 0: give -1 for all processors")
    workers = effective_n_jobs(n_jobs)
    if workers == 1:
        return InlineExecutor()
    if backend.nesting_level:  # joblib's own choice for a search within a worker
        return JoblibExecutor(workers=workers)
    return JoblibExecutor(backend=_name_of(backend), workers=workers)


def _name_of(backend: Any) -> str:
    names = [name for name, kind in BACKENDS.items() if kind is type(backend)]
    if isinstance(backend, ThreadingBackend):  # or a kind of it under another name
        names = ["threading"]
    reasons = {
        "threading": "runs trials in this process, where one that dies ends the search",
        "multiprocessing": "hangs when a trial ends its worker",
    }
    reason = reasons.get(names[0]) if names else "is not registered by a name that a worker could find"
    if reason is not None:
        name = names[0] if names else type(backend).__name__
        raise ArgumentError(
            f"n_jobs: joblib's active backend {name!r} {reason}. Use joblib.parallel_config(backend='loky'), 'dask' or "
            "'ray', n_jobs=1, or executor=ProcessExecutor(workers=...). Nothing was charged"
        )
    return names[0]


def _dask_resources(backend: Any) -> Mapping[str, float]:
    settings = dict(vars(backend).get("submit_kwargs") or {})
    resources: Mapping[str, float] = settings.pop("resources", None) or {}
    _refuse("dask", settings)
    return resources


def _ray_resources(backend: Any) -> Mapping[str, float]:
    settings = dict(vars(backend).get("ray_remote_args") or {})
    resources = {name: settings.pop(name) for name in ("num_cpus", "num_gpus", "memory") if name in settings}
    resources.update(settings.pop("resources", None) or {})
    _refuse("ray", settings)
    return resources


def _refuse(cluster: str, settings: Mapping[str, Any]) -> None:
    if settings:
        raise ArgumentError(
            f"n_jobs: joblib's backend {cluster!r} has {', '.join(sorted(map(str, settings)))}, which a private search "
            f"does not use. Leave it out, or give executor=JoblibExecutor(backend={cluster!r}, resources=...)"
        )


def _address(backend: Any) -> str | None:
    """The address of a Dask scheduler that is not the current client's, or None if the executor finds it by itself."""
    client = vars(backend).get("client")
    if client is None:
        return None
    with suppress(ValueError):  # there is no current one
        if type(client).current() is client:
            return None
    return str(client.scheduler.address)
