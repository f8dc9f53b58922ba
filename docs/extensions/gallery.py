"""The directive `{gallery}`: every script of examples/ in the words of its docstring, with what it prints.

`docs/gallery/NAME.txt` holds what NAME.py printed with the key of its test, which compares the two.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import source_pages
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]
CELL = re.compile(r"^# %% \[markdown\]\n((?:#.*\n)+)", re.MULTILINE)


def words(script: Path) -> tuple[str, list[str]]:
    """The title of a script and the paragraphs that say what it does: its docstring, or its first cell of words."""
    text = script.read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(text)) or ""
    title, _, rest = docstring.partition("\n\n")
    cell = CELL.search(text)
    if cell and not rest:
        rest = re.sub(r"^# ?", "", cell[1], flags=re.MULTILINE).partition("\n\n")[2]
    return " ".join(title.split()), [part for part in rest.split("\n\n") if part.strip()]


def paragraph(text: str) -> nodes.Node:
    """What is indented is code; in prose `this` is."""
    if text.startswith("    "):
        return nodes.literal_block(text, "\n".join(line[4:] for line in text.strip("\n").splitlines()))
    parts = re.split(r"`([^`]+)`", " ".join(text.split()))
    inline = [nodes.literal("", part) if i % 2 else nodes.Text(part) for i, part in enumerate(parts)]
    return nodes.paragraph("", "", *inline)


class Gallery(SphinxDirective):
    """One section a script."""

    def run(self) -> list[nodes.Node]:
        """Read afresh by every build."""
        self.env.note_reread()
        return list(sections(self.env))


def sections(env: BuildEnvironment) -> Iterator[nodes.Node]:
    """In the order of their names."""
    for script in sorted((ROOT / "examples").glob("*.py")):
        title, paragraphs = words(script)
        section = nodes.section(ids=[nodes.make_id(script.stem)])
        section += nodes.title("", title.removesuffix("."))
        section += nodes.paragraph("", "", source_pages.link(env, env.docname, f"examples/{script.name}"))
        section += [paragraph(text) for text in paragraphs]
        printed = ROOT / "docs" / "gallery" / f"{script.stem}.txt"
        if printed.exists():
            section += nodes.paragraph("", "It printed, with the key of its test:")
            section += nodes.literal_block("", printed.read_text(encoding="utf-8").rstrip(), language="none")
        yield section


def setup(app: Sphinx) -> dict[str, bool]:
    """Register."""
    app.setup_extension("source_pages")
    app.add_directive("gallery", Gallery)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
