"""Every command that reads a file, on malformed ones: an exit status and one line, without a traceback."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from itertools import chain

import pytest

from dpselect.cli.app import main
from dpselect.ledger import Ledger
from dpselect.ledger.entries import BOOKS, ORIGIN, canonical, next_head, without_books
from dpselect.ledger.fold import MemoryBooks
from tests.cli import hostile_documents as hostile
from tests.decoding.decoder_fuzz import SECONDS, mutated

TASKS = 60

COMMANDS = {
    "tune": ("a.toml", ["tune", "--check", "a.toml"], hostile.TOML),
    "tune --forecast": ("a.toml", ["tune", "--forecast", "a.toml"], hostile.TOML),
    "init": ("a.csv", ["init", "a.csv", "--label", "nothing"], hostile.CSV),
    "init of a packed file": ("a.csv.gz", ["init", "a.csv.gz", "--label", "nothing"], hostile.PACKED),
    "init of arrays": ("a.npz", ["init", "a.npz", "--label", "nothing"], hostile.ARRAYS),
    "predict": ("model.npz", ["predict", "model.npz", "incumbent.csv"], hostile.ARRAYS),
    "export": ("model.npz", ["export", "model.npz", "--to", "model.joblib"], hostile.ARRAYS),
    "report": ("release.json", ["report", "."], hostile.JSON),
    "report of facts": ("facts.json", ["report", "."], hostile.JSON),
    "account --opacus": ("a.json", ["account", "--opacus", "a.json", "--delta", "1e-6"], hostile.JSON),
    "account --optuna": (
        "a.log",
        ["account", "--optuna", "a.log", "--base", "gaussian:noise_multiplier=4", "--delta", "1e-6"],
        hostile.JSON,
    ),
    "account --sweep": ("a.csv", ["account", "--sweep", "a.csv", "--delta", "1e-6"], hostile.CSV),
    "account --sweep of JSON": ("a.json", ["account", "--sweep", "a.json", "--delta", "1e-6"], hostile.JSON),
    "account --sweep of a store": ("a.db", ["account", "--sweep", "a.db", "--delta", "1e-6"], {}),
    "quantile": (
        "a.csv",
        ["quantile", "a.csv", "--column", "nothing", "--q", "0.5", "--epsilon", "1", "--lower", "0", "--upper", "9"],
        hostile.CSV,
    ),
    "quantile of a packed file": (
        "a.csv.gz",
        ["quantile", "a.csv.gz", "--column", "x", "--q", "0.5", "--epsilon", "1", "--lower", "0", "--upper", "9"],
        {"no archive": hostile.PACKED["no archive"]},
    ),
    "audit --outputs": (
        "a.npy",
        ["audit", "--outputs", "a.npy", "a.npy", "--claim-epsilon", "1"],
        hostile.ARRAYS,
    ),
    "audit --data": (
        "a.json",
        ["audit", "json:dumps", "--data", "@a.json", "--neighbour", "@a.json", "--claim-epsilon", "nan"],
        hostile.JSON,
    ),
    "ledger show": ("a.db", ["ledger", "show", "a.db"], {}),
    "ledger verify --receipt": ("a.json", ["ledger", "verify", "budget.db", "--receipt", "a.json"], hostile.JSON),
    "ledger import": ("a.jsonl", ["ledger", "import", "a.jsonl", "new.db"], hostile.JSON),
    "gate create": ("a.csv", ["gate", "create", "a.csv", "--to", "new.gate"], hostile.CSV),
    "gate create of a packed file": ("a.csv.gz", ["gate", "create", "a.csv.gz", "--to", "new.gate"], hostile.PACKED),
    "gate ask": ("a.csv", ["gate", "ask", "a.csv", "--gate", "my.gate"], hostile.CSV),
    "gate ask, packed": ("a.csv.gz", ["gate", "ask", "a.csv.gz", "--gate", "my.gate"], hostile.PACKED),
    "gate ask, JSON lines": ("a.jsonl", ["gate", "ask", "a.jsonl", "--gate", "my.gate"], hostile.JSON),
    "gate advise": (
        "a.csv",
        ["gate", "advise", "a.csv", "incumbent.csv", "--tasks", "60", "--purse", "0.05"],
        hostile.CSV,
    ),
    "gate status": ("a.gate", ["gate", "status", "--gate", "a.gate"], {}),
    "gate verify": ("a.json", ["gate", "verify", "a.json"], hostile.JSON),
    "gate verify --key": ("a.key", ["gate", "verify", "certificate.json", "--key", "a.key"], {}),
    "holdout create": ("a.csv", ["holdout", "create", "a.csv", "--to", "n.holdout", "--questions", "5"], hostile.CSV),
    "holdout score": ("a.csv", ["holdout", "score", "a.csv", "--holdout", "my.holdout"], hostile.CSV),
    "holdout score, packed": ("a.csv.gz", ["holdout", "score", "a.csv.gz", "--holdout", "my.holdout"], hostile.PACKED),
    "holdout status": ("a.holdout", ["holdout", "status", "a.holdout"], {}),
}
"""By what people call them: the file that is malformed, the words, and documents beside those of no kind."""

CASES = [(command, kind) for command, (_, _, kinds) in COMMANDS.items() for kind in chain(hostile.ANY, kinds)]
random.Random(1).shuffle(CASES)


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """A folder with what is not malformed."""
    folder = tmp_path_factory.mktemp("ready")
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_STATE_HOME", str(folder / "state"))
    patch.chdir(folder)
    (folder / "incumbent.csv").write_text("id,outcome\n" + "".join(f"{i},0\n" for i in range(TASKS)))
    (folder / "labels.csv").write_text("id,label\n" + "".join(f"{i},{i % 2}\n" for i in range(TASKS)))
    (folder / "facts.json").write_text("{}")
    (folder / "release.json").write_text("{}")
    for words in (
        ["gate", "create", "incumbent.csv", "--to", "my.gate", "--answer-seconds", "0"],
        ["gate", "certify", "--gate", "my.gate", "--to", "certificate.json"],
        ["holdout", "create", "labels.csv", "--to", "my.holdout", "--questions", "5"],
        ["ledger", "create", "budget.db", "--budget", "b", "--epsilon", "1"],
    ):
        assert run(words)[0] == 0, words
    yield folder
    patch.undo()


def run(words):
    """(status, standard error). What is no exit comes through."""
    out, err, before = StringIO(), StringIO(), sys.argv
    sys.argv = ["dpselect", *words]
    status = 0
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as left:
        status = left.code or 0
    finally:
        sys.argv = before
    return status, err.getvalue()


def refused(folder, command, content, *, or_taken=False):
    name, words, _ = COMMANDS[command]
    path = folder / name
    kept = path.read_bytes() if path.exists() else None
    path.write_bytes(content)
    try:
        status, error = run(words)
    finally:
        path.unlink()
        made = [folder / each for each in ("new.db", "new.gate", "n.holdout") if (folder / each).is_file()]
        for each in made:
            each.unlink()
        if kept is not None:
            path.write_bytes(kept)
    if or_taken and status == 0:
        return
    assert not made
    assert status in (1, 2, 3), error
    assert "Traceback" not in error
    assert len(error) < 20_000
    assert error.startswith("dpselect: ") or "Usage" in error
    if not command.startswith("tune"):
        assert error.count("\n") == 1, error
    assert all(sign.isprintable() or sign == "\n" for sign in error)


@pytest.mark.cases(60)
@pytest.mark.parametrize(("command", "kind"), sorted(CASES, key=lambda case: case[1] == "bomb of rows"))
def test_a_malformed_file_is_an_error_of_one_line(ready, command, kind):
    content = (COMMANDS[command][2] | hostile.ANY)[kind]()
    refused(ready, command, content)


# ---- memory and time, of a process of its own ------------------------------------------------------------------------

MEASURED = """
import resource, sys
from dpselect.cli.app import main
import dpselect.cli.gate, dpselect.cli.holdout, dpselect.cli.ledger, dpselect.cli.tune, dpselect.cli.predict
import dpselect.study.reading, dpselect.study.model_file, dpselect.holdout.service, dpselect.holdout.gate.service
before = resource.getrusage(resource.RUSAGE_SELF)
status = 0
try:
    main()
