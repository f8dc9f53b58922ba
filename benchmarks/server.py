"""The server beside the bare framework: requests a second and the 99th percentile of the time, by number of clients.

    python -m benchmarks.server [--clients 1 16 64] [--seconds 5] [--rows 1000] [--rounds 3] [--postgres URL]
    .ci/postgres python -m benchmarks.server

Each client has one connection and asks again as soon as it is answered. In each round each contender is asked by each
number of clients, one after the other; medians over the rounds. The bare framework answers the same size of JSON from
the same body after parsing it, without a record; `bare and durable` commits one row to SQLite in between, as whatever
remembers its answers must. With a PostgreSQL server (by default the one that `.ci/postgres` starts) all of that is
measured in it too, in a database that is made for each round. The clients are a process of their own on the same
machine, whose load before and after is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpselect.holdout import Gate, GateRules, Holdout, HoldoutLabels, HoldoutRequest
from dpselect.holdout.server.submitters import Submitters

BARE = """
import json, socket, sqlite3, sys
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

record = sqlite3.connect(sys.argv[1], isolation_level=None)
record.execute("PRAGMA synchronous=EXTRA")
record.execute("CREATE TABLE answer (number INTEGER PRIMARY KEY, value REAL)")

if sys.argv[2]:
    import psycopg
    shared = psycopg.connect(sys.argv[2], autocommit=True)
    shared.execute("CREATE TABLE answer (number SERIAL PRIMARY KEY, value REAL)")

async def answer(request):
    found = json.loads(await request.body())
    if request.path_params["how"] == "durable":
        record.execute("INSERT INTO answer (value) VALUES (?)", (len(found),))
    if request.path_params["how"] == "postgres":
        shared.execute("INSERT INTO answer (value) VALUES (%s)", (len(found),))
    return JSONResponse({"agrees": True, "value": 0.9, "interval": [0.8, 0.95], "left": [1000, 10]})

