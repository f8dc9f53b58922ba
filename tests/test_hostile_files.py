"""Every command that reads a file, on malformed ones: an exit status and one line, without a traceback."""

from __future__ import annotations

import random
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from itertools import chain

import pytest

from dpselect.cli.app import main
from tests import hostile_documents as hostile

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
    "reproduce": ("mnist.npz", ["reproduce", "tuning-rdp", "--quick", "--data", "mnist=mnist.npz"], hostile.ARRAYS),
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


def refused(folder, command, content):
    name, words, _ = COMMANDS[command]
    path = folder / name
    kept = path.read_bytes() if path.exists() else None
    path.write_bytes(content)
    try:
        status, error = run(words)
    finally:
        path.unlink()
        for made in ("new.db", "new.gate", "n.holdout", "reproduce-tuning-rdp"):
            assert not (folder / made).is_file(), f"{command} has made {made}"
        if kept is not None:
            path.write_bytes(kept)
    assert status in (1, 2, 3), error
    assert "Traceback" not in error
    assert len(error) < 20_000
    assert error.startswith("dpselect: ") or "Usage" in error
    if not command.startswith("tune"):
        assert error.count("\n") == 1, error
    assert all(sign.isprintable() or sign == "\n" for sign in error)


@pytest.mark.cases(600)
@pytest.mark.parametrize(("command", "kind"), CASES)
def test_a_malformed_file_is_an_error_of_one_line(ready, command, kind):
    content = (COMMANDS[command][2] | hostile.ANY)[kind]()
    refused(ready, command, content)
