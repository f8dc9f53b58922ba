"""Refusals name both amounts, with the digits in which they differ."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import pytest

from dpselect.errors import ArgumentError
from dpselect.ledger import InsufficientBudget, Ledger, LedgerDamagedError
from dpselect.privacy import pure_dp


def test_a_refusal_shows_where_both_amounts_differ(path):
    with Ledger.open(path) as ledger:
        budget = ledger.create_budget("b", epsilon="0.5")
        with pytest.raises(InsufficientBudget, match=r"0\.5000000000000001\d+ and .* asked for, epsilon 0\.5 and"):
            budget.reserve(pure_dp(epsilon=math.nextafter(0.5, 1)), label="s")
        with pytest.raises(ArgumentError, match="got '-1'"):
            ledger.create_budget("c", epsilon="-1")


def refused(requested, remaining):
    amounts = [{unit: Fraction(amount) for unit, amount in one.items()} for one in (requested, remaining)]
    return InsufficientBudget("b", *amounts)


def test_a_refusal_says_how_to_share_delta():
    left = str(refused({"epsilon": "1", "delta": "1e-6"}, {"epsilon": "2", "delta": "1e-7", "position": "1"}))
    assert left.startswith("budget 'b': epsilon 1 and delta 1e-06 was asked for, epsilon 2 and delta 1e-07 remains")
    assert (
        "Too little delta is left (epsilon would fit). Give each mechanism a part of it: budget.at(delta=1e-08)" in left
    )
    none = str(refused({"epsilon": "3", "delta": "1e-6"}, {"epsilon": "2", "delta": "0"}))
    assert "Delta is used up. Next time give each mechanism a part of it: budget.at(delta=1e-07)" in none
    assert str(refused({"epsilon": "3"}, {"epsilon": "2"})).endswith("nothing was charged")


def test_refusals_keep_what_they_name():
    error = refused({"epsilon": "1/3"}, {"epsilon": "1/4", "delta": "0"})
    again = pickle.loads(pickle.dumps(error))
    assert (again.budget, again.requested, again.remaining) == (
        "b",
        {"epsilon": Fraction(1, 3)},
        {"epsilon": Fraction(1, 4)},
    )
    assert str(again) == str(error)
    assert LedgerDamagedError("x", 3).sequence == 3
    assert LedgerDamagedError("x").sequence is None
