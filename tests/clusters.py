"""Real clusters on loopback for tests: a Dask scheduler with workers in processes of their own, and a Ray node."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field

import pytest


@dataclass
class DaskCluster:
    """A scheduler and its workers, each under a nanny that replaces it when it dies."""

    address: str
    scheduler: subprocess.Popen
    nannies: list[subprocess.Popen] = field(default_factory=list)

    def worker_processes(self):
        """The processes that run trials."""
        import psutil

        found = []
        for nanny in self.nannies:
            with contextlib.suppress(psutil.NoSuchProcess):
                children = psutil.Process(nanny.pid).children()
                found += [child.pid for child in children if "spawn_main" in " ".join(child.cmdline())]
        return found

    def kill(self):
        """Kill all of it."""
        for process in (self.scheduler, *self.nannies):
            end_group(process)


def end_group(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def dask_cluster(workers, *, options=()):
    distributed = pytest.importorskip("distributed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    listen = ["--host", address, "--no-dashboard"]
    scheduler = subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_scheduler", *listen], **quiet)
    cluster = DaskCluster(address, scheduler)
    try:
        for _ in range(workers):
            command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1"]
            command += ["--no-dashboard", "--host", "127.0.0.1", *options]
            cluster.nannies.append(subprocess.Popen(command, **quiet))
        with distributed.Client(address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=60)
        yield cluster
    finally:
        cluster.kill()


@contextlib.contextmanager
def ray_cluster(workers):
    ray = pytest.importorskip("ray")
    ray.init(address="local", num_cpus=workers, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
    try:
        yield ray
    finally:
        ray.shutdown()


def wait_until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
