"""Error budgets of gates: fractions and stakes."""

from __future__ import annotations

from fractions import Fraction

import pytest

from benchmarks import gate as benchmark
from dpselect.errors import ArgumentError, BudgetError
from dpselect.holdout.gate.error_budget import ErrorBudget, log_of
from dpselect.holdout.gate.rules import sign_test

"""Gains accepted with power 0.5 and 0.9 at levels 1e-2, 1e-3, 1e-5, 1e-7, computed apart from this program."""


def test_half_stakes_and_five_accepts_in_a_row():
    """The gains accepted at 500 tasks when half of the purse is staked each time: 0.044 to 0.064."""
    purse, gains = ErrorBudget(Fraction(0.05), consultations=1), []
    for _ in range(5):
        stake = purse.stake(purse.left / 2)
        gains.append(next(2 * w - 100 for w in range(50, 101) if sign_test(w, 100 - w, stake)) / 500)
        purse = purse.after(stake, accepted=True)
    assert (gains[0], gains[-1]) == (0.044, 0.064)


def test_even_stakes_use_up_the_purse_exactly():
    purse = ErrorBudget(Fraction(0.05), consultations=7)
    for _ in range(7):
        assert purse.left
        purse = purse.after(purse.stake(None), accepted=False)
    assert purse.left == 0
    with pytest.raises(BudgetError, match="empty"):
        purse.stake(None)


def test_an_all_in_accept_costs_nothing():
    purse = ErrorBudget(Fraction(0.05), consultations=20)
    assert purse.after(purse.stake("all"), accepted=True).left == purse.left
    assert purse.after(purse.stake("all"), accepted=False).left == 0


def test_hundreds_of_accepts_do_not_underflow():
    purse = ErrorBudget(Fraction(0.05), consultations=10_000)
    for _ in range(300):
        purse = purse.after(purse.stake(None), accepted=True)
    assert float(purse.left) == 0.0
    assert purse.left > 0
    assert log_of(purse.left) < -2700
    assert purse.left.denominator.bit_length() < 10_000


@pytest.mark.parametrize("stake", [0, -0.1, 0.06, "half", float("nan")])
def test_stakes_that_are_not_in_the_purse(stake):
    with pytest.raises((ArgumentError, TypeError), match="stake"):
        ErrorBudget(Fraction(0.05), consultations=20).stake(stake)


def test_what_is_printed_of_the_purse_is_all_of_it():
    purse = ErrorBudget(Fraction(1, 30), consultations=20)
    assert purse.stake(float(purse.left)) == purse.left


@pytest.mark.statistical
def test_attacked_gates_fail_at_most_as_promised(capsys):
    """300 gates an attack: more than 0.1 failures where 0.05 are allowed has probability 0.0001."""
    found = benchmark.attacks(300)
    assert "99 % upper bound" in capsys.readouterr().out
    assert max(found.values()) <= 0.1
