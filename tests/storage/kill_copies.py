"""Histories of copies, kills, resumes and restores of a search, in the manner of Jepsen; each is a line of JSON.

Run as `python -m tests.storage.kill_copies FOLDER MODE COUNT SEED [URL]`. MODE says what the copies share: `ledger` (at
URL, or a file), `folder` (a ledger that is copied with the store), `plain` (a spender that knows nothing of claims) or
`none`. With `broken-` before it no one is asked when a search is resumed or settled.

The key is in a variable that never goes, so every copy can be opened for ever. Kills are exceptions, raised before or
after a write becomes durable, or with `real-` before the mode of forked children; a run can also be halted there while
other copies continue, and every copy is resumed in the end. With a shared ledger copies are on two machines, whose
state folders know nothing of each other.
"""

from __future__ import annotations

import base64
import json
import os
import random as stdlib_random
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dpselect.errors import BudgetError, NothingFoundWarning, StudyError
from dpselect.ledger import LedgerError
from dpselect.privacy import paying, pure_dp
from dpselect.privacy.release import Receipt
from dpselect.repetitions import Harmonic
from dpselect.storage import durable
from dpselect.tuning import SearchStore, Uniform, sealed_store, tune
from tests.budgets import budget_at

LIMIT = 2
REFUSALS = (BudgetError, StudyError, LedgerError)


class Killed(BaseException):
    """Stands for a kill."""


class Plain:
    """A spender that knows two words. Like a ledger it charges an identifier once."""

    def __init__(self):
        self.charged = set()

    def reserve(self, guarantee, *, label, identifier):
        self.charged.add(identifier)
        return Receipt("plain", identifier, {})

    def settle(self, identifier, *, cell=None):
        return Receipt("plain", identifier, {})


@dataclass
class World:
    """What copies of one search share, and what they have released."""

    root: Path
    mode: str
    chance: stdlib_random.Random
    url: str | None = None
    plain: Plain = field(default_factory=Plain)
    real: bool = False
    copies: list[Path] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    kills: int = 0
    parent: int = field(default_factory=os.getpid)
    longest: int = 0  # durable writes of a whole search
    names: dict[Path, str] = field(default_factory=dict)

    def ledger(self, folder: Path):
        if self.mode == "none":
            return None
        if self.mode == "plain":
            return self.plain
        return budget_at(folder / "budget.db" if self.mode == "folder" else self.url or self.root / "budget.db", 10**6)

    def released(self) -> set[tuple[str, str]]:
        """Which search released what."""
        try:
            lines = (self.root / "released").read_text().splitlines()
        except FileNotFoundError:
            return set()
        return {tuple(json.loads(line)) for line in lines}

    def copy(self, of: Path) -> Path:
        to = self.root / f"copy{len(self.copies)}"
        shutil.copytree(of, to, dirs_exist_ok=True)
        self.copies.append(to)
        return to


class Writes:
    """Counts durable writes, and does something before or after a given one."""

    def __init__(self, *, real: bool = False):
        self.real = real
        self.hooks: list[tuple[int, bool, Callable[[str], None]]] = []
        self.count = 0
        for name in ("commit", "sync", "sync_content"):
            setattr(durable, name, self.wrap(name, getattr(durable, name)))

    def wrap(self, name, write):
        def wrapped(handle):
            self.count += 1
            here = [(after, do) for at, after, do in self.hooks if at == self.count]
            self.hooks = [hook for hook in self.hooks if hook[0] != self.count]
            for after, do in here:
                if not after:
                    do(name)
            write(handle)
            for after, do in here:
                if after:
                    do(name)

        return wrapped

    def kill(self, _name):
        if self.real:
            os.kill(os.getpid(), signal.SIGKILL)
        raise Killed


def attempt(world: World, writes: Writes, folder: Path, hooks=()) -> str:
    """One process that resumes a copy, with hooks at its own durable writes; how it ended."""
    if not world.real or os.getpid() != world.parent:
        return resumed(world, writes, folder, hooks)
    seed = world.chance.random()
    child = os.fork()
    if child == 0:
        world.chance.seed(seed)
        told = resumed(world, writes, folder, hooks)
        (world.root / "told").write_text(told if told != "wrong" else world.wrong[-1])
        os._exit(told == "wrong")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    world.copies = [world.root / "first", *(path for path in sorted(world.root.glob("copy*")) if path.is_dir())]
    if status < 0:
        world.kills += 1
        return "killed"
    told = (world.root / "told").read_text()
    if status:
        world.wrong.append(told)
    return told


