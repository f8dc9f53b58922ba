"""Refusals name both amounts, with the digits in which they differ."""

from __future__ import annotations

import math

import pytest

from dpselect.errors import ArgumentError
from dpselect.ledger import InsufficientBudget, Ledger
from dpselect.privacy import pure_dp


def test_a_refusal_shows_where_both_amounts_differ(path):
    with Ledger.open(path) as ledger:
        budget = ledger.create_budget("b", epsilon="0.5")
        with pytest.raises(InsufficientBudget, match=r"0\.5000000000000001\d+ and .* asked for, epsilon 0\.5 and"):
            budget.reserve(pure_dp(epsilon=math.nextafter(0.5, 1)), label="s")
        with pytest.raises(ArgumentError, match="got '-1'"):
            ledger.create_budget("c", epsilon="-1")
