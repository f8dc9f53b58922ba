"""`dpselect holdout` as it is typed: what it prints, its statuses, and what its errors do not say."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest

from dpselect.cli.app import main
from dpselect.ledger import Ledger
from tests.root import ROOT

ROWS = 2000


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(1)
    labels = np.where(generator.random(ROWS) < 0.5, "cat", "dog")
    guesses = np.where(generator.random(ROWS) < 0.8, labels, "cat")
    write(tmp_path / "labels.csv", ["id", "label"], zip(range(ROWS), labels, strict=True))
    write(tmp_path / "guesses.csv", ["prediction", "id"], zip(guesses[::-1], range(ROWS - 1, -1, -1), strict=True))
    return tmp_path


def write(path, header, rows):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def run(capsys, *arguments):
    """The exit status, what was printed and what was said, through the same door as the script."""

    with (
        mock.patch.object(sys, "argv", ["dpselect", "holdout", *map(str, arguments)]),
        pytest.raises(SystemExit) as end,
    ):
        main()
    out, err = capsys.readouterr()
    return end.value.code or 0, out, err


CREATE = ("create", "labels.csv", "--to", "pets.holdout", "--questions", 20, "--answers", 2)
SCORE = ("score", "guesses.csv", "--holdout", "pets.holdout")


def test_a_life(folder, capsys):
    status, out, err = run(capsys, *CREATE)
    assert "no --metric: accuracy is sealed" in err
    assert (status, out.splitlines()[0]) == (0, "pets.holdout: 2000 rows, accuracy, mechanism counting")
    (folder / "labels.csv").unlink()  # it is sealed
    status, out, _ = run(capsys, *SCORE, "--claim", 0.9)
    assert status == 0
    assert out.startswith("yes: accuracy 0.9 is confirmed\nthe population's accuracy is between 0.8")
    assert out.endswith("19 questions left, 2 of them with a score\n")
    status, out, _ = run(capsys, *SCORE, "--claim", 0.5, "--json")
    found = json.loads(out)
    assert (found["agrees"], found["questions_left"], found["answers_left"]) == (False, 18, 1)
    status, out, _ = run(capsys, *SCORE, "--claim", 0.5)
    assert out.splitlines()[-1] == "asked before, not charged again; 18 questions left, 1 of them with a score"
    status, out, _ = run(capsys, *SCORE)
    assert (status, out.splitlines()[0]) == (0, f"accuracy {found['value']:.4g}")
    status, out, err = run(capsys, *SCORE, "--claim", 0.7)
    assert (status, out) == (3, "")
    assert err == "dpselect: this holdout has given all its answers; one more would not be certified\n"
    status, out, _ = run(capsys, "status", "--holdout", "pets.holdout")
    assert (status, out.splitlines()[0]) == (0, "used up: 3 questions asked, 2 answered with a score")
    status, out, _ = run(capsys, "status", "--holdout", "pets.holdout", "--json")
    assert json.loads(out)["open"] is False


@pytest.mark.cases(8)
@pytest.mark.parametrize(
    ("arguments", "expected", "message"),
    [
        (("create", "missing.csv", "--to", "x", "--questions", 5), 1, "missing.csv"),
        (
            ("create", "labels.csv", "--to", "x", "--questions", 5, "--label-column", "truth"),
            1,
            "no such column: 'truth'",
        ),
        (("create", "labels.csv", "--to", "x", "--questions", 5, "--metric", "auc"), 2, "positive is needed"),
        (("create", "labels.csv", "--to", "x", "--questions", 5, "--label-column", "id"), 2, "must differ"),
        (("create", "labels.csv", "--to", "x", "--questions", 5, "--ledger", "l.db"), 2, "both or neither"),
        (("create", "labels.csv", "--to", "x", "--questions", 0), 2, "questions"),
        (("create", "labels.csv", "--to", "x", "--questions", 90000, "--answers", 9000), 2, "rows are too few"),
        (
            ("create", "guesses.csv", "--to", "labels.csv", "--questions", 5, "--label-column", "prediction"),
            2,
            "exists",
        ),
        (("score", "guesses.csv", "--holdout", "labels.csv"), 2, "not a record of dpselect"),
        (("score", "guesses.csv", "--holdout", "nothing"), 2, "does not exist"),
        (("plan", "--questions", 5), 2, "--rows or --error"),
        (("plan", "--questions", 5, "--error", 0.1, "--rarer", 5), 2, "go with --rows"),
        (("plan", "--questions", 5, "--rows", 1000, "--metric", "recall"), 2, "metric must be one of"),
        (("plan", "--questions", 5, "--rows", 1000, "--metric", "auc", "--rarer", 600), 2, "rarer"),
    ],
)
def test_wrong_use(folder, capsys, arguments, expected, message):
    before = sorted(path.name for path in folder.iterdir() if path.is_file())
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (expected, "")
    assert message in err
    assert err.startswith("dpselect: ")
    assert sorted(path.name for path in folder.iterdir() if path.is_file()) == before


@pytest.mark.cases(4)
@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        (["id", "prediction"], [(i, "SECRET") for i in range(ROWS - 1)], "column 'id' lacks ids of the holdout"),
        (["id", "prediction"], [("SECRET", "cat")] * ROWS, "column 'id' has an id more than once"),
        (["id", "guess"], [(1, "SECRET")], "no such column: 'prediction'"),
        (["id", "prediction"], [(1, "SECRET", 3)], "length differs"),
        (["id", "prediction"], [], "has no rows"),
        ([], [], "is empty: the first line must hold the names"),
    ],
)
def test_files_that_do_not_fit(folder, capsys, header, rows, message):
    run(capsys, *CREATE)
    write(folder / "bad.csv", header, rows)
    status, out, err = run(capsys, "score", "bad.csv", "--holdout", "pets.holdout", "--claim", 0.5)
    assert (status, out) == (1, "")
    assert message in err
    assert "SECRET" not in err
    assert json.loads(run(capsys, "status", "--holdout", "pets.holdout", "--json")[1])["asked"] == 0


@pytest.mark.full
def test_a_budget_that_is_too_small(folder, capsys):
    with Ledger.open("ledger.db") as record:
        record.create_budget("labels", epsilon="0.01", delta="1e-6", adjacency="replace_one")
    status, _, err = run(capsys, *CREATE, "--epsilon", 1, "--ledger", "ledger.db", "--budget", "labels")
    assert status == 3
    assert "labels" in err
    assert not (folder / "pets.holdout").exists()


ONLY = ("--mechanism", "counting", "--json")


def test_plan(capsys):
    status, out, _ = run(capsys, "plan", "--questions", 1000, "--rows", 10_000, "--json")
    found = json.loads(out)
    assert status == 0
    assert found["mechanism"] == "counting"
    assert found["error"] == found["errors"]["counting"] < found["errors"]["gaussian"] < found["splitting_error"]
    status, out, _ = run(capsys, "plan", "--questions", 1000, "--error", round(found["error"], 4) + 1e-4, *ONLY)
    assert 9_900 <= json.loads(out)["rows"] <= 10_050


@pytest.mark.slow
def test_several_processes_through_the_script(folder, capsys):
    run(capsys, *CREATE)
    command = [sys.executable, "-c", "from dpselect.cli.app import main; main()", "holdout", *SCORE]
    claims = ["0.9", "0.9", "0.89"]
    running = [
        subprocess.Popen([*command, "--claim", claim], env=os.environ, stdout=subprocess.DEVNULL) for claim in claims
    ]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert json.loads(run(capsys, "status", "--holdout", "pets.holdout", "--json")[1])["asked"] == 2


def test_the_page_runs(folder, capsys):
    page = ROOT / "docs" / "how-to/holdout.md"
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S))
    exec(compile(code, "holdout.md", "exec"), {})
    assert capsys.readouterr().out == "True [0.812, 0.917]\nTrue 49\n"
