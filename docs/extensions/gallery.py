"""The directive `{gallery}`: every script of examples/ in the words of its docstring, with a picture and what it
prints.

`docs/gallery/NAME.txt` holds what NAME.py printed with the key of its test, which compares the two.
`docs/gallery/NAME.py` draws its picture, which its docstring describes for those who cannot see it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import notebooks
import plots
import source_pages
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "gallery"
NOTEBOOKS = frozenset(page.stem for page in (ROOT / "docs" / "notebooks").glob("*.md"))
log = logging.getLogger(__name__)
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
        """Made again when one of its files has changed."""
        for folder in (ROOT / "examples", PICTURES):
            for file in (*folder.glob("*.py"), *folder.glob("*.txt")):
                self.env.note_dependency(str(file))
        return list(sections(self.env))


def sections(env: BuildEnvironment) -> Iterator[nodes.Node]:
    """In the order of their names."""
    for script in sorted((ROOT / "examples").glob("*.py")):
        title, paragraphs = words(script)
        section = nodes.section(ids=[nodes.make_id(script.stem)])
        section += nodes.title("", title.removesuffix("."))
        line = nodes.paragraph("", "", source_pages.link(env, env.docname, f"examples/{script.name}"))
        section += line
        if script.stem in NOTEBOOKS:
            up = "../" * env.docname.count("/")
            uri = f"{up}notebooks/{script.stem}.html"
            line += [nodes.Text(", "), nodes.reference("", "run cell by cell", refuri=uri)]
        section += [paragraph(text) for text in paragraphs]
        section += list(picture(env, PICTURES / script.name))
        printed = PICTURES / f"{script.stem}.txt"
        if printed.exists():
            section += nodes.paragraph("", "It printed, with the key of its test:")
            section += nodes.literal_block("", printed.read_text(encoding="utf-8").rstrip(), language="none")
        yield section


def picture(env: BuildEnvironment, script: Path) -> Iterator[nodes.Node]:
    """The picture, if there is one; without the package that its example needs there is none."""
    if not script.exists():
        figures = notebooks.figures(ROOT / "examples" / script.name)
        yield from (plots.embedded(figure, words) for figure, words in figures)
        return
    code = script.read_text(encoding="utf-8")
    sys.path[:0] = folders = [str(ROOT / "examples"), str(PICTURES)]
    try:
        yield plots.drawn(env, code, str(script), ast.get_docstring(ast.parse(code)) or "")
    except ModuleNotFoundError as error:
        if error.name not in ("optuna", "torch"):
            raise
        log.info("no picture of %s: %s", script.stem, error)
    finally:
        sys.path[:] = [each for each in sys.path if each not in folders]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register."""
    app.setup_extension("source_pages")
    app.add_directive("gallery", Gallery)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
