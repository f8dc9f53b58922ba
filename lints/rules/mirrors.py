"""The test of `x/y.py` is `tests/x/test_y.py`, so that it is found by its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from lints.rule import Rule
from lints.source import ROOT, Source


def untested(source: Source) -> Iterator[ast.AST]:
    """The first statement of a module without a test file of its name."""
    path = PurePosixPath(source.name)
    test = ROOT / "tests" / path.parent / f"test_{path.name}"
    if path.name != "__init__.py" and source.tree.body and not test.exists():
        yield source.tree.body[0]


RULE = Rule("mirrors", "put its test into the file of its name below tests/", untested, outside=("version.py",))
