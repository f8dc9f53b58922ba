"""Kills a holdout's process at chosen durable writes or at random instants; lets many submit at once. Lines of JSON.

    kill_holdout.py writes FOLDER COUNT SEED     SIGKILL before and after durable writes, spread over all of them
    kill_holdout.py random FOLDER COUNT SEED     by the clock
    kill_holdout.py inside FOLDER COUNT SEED     before, in and after single writes and syncs of SQLite (preloaded shim)
    kill_holdout.py full FOLDER COUNT SEED       no space on the disk from a chosen write on (preloaded shim)
    kill_holdout.py broken FOLDER COUNT SEED     as writes, with a record that forgets what was appended
    kill_holdout.py hammer FOLDER PROCESSES EACH

Each attempt is a forked child, so that a kill is a real one and costs no new interpreter.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import random as stdlib_random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from dpselect.holdout import Holdout, HoldoutLabels, HoldoutRequest, record
from dpselect.storage import durable

ROWS = 400
LABELS = np.random.default_rng(5).integers(0, 2, ROWS)
QUESTIONS = 4


def predictions(number: int) -> np.ndarray:
    return np.random.default_rng(100 + number).integers(0, 2, ROWS)


def append(path: Path, line: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, line.encode() + b"\n")
    os.close(descriptor)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


class Killer:
    """Counts durable writes and kills the process before or after a given one."""

    def __init__(self, at: int | None, after: bool) -> None:
        self.at, self.after, self.count = at, after, 0
        for name in ("commit", "sync"):
            setattr(durable, name, self.wrap(getattr(durable, name)))

    def wrap(self, real: Callable[..., None]) -> Callable[..., None]:
        def write(target: object) -> None:
            self.count += 1
            if self.count == self.at and not self.after:
                os.kill(os.getpid(), signal.SIGKILL)
            real(target)
            if self.count == self.at:
                os.kill(os.getpid(), signal.SIGKILL)

        return write


def opened(folder: Path, questions: int) -> Holdout:
    where = folder / "labels.holdout"
    if where.exists():
        return Holdout.open(where)
    return Holdout.create(
        where,
        HoldoutLabels(ids=range(ROWS), labels=LABELS),
        HoldoutRequest(
            metric="accuracy", questions=questions, answers=questions, failure_probability=0.25, mechanism="gaussian"
        ),
    )


def ask(folder: Path) -> None:
    """Every question in order; what is shown is witnessed only after it was returned."""
    holdout = opened(folder, QUESTIONS)
    for number in range(QUESTIONS):
        found = holdout.score(ids=range(ROWS), predictions=predictions(number), claim=0.5 if number % 2 else None)
        append(folder / "shown", json.dumps([number, found.agrees, found.value]))


def forked(folder: Path, task: Callable[[], None]) -> int:
    """The child's process identifier."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.environ["XDG_STATE_HOME"] = str(folder / "state")
            task()
            status = 0
        except BaseException as error:
            append(folder / "errors", repr(error))
        finally:
            os._exit(status)
    return child


