"""What an executor through joblib asks of the place where its trials run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpselect.errors import ArgumentError, integer, number

__all__ = ["ClusterOptions"]


@dataclass(frozen=True)
class ClusterOptions:
    """The fields of `JoblibExecutor` that a cluster is opened with; see there."""

    backend: str = "loky"
    workers: int | None = None
    address: str | None = None
    resources: Mapping[str, float] = field(default_factory=dict)
    quiet: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.backend, str):
            raise TypeError(f"backend must be the name of a backend of joblib, got {type(self.backend).__name__}")
        if self.backend in ("threading", "sequential", "multiprocessing"):
            raise ArgumentError(
                f"backend {self.backend!r} runs trials in this process or hangs when a worker dies; use 'loky'"
            )
        if self.workers is not None:
            # The tasks of a single worker joblib runs in the calling process; ProcessExecutor(workers=1) does not.
            integer("workers", self.workers, at_least=2)
        if self.address is not None and self.backend not in ("dask", "ray"):
            raise ArgumentError("address goes with backend 'dask' or 'ray'")
        if self.resources and self.backend not in ("dask", "ray"):
            raise ArgumentError("resources go with backend 'dask' or 'ray'")
        wanted = {
            str(name): number(f"resources[{name!r}]", much, at_least=0.0) for name, much in self.resources.items()
        }
        object.__setattr__(self, "resources", wanted)
