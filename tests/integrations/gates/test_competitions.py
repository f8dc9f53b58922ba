"""Holdouts and gates as scoring programs of EvalAI and Codabench: scores, verdicts, files that are neither."""

import json
import runpy
import sys

import pytest

from dpselect.errors import StudyError
from dpselect.integrations.gates import codabench_score
from dpselect.integrations.gates.competitions import answer_file
from tests.holdout.server.serving import invited, make_gate, make_holdout, served
from tests.root import ROOT

EXAMPLES = ROOT / "examples" / "gate"
TASKS = [f"task {number}" for number in range(60)]


def test_platforms_of_competitions(tmp_path, state, monkeypatch):
    monkeypatch.chdir(tmp_path)
    guesses = make_holdout(tmp_path / "pets.holdout")
    folder = tmp_path / "input" / "res"
    folder.mkdir(parents=True)
    table = folder / "predictions.csv"
    table.write_text("id,prediction\n" + "".join(f"{name},{value}\n" for name, value in guesses.items()))
    evaluate = runpy.run_path(str(EXAMPLES / "evalai_main.py"))["evaluate"]
    found = evaluate("annotations.csv", str(table), "test", submission_metadata={})
    ((split, shown),) = found["result"][0].items()
    assert (split, found["submission_result"]) == ("test", shown)
    assert shown["low"] < 0.9 < shown["high"]
    monkeypatch.setattr(sys, "argv", ["scoring.py", str(tmp_path / "input"), str(tmp_path)])
    runpy.run_path(str(EXAMPLES / "codabench_scoring.py"))
    assert json.loads((tmp_path / "scores.json").read_text()) == shown
    better = make_gate(tmp_path / "my.gate")
    (folder / "outcomes.csv").write_text("id,outcome\n" + "".join(f"{name},1\n" for name in better))
    assert codabench_score("my.gate", "input", ".", file="outcomes.csv") == {"accepted": 1.0}
    with pytest.raises(StudyError):
        answer_file("none.gate", table)


@pytest.mark.full
def test_platforms_that_ask_a_server(tmp_path, state, monkeypatch):
    pytest.importorskip("uvicorn")
    better = make_gate(tmp_path / "my.gate")
    table = tmp_path / "outcomes.csv"
    table.write_text("id,outcome\n" + "".join(f"{name},1\n" for name in better))
    monkeypatch.setenv("DPSELECT_TOKEN", invited(tmp_path))
    with served(tmp_path, tmp_path) as server:
        assert answer_file(f"{server.url}/boards/my", table) == {"verdict": "accepted"}
