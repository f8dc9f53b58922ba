"""A gate, for the tests of everything that asks one."""

from __future__ import annotations

import pytest

from dpselect.holdout import Gate, GateRules

TASKS = [f"task {number}" for number in range(60)]


@pytest.fixture
def gate(tmp_path, state, monkeypatch):
    """A gate in the working folder whose incumbent solves no task."""
    monkeypatch.chdir(tmp_path)
    Gate.create("my.gate", dict.fromkeys(TASKS, 0), consultations=4, rules=GateRules(answer_seconds=0))
    return lambda: Gate.open("my.gate").status()["asked"]
