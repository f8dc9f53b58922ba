"""What the ledger costs: durable transactions against bare drivers, and a million entries.

    python benchmarks/ledger.py throughput [--where URL] [--processes 8] [--each 100] [--rounds 3]
    python benchmarks/ledger.py million [--entries 1000000] [--folder DIR]

`throughput` runs the same writes to the same tables with a bare driver (sqlite3 or psycopg) and through the ledger, in
turn, without a witness and with one in a folder beside it; reserve and settle are one durable transaction each, and the
witness is one more small durable write. Goal: at least half of the bare throughput without one. `million` makes a
record by import, and times opening it and `remaining`, in a new process each time. Goal: 50 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from dpselect.ledger import Ledger
from dpselect.ledger.entries import BOOKS, ORIGIN, canonical, next_head, without_books
from dpselect.ledger.fold import MemoryBooks
from dpselect.ledger.transfer import import_lines
from dpselect.privacy import pure_dp

GOAL_SHARE = 0.5
GOAL_MILLISECONDS = 50.0
STATE = canonical({"buckets": {"": {"delta": "0", "epsilon": "1/2"}}, "locked_by": None, "outstanding": 0})
DIGEST = "0" * 64
BODY = canonical({"kind": "reserve", "padding": "x" * 340})


def through_the_ledger(where: str, each: int, witness: str | bool = False) -> None:
    with Ledger.open(where, timeout=300, witness=witness) as ledger:
        budget = ledger.budget("b")
        step = pure_dp(epsilon=0.001)
        for _ in range(each):
            budget.reserve(step, label="s").settle()


def bare_sqlite(where: str, each: int) -> None:
    connection = sqlite3.connect(where, isolation_level=None, timeout=300)
    connection.execute("PRAGMA synchronous=FULL")
    for _ in range(each):
        identifier = secrets.token_hex(16)
        for settling in (False, True):
            connection.execute("BEGIN IMMEDIATE")
            (last,) = connection.execute("SELECT max(sequence) FROM ledger_entry").fetchone()
            connection.execute("INSERT INTO ledger_entry VALUES (?, ?, ?)", (last + 1, secrets.token_hex(32), BODY))
            if settling:
                connection.execute(
                    "UPDATE ledger_reservation SET settled = ? WHERE budget = 'b' AND identifier = ?",
                    (last + 1, identifier),
                )
            else:
                connection.execute(
                    "INSERT INTO ledger_reservation VALUES ('b', ?, ?, NULL, NULL)", (identifier, last + 1)
                )
            connection.execute("UPDATE ledger_account SET state = ?, digest = ? WHERE name = 'b'", (STATE, DIGEST))
            connection.execute("COMMIT")
    connection.close()


def bare_postgresql(where: str, each: int) -> None:
    import psycopg

    with psycopg.connect(where) as connection:
        for _ in range(each):
            identifier = secrets.token_hex(16)
            for settling in (False, True):
                connection.execute("LOCK TABLE ledger_entry IN EXCLUSIVE MODE")
                row = connection.execute("SELECT max(sequence) FROM ledger_entry").fetchone()
                last = row[0] if row else 0
                values = (last + 1, secrets.token_hex(32), BODY)
                connection.execute("INSERT INTO ledger_entry VALUES (%s, %s, %s)", values)
                if settling:
                    connection.execute(
                        "UPDATE ledger_reservation SET settled = %s WHERE budget = 'b' AND identifier = %s",
                        (last + 1, identifier),
                    )
                else:
                    connection.execute(
                        "INSERT INTO ledger_reservation VALUES ('b', %s, %s, NULL, NULL)", (identifier, last + 1)
                    )
                connection.execute(
                    "UPDATE ledger_account SET state = %s, digest = %s WHERE name = 'b'", (STATE, DIGEST)
                )
                connection.commit()


def rate(work: Callable[[str, int], None], where: str, processes: int, each: int) -> float:
    """Durable transactions a second of all processes together, from a common start."""
    ready, go = os.pipe(), os.pipe()
    children = []
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            os.write(ready[1], b"r")
            os.read(go[0], 1)
            work(where, each)
            os._exit(0)
        children.append(child)
    for _ in range(processes):
        os.read(ready[0], 1)
    start = time.perf_counter()
    os.write(go[1], b"g" * processes)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    assert not any(statuses)
    return 2 * processes * each / (time.perf_counter() - start)


def throughput(where: str, processes: int, each: int, rounds: int) -> None:
    server = where.startswith("postgresql")
    bare = bare_postgresql if server else bare_sqlite
    with tempfile.TemporaryDirectory(dir=None if server else where) as folder:
        witnessed = partial(through_the_ledger, witness=folder)
        ways = {"bare driver": bare, "ledger": through_the_ledger, "with a witness": witnessed}
        rates: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(rounds):
            for name, work in ways.items():
                place = fresh(where, f"{name}{number}")
                with Ledger.open(place, witness=False) as ledger:
                    ledger.create_budget("b", epsilon=1000)
                rates[name].append(rate(work, place, processes, each))
    medians = {name: statistics.median(found) for name, found in rates.items()}
    for name, found in medians.items():
        print(f"{name:15}{found:8.0f} transactions a second, share {found / medians['bare driver']:.2f}")
    met = medians["ledger"] >= GOAL_SHARE * medians["bare driver"]
    print(f"goal: the ledger at {GOAL_SHARE} of the bare driver: {'met' if met else 'missed'}")


def fresh(where: str, name: str) -> str:
    if not where.startswith("postgresql"):
        return f"{where}/{name}.db"
    import psycopg

    schema = f"bench_{secrets.token_hex(4)}"
    with psycopg.connect(where, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    return f"{where}{'&' if '?' in where else '?'}options=-csearch_path%3D{schema}"


def million_lines(entries: int) -> Iterator[str]:
    """A record of reservations and settlements in turn."""
    with tempfile.TemporaryDirectory() as folder, Ledger.open(f"{folder}/a.db", witness=False) as ledger:
        ledger.create_budget("b", epsilon=10**6)
        ledger.budget("b").reserve(pure_dp(epsilon=0.5), label="s", identifier="0").settle()
        bodies = [body for _, _, body in ledger.entries()]
    tip, reserve, settle, books = ORIGIN, bodies[2], bodies[3], MemoryBooks()
    for number in range(entries):
        body = bodies[number] if number < 2 else dict(settle if number % 2 else reserve, identifier=str(number // 2))
        books.apply(number + 1, without_books(body))
        body[BOOKS] = books.digest()
        tip = next_head(tip, canonical(body))
        yield canonical({"sequence": tip.sequence, "head": tip.head, "body": body})


def million(folder: Path, entries: int) -> None:
    path = folder / f"{entries}.db"
    start = time.perf_counter()
    if not path.exists():
        import_lines(million_lines(entries), path, witness=False).close()
        print(f"import       {time.perf_counter() - start:8.1f} s")
    script = (
        "import sys, time; from dpselect.ledger import Ledger; start = time.perf_counter()\n"
        "ledger = Ledger.open(sys.argv[1], witness=False); left = ledger.budget('b').remaining()\n"
        "print((time.perf_counter() - start) * 1e3)"
    )
    times = [
        float(subprocess.run([sys.executable, "-c", script, path], capture_output=True, check=True).stdout)
        for _ in range(5)
    ]
    worst = max(times)
    verdict = "met" if worst < GOAL_MILLISECONDS else "missed"
    print(f"open, remaining {worst:5.1f} ms at worst of 5 (goal {GOAL_MILLISECONDS}: {verdict})")
    start = time.perf_counter()
    with Ledger.open(path, witness=False) as ledger:
        ledger.verify()
    print(f"verify       {time.perf_counter() - start:8.1f} s")
    print(json.dumps({"entries": entries, "milliseconds": times}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tasks = parser.add_subparsers(dest="task", required=True)
    speed = tasks.add_parser("throughput")
    speed.add_argument("--where")
    for name, value in (("processes", 8), ("each", 100), ("rounds", 3)):
        speed.add_argument(f"--{name}", type=int, default=value)
    size = tasks.add_parser("million")
    size.add_argument("--entries", type=int, default=1_000_000)
    size.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if chosen.task == "throughput":
            throughput(chosen.where or folder, chosen.processes, chosen.each, chosen.rounds)
        else:
            million(chosen.folder or Path(folder), chosen.entries)


if __name__ == "__main__":
    main()
