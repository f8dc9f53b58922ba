"""Which small changes of a room do its tests miss? A drawn sample of Cosmic Ray's mutants, each in a copy of the tree.

    pip install dpselect[benchmark]
    python -m benchmarks.mutations ledger privacy study/split --sample 60 --seed 1

A mutant is one change of one place: a number, an operator, a comparison, a condition. Each module has its share by
lines. First the default tier runs once, to learn which test runs which lines (kept in `build/mutations`). A mutant
meets the tests that run its statement, and then the others of those files, those of its own subject first, until one
fails or `--seconds` of tests have run. Each runs in a fork of a process that has imported what the tests need of
others, some seconds a mutant. A failure counts only for a test that passes on the unchanged tree. What survived is
printed as a difference: some of it is equivalent to the original, and a person says which.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import coverage
import pytest

from benchmarks.mutants import Mutant, difference, mutants, mutated, quotas, statement

ROOT = Path(__file__).parent.parent
ROOMS = ("accounting", "privacy", "repetitions", "mechanisms", "ledger", "selection", "study/split")
CODE = "src/dpselect"
IMPORTED = [
    *("numpy", "scipy.optimize", "scipy.stats", "scipy.special", "scipy.integrate", "mpmath", "sklearn.linear_model"),
    *("sklearn.model_selection", "pandas", "sqlalchemy", "cryptography.fernet", "pydantic", "joblib", "hypothesis"),
    *("dp_accounting", "cloudpickle", "typer", "rich", "_pytest.doctest", "xdist"),
]
"""What a fork need not import again."""


@dataclass
class Covered:
    """Which test runs which lines, and for how long."""

    data: coverage.CoverageData
    tree: Path
    seconds: dict[str, float]
    sizes: Counter[str] = field(init=False)

    def __post_init__(self) -> None:
        self.sizes = Counter(_file(test) for test in self.seconds)

    def tests(self, mutant: Mutant, source: str, most: float) -> tuple[list[str], float]:
        """What meets a mutant, in this order, and for how long: at most so many seconds."""
        path = str(self.tree / CODE / f"{mutant.module}.py")
        by_line = {line: {test for test in tests if test} for line, tests in self.data.contexts_by_lineno(path).items()}
        span = statement(source, mutant.line)
        first = set().union(*(tests for line, tests in by_line.items() if line in span))
        first = first or set().union(*by_line.values())  # what runs at import
        share = Counter(_file(test) for test in first)
        others = [test for test in self.seconds if _file(test) in share and test not in first]

        def order(test: str) -> tuple[int, float, str, float]:
            same = len(_words(mutant.module) & _words(_file(test)))
            return -same, -share[_file(test)] / self.sizes[_file(test)], _file(test), self.seconds.get(test, 0.0)

        found, total = [], 0.0
        for test in [*sorted(first & self.seconds.keys(), key=order), *sorted(others, key=order)]:
            if found and total + self.seconds[test] > most:
                break
            total += self.seconds[test] + 0.01
            found.append(test)
        return found, total


@dataclass
class Verdict:
    """What became of a mutant: killed by a test, timed out, or survived so many tests."""

    mutant: Mutant
    outcome: str
    tests: list[str]
    killer: str = ""


Choice = Callable[[Mutant, str], tuple[list[str], float]]
"""The tests that a mutant of this source meets, and their seconds."""


def copied(folder: Path) -> Path:
    """A copy of the tree, as it is, without what Git ignores."""
    folder.mkdir(parents=True)
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def covered(folder: Path) -> Covered:
    """Run the default tier once in a copy of the tree, unless the folder has what came out."""
    tree, data, seconds = folder / "tree", folder / "lines.sqlite", folder / "seconds.csv"
    if not seconds.exists():
        shutil.rmtree(folder, ignore_errors=True)
        copied(tree)
        measured = [sys.executable, "-m", "coverage", "run", f"--data-file={data}", f"--source={tree / CODE}", "-m"]
        asked = ["pytest", "-n", "0", "-p", "benchmarks.covering", f"--processor-seconds={seconds}"]
        done = subprocess.run([*measured, *asked], cwd=tree, env=os.environ | _paths(tree))
        if done.returncode:
            print("some tests fail without any change: they kill nothing", file=sys.stderr)
    with seconds.open(encoding="utf-8", newline="") as file:
        spent = {row["test"]: float(row["processor seconds"]) for row in csv.DictReader(file)}
    failing = tree / ".pytest_cache/v/cache/lastfailed"
    for test in json.loads(failing.read_text(encoding="utf-8")) if failing.exists() else ():
        spent.pop(test, None)
    lines = coverage.CoverageData(str(data))
    lines.read()
    return Covered(lines, tree.resolve(), spent)


def sampled(room: str, sample: int, seed: int) -> list[Mutant]:
    """The mutants of a room that are drawn, of its modules by their lines; all of a line, `ledger/filters:120`."""
    room, _, line = room.partition(":")
    base = ROOT / CODE / room
    paths = sorted(base.rglob("*.py")) if base.is_dir() else [base.with_suffix(".py")]
    sources = {str(path.relative_to(ROOT / CODE).with_suffix("")): path.read_text(encoding="utf-8") for path in paths}
    if line:
        return [mutant for name, text in sources.items() for mutant in mutants(name, text) if mutant.line == int(line)]
    draws, found = random.Random(f"{seed} {room}"), []
    for module, count in quotas(
        {name: len(text.splitlines()) for name, text in sources.items()}, sample, draws
    ).items():
        all_of_it = mutants(module, sources[module]) if count else []
        found += draws.sample(all_of_it, min(count, len(all_of_it)))
    return draws.sample(found, len(found))  # those that ran are a sample too


def verdicts(asked: Sequence[Mutant], choice: Choice, processes: int, folder: Path) -> Iterator[Verdict]:
    """Run all mutants, each in the next copy that is free. Killers are yet to be held against `sound`."""
    for name in IMPORTED:
        with suppress(ImportError):
            import_module(name)
    free = [copied(folder / f"copy{number}") for number in range(processes)]
    waiting, running = list(asked), dict[int, _Run]()
    while waiting or running:
        while waiting and free:
            run = _Run(waiting.pop(0), choice, free.pop())
            running[run.process] = run
        time.sleep(0.02)
        for process, run in list(running.items()):
            verdict = run.ended()
            if verdict is not None:
                free.append(run.tree)
                del running[process]
                yield verdict


def sound(found: Sequence[Verdict], folder: Path) -> list[Verdict]:
    """The verdicts without those of killers that fail on the unchanged tree too."""
    tree, failing = copied(folder / "unchanged"), set[str]()

    def killer(verdict: Verdict) -> str:
        # with all its cases: names of cases may come from what was changed
        return (verdict.killer or verdict.tests[0]).partition("[")[0] if verdict.outcome == "killed" else ""

    killers = {killer(verdict) for verdict in found} - {""}
    while killers - failing:
        _, status = os.waitpid(_forked(tree, sorted(killers - failing)), 0)
        if not status:
            break
        failed = _killer(tree).partition("[")[0]
        if failed not in killers:
            raise SystemExit(f"the tests do not run:\n{(tree / 'output.txt').read_text(encoding='utf-8')[-2000:]}")
        failing.add(failed)
    return [verdict for verdict in found if killer(verdict) not in failing]


class _Run:
    """One mutant in one copy."""

    def __init__(self, mutant: Mutant, choice: Choice, tree: Path) -> None:
        self.mutant, self.tree = mutant, tree
        self._path = tree / CODE / f"{mutant.module}.py"
        self._source = self._path.read_text(encoding="utf-8")
        self._tests, seconds = choice(mutant, self._source)
        self._write(mutated(self._source, mutant))
        self.process = _forked(tree, self._tests)
        self._end = time.monotonic() + 30 + 8 * seconds

    def _write(self, text: str) -> None:
        """With a time of change of its own: compiled files are known by it, to the second."""
        before = self._path.stat().st_mtime
        self._path.write_text(text, encoding="utf-8")
        os.utime(self._path, (before + 1, before + 1))

    def ended(self) -> Verdict | None:
        process, status = os.waitpid(self.process, os.WNOHANG)
        late = time.monotonic() > self._end
        if not process and not late:
            return None
        with suppress(ProcessLookupError):
            os.killpg(self.process, signal.SIGKILL)
        if not process:
            os.waitpid(self.process, 0)
        self._write(self._source)
        killer = _killer(self.tree)
        if late and not process:
            return Verdict(self.mutant, "timed out", self._tests)
        if self._tests and (killer or status):
            return Verdict(self.mutant, "killed", self._tests, killer)
        return Verdict(self.mutant, "survived", self._tests)


class _First:
    """Writes which test failed first."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_collectreport(self, report: Any) -> None:
        self._note(report.failed, _file(report.nodeid))  # what is in it has no name yet

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._note(report.failed, report.nodeid)

    def _note(self, failed: bool, name: str) -> None:
        if failed and not self._path.exists():
            self._path.write_text(name, encoding="utf-8")


