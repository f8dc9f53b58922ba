"""What a trivial trial costs on workers: this library on processes, loky, Dask and Ray, beside Ray Tune and Optuna.

    python benchmarks/cluster.py [--trials 1000] [--ray-tune-trials 10] [--workers 2] [--folder DIR]

All contenders run in one process, one after another, on the same two workers, and every one keeps its trials durably:
this library in its sealed store, Optuna in SQLite (its workers are threads of this process), Ray Tune in its folder.
`start` is the wall time of a search of two trials, the shorter of two; `ms/trial` is the rest of the long search's time
divided by its other trials. Run it on a quiet machine: starting workers takes seconds, which differ by more than a few
trials take. Clusters are started in advance and their start is not counted. Ray Tune takes seconds for a trial, so it
runs fewer of them (--ray-tune-trials). The peers keep every trial in the clear and give no privacy.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from dpselect.privacy import pure_dp
from dpselect.repetitions import Fixed
from dpselect.tuning import Executor, JoblibExecutor, ProcessExecutor, SearchStore, Space, Uniform, tune

Run = Callable[[Path, int], None]
SHORT = 2


def trivial(params: dict[str, float], random: object) -> tuple[float, float]:  # noqa: ARG001 - an objective's
    return params["x"], params["x"]


def on(executor: Executor) -> Run:
    def run(folder: Path, trials: int) -> None:
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        result = tune(
            trivial,
            space=Space({"x": Uniform(0.0, 1.0)}),
            base=pure_dp(epsilon=0.001),
            repetitions=Fixed(count=trials),
            store=SearchStore(path=folder / "search.db", payload_bytes=4 << 10),
            executor=executor,
        )
        assert result.value is not None

    return run


def bare_dask(address: str) -> Run:
    def run(folder: Path, trials: int) -> None:  # noqa: ARG001 - nothing is kept
        from distributed import Client

        with Client(address, set_as_default=False) as client:
            client.gather(client.map(trivial, [{"x": float(number)} for number in range(trials)], random=None))

    return run


def optuna_threads(workers: int) -> Run:
    def run(folder: Path, trials: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = optuna.samplers.RandomSampler(seed=1)
        study = optuna.create_study(storage=f"sqlite:///{folder / 'optuna.db'}", sampler=sampler)
        study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=trials, n_jobs=workers)

    return run


def ray_tune(folder: Path, trials: int) -> None:
    from ray import tune as ray_tuner

    tuner = ray_tuner.Tuner(
        lambda config: {"score": config["x"]},
        param_space={"x": ray_tuner.uniform(0.0, 1.0)},
        tune_config=ray_tuner.TuneConfig(num_samples=trials),
        run_config=ray_tuner.RunConfig(storage_path=str(folder), verbose=0),
    )
    tuner.fit()


@contextlib.contextmanager
def dask(workers: int) -> Iterator[str]:
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
    ) as cluster:
        yield cluster.scheduler_address


@contextlib.contextmanager
def ray(workers: int) -> Iterator[None]:
    import ray

    ray.init(address="local", num_cpus=workers, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
    try:
        yield
    finally:
        ray.shutdown()


def seconds(run: Run, trials: int, parent: Path) -> float:
    folder = Path(tempfile.mkdtemp(dir=parent))
    try:
        start = time.perf_counter()
        run(folder, trials)
        return time.perf_counter() - start
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(name: str, run: Run, trials: int, parent: Path) -> None:
    try:
        seconds(run, SHORT, parent)  # imports and caches
        start = min(seconds(run, SHORT, parent) for _ in range(2))
        whole = seconds(run, trials, parent)
    except ImportError as error:
        print(f"{name:40}  not importable here ({error})", flush=True)
        return
    each = (whole - start) / (trials - SHORT) * 1e3
    print(f"{name:40}{trials:8}{start:10.2f} s{each:12.2f}{whole:12.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--ray-tune-trials", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=None, help="on the disk to measure (default: a temporary one)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    workers, trials = options.workers, options.trials

    print(f"{workers} workers, durable searches of trivial trials\n")
    print(f"{'':40}{'trials':>8}{'start':>12}{'ms/trial':>12}{'whole':>14}")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        parent = Path(folder)
        measure("dpselect, worker processes", on(ProcessExecutor(workers=workers)), trials, parent)
        measure("dpselect, loky", on(JoblibExecutor(workers=workers)), trials, parent)
        with dask(workers) as address:
            measure("(Dask alone, client.map, nothing kept)", bare_dask(address), trials, parent)
            measure("dpselect, Dask", on(JoblibExecutor(backend="dask", address=address)), trials, parent)
        measure("Optuna, SQLite, threads", optuna_threads(workers), trials, parent)
        with ray(workers):
            measure("dpselect, Ray", on(JoblibExecutor(backend="ray", workers=workers)), trials, parent)
            measure("Ray Tune", ray_tune, min(trials, options.ray_tune_trials), parent)
    if options.ray_tune_trials < trials:
        print(f"\nRay Tune takes seconds for a trial, so it ran {options.ray_tune_trials} of them, not {trials}.")


if __name__ == "__main__":
    main()
