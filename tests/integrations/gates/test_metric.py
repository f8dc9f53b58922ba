"""A metric that keeps its outcomes for a gate: nothing shown, failures count as 0, an empty purse."""

import runpy
import sys
import types

import pytest

from dpselect.errors import BudgetError
from dpselect.integrations.gates import GateMetric
from tests.root import ROOT

EXAMPLES = ROOT / "examples" / "gate"
TASKS = [f"task {number}" for number in range(60)]


def test_a_program_of_dspy(gate, monkeypatch):
    """`dspy.Evaluate` in its documented form: it calls the program, then `metric(example, prediction)`, in threads."""
    shown = []

    class Evaluate:
        def __init__(self, *, devset, metric, display_progress):
            self.devset, self.metric = devset, metric

        def __call__(self, program):
            for example in self.devset:
                try:
                    shown.append(self.metric(example, program(example)))
                except RuntimeError:
                    shown.append(0.0)  # of a program that failed the metric does not hear

    monkeypatch.setitem(sys.modules, "dspy", types.SimpleNamespace(Evaluate=Evaluate))
    example = runpy.run_path(str(EXAMPLES / "dspy_program.py"))
    tasks = [types.SimpleNamespace(id=task, number=number) for number, task in enumerate(TASKS)]

    def metric(gold, pred, trace=None, pred_name=None, pred_trace=None):
        return types.SimpleNamespace(score=pred == 2 * gold.number, feedback="some")

    def failing(task):
        raise RuntimeError

    assert example["is_it_better"](lambda task: 2 * task.number, tasks, metric) is True
    assert example["is_it_better"](failing, tasks, metric) is False
    assert set(shown) == {0.0}, "the mean that is printed says nothing"
    assert gate() == 2


def test_a_metric_that_raises_is_a_failure(gate):
    held_out = GateMetric("my.gate", lambda example, answer: 1 / answer, key=str)
    assert [held_out(task, 0) for task in TASKS] == [0.0] * len(TASKS)
    assert held_out.ask() is False
    assert [held_out(task, 1, None, pred_name="x") for task in TASKS[:1]] == [0.0]
    assert held_out.ask() is False, "that was but one task, and the earlier ones are forgotten"
    assert gate() == 2


def test_nothing_is_left_to_ask(gate):
    held_out = GateMetric("my.gate", lambda example: 0, key=str)
    held_out.ask("all")
    with pytest.raises(BudgetError):
        held_out.ask()
