"""`llms.txt` beside the pages: every page by its title and its first sentence, for programs that read sites as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx


def first_sentence(doctree: nodes.document) -> str:
    """That of the first paragraph, in one line."""
    paragraph = next(iter(doctree.findall(nodes.paragraph)), nodes.paragraph())
    text = " ".join(paragraph.astext().split())
    return re.match(r".*?[.?!](?= |$)|.*", text)[0]  # type: ignore[index]


def keep(app: Sphinx, doctree: nodes.document) -> None:
    """Remember the sentence of one page."""
    app.env.__dict__.setdefault("dpselect_sentences", {})[app.env.docname] = first_sentence(doctree)


def in_order(app: Sphinx, page: str) -> Iterator[str]:
    """A page and those below it, as the tables of contents have them."""
    yield page
    for below in app.env.toctree_includes.get(page, ()):
        yield from in_order(app, below)


def write(app: Sphinx, error: Exception | None) -> None:
    """The file, in the form of llmstxt.org."""
    if error is not None or app.builder.format != "html":
        return
    root, *pages = dict.fromkeys(in_order(app, app.config.root_doc))
    sentences = app.env.dpselect_sentences  # type: ignore[attr-defined]
    lines = [f"# {app.env.titles[root].astext()}", "", f"> {sentences[root]}", "", "## Pages", ""]
    for page in pages:
        lines.append(f"- [{app.env.titles[page].astext()}]({app.builder.get_target_uri(page)}): {sentences[page]}")
    (Path(app.outdir) / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register."""
    app.connect("doctree-read", keep)
    app.connect("build-finished", write)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
