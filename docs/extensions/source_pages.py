"""Pages of the site that show code and tests which other pages link to, line by line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

ROOT = Path(__file__).parents[2]


def file_of(name: str) -> str:
    """The path of a module of the library, of a test or of an example, from the root."""
    if name.startswith("examples/"):
        return name
    return f"tests/{name}" if Path(name).name.startswith("test_") else f"src/dpselect/{name}"


@cache
def lines_of(file: str) -> dict[str, int]:
    """The line on which each function and class of a file begins."""
    found: dict[str, int] = {}
    todo: list[tuple[str, ast.stmt]] = [("", node) for node in ast.parse((ROOT / file).read_text("utf-8")).body]
    while todo:
        within, node = todo.pop()
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            name = f"{within}.{node.name}".lstrip(".")
            found[name] = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            todo += [(name, child) for child in node.body]
    return found


def link(env: BuildEnvironment, page: str, place: str, *, short: bool = False) -> nodes.reference:
    """From a page to a place, "file: name" or "file" for all of it."""
    name, _, what = place.partition(": ")
    file = file_of(name)
    shown: set[str] = env.__dict__.setdefault("dpselect_sources", set())
    shown.add(file)
    anchor = f"#line-{lines_of(file)[what]}" if what else ""
    uri = f"{'../' * page.count('/')}source/{file.removesuffix('.py')}.html{anchor}"
    return nodes.reference("", "", nodes.literal("", what or name if short else place), refuri=uri, internal=True)


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """One page for each file that is linked to."""
    formatter = HtmlFormatter(lineanchors="line", wrapcode=True)
    for file in sorted(getattr(app.env, "dpselect_sources", ())):
        code = highlight((ROOT / file).read_text("utf-8"), PythonLexer(), formatter)
        body = f"<h1>{file}</h1>\n<div class='highlight-python notranslate'>{code}</div>"
        yield f"source/{file.removesuffix('.py')}", {"title": file, "body": body}, "page.html"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register."""
    app.connect("html-collect-pages", pages)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
