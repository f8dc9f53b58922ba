"""Prices are reserved and settled by `paid`, `Payment` and `BoundPayment` alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lints.rule import Rule
from lints.source import Source

PAID = ("search", "payment")
"""Names of a search's state and of a `BoundPayment`: their steps pay once."""


def payments(source: Source) -> Iterator[ast.AST]:
    """Calls of `reserve` and `settle` on anything."""
    for node in source.nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="reserve" | "settle", value=of)) if ast.unparse(of) not in PAID:
                yield node


RULE = Rule(
    "payments", "use `paid` or `Payment` of dpselect.privacy", payments, outside=("privacy/paying.py", "testing/")
)
