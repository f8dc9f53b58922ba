"""Tests of `dpselect.testing.gate_contract`."""

from __future__ import annotations

import itertools

import pytest

from dpselect.holdout import Gate, GateRules
from dpselect.testing.gate_contract import HALF, GateContract


@pytest.fixture
def make(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    numbers = itertools.count()

    def gate(outcomes, **options):
        return Gate.create(tmp_path / str(next(numbers)), outcomes, rules=GateRules(answer_seconds=0), **options)

    return gate


class TestGate(GateContract):
    """On disk."""


class Wrong:
    """A gate with one defect: `spoil` changes an ask."""

    def __init__(self, gate, spoil):
        self._gate, self._spoil, self.extra = gate, spoil, 0.0

    @property
    def purse(self):
        return self._gate.purse + self.extra

    def ask(self, outcomes, stake=None, *, candidate=None):
        return self._spoil(self, self._gate, outcomes, stake, candidate)


def keeps_the_purse(self, gate, outcomes, stake, candidate):
    before = gate.purse
    accepted = gate.ask(outcomes, stake, candidate=candidate)
    self.extra = before - gate.purse if accepted else self.extra
    return accepted


def errors_are_free(self, gate, outcomes, stake, candidate):
    if any(value not in (0, 1, 0.75) for value in outcomes.values()):
        raise ValueError("an outcome is not a number")
    return gate.ask(outcomes, stake, candidate=candidate)


def equal_outcomes_are_free(self, gate, outcomes, stake, candidate):
    return gate.ask(outcomes, stake, candidate=repr(sorted(outcomes.items(), key=str)))


def forgets_names(self, gate, outcomes, stake, candidate):
    return gate.ask(outcomes, stake)


@pytest.mark.parametrize(
    ("spoil", "test"),
    [
        (keeps_the_purse, "test_a_rejection_costs_the_stake_and_an_acceptance_leaves_it"),
        (errors_are_free, "test_what_is_no_outcome_is_a_failure_and_charged"),
        (equal_outcomes_are_free, "test_equal_outcomes_are_charged"),
        (forgets_names, "test_a_candidate_that_was_asked_is_answered_from_the_record"),
    ],
)
def test_zoo_gates_with_a_defect_are_caught(make, spoil, test):
    assert make(HALF, consultations=2, failure_probability=0.05).purse > 0.0
    with pytest.raises((AssertionError, ValueError)):
        getattr(GateContract(), test)(lambda outcomes, **options: Wrong(make(outcomes, **options), spoil))
