"""Roots, first true places and suprema are searched by `dpselect.numerics`, which returns the safe endpoint."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lints.rule import Rule
from lints.source import Source


def halvings(source: Source) -> Iterator[ast.AST]:
    """Middles of two numbers, and variables that are multiplied by a constant, under a loop."""
    for loop in (node for node in source.nodes if isinstance(node, ast.For | ast.While)):
        for node in (inner for part in loop.body for inner in ast.walk(part)):
            if _middle(node) or _rescaled(node):
                yield node


def _middle(node: ast.AST) -> bool:
    """(a + b) / 2, 0.5 * (a + b), (a + b) >> 1, a + (b - a) / 2, the root of a product, mean of two; `x // 2` too."""
    match node:
        case ast.BinOp(left=ast.BinOp(op=ast.Add()), op=ast.Div(), right=ast.Constant(value=2)):
            return True
        case ast.BinOp(left=ast.Constant(value=0.5), op=ast.Mult(), right=ast.BinOp(op=ast.Add())):
            return True
        case ast.BinOp(left=ast.BinOp(op=ast.Add()), op=ast.Mult(), right=ast.Constant(value=0.5)):
            return True
        case ast.BinOp(op=ast.FloorDiv(), right=ast.Constant(value=2), left=ast.BinOp(op=ast.Add()) | ast.Call()):
            return True
        case ast.BinOp(op=ast.RShift(), right=ast.Constant(value=1), left=ast.BinOp(op=ast.Add())):
            return True
        case ast.BinOp(op=ast.Add(), right=ast.BinOp(left=one, right=other)):
            return any(isinstance(x, ast.BinOp) and isinstance(x.op, ast.Sub) for x in (one, other)) and any(
                isinstance(x, ast.Constant) and x.value in (2, 0.5, 1) for x in (one, other)
            )
        case ast.Call(
            func=ast.Name(id="sqrt") | ast.Attribute(attr="sqrt"), args=[ast.BinOp(op=ast.Mult()) as product]
        ):
            return isinstance(product.left, ast.Name) and isinstance(product.right, ast.Name)
        case ast.BinOp(left=ast.Call() as one, op=ast.Mult(), right=ast.Call() as other):
            return ast.unparse(one.func).endswith("sqrt") and ast.unparse(other.func).endswith("sqrt")
    return False


def _rescaled(node: ast.AST) -> bool:
    """x *= 2, x /= 2, x = 2 * x, low, high = high, 2 * high, and the same with other whole factors or a half."""
    match node:
        case ast.AugAssign(op=ast.Mult() | ast.Div() | ast.FloorDiv(), value=ast.Constant(value=factor)):
            return factor in (0.5, 2, 4, 8, 10, 16)
        case ast.AugAssign(op=ast.LShift() | ast.RShift(), value=ast.Constant(value=1)):
            return True
        case ast.Assign(targets=[target], value=value):
            values = value.elts if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) else [value]
            names = {x.id for x in ast.walk(target) if isinstance(x, ast.Name)}
            return any(_multiple(x, names) for x in values)
    return False


def _multiple(value: ast.AST, names: set[str]) -> bool:
    """A constant times one of the names that are assigned, or that over a constant."""
    match value:
        case ast.BinOp(left=ast.Constant(value=2), op=ast.Mult(), right=ast.Name(id=name)):
            return name in names
        case ast.BinOp(left=ast.Name(id=name), op=ast.Mult() | ast.Div() | ast.FloorDiv(), right=ast.Constant(value=2)):
            return name in names
    return False


RULE = Rule(
    "searches",
    "use `first_true`, `root_between` or `supremum_over_cells` of dpselect.numerics",
    halvings,
    outside=("numerics/search.py",),
)
