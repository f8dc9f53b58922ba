"""Citations as people write them, "Liu, Talwar 2019" or "Papernot and Steinke (2022)", become links to the references.

Pages and docstrings stay plain text. A citation that `references.bib` does not have is a warning, and so an error of
the build; so is an entry that nothing cites.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from docutils import nodes
from pybtex.database import Entry, parse_file
from sphinx.application import Sphinx
from sphinx.util import logging

PAGE = "reference/references"
NAME = r"(?:[A-ZÀ-Ý][\w'\u2019-]*[a-zà-ÿ][\w'\u2019-]*)"
YEAR = r"((?:19|20)\d\d[a-z]?)"
CITATION = re.compile(rf"{NAME}(?:(?:,\s+(?:and\s+)?|\s+and\s+){NAME})*(?:\s+et\s+al\.)?,?\s+\(?{YEAR}\b")
# what may stand before a year and is no one's name
NO_NAMES = frozenset({"NeurIPS", "ICML", "STOC", "November", "Schema"})
log = logging.getLogger(__name__)


def plain(name: str) -> str:
    """A surname as the pages write it: without accents and braces."""
    apart = unicodedata.normalize("NFKD", name.replace("ø", "o").replace("Ø", "O"))
    return "".join(c for c in apart if c not in "{}" and not unicodedata.combining(c))


def surnames(entry: Entry) -> list[str]:
    """The last names of all authors."""
    return [plain(" ".join(person.last_names)) for person in entry.persons["author"]]


def split(text: str, known: dict[tuple[str, ...], str]) -> Iterator[tuple[str, str | None]]:
    """The text in parts, each with the key it cites, if any; a key of "" stands for one that is not known."""
    done = 0
    for match in CITATION.finditer(text):
        names = [name for name in re.findall(NAME, match[0]) if name not in NO_NAMES]
        if not names:
            continue
        # words before the authors may look like names: the longest tail that is known counts
        key = ""
        for first in range(len(names)):
            wanted = (*names[first:], *(["et al."] if "et al" in re.sub(r"\s+", " ", match[0]) else []), match[1])
            if tuple(map(plain, wanted)) in known:
                key = known[tuple(map(plain, wanted))]
                break
        start = match.start() + (match[0].index(names[first]) if key else 0)
        yield text[done:start], None
        # a parenthesis that the year opened
        done = match.end() + ("(" in match[0] and text[match.end() : match.end() + 1] == ")")
        yield text[start:done], key
    yield text[done:], None


def link(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Turn the citations of one page into links."""
    app.env.dpselect_linked.add(page)  # type: ignore[attr-defined]
    if page == PAGE:
        return
    known: dict[tuple[str, ...], str] = app.config.dpselect_citations
    target = app.builder.get_relative_uri(page, PAGE)
    join_lines(doctree)
    for node in list(doctree.findall(nodes.Text)):
        if not CITATION.search(node) or inside(node, nodes.literal, nodes.literal_block, nodes.reference, nodes.title):
            continue
        parts: list[nodes.Node] = []
        for text, key in split(str(node), known):
            if key == "":
                log.warning("%s cites %r, which references.bib does not have", page, " ".join(text.split()))
            if key:
                app.env.dpselect_cited.add(key)  # type: ignore[attr-defined]
                parts.append(nodes.reference("", text, internal=True, refuri=f"{target}#cite-{key}"))
            elif text:
                parts.append(nodes.Text(text))
        node.parent.replace(node, parts)


def join_lines(doctree: nodes.document) -> None:
    """Markdown gives every line a node of its own; a citation may go over two."""
    for parent in list(doctree.findall(nodes.TextElement)):
        joined: list[nodes.Node] = []
        for child in parent.children:
            if isinstance(child, nodes.Text) and joined and isinstance(joined[-1], nodes.Text):
                joined[-1] = nodes.Text(joined[-1] + child)
            else:
                joined.append(child)
        if len(joined) < len(parent.children):
            parent.children = []
            parent.extend(joined)


def inside(node: nodes.Node, *kinds: type[nodes.Node]) -> bool:
    """Whether a node is in one of some kinds."""
    while node.parent is not None:
        node = node.parent
        if isinstance(node, kinds):
            return True
    return False


def read_bibliography(app: Sphinx) -> None:
    """Find entries by all surnames and the year, and by the first surname where there are three or more."""
    known: dict[tuple[str, ...], str] = {}
    for key, entry in parse_file(str(app.srcdir / "references.bib")).entries.items():
        names = surnames(entry)
        # an entry may have a second year under which pages cite it, and the letter of its key
        lettered = re.findall(r"\d{4}[a-z]$", key)
        for year in {entry.fields["year"], entry.fields.get("cited", entry.fields["year"]), *lettered}:
            for citation in {(*names, year), (names[0], "et al.", year) if len(names) > 2 else (*names, year)}:
                if citation in known and not lettered:
                    log.warning("references.bib: %s and %s are cited alike", key, known[citation])
                known[citation] = "" if citation in known else key  # pages must add the letter
    app.config.dpselect_citations = known
    app.env.dpselect_cited = set()  # type: ignore[attr-defined]
    app.env.dpselect_linked = set()  # type: ignore[attr-defined]


def uncited(app: Sphinx, error: Exception | None) -> None:
    """Say which entries no page cites, after a build of all pages (a repeated build makes only what has changed)."""
    if error is None and app.env.dpselect_linked == app.env.found_docs:  # type: ignore[attr-defined]
        cited = app.env.dpselect_cited  # type: ignore[attr-defined]
        for key in sorted(set(app.config.dpselect_citations.values()) - cited - {""}):
            log.warning("references.bib: nothing cites %s", key)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register."""
    app.add_config_value("dpselect_citations", {}, "")
    app.connect("builder-inited", read_bibliography)
    app.connect("doctree-resolved", link)
    app.connect("build-finished", uncited)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
