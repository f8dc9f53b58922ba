"""Units of time are converted by `dpselect.numerics.moments`: NumPy's own conversions wrap around."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from lints.rule import Rule
from lints.source import Source


def conversions(source: Source) -> Iterator[ast.AST]:
    """NumPy's types of time stamps and durations, called or named in a text: its conversions wrap around."""
    for node in source.nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="datetime64" | "timedelta64" | "datetime_as_string")):
                yield node
            case ast.Call(func=ast.Name(id="datetime64" | "timedelta64")):
                yield node
            case ast.Call(func=ast.Attribute(attr="astype" | "dtype" | "asarray" | "array")):
                named = [part for part in ast.walk(node) if isinstance(part, ast.Attribute | ast.Name)]
                if any(ast.unparse(part).endswith(("datetime64", "timedelta64")) for part in named):
                    yield node
            case ast.Constant(value=str() as text) if re.search(r"^[<>=]?(datetime64|timedelta64|[mM]8)(\[|$)", text):
                yield node


RULE = Rule("time-units", "use dpselect.numerics.moments", conversions, outside=("numerics/moments.py",))
