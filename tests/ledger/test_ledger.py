"""The ledger: budgets that it makes or refuses, their history, dates only on request."""

from __future__ import annotations

import re

import pytest

from dpselect.errors import ArgumentError
from dpselect.ledger import (
    InsufficientBudget,
    Ledger,
)
from dpselect.privacy import pure_dp
from dpselect.testing.ledger_contract import GATE


def test_dates_of_reservations_only_when_asked_for(path):
    with Ledger.open(path, dates=True) as ledger:
        ledger.create_budget("b", epsilon=3, delta="1e-6").reserve(GATE, label="s").settle(None)
        dated = {body["kind"]: body.get("date") for _, _, body in ledger.entries()}
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", dated["reserve"])
        assert dated["settle"] is None
        assert ledger.verify()


def test_blocks_that_do_not_fit_are_not_made(path):
    with Ledger.open(path) as ledger:
        above = ledger.create_budget("all", epsilon=1, delta="1e-6")
        with pytest.raises(InsufficientBudget) as caught:
            ledger.create_budget("g", epsilon=2, delta="1e-7", parent="all", accounting="renyi")
        assert (caught.value.requested["epsilon"], caught.value.remaining["epsilon"]) == (2, 1)
        assert [budget.name for budget in ledger.budgets()] == ["all"]
        assert above.spent().epsilon == 0
        ledger.create_budget("f", epsilon=1, delta="1e-6", accounting="renyi")
        with pytest.raises(ArgumentError):
            ledger.create_budget("o", epsilon=1, delta="1e-6", parent="f")


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": float("nan")},
        {"epsilon": "much"},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": 0, "delta_each": 1e-9},
        {"epsilon": 1, "accounting": "moments"},
        {"epsilon": 1, "accounting": "renyi"},
        {"epsilon": 1, "delta": 1e-6, "accounting": "renyi", "filter": "pld"},
        {"epsilon": 1, "delta": 1e-6, "accounting": "renyi", "orders": [1.0]},
        {"epsilon": 1, "delta": 1e-6, "accounting": "renyi", "orders": [1.01]},
        {"epsilon": 1, "parent": "no one"},
        {"epsilon": 1, "part": "north"},
        {"epsilon": 1, "adjacency": "friends"},
    ],
)
def test_bad_budgets(path, options):
    with Ledger.open(path) as ledger:
        with pytest.raises(ArgumentError):
            ledger.create_budget("b", **options)
        assert not path.exists()


def test_the_history_that_is_plotted(path):
    with Ledger.open(path) as ledger:
        above = ledger.create_budget("all", epsilon=5, delta="1e-5")
        below = ledger.create_budget("ann", epsilon=3, delta="1e-6", parent="all")
        charge = below.reserve(GATE, label="s")
        above.reserve(pure_dp(epsilon=0.5), label="t")
        charge.settle(None)
        ledger.create_budget("f", epsilon=1, delta="1e-6", parent="all", accounting="renyi")  # a block, paid at once
        shown = {
            name: [(entry, float(spent.epsilon), float(refunded)) for entry, spent, refunded in ledger.history(name)]
            for name in ("all", "ann")
        }
    assert shown["all"] == [(2, 0, 0), (4, 1, 0), (5, 1.5, 0), (6, 0.6, 0.9), (7, 1.6, 0.9)]
    assert shown["ann"] == [(3, 0, 0), (4, 1, 0), (6, 0.1, 0.9)]
