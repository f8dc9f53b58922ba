"""Kills, starves and unplugs a ledger's process at chosen writes; hammers one budget. Reports as lines of JSON.

    kill_ledger.py kill FOLDER COUNT        SIGKILL before, in and after writes and syncs, spread over all of them
    kill_ledger.py full FOLDER COUNT        no space on the disk from a chosen write on
    kill_ledger.py power FOLDER COUNT SEED  loss of power: what was not synced is lost, in part or whole
    kill_ledger.py broken FOLDER COUNT SEED the same with a ledger that does not sync its commits
    kill_ledger.py hammer URL PROCESSES EACH

The first three run with `kill_writes.c` preloaded. Each attempt is a forked child, so that a kill is a real one and
costs no new interpreter. A child notes the cost of what it releases before it settles, and what was acknowledged.
"""

from __future__ import annotations

import ctypes
import json
import os
import random as stdlib_random
import shutil
import struct
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from dpselect.ledger import InsufficientBudget, Ledger, LedgerError
from dpselect.privacy import OutputGuarantee, pure_dp
from dpselect.privacy.release import Receipt
from dpselect.storage import durable as durable_writes

COSTS = {True: 1.0, False: 0.25}
GATE = OutputGuarantee(cell=bool, epsilons=COSTS)
ROUNDS = 2
FOLDER = "original"
WITNESSES = Path("state", "dpselect", "ledgers")


def append(path: Path, line: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, line.encode() + b"\n")
    os.close(descriptor)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def spend(folder: Path, acknowledge: Callable[[Receipt], None]) -> None:
    """Open or make the ledger and spend; what is noted is written only after what it notes."""
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    with Ledger.open(folder / "budget.db") as ledger:
        try:
            budget = ledger.budget("b")
        except ValueError:
            budget = ledger.create_budget("b", epsilon=100)
        for number in range(ROUNDS):
            charge = budget.reserve(GATE, label="s")
            acknowledge(charge)
            output = bool(number % 2)
            append(folder / "released", str(COSTS[output]))
            acknowledge(charge.settle(output))


def forked(task: Callable[[], None], folder: Path) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            task()
            status = 0
        except BaseException as error:
            append(folder / "errors", repr(error))
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def wanting(folder: Path) -> list[str]:
    """What is wrong with a ledger after a crash, if anything."""
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    if not (folder / "budget.db").exists():
        return ["the ledger is gone"] if lines(folder / "acknowledged") else []
    try:
        return checked(folder)
    except LedgerError as error:
        return [f"the ledger is refused: {error}"]


def checked(folder: Path) -> list[str]:
    wrong = []
    with Ledger.open(folder / "budget.db") as ledger:
        ledger.verify()
        names = [budget.name for budget in ledger.budgets()]
        spent = ledger.budget("b").spent().epsilon if names else Fraction(0)
        if spent < sum(Fraction(cost) for cost in lines(folder / "released")):
            wrong.append("spent is below what was released")
        for line in lines(folder / "acknowledged"):
            sequence, head = line.split()
            try:
                ledger.verify(Receipt("", "", {}, int(sequence), head))
            except LedgerError:
                wrong.append("an acknowledged entry is missing")
    return wrong


