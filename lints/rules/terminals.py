"""The command line writes through `dpselect.cli.terminal`, so that no text of others steers a terminal."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lints.rule import Rule
from lints.source import Source

WRITES = {"echo", "secho", "prompt", "confirm", "write", "writelines", "print_exception"}


def writes(source: Source) -> Iterator[ast.AST]:
    """Calls that write to a stream or a console. Files that were opened are called `file`."""
    for node in source.nodes if source.name.startswith("cli/") else ():
        match node:
            case ast.Call(func=ast.Name(id="print" | "input" | "Console" | "Progress" | "TextColumn")):
                yield node
            case ast.Call(func=ast.Attribute(attr=attribute, value=of)) if attribute in WRITES:
                if ast.unparse(of) != "file":
                    yield node


RULE = Rule("writes", "use dpselect.cli.terminal", writes, outside=("cli/terminal.py",))
