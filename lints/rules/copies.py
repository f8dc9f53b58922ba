"""Sessions refuse copies and forks by one base class, `dpselect.randomness.session.Session`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from lints.rule import Rule
from lints.source import Source

COPIED = re.compile(r"__(reduce|copy|deepcopy)\w*__")


def by_hand(source: Source) -> Iterator[ast.AST]:
    """Definitions of how something is copied or pickled, and questions for this process."""
    for node in source.nodes:
        match node:
            case ast.FunctionDef(name=name) if COPIED.fullmatch(name):
                yield node
            case ast.Call(func=ast.Name(id="getpid" | "this_process") | ast.Attribute(attr="getpid" | "this_process")):
                yield node


RULE = Rule("copies", "use `Session` of dpselect.randomness", by_hand, outside=("randomness/session.py", "testing/"))
