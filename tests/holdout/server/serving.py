"""A server of holdouts and gates in a process of its own, and requests to it."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from dpselect.holdout import Gate, GateRules, Holdout, HoldoutLabels, HoldoutRequest
from dpselect.holdout.server.submitters import Submitters

ROWS, TASKS = 2000, 100
LABELS = np.random.default_rng(5).integers(0, 2, ROWS)


def make_holdout(
    path: Path | str, *, questions: int = 1000, answers: int = 5, key_variable: str | None = None
) -> dict[str, int]:
    """A holdout of coin flips, and predictions that are right on nine tenths of them."""
    request = HoldoutRequest(metric="accuracy", questions=questions, answers=answers, failure_probability=0.05)
    names = [f"row {row}" for row in range(ROWS)]
    Holdout.create(path, HoldoutLabels(ids=names, labels=LABELS), request, key_variable=key_variable)
    guesses = LABELS ^ (np.arange(ROWS) % 10 == 0)
    return {name: int(guess) for name, guess in zip(names, guesses, strict=True)}


def make_gate(path: Path | str, **options) -> dict[str, int]:
    """A gate whose incumbent solves nothing, and a candidate that solves all."""
    rules = options.pop("rules", GateRules(answer_seconds=0))
    names = [f"task {task}" for task in range(TASKS)]
    Gate.create(path, dict.fromkeys(names, 0), rules=rules, **options)
    return dict.fromkeys(names, 1)


POSTGRES = os.environ.get("DPSELECT_TEST_POSTGRES")


@contextmanager
def fresh_database() -> Iterator[str]:
    """The URL of an empty database on the server that `DPSELECT_TEST_POSTGRES` names."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(POSTGRES, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        try:
            yield POSTGRES.replace("/postgres?", f"/{name}?")
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@dataclass
class Served:
    """A running server; `lines` is where its standard error goes."""

    url: str
    process: subprocess.Popen
    lines: Path

    def ask(self, method, path, body=None, *, token=None, media="application/json", headers=None):
        """The status, the headers and the body of the answer to one request."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)
        sent = dict(headers or {})
        if token:
            sent["Authorization"] = f"Bearer {token}"
        if body is not None:
            sent["Content-Type"] = media
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        kind = answer.headers.get("content-type", "")
        return answer.status, answer.headers, json.loads(content) if "json" in kind else content

    def submit(self, board, fields, token, **options):
        """The status and the JSON of the answer to one submission."""
        status, _, found = self.ask("POST", f"/api/boards/{board}/submissions", fields, token=token, **options)
        return status, found


@contextmanager
def served(
    folder: Path, *boards: Path | str, flags: tuple[str, ...] = (), descriptors: int | None = None
) -> Iterator[Served]:
    """`dpselect holdout serve` on a free port, with so many descriptors."""
    lines = folder / "server.log"
    command = ["holdout", "serve", *map(str, boards), "--listen", "127.0.0.1:0"]
    people = [] if "--submitters" in flags else ["--submitters", str(folder / "submitters.db")]
    unlimited = [] if "--rate" in flags else ["--rate", "1e9", "--address-rate", "1e9"]
    code = "from dpselect.cli import main; main()"
    if descriptors is not None:
        code = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({descriptors}, {descriptors})); {code}"
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with lines.open("ab") as log:
        before = log.tell()
        process = subprocess.Popen(
            [sys.executable, "-c", code, *command, *people, *unlimited, *flags], stderr=log, env=environment
        )
    try:
        while not (found := re.search(rb"serving at (\S+)\n", lines.read_bytes()[before:])):
            assert process.poll() is None, lines.read_text()
        yield Served(found[1].decode(), process, lines)
    finally:
        process.kill()
        process.wait()


def invited(folder: Path, name: str = "Ada", **quota) -> str:
    """A token."""
    with Submitters(folder / "submitters.db") as people:
        return people.invite(name, **{"questions": 1000, **quota})


def memory_of(process):
    """The most that a process had, in MiB."""
    with open(f"/proc/{process.pid}/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
