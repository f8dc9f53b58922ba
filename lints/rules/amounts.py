"""Amounts of privacy are printed by `dpselect.numerics.digits`, rounded to the safe side."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from lints.rule import Rule
from lints.source import Source

AMOUNT = re.compile(r"epsilon|delta|noise|price|spent|left\b|remaining|\brho\b|sigma")


def formatted_amounts(source: Source) -> Iterator[ast.AST]:
    """Amounts with a format of floats. A bare `:g` may repeat a number that has a name, as its caller stated it."""
    docstrings = {
        node.body[0].value
        for node in source.nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node)
    }
    for node in source.nodes:
        if node in docstrings:
            continue
        match node:
            case ast.FormattedValue(value=value, format_spec=ast.JoinedStr() as spec):
                text = ast.unparse(spec)[1:].strip("'\"")
                plain = text == "g" and isinstance(value, ast.Name | ast.Attribute)
                if re.search(r"[.]|[eEfFgG%]$", text) and not plain and AMOUNT.search(ast.unparse(value)):
                    yield node
            case ast.Call(func=ast.Name(id="round" | "format"), args=[value, *_]) if AMOUNT.search(ast.unparse(value)):
                yield node
            case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Mod(), right=value):
                if re.search(r"%[-+ 0-9.]*[eEfFgG]", text) and AMOUNT.search(ast.unparse(value)):
                    yield node
            case ast.Constant(value=str() as text) if re.search(r"\{\w*(epsilon|delta)\w*:[^}]*[eEfFgG]\}", text):
                yield node


RULE = Rule(
    "amounts",
    "use `rounded_up`, `rounded_down` or `rounded` of dpselect.numerics.digits",
    formatted_amounts,
    outside=("numerics/digits.py",),
)
