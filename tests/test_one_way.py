"""Chores that are done in one place: the syntax tree of every file of the library is searched for a second one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "dpselect"
TREES = {str(path.relative_to(SOURCE)): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}

PAYS = {
    "privacy/paying.py": "the one place",
    "ledger/budget.py": "the ledger: a budget with a delta hands on to the budget",
    "integrations/sklearn/spending.py": "a spender: hands on to another one",
    "testing/ledger_contract.py": "the contract of ledgers",
    "tuning/tuner.py": "`search.reserve()` and `search.settle()` are steps of the state machine and take nothing",
}
"""Files that may call `reserve` or `settle` on something, and why."""


def payments_by_hand(tree: ast.AST) -> Iterator[Any]:
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in ("reserve", "settle"):
            yield node


@pytest.mark.parametrize("name", TREES)
def test_prices_are_reserved_and_settled_in_one_place(name):
    found = list(payments_by_hand(TREES[name]))
    if name == "tuning/tuner.py":
        found = [call for call in found if call.args or call.keywords or ast.unparse(call.func.value) != "search"]
        assert not found
    elif name in PAYS:
        assert found, f"{name} pays no more: take it off the list"
    else:
        lines = [call.lineno for call in found]
        assert not lines, f"{name}, lines {lines}: use `paid` or `Payment` of dpselect.privacy"


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("spender.reserve(price, label='x', identifier='i')", 1),
        ("self._budget.reserve(price).settle(output)", 2),
        ("paid(run, price, spender=spender, label='x')", 0),
        ("def reserve(self): ...", 0),
    ],
)
def test_a_payment_by_hand_is_found(code, count):
    assert len(list(payments_by_hand(ast.parse(code)))) == count


TWO_MEANINGS = {
    "Uniform": "users write both: the law of the number of runs (`repetitions`) and that of a parameter (`tuning`)",
}
"""Names of classes that are defined twice, and why."""


def classes(tree: ast.AST) -> list[str]:
    return [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def test_the_name_of_a_class_means_one_thing():
    places: dict[str, list[str]] = {}
    for name, tree in TREES.items():
        for defined in classes(tree):
            places.setdefault(defined, []).append(name)
    twice = {defined: files for defined, files in places.items() if len(files) > 1}
    assert {defined: files for defined, files in twice.items() if defined not in TWO_MEANINGS} == {}
    assert TWO_MEANINGS.keys() <= twice.keys(), "defined once now: take it off the list"


def test_a_class_within_a_function_counts():
    assert classes(ast.parse("class A:\n    def f(self):\n        class B: ...")) == ["A", "B"]
