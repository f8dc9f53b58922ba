"""Docstrings as they are: plain text with `code`, lists, indented formulas and doctests, made safe for Sphinx.

Also leads references to where a name is defined to where it is public: a room exports it, and has the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

PAGE = re.compile(r"\bdocs/(theory/[\w-]+)\.md")
ITEM = re.compile(r"(?:[-*]|\d+\.) ")


def escape(line: str) -> str:
    """One line of prose: `code` becomes a literal, everything else stands for itself."""
    parts = re.split(r"`([^`]+)`", line)
    for i, part in enumerate(parts):
        if i % 2:
            # a literal cannot touch a word
            parts[i] = f"\\ ``{part}``\\ "
        else:
            parts[i] = PAGE.sub(r":doc:`docs/\1.md </\1>`", re.sub(r"([\\*_|`])", r"\\\1", part))
    return "".join(parts)


def indent(line: str) -> int:
    """Its leading spaces."""
    return len(line) - len(line.lstrip())


def safe(lines: list[str]) -> Iterator[str]:
    """The lines of a docstring in reStructuredText."""
    blank, doctest, levels = True, False, [0]
    literal: int | None = None
    for line in lines:
        text, depth = line.strip(), indent(line)
        if not text:
            blank, doctest = True, False
            yield ""
            continue
        if literal is not None:
            if depth >= literal:
                yield line
                blank = False
                continue
            literal = None
            yield ""
        if doctest or text.startswith(">>>"):
            if not doctest and not blank:
                yield ""
            doctest, blank = True, False
            yield line
            continue
        is_item = ITEM.match(text)
        while depth < levels[-1]:
            levels.pop()
        if depth > levels[-1] and not is_item:
            # deeper than the text around it: a formula or a table
            literal = depth
            yield ""
            yield " " * levels[-1] + "::"
            yield ""
            yield line
            blank = False
            continue
        if is_item:
            if not blank:
                yield ""
            if depth > levels[-1]:
                levels.append(depth)
            levels.append(depth + len(is_item[0]))
            yield " " * depth + is_item[0] + escape(text[len(is_item[0]) :])
        else:
            yield " " * depth + escape(text)
        blank = False


def process(*arguments: Any) -> None:
    """Called by autodoc with (app, what, name, obj, options, lines)."""
    lines: list[str] = arguments[-1]
    lines[:] = [*safe(list(lines)), ""]


def lead(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement) -> nodes.Node | None:
    """Resolve dpselect.room.module.Name as dpselect.room.Name; what no room exports stays plain text."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or not target.startswith("dpselect."):
        return None
    parts = target.split(".")
    domain = env.get_domain("py")
    public = f"dpselect.{parts[1]}.{parts[-1]}"
    if public in domain.objects:  # type: ignore[attr-defined]
        return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", public, node, content)
    return content


def setup(app: Sphinx) -> dict[str, bool]:
    """Register."""
    app.connect("autodoc-process-docstring", process)
    app.connect("missing-reference", lead)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
