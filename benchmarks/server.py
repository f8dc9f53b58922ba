"""The server beside the bare framework: requests a second and the 99th percentile of the time, by number of clients.

    python -m benchmarks.server [--clients 1 16 64] [--seconds 5] [--rows 1000] [--rounds 3]

Each client has one connection and asks again as soon as it is answered. In each round each contender is asked by each
number of clients, one after the other; medians over the rounds. The bare framework answers the same size of JSON from
the same body after parsing it, without a record; `bare and durable` commits one row to SQLite in between, as whatever
remembers its answers must. The clients are a process of their own on the same machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dpselect.holdout import Gate, GateRules, Holdout, HoldoutLabels, HoldoutRequest
from dpselect.holdout.server import Submitters

BARE = """
import json, socket, sqlite3, sys
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

record = sqlite3.connect(sys.argv[1], isolation_level=None)
record.execute("PRAGMA synchronous=EXTRA")
record.execute("CREATE TABLE answer (number INTEGER PRIMARY KEY, value REAL)")

async def answer(request):
    found = json.loads(await request.body())
    if request.path_params["how"] == "durable":
        record.execute("INSERT INTO answer (value) VALUES (?)", (len(found),))
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


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        labels = np.random.default_rng(0).integers(0, 2, options.rows)
        ids = [f"row {row}" for row in range(options.rows)]
        guesses = dict(zip(ids, (labels ^ (np.arange(options.rows) % 10 == 0)).tolist(), strict=True))
        for turn in range(options.rounds):
            for clients in options.clients:
                # a new holdout and gate each time: a record is read whole for each answer, so that it grows slower
                place = folder / f"{turn} {clients}"
                place.mkdir()
                request = HoldoutRequest(metric="accuracy", questions=10**6, answers=1, failure_probability=0.05)
                Holdout.create(place / "holdout.holdout", HoldoutLabels(ids=ids, labels=labels), request)
                rules = GateRules(answer_seconds=0)
                Gate.create(place / "gate.gate", dict.fromkeys(ids, 0), consultations=10**6, rules=rules)
                people = place / "submitters.db"
                with Submitters(people) as submitters:
                    token = submitters.invite("Ada", questions=10**9)
                serve = ["holdout", "serve", str(place), "--listen", "127.0.0.1:0", "--submitters", str(people)]
                unlimited = ["--rate", "1e9", "--address-rate", "1e9"]
                with (
                    running(BARE, str(place / "bare.db")) as bare,
                    running(OURS, *serve, *unlimited) as ours,
                ):
                    contenders = {
                        "bare framework": (bare, "/nothing", "predictions", "claim"),
                        "bare and durable": (bare, "/durable", "predictions", "claim"),
                        "holdout": (ours, "/api/boards/holdout/submissions", "predictions", "claim"),
                        "gate": (ours, "/api/boards/gate/submissions", "outcomes", "candidate"),
                    }
                    for contender, (port, path, field, option) in contenders.items():
                        bodies = questions(field, guesses, option)
                        times = asyncio.run(load(port, path, token, bodies, clients, options.seconds))
                        slowest = float(np.quantile(times, 0.99))
                        found.setdefault((contender, clients), []).append((len(times) / options.seconds, slowest))
    print("| | clients | requests a second | 99th percentile |\n|---|---|---|---|")
    for (contender, clients), rounds in found.items():
        rate = statistics.median(rate for rate, _ in rounds)
        slow = statistics.median(slow for _, slow in rounds)
        print(f"| {contender} | {clients} | {rate:.0f} | {1000 * slow:.1f} ms |")


if __name__ == "__main__":
    main()
