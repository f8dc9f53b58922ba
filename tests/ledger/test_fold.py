"""The rules of the record: parts, filters below filters, refunds."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpselect.errors import AdjacencyError, ArgumentError, ClaimError
from dpselect.ledger import AlreadySettledError, InsufficientBudget, InteractionOpenError, Ledger, LedgerDamagedError
from dpselect.ledger.fold import Account, MemoryBooks, account_digest, books_digest
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


BUDGET = {
    "kind": "budget",
    "name": "b",
    "accounting": "output",
    "adjacency": "add_or_remove_one",
    "block": False,
    "limits": {"epsilon": "3"},
    "parent": None,
    "part": "",
    "partition": None,
    "sequence": None,
}
RESERVE = {
    "kind": "reserve",
    "budget": "b",
    "identifier": "x",
    "adjacency": "add_or_remove_one",
    "part": "",
    "label": "s",
    "interactive": False,
    "cells": {"false": "1/10", "true": "1"},
    "charge": {"epsilon": "1"},
    "mechanism": None,
}
SETTLE = {"kind": "settle", "budget": "b", "identifier": "x", "cell": "false", "epsilon": "1/10"}


def books_after(*bodies):
    books = MemoryBooks()
    for sequence, body in enumerate(({"kind": "ledger"}, BUDGET, *bodies), 1):
        books.apply(sequence, body)
    return books


def test_the_sums_after_each_entry():
    account = books_after(RESERVE).accounts["b"]
    assert (account.totals(), account.remaining()) == ({"epsilon": 1}, {"epsilon": 2})
    assert (account.outstanding, account.refunded, account.locked_by) == (1, 0, None)
    account = books_after(RESERVE, SETTLE).accounts["b"]
    assert (account.totals(), account.refunded, account.outstanding) == (
        {"epsilon": Fraction(1, 10)},
        Fraction(9, 10),
        0,
    )
    assert books_after({**RESERVE, "interactive": True}).accounts["b"].locked_by == 3


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"charge": {"epsilon": "3"}}, None),
        ({"charge": {"epsilon": "3000000001/1000000000"}}, InsufficientBudget),
        ({"charge": {"epsilon": "9/10"}}, ArgumentError),  # less than its most expensive cell
        ({"charge": {"epsilon": "-1"}, "cells": None}, ArgumentError),
        ({"charge": {"epsilon": "1", "delta": "0"}}, ArgumentError),
        ({"part": "north"}, ArgumentError),
        ({"adjacency": "replace_one"}, AdjacencyError),
        ({"budget": "c"}, ArgumentError),
        ({"kind": "later"}, ArgumentError),
        ({"binding": "drawn"}, ArgumentError),
    ],
)
def test_reservations_that_the_rules_refuse(changes, error):
    if error is None:
        assert books_after({**RESERVE, **changes}).accounts["b"].remaining() == {"epsilon": 0}
        return
    with pytest.raises(error):
        books_after({**RESERVE, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": "1/11"},
        {"cell": "other"},
        {"cell": "true"},
        {"identifier": "y"},
        {"claim": "first"},
        {"claim": "first", "release": "hash"},
        {"epsilon": None, "charge": {"epsilon": "0"}},
    ],
)
def test_settlements_that_the_rules_refuse(changes):
    with pytest.raises((ArgumentError, ClaimError)):
        books_after(RESERVE, {**SETTLE, **changes})


@pytest.mark.parametrize("epsilon", ["1001/1000", "-1/1000"])
def test_a_price_by_a_function_is_between_nothing_and_what_was_reserved(epsilon):
    by_function = {**RESERVE, "cells": {}}
    assert books_after(by_function, {**SETTLE, "epsilon": "1"}).accounts["b"].totals() == {"epsilon": 1}
    with pytest.raises(ArgumentError, match="more expensive"):
        books_after(by_function, {**SETTLE, "epsilon": epsilon})


def test_reservations_have_one_identifier_and_one_settlement():
    with pytest.raises(ArgumentError, match="taken"):
        books_after(RESERVE, RESERVE)
    with pytest.raises(AlreadySettledError, match="entry 4"):
        books_after(RESERVE, SETTLE, SETTLE)


def test_an_interaction_is_alone():
    interactive = {**RESERVE, "identifier": "y", "interactive": True}
    with pytest.raises(InteractionOpenError, match="1 reservations"):
        books_after(RESERVE, interactive)
    with pytest.raises(InteractionOpenError, match=r"'y' of budget 'b' \(entry 3\)"):
        books_after(interactive, RESERVE)
    assert books_after(interactive, {**SETTLE, "identifier": "y"}, RESERVE).accounts["b"].outstanding == 1


def test_a_bound_reservation_is_settled_by_its_latest_claim():
    bound = {**RESERVE, "binding": "drawn", "claim": "first"}
    claim = {"kind": "claim", "budget": "b", "identifier": "x", "claim": "second"}
    settle = {**SETTLE, "release": "hash"}
    books_after(bound, {**settle, "claim": "first"})
    books_after(bound, claim, {**settle, "claim": "second"})
    for bodies in ((bound, claim, {**settle, "claim": "first"}), (bound, {**settle, "claim": "second"})):
        with pytest.raises(ClaimError):
            books_after(*bodies)
    with pytest.raises(ArgumentError, match="not bound"):
        books_after(RESERVE, claim)


def test_accounts_are_restored_as_they_were_saved():
    account = books_after(RESERVE).accounts["b"]
    again = Account.restored(account.terms, account.state())
    assert (again.totals(), again.state()) == (account.totals(), account.state())
    digests = {"b": account_digest("terms", "state"), "a": account_digest("terms", "state ")}
    assert books_digest(digests) == books_digest(dict(reversed(digests.items())))
    assert digests["a"] != digests["b"]