def _forked(tree: Path, tests: Sequence[str]) -> int:
    """A process that runs the tests in a tree, until one fails."""
    failed = tree / "failed.txt"
    failed.unlink(missing_ok=True)
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        os.setpgid(0, 0)
        output = os.open(tree / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for number in (1, 2):
            os.dup2(output, number)
        os.chdir(tree)
        os.environ.update(_paths(tree))
        sys.path[:0] = [str(tree / "src"), str(tree)]
        asked = ["-x", "-n", "0", "-p", "no:cacheprovider", f"--rootdir={tree}", f"--basetemp={tree / 'temporary'}"]
        for part in _parts(tests):
            status = int(pytest.main([*asked, *part], plugins=[_First(failed)]))
            if status:
                break
    finally:
        sys.stdout.flush()
        os._exit(status)


def _parts(tests: Sequence[str]) -> Iterator[Sequence[str]]:
    """The first few by themselves, then more: pytest imports the files of all that it is asked for."""
    size = 10
    while tests:
        yield tests[:size]
        tests, size = tests[size:], 3 * size


def _killer(tree: Path) -> str:
    failed = tree / "failed.txt"
    return failed.read_text(encoding="utf-8") if failed.exists() else ""


def _paths(tree: Path) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree)])}


def _file(test: str) -> str:
    return test.partition("::")[0]


