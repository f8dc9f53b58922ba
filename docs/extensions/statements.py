"""Theorems and proofs as a paper sets them, from Markdown that reads well without: a statement is a quoted block that
begins with its name, `> **Theorem 1.** ...`, a proof goes from `*Proof.*` to the sign ∎.

Below each statement of docs/theory stand the code that rests on it and its tests, from the theorem index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import source_pages
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from theorems import NO_ENTRY, NUMBER, ROOT, Entry, bibliography, index

NAME = re.compile(rf"((?:Theorem|Lemma|Corollary|Proposition|Fact) (?:{NUMBER}))\b")
log = logging.getLogger(__name__)


@cache
def entries() -> dict[tuple[str, str], Entry]:
    """The theorem index; what is wrong with it is said where it is shown."""
    return index(ROOT, bibliography())[0]


def frame(app: Sphinx, doctree: nodes.document) -> None:
    """Mark the statements and proofs of one page."""
    page = app.env.docname
    ours = page.startswith("theory/")
    for block in list(doctree.findall(nodes.block_quote)):
        if name := stated(block[0]):
            block["classes"].append("statement")
            if ours:
                block.parent.insert(block.parent.index(block) + 1, list(evidence(app, page, name)))
    if ours:
        app.env.reread_always.add(page)  # tests may have changed
    for first in list(doctree.findall(nodes.paragraph)):
        if opening(first, nodes.emphasis).startswith("Proof"):
            prove(first)


def stated(node: nodes.Node) -> str:
    """The name of the statement that a paragraph makes, or nothing."""
    name = NAME.match(opening(node, nodes.strong))
    return name[1] if name else ""


def opening(node: nodes.Node, kind: type[nodes.TextElement]) -> str:
    """The words in type of this kind with which a paragraph begins."""
    parts = [child for child in node.children if child.astext()] if isinstance(node, nodes.paragraph) else []
    return parts[0].astext() if parts and isinstance(parts[0], kind) else ""


def prove(first: nodes.paragraph) -> None:
    """Put a proof into a block of its own."""
    parent, place = first.parent, first.parent.index(first)
    ends = [i for i in range(place, len(parent)) if parent[i].astext().rstrip().endswith("∎")]
    if not ends:
        log.warning("a proof without an end, which is the sign ∎", location=first)
        return
    proof = nodes.container("", *parent[place : ends[0] + 1], classes=["proof"])
    parent[place : ends[0] + 1] = [proof]


def evidence(app: Sphinx, page: str, name: str) -> Iterator[nodes.paragraph]:
    """The line below a statement."""
    work = f"docs/{page}.md"
    entry = entries().get((work, name))
    if entry is None:
        reason = NO_ENTRY.get((work, name))
        if reason:
            yield nodes.paragraph("", f"No test of its own: {reason}.", classes=["evidence"])
        return
    line = nodes.paragraph("", classes=["evidence"])
    for what, places in (("Code", entry.used), ("exact test", entry.exact), ("fails 1 % lower", entry.sharp)):
        if places:
            line += nodes.Text(f"{'; ' if len(line) else ''}{what}: ")
            for i, place in enumerate(places):
                line += nodes.Text(", ") if i else nodes.Text("")
                line += source_pages.link(app.env, page, place, short=True)
    if entry.loose:
        line += nodes.Text(f"; nothing attains it: {entry.loose}")
    line += nodes.Text(".")
    yield line


def setup(app: Sphinx) -> dict[str, bool]:
    """Register."""
    app.setup_extension("source_pages")
    app.connect("doctree-read", frame)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
