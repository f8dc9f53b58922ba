"""The rules of the record: parts, filters below filters, refunds."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpselect.errors import ArgumentError
from dpselect.ledger import (
    InsufficientBudget,
    Ledger,
    LedgerDamagedError,
)
from dpselect.privacy import compose, gaussian, pure_dp
from tests.ledger.edits import edited


def test_nothing_is_given_back_twice_when_nothing_is_open(written):
    edited(written, "UPDATE ledger_reservation SET settled = NULL")
    with Ledger.open(written) as ledger:
        with pytest.raises(LedgerDamagedError, match="kept as open"):
            ledger.budget("b").settle("0", cell=False)
        assert ledger.budget("b").spent().epsilon == Fraction(3, 10)


def test_filters_below_filters(path):
    step = gaussian(noise_multiplier=8)
    with Ledger.open(path) as ledger:
        above = ledger.create_budget("all", epsilon=2, delta="1e-6", accounting="renyi")
        below = [ledger.create_budget(name, epsilon=2, delta="1e-6", accounting="renyi", parent="all") for name in "ab"]
        admitted = 0

        def spend():
            nonlocal admitted
            while True:
                below[admitted % 2].reserve(step, label="s")
                admitted += 1

        with pytest.raises(InsufficientBudget) as caught:
            spend()
        assert caught.value.budget == "all"
        assert above.spent().epsilon > below[0].spent().epsilon
        assert ledger.verify()
    assert compose(*[step] * admitted).epsilon(1e-6) <= 2


def test_parts_need_a_rule_and_count_once(path):
    with Ledger.open(path) as ledger:
        plain = ledger.create_budget("p", epsilon=1)
        with pytest.raises(ArgumentError, match="partition"):
            plain.reserve(pure_dp(epsilon=0.5), label="s", part="north")
        budget = ledger.create_budget("b", epsilon=1, partition="the first letter of the row's region")
        north = ledger.create_budget("n", epsilon=1, parent="b", part="north")
        budget.reserve(pure_dp(epsilon=0.5), label="s", part="south")
        north.reserve(pure_dp(epsilon=0.6), label="s")
        assert budget.spent().epsilon == Fraction(6, 10)
        with pytest.raises(InsufficientBudget):
            budget.reserve(pure_dp(epsilon=0.5), label="s", part="north")
        budget.reserve(pure_dp(epsilon=0.4), label="s")
        assert budget.remaining().epsilon == 0
        assert ledger.verify()