def resumed(world: World, writes: Writes, folder: Path, hooks=()) -> str:
    """The same in this process."""
    shared, machines = world.mode == "ledger", 2
    os.environ["XDG_STATE_HOME"] = str(world.root / f"state{world.chance.randrange(machines) if shared else 0}")
    os.environ["COPIES_KEY"] = base64.b64encode(b"k" * 32).decode()
    rows = world.chance.choice(["1", "1", "2"])
    outer, writes.hooks, counted, writes.count = writes.hooks, list(hooks), writes.count, 0

    def objective(params, random):
        return float(random.laplace(1)[0]), f"{params['x']} {rows} {random.bits(40)}"

    def release(result):
        with open(world.root / "released", "a", encoding="utf-8") as file:
            file.write(json.dumps([world.names[folder], repr((result.value, result.params))]) + "\n")

    try:
        ledger = world.ledger(folder)
        tune(
            objective,
            space={"x": Uniform(0.0, 1.0)},
            base=pure_dp(epsilon=0.25),
            repetitions=Harmonic(limit=LIMIT),
            store=SearchStore(
                path=folder / "search.db",
                resume=True,
                key_variable="COPIES_KEY",
                payload_bytes=128,
                **({"rows_digest": rows.encode()} if hasattr(SearchStore, "rows_digest") else {}),
            ),
            ledger=ledger,
            release=release,
            rehearse=False,
        )
        return "ended"
    except Killed:
        world.kills += 1
        return "killed"
    except REFUSALS as error:
        return type(error).__name__
    except Exception as error:
        world.wrong.append(repr(error))
        return "wrong"
    finally:
        world.longest = max(world.longest, writes.count)
        writes.hooks, writes.count = outer, counted


def history(world: World, writes: Writes) -> list[str]:
    """One search: copied, killed, halted, resumed and put back at random; every copy is resumed in the end."""
    chance, told = world.chance, []

    def instant() -> tuple[int, bool]:
        return chance.randint(1, world.longest), chance.random() < 0.5

    def copied(folder: Path) -> Callable[[str], None]:
        return lambda _: told.append(f"{world.copy(folder).name} of {folder.name}")

    def others(folder: Path, name: str) -> None:
        other = chance.choice(world.copies)
        if other != folder and name == "commit":  # else a file is locked, for which the others would wait
            told.append(f"meanwhile {other.name} {attempt(world, writes, other, killed(chance.random() < 0.5))}")

    def killed(really: bool) -> list[tuple[int, bool, Callable[[str], None]]]:
        return [(*instant(), writes.kill)] if really else []

    first = world.root / "first"
    first.mkdir()
    world.copies.append(first)
    world.ledger(first)  # is there
    for _ in range(chance.randint(2, 5)):
        folder = chance.choice(world.copies)
        hooks = killed(chance.random() < 0.8)
        hooks += [(*instant(), copied(folder)) for _ in range(chance.randint(0, 2))]
        hooks += [
            (instant()[0], True, lambda name, folder=folder: others(folder, name)) for _ in range(chance.randint(0, 2))
        ]
        told.append(f"{folder.name} {attempt(world, writes, folder, hooks)}")
        if len(world.copies) > 1 and chance.random() < 0.3:
            put, back = chance.sample(world.copies, 2)
            shutil.rmtree(put)
            shutil.copytree(back, put)
            told.append(f"{back.name} put back as {put.name}")
    for folder in chance.sample(world.copies, len(world.copies)):
        told.append(f"{folder.name} {attempt(world, writes, folder)}")
    return told


def verdict(world: World) -> list[str]:
    """What is wrong: several releases of one reservation, an error that is no refusal, nothing from a lone copy."""
    searches = [search for search, _ in world.released()]
    twice = [f"{searches.count(each)} releases" for each in set(searches) if searches.count(each) > 1]
    return world.wrong + twice + (["no release"] if not searches and len(world.copies) == 1 else [])


def names_of_searches(world: Callable[[], World]) -> None:
    """Have every store that is opened say whose search it is."""
    real = sealed_store.SealedStore.__init__

    def noted(store, connection, *arguments):
        real(store, connection, *arguments)
        (_, _, file), *_ = connection.execute("PRAGMA database_list").fetchall()
        world().names[Path(file).parent] = store.identifier

    sealed_store.SealedStore.__init__ = noted


def break_tuner() -> None:
    """No one is asked."""
    paying.BoundPayment.claim = lambda *_, **__: None
    paying.BoundPayment.settle = lambda self, *_: None if self.spender is None else self.spender.settle(self.identifier)


def reports(root: Path, mode: str, count: int, seed: int, url: str | None = None) -> Iterator[dict]:
    """What came of each history."""
    if "broken-" in mode:
        break_tuner()
    warnings.simplefilter("ignore", NothingFoundWarning)
    real, mode = mode.startswith("real-"), mode.removeprefix("real-")
    writes, now, longest = Writes(real=real), [], 0
    names_of_searches(lambda: now[-1])
    for number in range(-1, count):
        with tempfile.TemporaryDirectory(dir=root) as folder:
            chance = stdlib_random.Random(f"{seed} {number}")
            world = World(Path(folder), mode.removeprefix("broken-"), chance, url, real=real, longest=longest)
            now.append(world)
            if number < 0:  # how many writes there are
                resumed(world, writes, Path(folder))
                longest = world.longest
                continue
            told = history(world, writes)
            yield {"wrong": verdict(world), "released": len(world.released()), "kills": world.kills, "told": told}


if __name__ == "__main__":
    for report in reports(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), *sys.argv[5:]):
        print(json.dumps(report), flush=True)
