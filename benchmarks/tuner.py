"""What the tuner costs per trial when trials are trivial: durable and sealed, against one bare durable SQLite commit.

    python benchmarks/tuner.py [--trials 300] [--rounds 5] [--folder DIR]

All contenders run in one process, in turn, several rounds, on the same disk; the table shows the median round. Optuna
and Ray Tune are shown for scale: they keep every trial in the clear and give no privacy.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from dpselect.privacy import pure_dp
from dpselect.repetitions import Fixed
from dpselect.tuning import InlineExecutor, Space, Uniform, durable, tune

GOAL_MILLISECONDS = 1.0


def bare_commits(folder: Path, trials: int) -> None:
    connection = durable.connect(folder / "bare.db", exclusive=True)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x REAL)")
    for number in range(trials):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t VALUES (?, ?)", (number, 0.5))
        durable.commit(connection)
    connection.close()


def dpselect_tuner(payload_bytes: int) -> Callable[[Path, int], None]:
    def run(folder: Path, trials: int) -> None:
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        tune(
            lambda params, _: (params["x"], params["x"]),
            space=Space({"x": Uniform(0.0, 1.0)}),
            base=pure_dp(epsilon=0.001),
            repetitions=Fixed(count=trials),
            store=folder / "search.db",
            payload_bytes=payload_bytes,
            executor=InlineExecutor(),
        )

    return run


def optuna_with(storage: Callable[[Path], object]) -> Callable[[Path, int], None]:
    def run(folder: Path, trials: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = optuna.samplers.RandomSampler(seed=1)
        study = optuna.create_study(storage=storage(folder), sampler=sampler)
        study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=trials)

    return run


def optuna_sqlite(folder: Path) -> object:
    return f"sqlite:///{folder / 'optuna.db'}"


def optuna_journal(folder: Path) -> object:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    return JournalStorage(JournalFileBackend(str(folder / "optuna.log")))


def ray_tune(folder: Path, trials: int) -> None:
    import ray
    from ray import tune as ray_tuner

    tuner = ray_tuner.Tuner(
        lambda config: {"score": config["x"]},
        param_space={"x": ray_tuner.uniform(0.0, 1.0)},
        tune_config=ray_tuner.TuneConfig(num_samples=trials),
        run_config=ray_tuner.RunConfig(storage_path=str(folder), verbose=0),
    )
    ray.init(ignore_reinit_error=True, logging_level="ERROR")
    tuner.fit()


CONTENDERS: dict[str, Callable[[Path, int], None]] = {
    "bare durable SQLite commit": bare_commits,
    "dpselect, sealed, 4 KiB payload": dpselect_tuner(4 << 10),
    "dpselect, sealed, 64 KiB payload": dpselect_tuner(64 << 10),
    "Optuna, SQLite": optuna_with(optuna_sqlite),
    "Optuna, journal file": optuna_with(optuna_journal),
    "Ray Tune": ray_tune,
}


def milliseconds_per_trial(run: Callable[[Path, int], None], trials: int, parent: Path) -> float:
    folder = Path(tempfile.mkdtemp(dir=parent))
    try:
        start = time.perf_counter()
        run(folder, trials)
        return (time.perf_counter() - start) / trials * 1e3
    finally:
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=None, help="on the disk to measure (default: a temporary one)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")

    times: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    missing: dict[str, str] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as parent:
        for name, run in CONTENDERS.items():  # once for imports and caches
            try:
                run(Path(tempfile.mkdtemp(dir=parent)), 3)
            except ImportError as error:
                missing[name] = str(error)
        for _ in range(options.rounds):
            for name, run in CONTENDERS.items():
                if name not in missing:
                    times[name].append(milliseconds_per_trial(run, options.trials, Path(parent)))

    bare = statistics.median(times["bare durable SQLite commit"])
    print(f"{options.trials} trivial trials, median of {options.rounds} rounds [fastest, slowest]\n")
    print(f"{'':34}{'ms/trial':>10}{'':22}{'above bare':>12}{'ratio':>8}")
    for name, found in times.items():
        if name in missing:
            print(f"{name:34}  not importable here ({missing[name]})")
            continue
        middle = statistics.median(found)
        spread = f"[{min(found):.3f}, {max(found):.3f}]"
        print(f"{name:34}{middle:10.3f}  {spread:20}{middle - bare:12.3f}{middle / bare:8.2f}")
    above = statistics.median(times["dpselect, sealed, 64 KiB payload"]) - bare
    verdict = "met" if above <= GOAL_MILLISECONDS else "NOT met"
    print(f"\ngoal: at most {GOAL_MILLISECONDS:g} ms above the bare commit: {verdict} ({above:.3f} ms at 64 KiB)")


if __name__ == "__main__":
    main()
