"""A rule: what it finds in a file, and what to do instead."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from lints.source import Source


@dataclass(frozen=True)
class Rule:
    """Findings in one file; `outside` are the files, or folders with a slash at the end, that it leaves alone."""

    name: str
    instead: str
    find: Callable[[Source], Iterable[ast.AST]]
    outside: tuple[str, ...] = ()

    def broken(self, source: Source) -> Iterator[tuple[int, str]]:
        """(line, message) of each finding without an exception, and of each exception without a finding."""
        exceptions = source.exceptions(self.name)
        if source.name.startswith(self.outside):
            return
        used = set[int]()
        for node in self.find(source):
            first = node.lineno  # type: ignore[attr-defined]
            excused = source.excused_by(first, node.end_lineno or first, exceptions)  # type: ignore[attr-defined]
            if not excused:
                yield first, self.instead
            used |= excused
        yield from ((line, "the exception is not needed") for line in exceptions - used)


@dataclass(frozen=True)
class WholeRule:
    """Findings that need all files: yields (path, line, message)."""

    name: str
    find: Callable[[list[Source]], Iterable[tuple[str, int, str]]]


def rules() -> list[Rule | WholeRule]:
    """The rules of `lints/rules/`, one a file, in the order of their names."""
    import lints.rules

    modules = (
        importlib.import_module(f"lints.rules.{found.name}") for found in pkgutil.iter_modules(lints.rules.__path__)
    )
    return [module.RULE for module in modules]


def findings(sources: list[Source], among: Iterable[Rule | WholeRule]) -> Iterator[tuple[str, int, str, str]]:
    """(path, line, rule, message) of all that is wrong."""
    for rule in among:
        if isinstance(rule, WholeRule):
            yield from ((file, line, rule.name, message) for file, line, message in rule.find(sources))
        else:
            for source in sources:
                yield from ((source.path, line, rule.name, message) for line, message in rule.broken(source))
