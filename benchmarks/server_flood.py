"""The server under a flood of new connections from one address: how many it takes a processor second; others' times.

    python -m benchmarks.server_flood [--connections 20000] [--seconds 20] [--threads 4]

All on this machine: the flood comes from 127.0.0.2, each connection sends one request, reads nothing and is dropped
when hundreds more are open. Meanwhile somebody at 127.0.0.1 asks for /healthz on a new connection 15 times a second.
Printed: connections that were made, processor seconds of the server, and the times of the other's requests, connecting
included.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

import numpy as np

from benchmarks.server import OURS, running
from dpselect.holdout import Gate, GateRules

FLOOD = """
import socket, sys, threading, time
from collections import deque
port, most, seconds, threads = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
end, made = time.monotonic() + seconds, [0] * threads

def flood(number):
    held = deque(maxlen=200)
    while made[number] < most // threads and time.monotonic() < end:
        one = socket.socket()
        one.bind(("127.0.0.2", 0))
        one.settimeout(2)
        try:
            one.connect(("127.0.0.1", port))
            one.send(b"GET /healthz HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
        except OSError:
            one.close()
            continue
        made[number] += 1
        held.append(one)

all_of_them = [threading.Thread(target=flood, args=(number,)) for number in range(threads)]
begun = time.monotonic()
[each.start() for each in all_of_them], [each.join() for each in all_of_them]
print(sum(made), time.monotonic() - begun)
"""


def asked(port: int) -> float:
    """Seconds until the whole answer to one request on a new connection has come; infinite where none does."""
    begun = time.perf_counter()
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10) as one:
        one.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: one.recv(4096), b""))
        if answer.startswith(b"HTTP/1.1 200"):
            return time.perf_counter() - begun
    return float("inf")


def processor_seconds(process: int) -> float:
    """User and system time so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def child_of(port: int) -> int:
    """The process that listens at a port of this machine."""
    import psutil

    return next(one.pid for one in psutil.net_connections("tcp") if one.laddr.port == port and one.status == "LISTEN")


def times_of(port: int, done: threading.Event) -> list[float]:
    """Of the requests of somebody else, until it is done."""
    times = deque[float]()
    while not done.wait(1 / 15):
        times.append(asked(port))
    return list(times)


def main() -> None:
    """Measure once, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--threads", type=int, default=4)
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_STATE_HOME"] = f"{name}/state"
        tasks = dict.fromkeys("abcdefghij", 0)
        Gate.create(f"{name}/a.gate", tasks, consultations=2, rules=GateRules(answer_seconds=0))
        serve = ["holdout", "serve", name, "--listen", "127.0.0.1:0", "--submitters", f"{name}/submitters.db"]
        with running(OURS, *serve) as port:
            server, found = child_of(port), list[float]()
            quiet = [asked(port) for _ in range(30)]
            done, before = threading.Event(), processor_seconds(server)
            thread = threading.Thread(target=lambda: found.extend(times_of(port, done)))
            thread.start()
            words = [
                sys.executable,
                "-c",
                FLOOD,
                *map(str, (port, options.connections, options.seconds, options.threads)),
            ]
            said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
            done.set()
            thread.join()
            made, seconds, spent = int(said[0]), float(said[1]), processor_seconds(server) - before
    print(f"load average {os.getloadavg()[0]:.1f}")
    rate = f"{made / spent:.0f} a processor second"
    print(f"{made} connections in {seconds:.1f} s; the server took {spent:.2f} processor seconds, {rate}")
    for label, times in (("before", quiet), ("meanwhile", found)):
        middle, slow = np.quantile(times, [0.5, 0.99])
        print(f"{label}: {len(times)} requests, median {1000 * middle:.1f} ms, 99th percentile {1000 * slow:.1f} ms")


if __name__ == "__main__":
    main()
