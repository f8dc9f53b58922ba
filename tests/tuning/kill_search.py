"""Kills searches at chosen or random instants, resumes them, and reports on each as a line of JSON.

Run as `python -m tests.tuning.kill_search FOLDER MODE COUNT SEED` with MODE `writes` (before and after durable
writes, spread evenly over all of them), `random` (by the clock), `chain` (several kills in one search) or `broken`
(as `writes`, with a tuner that starts over). With `adaptive-` before the mode, trials learn from earlier ones, and
the broken tuner is one that proposes again what was under way; it is killed within a trial. Each attempt at a search
is a forked child, so that a kill is a real SIGKILL and costs no new interpreter.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random as stdlib_random
import shutil
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Harmonic
from dpselect.storage import durable
from dpselect.tuning import (
    AdaptiveProposal,
    GaussianProcessProposer,
    SearchFinishedError,
    SearchStore,
    Space,
    Uniform,
    proposals,
    sealed_store,
    tune,
)
from tests.budgets import budget_at, charges

KEY = 11
LIMIT = 6


class Killer:
    """Counts durable writes and kills the process before or after a given one."""

    def __init__(self, at: int | None, after: bool) -> None:
        self.at = at
        self.after = after
        self.count = 0
        for name in ("commit", "sync"):
            setattr(durable, name, self.wrap(getattr(durable, name)))

    def wrap(self, write):
        def wrapped(handle):
            self.count += 1
            if self.count == self.at and not self.after:
                os.kill(os.getpid(), signal.SIGKILL)
            write(handle)
            if self.count == self.at and self.after:
                os.kill(os.getpid(), signal.SIGKILL)

        return wrapped


class Fickle:
    """Another answer to every question, so that a trial that is proposed twice has two settings."""

    def __call__(self, history, candidates):
        return [float(byte < 100) for byte in os.urandom(len(candidates))]

    def describe(self):
        return {"surrogate": "fickle"}


def proposal(*, keyed: bool, forgetful: bool) -> AdaptiveProposal:
    """Of a Gaussian process where the value of the uninterrupted search is compared."""
    if forgetful:
        real = AdaptiveProposal.propose

        def propose(self, space, search):
            AdaptiveProposal.propose = real  # once, at the start
            if search.finished:
                return search
            kept = [e if search.done[i] else (0, -math.inf) for i, e in enumerate(proposals._entries(search))]
            return real(self, space, replace(search, history=b"".join(proposals._ENTRY.pack(*e) for e in kept)))

        AdaptiveProposal.propose = propose
    proposer = GaussianProcessProposer() if keyed else Fickle()
    return AdaptiveProposal(proposer, lower_ratio=0.5, upper_ratio=2.0, pool=16, batch=2)


def append(path: Path, line: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, line.encode() + b"\n")
    os.close(descriptor)


def search(folder: Path, *, resume: bool, keyed: bool, broken: bool, adaptive: bool, trial: int | None = None) -> None:
    """One attempt, killed within its trial of that number.

    Leaves witnesses: trials begun, numbers of runs and master keys sealed, contents released.
    """
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    if broken and resume and not adaptive:
        for file in folder.glob("search.db*"):
            file.unlink()
    real = sealed_store.SealedStore.save

    def save(store, state):
        real(store, state)
        append(folder / "drawn", f"{state.counted} {state.master.hex()}")

    sealed_store.SealedStore.save = save

    def objective(params, random):
        noise = float(random.laplace(1)[0])
        append(folder / "trials", f"{noise} {params['x']}")
        if trial == len(lines(folder / "trials")):
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.002)
        return params["x"] + 0.1 * noise, params["x"]

    def release(result):
        content = repr((result.value, dict(result.params or {}), result.receipt.charged))
        append(folder / "released", content)
        durable.write_atomically(folder / "release.txt", content.encode())

    with contextlib.suppress(SearchFinishedError):
        tune(
            objective,
            space=Space({"x": Uniform(0.0, 1.0)}),
            base=pure_dp(epsilon=0.5),
            repetitions=Fixed(count=LIMIT) if adaptive else Harmonic(limit=LIMIT),
            store=SearchStore(path=folder / "search.db", resume=resume, payload_bytes=512),
            ledger=budget_at(folder / "budget.db", epsilon=50),
            random=keyed_source(KEY) if keyed else None,
            release=release,
            proposal=proposal(keyed=keyed, forgetful=broken and resume) if adaptive else None,
        )


def attempt(folder: Path, *, resume=False, at=None, after=False, seconds=None, **options) -> int:
    """One attempt in a forked child; its exit status, negative for a signal."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            killer = Killer(at, after)
            search(folder, resume=resume, **{"keyed": True, "broken": False, "adaptive": False, **options})
            append(folder / "writes", str(killer.count))
            status = 0
        except BaseException as error:
            append(folder / "errors", repr(error))
        finally:
            os._exit(status)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def wanting(folder: Path) -> str | None:
    """What is wrong right after a kill, if anything."""
    begun = (folder / "trials").exists() or (folder / "release.txt").exists()
    return "a trial or release without a reservation" if begun and len(charges(folder / "budget.db")) != 1 else None


