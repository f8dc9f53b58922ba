"""The mutants of a module, as Cosmic Ray makes them: one change of one place.

Left out are changes that no test should see: those of annotations, texts, what is raised, decorators and
`if TYPE_CHECKING`. Of ten operators that could stand in one place, one or two are tried.
"""

from __future__ import annotations

import ast
import difflib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

__all__ = ["Mutant", "difference", "mutants", "mutated", "quotas", "statement"]

OPERATORS = [
    *("NumberReplacer", "AddNot", "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceTrueWithFalse"),
    *("ReplaceFalseWithTrue", "ZeroIterationForLoop", "ReplaceBreakWithContinue", "ReplaceContinueWithBreak"),
    *(f"ReplaceUnaryOperator_Delete_{operator}" for operator in ("USub", "Not", "Invert")),
    *(f"ReplaceBinaryOperator_{pair}" for pair in ("Mul_Div", "Div_Mul", "Add_Sub", "Sub_Add", "Pow_Mul")),
    *(f"ReplaceComparisonOperator_{a}_{a}E" for a in ("Lt", "Gt")),
    *(f"ReplaceComparisonOperator_{a}E_{a}" for a in ("Lt", "Gt")),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is")),
]
"""Cosmic Ray's, of its group `core`."""


@dataclass(frozen=True)
class Mutant:
    """One change: the operator's occurrence in a module, `ledger/filters`, and the line where it begins."""

    module: str
    operator: str
    occurrence: int
    line: int

    def __str__(self) -> str:
        return f"{self.module}.py:{self.line} {self.operator}"


def mutants(module: str, source: str) -> list[Mutant]:
    """All mutants of a module."""
    nodes, left_out = list(ast_nodes(get_ast(source))), list(_left_out(ast.parse(source)))
    found = []
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        places = ((node, begin) for node in nodes for begin, _ in operator.mutation_positions(node))
        for occurrence, (node, begin) in enumerate(places):
            if not any(first <= begin < last for first, last in left_out) and not _same(node):
                found.append(Mutant(module, name, occurrence, begin[0]))
    return found


def mutated(source: str, mutant: Mutant) -> str:
    """The source with the change."""
    changed = mutate_code(source, get_operator(f"core/{mutant.operator}")(), mutant.occurrence)
    assert changed is not None
    return changed


def difference(source: str, mutant: Mutant) -> str:
    """The lines that a mutant changes, before and after."""
    lines = difflib.unified_diff(source.splitlines(), mutated(source, mutant).splitlines(), n=0, lineterm="")
    return "\n".join(f"    {line[0]} {line[1:].strip()}" for line in list(lines)[3:])


def quotas(lines: dict[str, int], count: int, draws: random.Random) -> dict[str, int]:
    """How many of `count` mutants each module has: its share by lines, rounded up or down by one draw for all."""
    step = sum(lines.values()) / count
    found, end, point = {}, 0, draws.random() * step
    for module, size in sorted(lines.items()):
        end, found[module] = end + size, 0
        while point < end:
            found[module], point = found[module] + 1, point + step
    return found


def statement(source: str, line: int) -> range:
    """The lines of the smallest statement around a line: of a compound one, its head."""
    best = range(line, line + 1)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.stmt):
            continue
        body = getattr(node, "body", None)
        end = body[0].lineno if body else (node.end_lineno or node.lineno) + 1
        span = range(node.lineno, max(end, node.lineno + 1))
        if line in span and (len(best) == 1 or len(span) < len(best)):
            best = span
    return best


def _same(node: Any) -> bool:
    """Whether Cosmic Ray's change is none: 1e150 + 1, or the star between parameters."""
    if node.type == "number":
        value = ast.literal_eval(node.value)
        return bool(value + 1 == value)
    return node.type == "operator" and node.parent.type == "parameters"


Place = tuple[int, int]


def _left_out(tree: ast.AST) -> Iterator[tuple[Place, Place]]:
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.arg | ast.AnnAssign):
            parts.append(node.annotation)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts += [node.returns, *node.decorator_list]
        if isinstance(node, ast.ClassDef):
            parts += node.decorator_list
        if isinstance(node, ast.keyword) and node.arg == "strict":  # of `zip`: what may not happen
            parts.append(node.value)
        if isinstance(node, ast.Raise | ast.JoinedStr):
            parts.append(node)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            parts.append(node)
        for part in parts:
            if part is not None:
                yield (part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset)  # type: ignore[attr-defined]
