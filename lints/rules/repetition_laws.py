"""A law of the number of runs is asked for its closed forms, never for its type, outside of `repetitions/`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lints.rule import WholeRule
from lints.source import Source, called


def laws(sources: list[Source]) -> set[str]:
    """The classes that register themselves with `repetition_law`."""
    return {
        node.name
        for source in sources
        for node in source.nodes
        if isinstance(node, ast.ClassDef) and any("repetition_law" in ast.unparse(by) for by in node.decorator_list)
    }


def told_apart(source: Source, laws: set[str]) -> Iterator[ast.AST]:
    """`isinstance`, `register` of a dispatch, and patterns that name one of the laws."""
    for node in source.nodes:
        named = []
        if isinstance(node, ast.Call) and called(node) in ("isinstance", "register"):
            named = [inner.id for part in node.args for inner in ast.walk(part) if isinstance(inner, ast.Name)]
        elif isinstance(node, ast.MatchClass):
            named = [ast.unparse(node.cls)]
        if laws.intersection(named):
            yield node


def by_type(sources: list[Source]) -> Iterator[tuple[str, int, str]]:
    """Files outside of `repetitions/`, and the base of all laws, that know one law from another."""
    known = laws(sources)
    for source in sources:
        if source.package != "repetitions" or source.name == "repetitions/distribution.py":
            exceptions = source.exceptions("laws")
            for node in told_apart(source, known):
                line = node.lineno  # type: ignore[attr-defined]
                if not source.excused_by(line, line, exceptions):
                    yield source.path, line, "ask the law for its closed form"


RULE = WholeRule("laws", by_type)