except SystemExit as left:
    status = left.code
after = resource.getrusage(resource.RUSAGE_SELF)
print(status, after.ru_maxrss - before.ru_maxrss, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
"""

SCORED = ["holdout", "score", "a.csv.gz", "--holdout", "my.holdout"]
ASKED = ["gate", "ask", "a.csv.gz", "--gate", "my.gate"]
FINDINGS = {
    "a model that inflates": ("model.npz", ["predict", "model.npz", "incumbent.csv"], hostile.ARRAYS["bomb"]),
    "a packed submission": ("a.csv.gz", SCORED, hostile.PACKED["bomb"]),
    "packed rows": ("a.csv.gz", SCORED, hostile.PACKED["bomb of rows"]),
    "packed outcomes": ("a.csv.gz", ASKED, hostile.PACKED["bomb of rows"]),
    "a dotted key": ("a.toml", ["tune", "--check", "a.toml"], hostile.TOML["dotted"]),
    "unknown keys": ("a.toml", ["tune", "--check", "a.toml"], hostile.TOML["unknown keys"]),
    "as many as are read": ("a.toml", ["tune", "--check", "a.toml"], lambda: hostile.TOML["unknown keys"]()[:400_000]),
}


@pytest.mark.full
@pytest.mark.parametrize("finding", FINDINGS)
def test_what_is_refused_has_taken_little(ready, finding):
    name, words, made = FINDINGS[finding]
    content = made()
    (ready / name).write_bytes(content)
    found = subprocess.run(
        [sys.executable, "-c", MEASURED, *words], cwd=ready, capture_output=True, text=True, check=True
    )
    (ready / name).unlink()
    status, kilobytes, seconds = found.stdout.split()[-3:]
    assert status in ("1", "2")
    assert 1024 * int(kilobytes) <= 8 * len(content) + 64 * hostile.MIB
    assert float(seconds) <= 1.0 + len(content) / hostile.MIB


def test_amounts_of_an_imported_record_are_bounded(ready):
    with Ledger.open(ready / "budget.db") as ledger:
        entries = list(ledger.entries())
    for amount in (
        "1e999999999999",
        "1e-99999999",
        "9" * 5000,
        "1/0",
        "1e4299",
        "1e-4299",
        "1e4300",
        "1/3" + "0" * 4290,
    ):
        tip, lines = ORIGIN, []
        for _, _, body in entries:
            if "limits" in body:
                body = {**body, "limits": dict.fromkeys(body["limits"], amount), "epsilon": amount}
            tip = next_head(tip, canonical(body))
            lines.append(canonical({"sequence": tip.sequence, "head": tip.head, "body": body}).encode())
        assert amount in str(lines)
        start = time.process_time()
        refused(ready, "ledger import", b"\n".join(lines))
        assert time.process_time() - start < 0.5


def test_sums_of_an_imported_record_are_bounded(ready):
    """Each amount is short enough; what they add up to has no text."""
    tip, lines, books = ORIGIN, [], MemoryBooks()
    with Ledger.open(ready / "budget.db") as ledger:
        bodies = [body for _, _, body in ledger.entries()]
    reserve = {"kind": "reserve", "budget": "b", "label": "s", "mechanism": None, "part": "", "interactive": False}
    reserve |= {"adjacency": "add_or_remove_one", "cells": None}
    for name, amount in {"x": f"1/{10**2499 + 1}", "y": f"1/{10**2500 + 1}"}.items():
        bodies.append({**reserve, "identifier": name, "charge": {"epsilon": amount, "delta": "0"}})
    for body in map(without_books, bodies):
        books.apply(tip.sequence + 1, body)
        with suppress(ValueError):
            body = {**body, BOOKS: books.digest()}
        tip = next_head(tip, canonical(body))
        lines.append(canonical({"sequence": tip.sequence, "head": tip.head, "body": body}).encode())
    assert BOOKS in str(lines[-2])
    assert BOOKS not in str(lines[-1])
    refused(ready, "ledger import", b"\n".join(lines))


# ---- ten minutes of it -----------------------------------------------------------------------------------------------

FRAGMENTS = [*(bytes([sign]) for sign in b'"[]{},:=.#\n\0\xff'), b"9" * 400, b"1e999", b"-inf", b"NaN"]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_ten_minutes_of_changed_documents(ready, command):
    kinds = [*(COMMANDS[command][2] | hostile.ANY).values()]
    seeds = [content for content in (make() for make in kinds) if len(content) < 100_000] or [b""]
    end, draw, kept = time.monotonic() + SECONDS, random.Random(time.time_ns()), [(seed,) for seed in seeds]
    while time.monotonic() < end:
        (content, *_) = mutated(draw.choice(kept), draw, FRAGMENTS, kept)
        try:
            refused(ready, command, content, or_taken=True)
        except BaseException as error:
            raise AssertionError(f"{len(content)} bytes: {content[:2000]!r}") from error
