"""The files that are searched, parsed once, and the exceptions in their comments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "src" / "dpselect"


@dataclass(frozen=True)
class Source:
    """A file of the library: its path from `src/dpselect`, and its text."""

    name: str
    text: str

    @property
    def path(self) -> str:
        """The path from the root of the project."""
        return f"src/dpselect/{self.name}"

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree, as `ast.walk` yields them."""
        return list(ast.walk(self.tree))

    @property
    def package(self) -> str:
        """The first folder, or the module of a file outside of all folders."""
        return self.name.split("/")[0].removesuffix(".py")

    def exceptions(self, rule: str) -> set[int]:
        """The lines with a comment that excepts them from a rule, and says why."""
        if f"# {rule}: " not in self.text:
            return set()
        said = re.compile(rf"# {rule}: \S")
        return {line for line, text in enumerate(self.text.splitlines(), 1) if said.search(text)}

    @cached_property
    def functions(self) -> list[tuple[int, int, int]]:
        """(first line, last line of the head, last line) of each function."""
        return [
            (node.lineno, node.body[0].lineno - 1, node.end_lineno or node.lineno)
            for node in self.nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]

    def excused_by(self, first: int, last: int, exceptions: set[int]) -> set[int]:
        """The exceptions at these lines, just above them, or at the head of a function around them."""
        heads = [(head, end) for head, end, stop in self.functions if head <= first and last <= stop]
        near = [(first - 1, last), *((head - 1, end) for head, end in heads)]
        return {line for line in exceptions if any(start <= line <= end for start, end in near)}


def called(node: ast.AST) -> str:
    """The last name of the function that a call names, or nothing for any other node."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name
    return ""


def library() -> Iterator[Source]:
    """Every Python file of the library, in the order of their names."""
    for path in sorted(LIBRARY.rglob("*.py")):
        yield Source(path.relative_to(LIBRARY).as_posix(), path.read_text(encoding="utf-8"))
