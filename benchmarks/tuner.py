"""What the tuner costs per trial when trials are trivial: durable and sealed, against one bare durable SQLite commit.

    python benchmarks/tuner.py [--trials 300] [--rounds 5] [--folder DIR] [--without "Ray Tune" ...]

All contenders run in one process, in turn, several rounds, on the same disk; the table shows the median round. Each
round runs two searches, one of a tenth of the trials: the difference gives what one more trial costs, and what is
left of the longer one is what a search costs however short it is (pricing, the files of store and key, their removal).
"whole" is the longer search's time divided by its trials. Optuna and Ray Tune are shown for scale: they keep every
trial in the clear and give no privacy. Ray Tune takes seconds for a trial and runs a tenth as many.
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
from dataclasses import dataclass, field
from pathlib import Path

from dpselect.privacy import pure_dp
from dpselect.repetitions import Fixed
from dpselect.storage import durable
from dpselect.tuning import InlineExecutor, SearchStore, Space, Uniform, tune

GOAL_MILLISECONDS = 1.0
BARE = "bare durable SQLite commit"
SEALED = "dpselect, sealed, 64 KiB payload"


def bare_commits(folder: Path, trials: int) -> None:
    (folder / "bare.db").touch()  # what is there is opened, and nothing made
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
            store=SearchStore(path=folder / "search.db", payload_bytes=payload_bytes),
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
    BARE: bare_commits,
    "dpselect, sealed, 4 KiB payload": dpselect_tuner(4 << 10),
    SEALED: dpselect_tuner(64 << 10),
    "Optuna, SQLite": optuna_with(optuna_sqlite),
    "Optuna, journal file": optuna_with(optuna_journal),
    "Ray Tune": ray_tune,
}


def milliseconds(run: Callable[[Path, int], None], trials: int, parent: Path) -> float:
    folder = Path(tempfile.mkdtemp(dir=parent))
    try:
        start = time.perf_counter()
        run(folder, trials)
        return (time.perf_counter() - start) * 1e3
    finally:
        shutil.rmtree(folder)


@dataclass
class Measured:
    """Milliseconds, one of each for every round."""

    start: list[float] = field(default_factory=list)
    each: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)

    def add(self, short: float, long: float, fewer: int, more: int) -> None:
        each = (long - short) / (more - fewer)
        self.each.append(each)
        self.start.append(short - fewer * each)
        self.whole.append(long / more)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=None, help="on the disk to measure (default: a temporary one)")
    parser.add_argument("--without", nargs="*", default=[], help="contenders to leave out, such as 'Ray Tune'")
    options = parser.parse_args()
    warnings.simplefilter("ignore")

    contenders = {name: run for name, run in CONTENDERS.items() if name not in options.without}
    found = {name: Measured() for name in contenders}
    missing: dict[str, str] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as parent:
        for name, run in contenders.items():  # once for imports and caches
            try:
                run(Path(tempfile.mkdtemp(dir=parent)), 3)
            except ImportError as error:
                missing[name] = str(error)
        for _ in range(options.rounds):
            for name, run in contenders.items():
                if name not in missing:
                    more = max(20, options.trials // (10 if name == "Ray Tune" else 1))
                    fewer = more // 10
                    short = milliseconds(run, fewer, Path(parent))
                    found[name].add(short, milliseconds(run, more, Path(parent)), fewer, more)

    bare = {what: statistics.median(getattr(found[BARE], what)) for what in ("start", "each", "whole")}
    print(f"{options.trials} trivial trials, median of {options.rounds} rounds [fastest, slowest], milliseconds\n")
    print(f"{'':34}{'start':>8}{'each further trial':>22}{'':20}{'above bare':>11}{'whole':>9}{'above bare':>12}")
    for name, measured in found.items():
        if name in missing:
            print(f"{name:34}  not importable here ({missing[name]})")
            continue
        start, each, whole = (statistics.median(times) for times in (measured.start, measured.each, measured.whole))
        spread = f"[{min(measured.each):.3f}, {max(measured.each):.3f}]"
        above = f"{each - bare['each']:11.3f}{whole:9.3f}{whole - bare['whole']:12.3f}"
        print(f"{name:34}{start:8.1f}{each:22.3f}  {spread:18}{above}")
    for what, label in (("each", "a further trial"), ("whole", f"a trial of {options.trials}, start included,")):
        above_bare = statistics.median(getattr(found[SEALED], what)) - bare[what]
        verdict = "met" if above_bare <= GOAL_MILLISECONDS else "NOT met"
        print(
            f"\ngoal: {label} at most {GOAL_MILLISECONDS:g} ms above the bare commit: {verdict} ({above_bare:.3f} ms)"
        )


if __name__ == "__main__":
    main()
