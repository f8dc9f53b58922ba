"""Questions for `python -m benchmarks`: whole commands and first prices, each in a new process, and steps of training.

A contender says its own processor seconds: those of the process, or of the price without the imports before it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.plans import QUESTIONS
from benchmarks.questions import Question, Run
from benchmarks.tune_parts import LABELS, STUDY, step, table

__all__ = ["fresh_processes"]

ACCOUNT = ["account", "--base", "gaussian:noise_multiplier=4", "--repetitions", "poisson:mean=10", "--delta", "1e-6"]
COMMAND = [sys.executable, "-c", "from dpselect.cli import main; main()"]
LIMITS = {5_000: 3.0, 20_000: 4.5, 100_000: 10.0}
"""Seconds asked of `dpselect tune` on so many rows of 50 columns."""


def seconds(command: Sequence[str], folder: str | None = None) -> float:
    """The processor seconds of a process that must succeed."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


def python(code: str) -> Run:
    return lambda: seconds([sys.executable, "-c", code])


def dpselect(*arguments: str) -> Run:
    return lambda: seconds([*COMMAND, *arguments])


def commands(quick: bool) -> Iterator[Question]:
    """`account`, `tune --check`, `tune` and `quantile` from the shell."""

    @cache
    def made(rows: int) -> Path:
        folder = Path(tempfile.mkdtemp())
        table(rows, "classes").to_csv(folder / "t.csv", index=False)
        text = STUDY.format(source="t.csv", label=LABELS["classes"], rows=rows, folder="out-{turn}")
        (folder / "study.toml").write_text(text, encoding="utf-8")
        return folder

    def tune(rows: int) -> Run:
        turns = iter(range(1000))

        def run() -> float:
            folder, turn = made(rows), next(turns)
            text = (folder / "study.toml").read_text(encoding="utf-8").replace("{turn}", str(turn))
            (folder / f"{turn}.toml").write_text(text, encoding="utf-8")
            return seconds([*COMMAND, "tune", f"{turn}.toml"], str(folder))

        return run

    def check() -> Run:
        return dpselect("tune", str(made(1_000) / "study.toml"), "--check")

    bare = {"import of NumPy and scipy.special": lambda: python("import numpy, scipy.special")}
    yield Question(
        "whole commands", "`dpselect account`", {"dpselect": lambda: dpselect(*ACCOUNT), **bare}, self_timed=True
    )
    yield Question("whole commands", "`dpselect tune --check`", {"dpselect": check, **bare}, self_timed=True)
    for rows, limit in ({500: 3.0} if quick else LIMITS).items():
        yield Question(
            "whole commands",
            f"`dpselect tune` of {rows:,} rows of 50 columns (CSV)",
            {"dpselect": lambda rows=rows: tune(rows)},
            self_timed=True,
            limit=limit,
            rounds=3,
        )
    rows = 1_000 if quick else 1_000_000

    @cache
    def column() -> str:
        path = made(rows) / "x.csv"
        np.savetxt(path, np.random.default_rng(1).normal(50.0, 9.0, rows), header="x", comments="", fmt="%.4f")
        return str(path)

    given = ("--column", "x", "--q", ".5", "--lower", "0", "--upper", "100", "--epsilon", "1", "--no-count")
    yield Question(
        "whole commands",
        f"a median of a column of {rows:,} rows (CSV)",
        {
            "dpselect quantile": lambda: dpselect("quantile", column(), *given),
            "pandas, not private": lambda: python(f"import pandas; pandas.read_csv({column()!r}).x.median()"),
        },
        self_timed=True,
    )


def prices() -> Iterator[Question]:
    """What `benchmarks.plans` asks: the first time, and again."""

    def asked(name: str, place: int) -> Run:
        command = [sys.executable, "-m", "benchmarks.plans", "--one", name]
        return lambda: float(json.loads(subprocess.check_output(command, text=True))[place])

    for name, (_, limit) in QUESTIONS.items():
        runs = {"first": lambda name=name: asked(name, 0), "again": lambda name=name: asked(name, 1)}
        yield Question("first prices", name, runs, self_timed=True, limit=limit, rounds=3)


def steps(quick: bool) -> Iterator[Question]:
    """One step of training with two classes."""

    def plain(rows: int, columns: int) -> Run:
        random = np.random.default_rng(0)
        cells, weights = random.normal(size=(rows, columns)) / 20.0, np.zeros(columns)
        labels, norms = cells[:, 0] > 0, np.sqrt(np.einsum("ij,ij->i", cells, cells))

        def run() -> None:
            errors = 1.0 / (1.0 + np.exp(-(cells @ weights))) - labels
            (errors * np.minimum(1.0, 0.1 / np.maximum(np.abs(errors) * norms, 1e-12))) @ cells

        return timed(run)

    def timed(run: Run) -> Run:
        import time

        def timed_step() -> float:
            begun = time.process_time()
            for _ in range(20):
                run()
            return (time.process_time() - begun) / 20

        return timed_step

    for rows, columns, rate, limit in ((20_000, 200, 1.0, 0.008), (1_000_000, 20, 0.001, 0.0012)):
        rows = rows // 100 if quick else rows
        makers = {"dpselect": lambda r=rows, c=columns, q=rate: lambda: step(r, c, q) / 1000.0}
        if rate == 1.0:
            makers["NumPy, clipped, without noise"] = lambda r=rows, c=columns: plain(r, c)
        title = f"a step on {rows:,} rows of {columns} columns, rate {rate:g}"
        yield Question("training", title, makers, self_timed=True, limit=limit)


def fresh_processes(quick: bool) -> Iterator[Question]:
    """All of them, in small when quick."""
    yield from commands(quick)
    yield from prices()
    yield from steps(quick)
