"""Where each second of `dpselect tune` goes: processor time by part, for tables of three sizes and a default study.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.tune_parts [--rows 5000 20000 100000] [--form csv] [--rounds 3]

The tables are synthetic: 50 columns of normal numbers, and two classes or a number to predict (`--task regression`).
They are made in a temporary folder. Each study is run in a process of its own, in each round once, and the least
seconds of all rounds are shown. Bytecode is compiled before, as an installation does. The last column is the most
memory held, and `table` is that of the cells as float64. With `--steps` a step of training is measured by itself.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from dpselect.learners.batches import Batches
from dpselect.learners.dp_sgd import DPSGDClassification
from dpselect.randomness import keyed_source

COLUMNS = 50
STUDY = """name = "parts"
[data]
source = "{source}"
label = "y"
{label}
bounds = [-4, 4]
[privacy]
epsilon = 3.0
delta = 1e-7
nominal_rows = {rows}
[output]
folder = "{folder}"
"""
LABELS = {"classes": "classes = [0, 1]", "regression": 'task = "regression"\nlabel_bounds = [-8, 8]'}
RUN = """
import json, sys, time
from pathlib import Path
begun = time.process_time()
from dpselect.cli import main
from dpselect.study import load_study, run_study
marks = []
def stage(name):
    marks.append((name, time.process_time()))
path = Path(sys.argv[1])
run_study(load_study(path), base_folder=path.parent, stage=stage)
marks.append(("end", time.process_time()))
parts = {name: after - at for (name, at), (_, after) in zip(marks, marks[1:])}
print(json.dumps({"start": marks[0][1], **parts}))
"""
PARTS = ["start", "finding the price", "reading the rows", "training", "writing the release"]


def table(rows: int, task: str) -> Any:
    """A data frame: numbers of which eight count, two of them together."""
    import pandas as pd

    random = np.random.default_rng(rows)
    cells = np.round(random.normal(size=(rows, COLUMNS)), 4)
    signal = cells[:, :8] @ np.linspace(1.0, 0.2, 8) + 0.5 * cells[:, 0] * cells[:, 1]
    frame = pd.DataFrame(cells, columns=[f"x{place}" for place in range(COLUMNS)])
    if task == "regression":
        frame["y"] = np.clip(np.round(signal + random.normal(size=rows), 3), -8, 8)
    else:
        frame["y"] = (random.random(rows) < 1.0 / (1.0 + np.exp(-signal))).astype(int)
    return frame


def measured(folder: Path, rows: int, form: str, task: str, turn: int) -> tuple[dict[str, float], float]:
    """The processor seconds of each part in a process of its own, and the MiB that it held."""
    source, study = f"{rows}.{form}", folder / f"{rows}-{turn}.toml"
    text = STUDY.format(source=source, label=LABELS[task], rows=rows, folder=folder / f"out-{rows}-{turn}")
    study.write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen([sys.executable, "-c", RUN, study], stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit("the study failed")
    parts = {name: float(seconds) for name, seconds in json.loads(said).items()}
    return {**parts, "all": used.ru_utime + used.ru_stime}, used.ru_maxrss / 2**10


def show(rows: list[int], form: str, task: str, rounds: int) -> None:
    """Print a table in Markdown."""
    print("| rows | " + " | ".join([*PARTS, "all, s"]) + " | table, MiB | held, MiB |")
    print("|" + "---|" * (len(PARTS) + 4))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for count in rows:
            made = table(count, task)
            made.to_parquet(folder / f"{count}.parquet") if form == "parquet" else made.to_csv(
                folder / f"{count}.csv", index=False
            )
            del made
        measured(folder, rows[0], form, task, -1)  # compiles
        for count in rows:
            found = [measured(folder, count, form, task, turn) for turn in range(rounds)]
            cells = [min(parts[part] for parts, _ in found) for part in [*PARTS, "all"]]
            held = max(memory for _, memory in found)
            size = count * (COLUMNS + 1) * 8 / 2**20
            print(
                f"| {count} | " + " | ".join(f"{cell:.2f}" for cell in cells) + f" | {size:.0f} | {held:.0f} |",
                flush=True,
            )


def step(rows: int, columns: int, rate: float, steps: int = 50) -> float:
    """The least milliseconds of a step of training with two classes."""
    random = np.random.default_rng(0)
    cells = np.trunc(random.normal(size=(rows, columns)) / 20.0 * 2**16) / 2**16
    numbers, batches = (cells[:, 0] > 0).astype(np.intp), Batches.of(cells)
    learner = DPSGDClassification(classes=[0, 1], noise_multiplier=20.0, sampling_rate=rate, steps=steps)
    schedule, model = learner._schedule(rate * rows), learner._model(columns, 2)
    found = []
    for key in range(3):
        begun = time.process_time()
        schedule.run(model, batches, numbers, keyed_source(key))
        found.append(time.process_time() - begun)
    return 1000.0 * min(found) / steps


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000, 20_000, 100_000])
    parser.add_argument("--form", choices=["csv", "parquet"], default="csv")
    parser.add_argument("--task", choices=list(LABELS), default="classes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", action="store_true", help="only the milliseconds of a step of training")
    asked = parser.parse_args()
    if asked.steps:
        for shape in ((20_000, 200, 1.0), (10**6, 20, 0.001)):
            print(f"{shape[0]} rows of {shape[1]} columns, rate {shape[2]}: {step(*shape):.2f} ms a step")
        sys.exit()
    show(asked.rows, asked.form, asked.task, asked.rounds)