def attempts(root: Path, shim: ctypes.CDLL, modes: tuple[int, ...], count: int) -> None:
    def prepared(name: str) -> Path:
        folder = root / name
        folder.mkdir(parents=True)
        return folder

    def run(folder: Path, mode: int, at: int) -> int:
        def task() -> None:
            shim.shim_arm(mode, at)
            spend(folder, lambda r: append(folder / "acknowledged", f"{r.sequence} {r.head}"))
            append(folder / "operations", str(shim.shim_count()))

        return forked(task, folder)

    reference = prepared("reference")
    assert run(reference, 0, 0) == 0, lines(reference / "errors")
    operations = int(lines(reference / "operations")[0])
    instants = [(mode, at) for at in range(1, operations + 1) for mode in modes]
    for number in range(count):
        folder = prepared(str(number))
        mode, at = instants[number * len(instants) // count % len(instants)]
        status = run(folder, mode, at)
        first = lines(folder / "errors")
        wrong = wanting(folder)
        if run(folder, 0, 0) != 0:  # and go on
            wrong.append("cannot go on")
        if count > 100:
            wrong += wanting(folder)
        report = {"status": status, "wrong": wrong, "instant": [mode, at], "operations": operations, "errors": first}
        print(json.dumps(report), flush=True)
        shutil.rmtree(folder)


Operation = tuple[str, int, str, bytes]


def parsed(log: bytes) -> list[Operation]:
    found, place = [], 0
    while place < len(log):
        kind = chr(log[place])
        offset, size, length = struct.unpack_from("=qqq", log, place + 1)
        place += 25
        path = log[place : place + length].decode()
        place += length
        data = log[place : place + size]
        place += size
        found.append((kind, offset, "\n".join(Path(one).name for one in path.split("\n")), data))
    return found


def after_power_loss(operations: list[Operation], chance: stdlib_random.Random) -> dict[str, bytearray]:
    """Files as they may be after a loss of power: synced writes, and any part, by sectors, of later ones."""
    synced = {}
    for index, (kind, _, name, _) in enumerate(operations):
        if kind == "S":
            synced[name] = index  # of the folder's too, which makes unlinking durable
    files: dict[str, bytearray] = {}
    keep = chance.choice([0.0, 0.5, 1.0])
    for index, (kind, offset, name, data) in enumerate(operations):
        durable = index < synced.get(FOLDER if kind in "UL" else name, -1)
        if kind == "L" and (durable or chance.random() < keep):
            old, new = name.split("\n")
            files[new] = files.setdefault(old, bytearray())
        if kind == "U" and (durable or chance.random() < keep):
            files.pop(name, None)
        if kind == "T" and (durable or chance.random() < keep):
            content = files.setdefault(name, bytearray())
            content[:] = content[:offset].ljust(offset, b"\0")
        if kind == "W":
            content = files.setdefault(name, bytearray())
            for start in range(0, len(data), 512):
                if durable or chance.random() < keep:
                    sector = data[start : start + 512]
                    end = offset + start + len(sector)
                    content.extend(b"\0" * (end - len(content)))
                    content[offset + start : end] = sector
    return files


def power(root: Path, shim: ctypes.CDLL, count: int, seed: int) -> None:
    original = root / FOLDER
    original.mkdir(parents=True)
    log = os.open(root / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def task() -> None:
        shim.shim_log(log)

        def acknowledge(receipt: Receipt) -> None:
            append(original / "acknowledged", f"{receipt.sequence} {receipt.head}")
            shim.shim_mark(receipt.sequence)

        spend(original, acknowledge)

    assert forked(task, original) == 0, lines(original / "errors")
    operations = parsed((root / "log").read_bytes())
    acknowledged = lines(original / "acknowledged")
    chance = stdlib_random.Random(seed)  # chooses what is lost; no part of what is tested
    for number in range(count):
        cut = number * (len(operations) + 1) // count
        folder = root / str(number)
        folder.mkdir()
        (folder / WITNESSES).mkdir(parents=True)
        for name, content in after_power_loss(operations[:cut], chance).items():
            (folder / (WITNESSES / name if name.endswith(".head") else name)).write_bytes(content)
        seen = sum(op[0] == "A" for op in operations[:cut])
        (folder / "acknowledged").write_text("".join(line + "\n" for line in acknowledged[:seen]))
        for line in lines(original / "released")[: seen // 2]:
            append(folder / "released", line)
        report = {"cut": cut, "operations": len(operations), "acknowledged": seen, "wrong": wanting(folder)}
        print(json.dumps(report), flush=True)
        shutil.rmtree(folder)


def hammer(where: str, processes: int, each: int) -> None:
    """All spend thousandths from one budget that has room for half of them."""
    with Ledger.open(where) as ledger:
        ledger.create_budget("b", epsilon=Fraction(processes * each // 2, 1000))
    children = []
    for _ in range(processes):
        reading, writing = os.pipe()
        if (child := os.fork()) == 0:
            granted = refused = 0
            with Ledger.open(where, timeout=300) as ledger:
                budget = ledger.budget("b")
                for _ in range(each):
                    try:
                        budget.reserve(pure_dp(epsilon=0.001), label="s").settle()
                        granted += 1
                    except InsufficientBudget:
                        refused += 1
            os.write(writing, json.dumps([granted, refused]).encode())
            os._exit(0)
        os.close(writing)
        children.append((child, reading))
    counts = []
    for child, reading in children:
        os.waitpid(child, 0)
        counts.append(json.loads(os.read(reading, 100)))
    with Ledger.open(where) as ledger:
        ledger.verify()
        spent = ledger.budget("b").spent().epsilon
        entries = ledger.head().sequence
    print(json.dumps({"counts": counts, "spent": str(spent), "entries": entries}))


def main() -> None:
    task, where, *numbers = sys.argv[1:]
    if task == "hammer":
        hammer(where, int(numbers[0]), int(numbers[1]))
        return
    shim = ctypes.CDLL(os.environ["LD_PRELOAD"])
    if task == "broken":
        durable_writes._LOGGED = tuple(pragma.replace("FULL", "NORMAL") for pragma in durable_writes._LOGGED)
    if task in ("power", "broken"):
        power(Path(where), shim, int(numbers[0]), int(numbers[1]))
    else:
        attempts(Path(where), shim, (1, 2, 3) if task == "kill" else (4,), int(numbers[0]))


if __name__ == "__main__":
    main()
