"""The server under a flood of new connections: how many it takes a processor second, its memory, and others' times.

    python -m benchmarks.server_flood [--connections 20000] [--addresses 1] [--seconds 20] [--threads 4]

All on this machine: the flood comes in turns from so many addresses from 127.1.0.1 on, of which 127.0.0.0/8 has many.
Each connection sends one request, reads nothing and is dropped when hundreds more are open. Meanwhile a submitter at
127.0.0.1 asks for a quota on a new connection 8 times a second. Printed: connections that were made, processor seconds
and the largest memory of the server, and the times of the submitter's requests, connecting included.
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
from dpselect.holdout.server.submitters import Submitters

FLOOD = """
import socket, sys, threading, time
from collections import deque
port, most, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
threads, addresses = int(sys.argv[4]), int(sys.argv[5])
end, made = time.monotonic() + seconds, [0] * threads

def flood(number):
    held = deque(maxlen=200)
    while made[number] < most // threads and time.monotonic() < end:
        one = socket.socket()
        place = (made[number] * threads + number) % addresses
        one.bind((f"127.{1 + place // 62500}.{place // 250 % 250}.{place % 250 + 1}", 0))
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


def asked(port: int, token: str) -> float:
    """Seconds until the whole answer to one request on a new connection has come; infinite if none does."""
    begun = time.perf_counter()
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10) as one:
        one.sendall(
            f"GET /api/boards/a/quota HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            "Connection: close\r\n\r\n".encode()
        )
        answer = b"".join(iter(lambda: one.recv(4096), b""))
        if answer.startswith(b"HTTP/1.1 200"):
            return time.perf_counter() - begun
    return float("inf")


def processor_seconds(process: int) -> float:
    """User and system time so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(process: int) -> int:
    """Most megabytes so far."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


def child_of(port: int) -> int:
    """The process that listens at a port of this machine."""
    import psutil

    return next(one.pid for one in psutil.net_connections("tcp") if one.laddr.port == port and one.status == "LISTEN")


def times_of(port: int, token: str, done: threading.Event) -> list[float]:
    """Of the submitter's requests, until it is done."""
    times = deque[float]()
    while not done.wait(1 / 8):
        times.append(asked(port, token))
    return list(times)


def main() -> None:
    """Measure once, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=20_000)
    parser.add_argument("--addresses", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--threads", type=int, default=4)
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_STATE_HOME"] = f"{name}/state"
        tasks = dict.fromkeys("abcdefghij", 0)
        Gate.create(f"{name}/a.gate", tasks, consultations=2, rules=GateRules(answer_seconds=0))
        with Submitters(f"{name}/submitters.db") as submitters:
            token = submitters.invite("Ada", questions=10, rate=1e4)
        serve = ["holdout", "serve", name, "--listen", "127.0.0.1:0", "--submitters", f"{name}/submitters.db"]
        with running(OURS, *serve) as port:
            server, found = child_of(port), list[float]()
            quiet = [asked(port, token) for _ in range(30)]
            done, before = threading.Event(), processor_seconds(server)
            thread = threading.Thread(target=lambda: found.extend(times_of(port, token, done)))
            thread.start()
            asked_of_it = (port, options.connections, options.seconds, options.threads, options.addresses)
            words = [sys.executable, "-c", FLOOD, *map(str, asked_of_it)]
            said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
            done.set()
            thread.join()
            made, seconds, spent = int(said[0]), float(said[1]), processor_seconds(server) - before
            memory = memory_of(server)
    print(f"load average {os.getloadavg()[0]:.1f}")
    rate = f"{made / max(spent, 0.01):.0f} a processor second"
    print(f"{made} connections in {seconds:.1f} s; the server took {spent:.2f} processor seconds, {rate}, {memory} MB")
    for label, times in (("before", quiet), ("meanwhile", found)):
        middle, slow = np.quantile(times, [0.5, 0.99])
        print(f"{label}: {len(times)} requests, median {1000 * middle:.1f} ms, 99th percentile {1000 * slow:.1f} ms")


if __name__ == "__main__":
    main()
