"""Every public number of a price says to which side it is rounded when no float64 holds it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from lints.rule import Rule
from lints.source import Source

PACKAGES = ("privacy", "mechanisms", "accounting", "selection", "learners", "tuning", "ordered", "integrations")
PRICES = re.compile(r"(\w+_)?(epsilons?|deltas?|rho|mu|sensitivit(y|ies)|noise_multiplier|shift)|epsilon_\w+")


def undirected(source: Source) -> Iterator[ast.AST]:
    """Calls of `number`, and fields made by `real`, that name a price and give no `rounding`."""
    for node in source.nodes if source.package in PACKAGES else ():
        match node:
            case ast.Call(func=ast.Name(id="number"), args=[ast.Constant(value=str() as name), *_]):
                call = node
            case ast.AnnAssign(target=ast.Name(id=name)):
                fields = (part for part in ast.walk(node) if isinstance(part, ast.Call) and _is_real(part))
                call = next(fields, None)
            case _:
                continue
        if call and PRICES.fullmatch(name) and not any(keyword.arg == "rounding" for keyword in call.keywords):
            yield node


def _is_real(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "real"


RULE = Rule("rounding", "say `rounding=`: which side is safe", undirected)