def verdict(folder: Path, expected: str | None) -> list[str]:
    """What is wrong after the search has been resumed to its end."""
    wrong = []
    if charges(folder / "budget.db") != [True]:
        wrong.append("not exactly one settled charge")
    if len(set(lines(folder / "drawn"))) != 1:
        wrong.append("drawn more than once")
    settings = {line.split()[0]: line for line in lines(folder / "trials")}
    if set(settings.values()) != set(lines(folder / "trials")):
        wrong.append("a trial with two settings")
    if len(set(lines(folder / "released"))) != 1:
        wrong.append("released two values")
    if not (folder / "release.txt").exists():
        wrong.append("nothing released")
    elif expected is not None and (folder / "release.txt").read_text() != expected:
        wrong.append("not the value of the uninterrupted search")
    if any(path.is_file() for path in (folder / "state" / "dpselect" / "keys").iterdir()):
        wrong.append("the key is still there")
    return wrong + lines(folder / "errors")


def main(root: Path, mode: str, count: int, seed: int) -> None:
    adaptive, mode = mode.startswith("adaptive-"), mode.removeprefix("adaptive-")
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    chance = stdlib_random.Random(seed)  # chooses when to kill; no part of what is tested

    reference = root / "reference"
    reference.mkdir()
    start = time.monotonic()
    assert attempt(reference, adaptive=adaptive) == 0, lines(reference / "errors")
    duration = time.monotonic() - start
    expected = (reference / "release.txt").read_text()
    writes = int(lines(reference / "writes")[0])

    instants = [(at, after) for at in range(1, writes + 1) for after in (False, True)]
    for number in range(count):
        folder = root / str(number)
        folder.mkdir()
        # Without a key of the caller's, K and the master key come from system entropy: a redraw would show.
        keyed = mode != "broken" and number % 3 > 0
        at, after = instants[number * len(instants) // count % len(instants)]
        kills = []
        for turn in range(3 if mode == "chain" else 1):
            options = {"resume": turn > 0, "keyed": keyed, "adaptive": adaptive}
            if mode in ("random", "chain"):
                seconds = chance.uniform(0.0, duration if mode == "random" else duration / 2)
                kills.append(attempt(folder, seconds=seconds, **options))
            elif adaptive and mode == "broken":
                kills.append(attempt(folder, trial=1 + number % LIMIT, **options))
            else:
                kills.append(attempt(folder, at=at, after=after, **options))
            wrong = wanting(folder)
            if wrong:
                break
        attempt(folder, resume=True, keyed=keyed, broken=mode == "broken", adaptive=adaptive)
        report = {
            "killed": [status == -signal.SIGKILL for status in kills],
            "wrong": ([wrong] if wrong else []) + verdict(folder, expected if keyed else None),
            "instant": [at, after],
            "writes": writes,
        }
        print(json.dumps(report), flush=True)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