def _words(path: str) -> set[str]:
    """Those that name a subject: a test of `ledger/witness` is in `ledger/test_witness.py`."""
    return set(re.split(r"\W|_", path)) - {"", "py", "tests", "test", "src", "dpselect"}


def row(room: str, found: Sequence[Verdict]) -> str:
    """A line of the table: the rate of those that died, with a 95 % interval (Clopper and Pearson)."""
    from scipy.stats import binomtest

    count = Counter(verdict.outcome for verdict in found)
    died = count["killed"] + count["timed out"]
    between = binomtest(died, max(len(found), 1)).proportion_ci()
    return (
        f"| {room} | {len(found)} | {count['killed']} | {count['survived']} | {count['timed out']} "
        f"| {died / max(len(found), 1):.2f} ({between.low:.2f} to {between.high:.2f}) |"
    )


def main() -> None:
    """Print each room's survivors, and the table of all rooms."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutations", description=__doc__.splitlines()[0])
    parser.add_argument(
        "rooms", nargs="*", metavar="ROOM", default=ROOMS, help="such as ledger, ledger/filters or ledger/filters:120"
    )
    parser.add_argument("--sample", type=int, default=60, help="mutants of a room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60, help="processor time of tests for a mutant, at most")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--tests", nargs="+", default=[], help="what each mutant meets, in place of what runs it")
    parser.add_argument(
        "--covered", type=Path, default=ROOT / "build/mutations", help="keeps which test runs which lines"
    )
    asked = parser.parse_args()
    known, rows = None if asked.tests else covered(asked.covered), []

    def choice(mutant: Mutant, source: str) -> tuple[list[str], float]:
        return known.tests(mutant, source, asked.seconds) if known else (asked.tests, asked.seconds)

    for room in asked.rooms:
        drawn = sampled(room, asked.sample, asked.seed)
        with tempfile.TemporaryDirectory() as folder:
            found = []
            for verdict in verdicts(drawn, choice, asked.processes, Path(folder)):
                found.append(verdict)
                print(f"{verdict.outcome}: {verdict.mutant} ({len(verdict.tests)} tests) {verdict.killer}", flush=True)
                if verdict.outcome == "survived":
                    source = (ROOT / CODE / f"{verdict.mutant.module}.py").read_text(encoding="utf-8")
                    print(difference(source, verdict.mutant), flush=True)
            rows.append(row(room, sound(found, Path(folder))))
        print(rows[-1], flush=True)
    print("\n| room | mutants | killed | survived | timed out | rate of those that died |\n|---|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