def waited(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def attempt(
    folder: Path, *, at: int | None = None, after: bool = False, broken: bool = False, shim: ctypes.CDLL | None = None
) -> int:
    """With a shim, `after` is its mode."""

    def task() -> None:
        killer = Killer(None if shim else at, after)
        if shim:
            shim.shim_arm(int(after), at or 0)
        if broken:
            record.Record._append = lambda *_: None
        ask(folder)
        append(folder / "writes", str(shim.shim_count() if shim else killer.count))

    return waited(forked(folder, task))


def asked(folder: Path) -> int:
    """The exposure on record."""

    def task() -> None:
        append(folder / "asked", str(Holdout.open(folder / "labels.holdout").status()["asked"]))

    if not (folder / "labels.holdout").exists():
        return 0
    assert waited(forked(folder, task)) == 0, lines(folder / "errors")
    return int(lines(folder / "asked")[-1])


def verdict(folder: Path) -> list[str]:
    """What is wrong once all questions were asked again."""
    wrong = []
    shown = [json.loads(line) for line in lines(folder / "shown")]
    if len({json.dumps(answer) for answer in shown}) != QUESTIONS or {answer[0] for answer in shown} != set(
        range(QUESTIONS)
    ):
        wrong.append("not one answer to each question")
    if asked(folder) != QUESTIONS:
        wrong.append("not charged once")
    return wrong + lines(folder / "errors")


def kills(root: Path, mode: str, count: int, seed: int) -> None:
    chance = stdlib_random.Random(seed)  # chooses when to kill; no part of what is tested
    reference = root / "reference"
    reference.mkdir(parents=True)
    start = time.monotonic()
    shim = ctypes.CDLL(os.environ["LD_PRELOAD"]) if mode in ("inside", "full") else None
    assert attempt(reference, shim=shim, after=False) == 0, lines(reference / "errors")
    duration = time.monotonic() - start
    writes = int(lines(reference / "writes")[0])
    kinds = {"inside": (1, 2, 3), "full": (4,)}.get(mode, (False, True))
    instants = [(at, after) for at in range(1, writes + 1) for after in kinds]
    for number in range(count):
        folder = root / str(number)
        folder.mkdir()
        at, after = instants[number * len(instants) // count % len(instants)]
        if mode == "random":
            child = forked(folder, lambda: ask(folder))  # noqa: B023 - called at once
            time.sleep(chance.uniform(0.0, duration))
            os.kill(child, signal.SIGKILL)
            status = waited(child)
            if status == 0:  # it was done before: the machine is quicker by now
                duration *= 0.8
        else:
            status = attempt(folder, at=at, after=after, broken=mode == "broken", shim=shim)
        wrong = []
        errors = lines(folder / "errors")
        (folder / "errors").unlink(missing_ok=True)
        shown = len(set(lines(folder / "shown")))
        if not shown <= asked(folder) <= shown + 1:  # one may be on record that was not shown yet
            wrong.append("what is on record is not what was shown")
        attempt(folder, broken=mode == "broken")
        wrong += verdict(folder)
        report = {"status": status, "wrong": wrong, "instant": [at, after], "writes": writes, "errors": errors}
        print(json.dumps(report), flush=True)
        shutil.rmtree(folder)


def hammer(root: Path, processes: int, each: int) -> None:
    """Every process asks its own questions and those of the next one, while there are any left."""
    root.mkdir(parents=True)
    questions = processes * each
    os.environ["XDG_STATE_HOME"] = str(root / "state")
    opened(root, questions)

    def submit(process: int) -> None:
        holdout = Holdout.open(root / "labels.holdout")
        for number in range(2 * each):
            question = (process * each + number) % questions
            found = holdout.score(ids=range(ROWS), predictions=predictions(question))
            append(root / "shown", json.dumps([question, found.value]))

    children = [forked(root, lambda process=process: submit(process)) for process in range(processes)]
    statuses = [waited(child) for child in children]
    shown = {tuple(json.loads(line)) for line in lines(root / "shown")}
    report = {
        "statuses": statuses,
        "shown": len(lines(root / "shown")),
        "answers": len(shown),
        "asked": asked(root),
        "errors": lines(root / "errors"),
    }
    print(json.dumps(report))


@contextmanager
def planned_once() -> Iterator[None]:
    """Each plan is computed once; forked children inherit it, which are about writes."""
    plan = HoldoutRequest.plan
    HoldoutRequest.plan = functools.cache(plan)
    try:
        yield
    finally:
        HoldoutRequest.plan = plan


if __name__ == "__main__":
    with planned_once():
        if sys.argv[1] == "hammer":
            hammer(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
        else:
            kills(Path(sys.argv[2]), sys.argv[1], int(sys.argv[3]), int(sys.argv[4]))
