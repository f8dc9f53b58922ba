"""The rules of a gate: margins, what is public and sealed, and what is refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from dpselect.errors import ArgumentError, ContentError, StudyError
from dpselect.holdout import Gate
from tests.holdout.gate.service_cases import TASKS, half, make


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def test_a_margin(folder):
    gate = make(folder, rules={"margin": 0.3})
    assert gate.terms.test == "bet"
    assert not gate.ask({name: 1 if i % 4 < 2 or value else 0 for i, (name, value) in enumerate(half().items())})
    assert gate.ask(dict.fromkeys(half(), 1))


def test_what_is_declared_is_public_and_sealed(folder):
    gate = make(folder, consultations=7, rules={"margin": 0.1})
    status = gate.status()
    assert (status["margin"], status["test"], status["consultations"], status["tasks"]) == (0.1, "bet", 7, TASKS)
    assert status["purse"] == gate.purse == pytest.approx(0.05)
    with closing(sqlite3.connect(folder / "my.gate")) as file:
        (terms,) = file.execute("SELECT terms FROM about").fetchone()
        file.execute("UPDATE about SET terms = ?", (terms.replace('"margin": 0.1', '"margin": 0.0'),))
        file.commit()
    with pytest.raises(StudyError, match="was changed"):
        Gate.open(folder / "my.gate")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"rules": {"test": "sign", "margin": 0.1}}, "margin"),
        ({"rules": {"test": "guess"}}, "test"),
        ({"rules": {"margin": 1.0}}, "margin"),
        ({"rules": {"answer_seconds": -1}}, "answer_seconds"),
        ({"rules": {"id_column": "outcome"}}, "id_column"),
        ({"rules": {"outcome_columns": ()}}, "outcome_columns"),
        ({"rules": {"bound_failure_probability": 0}}, "bound_failure_probability"),
        ({"consultations": 0}, "consultations"),
        ({"failure_probability": 1.0}, "failure_probability"),
        ({"clusters": {"t1": "a"}}, "clusters"),
        ({"outcomes": {"a": 1}}, "outcomes"),
        ({"outcomes": {"a": 2, "b": 1}}, "outcomes"),
        ({"outcomes": {}}, "outcomes"),
        ({"outcomes": {"a": [0, 1], "b": 1}}, "outcomes"),
    ],
)
def test_a_gate_that_cannot_be_is_not_made(folder, options, named):
    with pytest.raises((ArgumentError, ContentError), match=named):
        make(folder, **options)
    assert not (folder / "my.gate").exists()


def test_the_sign_test_on_repeats_has_another_claim(folder):
    outcomes = {name: [0.5, 0.5] for name in half()}
    gate = make(folder, outcomes, rules={"test": "wins"})
    assert "more likely to do better" in gate.terms.claim
    few_losses = {name: [0.6, 0.5] if i % 10 else [0, 0] for i, name in enumerate(outcomes)}
    assert gate.ask(few_losses)  # wins 180 small ones and loses 20 large ones: the mean is lower
    assert not make(folder, outcomes, name="b.gate").ask(few_losses)
    with pytest.raises(ArgumentError, match="sign"):
        make(folder, outcomes, name="c.gate", rules={"test": "sign"})
