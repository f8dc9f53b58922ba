"""Real clusters on loopback for tests: a Dask scheduler with workers in processes of their own, and a Ray node."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

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

    def wait_for_workers(self, count):
        """Until that many take trials."""
        import distributed

        with distributed.Client(self.address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=300)

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
    pytest.importorskip("distributed")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, contextlib.ExitStack() as undo:
        where = Path(folder, "scheduler.json")
        listen = ["--host", "tcp://127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(where)]
        listen += ["--idle-timeout", "15m"]  # should this process be killed
        scheduler = subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_scheduler", *listen], **quiet)
        undo.callback(end_group, scheduler)
        wait_until(lambda: where.exists() and where.read_text().rstrip().endswith("}"))
        cluster = DaskCluster(json.loads(where.read_text())["address"], scheduler)
        undo.callback(cluster.kill)
        command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.address, "--nthreads", "1"]
        command += ["--no-dashboard", "--host", "127.0.0.1", "--local-directory", folder, "--death-timeout", "60"]
        for _ in range(workers):
            cluster.nannies.append(subprocess.Popen([*command, *options], **quiet))
        if workers:
            cluster.wait_for_workers(workers)
        yield cluster


@contextlib.contextmanager
def ray_cluster(workers):
    """In a folder with a short name, because Ray puts sockets below it, and with little memory."""
    ray = pytest.importorskip("ray")
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    try:
        ray.init(
            address="local",
            num_cpus=workers,
            object_store_memory=200 << 20,
            log_to_driver=False,
            logging_level="ERROR",
            include_dashboard=False,
            _temp_dir=folder,
        )
        yield ray
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def wait_until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
