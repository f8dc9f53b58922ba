"""The contract of ledgers: this library's file keeps it, and ledgers with a defect are caught."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpselect.errors import ArgumentError, BudgetError
from dpselect.ledger import Budget, fold
from dpselect.testing.ledger_contract import GATE, LedgerContract, refusal


def test_the_release_of_the_contract_costs_a_tenth_without_a_model():
    assert (GATE.cell(None), GATE.cell(0.0)) == (False, True)
    assert [GATE.epsilons[cell] for cell in (True, False)] == [1.0, 0.1]
    assert GATE.delta == 1e-8


def test_a_refusal_that_does_not_come_fails():
    with pytest.raises(AssertionError, match="ArgumentError was not raised"):
        refusal(lambda: None, ArgumentError)
    with pytest.raises(ZeroDivisionError):
        refusal(lambda: 1 / 0, ArgumentError)

    def refuse():
        raise ArgumentError("no")

    assert str(refusal(refuse, ArgumentError)) == "no"


def free(monkeypatch):
    post = fold._post
    monkeypatch.setattr(fold, "_post", lambda *given, guard: None if guard else post(*given, guard=guard))


def unguarded(monkeypatch):
    post = fold._post
    monkeypatch.setattr(fold, "_post", lambda *given, guard: post(*given, guard=False))


def all_comes_back(monkeypatch):
    monkeypatch.setattr(fold, "_refund", lambda reserved, body: Fraction(reserved["charge"]["epsilon"]))


def open_to_all(monkeypatch):
    monkeypatch.setattr(fold, "_check_unlocked", lambda books, root: None)


def any_head_will_do(monkeypatch):
    reserve = Budget.reserve
    monkeypatch.setattr(Budget, "reserve", lambda self, *given, after=None, **more: reserve(self, *given, **more))


@pytest.mark.parametrize(
    ("spoil", "test"),
    [
        (free, "test_what_is_not_settled_stays_charged"),
        (unguarded, "test_an_overdraft_names_both_amounts_and_changes_nothing"),
        (unguarded, "test_budgets_above_are_charged_in_the_same_step"),
        (all_comes_back, "test_reserve_charges_the_worst_and_settle_refunds_epsilon_only"),
        (open_to_all, "test_an_open_interaction_keeps_others_out"),
        (any_head_will_do, "test_a_named_head_must_be_in_the_record"),
    ],
)
def test_zoo_ledgers_with_a_defect_are_caught(tmp_path, monkeypatch, spoil, test):
    getattr(LedgerContract(), test)(str(tmp_path / "sound.db"))
    spoil(monkeypatch)
    with pytest.raises((AssertionError, ArgumentError, BudgetError)):
        getattr(LedgerContract(), test)(str(tmp_path / "broken.db"))