place = socket.create_server(("127.0.0.1", 0))
place.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
print(f"serving at http://127.0.0.1:{place.getsockname()[1]}", file=sys.stderr, flush=True)
app = Starlette(routes=[Route("/{how}", answer, methods=["POST"])])
config = uvicorn.Config(app, http="h11", ws="none", log_config=None, access_log=False)
import asyncio
asyncio.run(uvicorn.Server(config).serve(sockets=[place]))
"""
OURS = "from dpselect.cli import main; main()"
KEY = "DPSELECT_BENCHMARK_KEY"


class Contender(NamedTuple):
    """A server, its route, who asks, and the fields of what is asked."""

    port: int
    path: str
    token: str = ""
    field: str = "predictions"
    option: str = "claim"


@contextmanager
def running(*arguments: str) -> Iterator[int]:
    """A server's process; its port."""
    process = subprocess.Popen([sys.executable, "-c", *arguments], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = ""
    while "serving at" not in line:
        line = process.stderr.readline()
        assert line, "the server did not start"
    drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
    try:
        yield int(line.split(":")[-1].split("/")[0])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        drain.wait()


async def client(port: int, path: str, token: str, bodies: Iterator[bytes], end: float, times: list[float]) -> None:
    """One connection, one request after the other."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < end:
        body = next(bodies)
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        start = time.perf_counter()
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        await reader.readexactly(int(answer.split("content-length:")[1].split("\r\n")[0]))
        assert answer.startswith("http/1.1 200"), answer
        times.append(time.perf_counter() - start)
    writer.close()


async def load(port: int, path: str, token: str, bodies: Iterator[bytes], clients: int, seconds: float) -> list[float]:
    """The time of each request."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    await asyncio.gather(*(client(port, path, token, bodies, end, times) for _ in range(clients)))
    return times


def questions(field: str, values: dict[str, int], name: str) -> Iterator[bytes]:
    """Bodies that all ask something new."""
    number = 0
    while True:
        number += 1
        option: Any = 0.9 + number * 1e-9 if name == "claim" else str(number)
        yield json.dumps({field: values, name: option}).encode()


@contextmanager
def database(server: str | None) -> Iterator[str]:
    """The URL of a fresh database; nothing without a server."""
    if server is None:
        yield ""
        return
    import psycopg

    name = f"benchmark_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield server.replace("/postgres", f"/{name}", 1)
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def contenders(folder: Path, url: str, labels: dict[str, int]) -> Iterator[dict[str, Contender]]:
    """Each contender's port, path, token, and what is asked. Fresh records: each answer makes them a little longer."""
    request = HoldoutRequest(metric="accuracy", questions=10**6, answers=1, failure_probability=0.05)
    rules = GateRules(answer_seconds=0)
    with ExitStack() as running_servers:
        bare = running_servers.enter_context(running(BARE, str(folder / "bare.db"), url))
        found = {"bare framework": Contender(bare, "/nothing"), "bare and durable": Contender(bare, "/durable")}
        if url:
            found["bare and durable, PostgreSQL"] = Contender(bare, "/postgres")
        for place, people, name in ((str(folder), str(folder / "submitters.db"), ""), (url, url, ", PostgreSQL")):
            if not place:
                continue
            where, variable = (f"{place}#", KEY) if place == url else (f"{place}/", None)
            ends = ("", "") if place == url else (".holdout", ".gate")
            asked = HoldoutLabels(ids=list(labels), labels=list(labels.values()))
            Holdout.create(f"{where}holdout{ends[0]}", asked, request, key_variable=variable)
            tasks = dict.fromkeys(labels, 0)
            Gate.create(f"{where}gate{ends[1]}", tasks, consultations=10**6, rules=rules, key_variable=variable)
            with Submitters(people) as submitters:
                token = submitters.invite("Ada", questions=10**9)
            serve = ["holdout", "serve", place, "--listen", "127.0.0.1:0", "--submitters", people]
            unlimited = ["--rate", "1e9", "--address-rate", "1e9", "--at-once", "1000"]
            ours = running_servers.enter_context(running(OURS, *serve, *unlimited))
            path = "/api/boards/{}/submissions"
            found[f"holdout{name}"] = Contender(ours, path.format("holdout"), token)
            found[f"gate{name}"] = Contender(ours, path.format("gate"), token, "outcomes", "candidate")
        yield found


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--postgres", default=os.environ.get("DPSELECT_TEST_POSTGRES"))
    options = parser.parse_args()
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    print(f"load average {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        os.environ[KEY] = base64.b64encode(os.urandom(32)).decode()
        values = np.random.default_rng(0).integers(0, 2, options.rows)
        labels = {f"row {row}": int(value) for row, value in enumerate(values)}
        guesses = {id_: value ^ (row % 10 == 0) for row, (id_, value) in enumerate(labels.items())}
        for turn in range(options.rounds):
            for clients in options.clients:
                place = folder / f"{turn} {clients}"
                place.mkdir()
                with database(options.postgres) as url, contenders(place, url, labels) as all_of_them:
                    for contender, (port, path, token, field, option) in all_of_them.items():
                        bodies = questions(field, guesses, option)
                        times = asyncio.run(load(port, path, token, bodies, clients, options.seconds))
                        slowest = float(np.quantile(times, 0.99))
                        found.setdefault((contender, clients), []).append((len(times) / options.seconds, slowest))
    print(f"load average {os.getloadavg()[0]:.1f}\n")
    print("| | clients | requests a second | 99th percentile |\n|---|---|---|---|")
    for (contender, clients), rounds in found.items():
        rate = statistics.median(rate for rate, _ in rounds)
        slow = statistics.median(slow for _, slow in rounds)
        print(f"| {contender} | {clients} | {rate:.0f} | {1000 * slow:.1f} ms |")


if __name__ == "__main__":
    main()
