"""Outcomes from a log of Inspect: letters, words, several epochs, missing scores; an evaluation that broke off."""

import runpy
import sys
import types

from dpselect.integrations.gates import inspect_outcomes
from tests.root import ROOT

EXAMPLES = ROOT / "examples" / "gate"
TASKS = [f"task {number}" for number in range(60)]


def log_of(letter, tasks=TASKS):
    score = types.SimpleNamespace(value=letter)
    return types.SimpleNamespace(samples=[types.SimpleNamespace(id=task, scores={"match": score}) for task in tasks])


def test_a_log_of_inspect(gate, monkeypatch, capsys):
    """`inspect_ai.log.read_eval_log` in its documented form: samples with an id and scores by the scorer's name."""
    logs = {"better.eval": log_of("C"), "broken off.eval": log_of("C", TASKS[:3])}
    for name in ("inspect_ai", "inspect_ai.log"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["inspect_ai.log"].read_eval_log = logs.__getitem__
    for name, said in (("better.eval", "accepted\n"), ("broken off.eval", "rejected\n")):
        monkeypatch.setattr(sys, "argv", ["inspect_log.py", name])
        runpy.run_path(str(EXAMPLES / "inspect_log.py"))
        assert capsys.readouterr().out == said
    assert gate() == 2, "what broke off is an answer too, and charged"


def test_values_of_inspect():
    Sample = types.SimpleNamespace
    samples = [
        Sample(id=1, scores={"a": Sample(value="P"), "b": Sample(value=0.25)}),
        Sample(id=1, scores={"a": Sample(value=True)}),
        Sample(id=2, scores=None),
        Sample(id=3, scores={"a": Sample(value={"x": "I"})}),
        Sample(id=4, scores={"a": Sample(value="no")}),
    ]
    log = Sample(samples=samples)
    assert inspect_outcomes(log) == {"1": [0.5, True], "2": [0.0], "3": [{"x": "I"}], "4": [0.0]}
    assert inspect_outcomes(log, scorer="b")["1"] == [0.25, 0.0]
    assert inspect_outcomes(log, field="x")["3"] == [0.0]
    assert inspect_outcomes(Sample(samples=None)) == {}
