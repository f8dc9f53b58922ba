"""Kills searches of five trainings at random instants and around checkpoints, resumes them, and reports on each.

Run as `python -m tests.integrations.opacus.kill_trainings FOLDER MODE COUNT SEED`, with MODE `random` (by the clock),
`checkpoints` (before and after each is written) or `broken` (after some steps, with a training that begins again with
other noise). Each attempt is a forked child, so that a kill is a real SIGKILL. One line of JSON for each search.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import random as stdlib_random
import shutil
import signal
import sys
import time
from pathlib import Path

import torch

from dpselect.integrations.opacus import PrivateTraining, checkpoints
from dpselect.integrations.opacus.probe import refuse_mixed_rows
from dpselect.integrations.opacus.synthetic_rows import facts_of
from dpselect.randomness import keyed_source, system_source
from dpselect.repetitions import Fixed
from dpselect.storage import durable
from dpselect.tuning import LogUniform, SearchFinishedError, SearchStore, Space, tune
from tests.budgets import budget_at, charges

TRAININGS, STEPS = 5, 6
TRAINING = PrivateTraining(
    noise_multiplier=2.0, sampling_rate=0.4, steps=STEPS, max_grad_norm=1.0, expected_batch_size=16.0
)
ROWS = torch.rand(40, 4, generator=torch.Generator().manual_seed(1))
LABELS = (ROWS[:, 0] > 0.5).long()


def append(path: Path, line: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, line.encode() + b"\n")
    os.close(descriptor)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def network():
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Dropout(0.2), torch.nn.Linear(8, 2))


class Witness:
    """An optimizer with a schedule that notes a digest of each noisy gradient. Kills the process after so many."""

    at = None

    def __init__(self, folder: Path, rate: float) -> None:
        self.folder, self.rate = folder, rate

    def __call__(self, parameters):
        witness = self

        class Noting(torch.optim.Adam):
            number = 0

            def step(self, closure=None):
                group = self.param_groups[0]
                taken = max((int(self.state[p]["step"]) for p in group["params"] if p in self.state), default=0)
                drawn = b"".join(p.grad.numpy().tobytes() for p in group["params"])
                digest = hashlib.sha256(drawn).hexdigest()[:16]
                append(witness.folder / "steps", f"{witness.rate!r} {taken} {digest}")
                if Witness.at is not None and len(lines(witness.folder / "steps")) >= Witness.at:
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().step(closure)

        optimizer = Noting(parameters, lr=self.rate)
        return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)


class KillingCheckpoints(checkpoints.Checkpoints):
    """Kills the process before or after the checkpoint of a number is written."""

    at, after, count = None, False, 0

    def save(self, public, state):
        kind = type(self)
        kind.count += 1
        if kind.count == kind.at and not kind.after:
            os.kill(os.getpid(), signal.SIGKILL)
        super().save(public, state)
        if kind.count == kind.at and kind.after:
            os.kill(os.getpid(), signal.SIGKILL)


def search(folder: Path, *, resume: bool, broken: bool) -> None:
    """One attempt. It leaves witnesses: noisy gradients, and contents released."""
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    kept = folder / "checkpoints"
    kept.mkdir(exist_ok=True)

    def objective(params, random):
        source = system_source() if broken else random.spawn("training")
        model = TRAINING.fit(
            network,
            Witness(folder, params["rate"]),
            torch.nn.CrossEntropyLoss(reduction="none"),
            ROWS,
            LABELS,
            random=source,
            checkpoints=None if broken else kept,
        )
        written = io.BytesIO()
        torch.save(model.state_dict(), written)
        return float(random.spawn("score").uniform(1)[0]), written.getvalue()

    def release(result):
        content = hashlib.sha256(repr((result.value, dict(result.params or {}))).encode()).hexdigest()
        append(folder / "released", content)
        durable.write_atomically(folder / "release.txt", content.encode())

    with contextlib.suppress(SearchFinishedError):
        tune(
            objective,
            space=Space({"rate": LogUniform(0.01, 0.5)}),
            base=TRAINING.guarantee,
            repetitions=Fixed(count=TRAININGS),
            store=SearchStore(path=folder / "search.db", resume=resume, payload_bytes=1 << 15),
            ledger=budget_at(folder / "budget.db", epsilon=1000, delta=0.1).at(delta=1e-5),
            random=keyed_source(7),
            release=release,
        )


def attempt(folder: Path, *, resume=False, at=None, after=False, seconds=None, steps=None, broken=False) -> int:
    """One attempt in a forked child; its exit status, negative for a signal."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            KillingCheckpoints.at, KillingCheckpoints.after, Witness.at = at, after, steps
            search(folder, resume=resume, broken=broken)
            status = 0
        except BaseException as error:
            append(folder / "errors", repr(error))
        finally:
            os._exit(status)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def verdict(folder: Path, expected: str, again: int) -> list[str]:
    """What is wrong after the search has been resumed to its end, with at most so many steps taken again."""
    wrong, steps = [], lines(folder / "steps")
    if charges(folder / "budget.db") != [True]:
        wrong.append("not exactly one settled charge")
    if len(set(steps)) != len({line.rpartition(" ")[0] for line in steps}):
        wrong.append("a step with two noisy gradients")
    if len(steps) > TRAININGS * STEPS + again:
        wrong.append("steps taken again in spite of a checkpoint")
    if set(lines(folder / "released")) != {expected}:
        wrong.append("not the release of the uninterrupted search")
    if any((folder / "checkpoints").iterdir()):
        wrong.append("a checkpoint is left")
    return wrong + lines(folder / "errors")


def main(root: Path, mode: str, count: int, seed: int) -> None:
    torch.set_num_threads(1)
    checkpoints.SECONDS = 0.0
    module = sys.modules["dpselect.integrations.opacus.training"]
    module.Checkpoints = KillingCheckpoints
    facts = facts_of(ROWS), facts_of(LABELS)
    tried = refuse_mixed_rows(network(), torch.nn.CrossEntropyLoss(reduction="none"), facts)
    module.refuse_mixed_rows = lambda *_, **__: tried  # once for all: it takes most of the time
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    chance = stdlib_random.Random(seed)  # chooses when to kill; no part of what is tested
    reference = root / "reference"
    reference.mkdir()
    start = time.monotonic()
    assert attempt(reference) == 0, lines(reference / "errors")
    duration = time.monotonic() - start
    expected = (reference / "release.txt").read_text()
    instants = [(at, after) for at in range(1, TRAININGS * STEPS + 1) for after in (False, True)]
    for number in range(count):
        folder = root / str(number)
        folder.mkdir()
        broken = mode == "broken"
        if mode == "random":
            killed = attempt(folder, seconds=chance.uniform(0.0, duration))
            while killed == 0:  # it was done before: try again, and earlier
                shutil.rmtree(folder)
                folder.mkdir()
                duration *= 0.8
                killed = attempt(folder, seconds=chance.uniform(0.0, duration))
        elif broken:
            killed = attempt(folder, steps=2 + (STEPS + 1) * number, broken=True)  # within a training
        else:
            at, after = instants[number * len(instants) // count % len(instants)]
            killed = attempt(folder, at=at, after=after)
        last = attempt(folder, resume=(folder / "search.db").exists(), broken=broken)
        # after its last step a training has no checkpoint, and may not be recorded yet
        wrong = verdict(folder, expected, again=STEPS if mode == "random" else 1)
        print(json.dumps({"killed": killed == -signal.SIGKILL, "ended": last, "wrong": wrong}), flush=True)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
