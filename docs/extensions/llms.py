"""Two files for programs that read sites as text: `llms.txt` and `llms-full.txt`.

The first has every page by its title, the address of its source and its first sentence. The second fits into one
prompt. It has the code of every guide below its titles, and every public name with its arguments and what it does.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

GUIDES = ("tutorials/", "how-to/")
"""Folders of the pages whose code is in `llms-full.txt`."""
PLAIN = ("default", "none", "text")
"""Languages of blocks that hold none."""


def first_sentence(doctree: nodes.document) -> str:
    """That of the first paragraph, in one line."""
    return sentence(next(iter(doctree.findall(nodes.paragraph)), nodes.paragraph()).astext())


def sentence(text: str) -> str:
    """The first one of a text, in one line."""
    return re.match(r".*?[.?!](?= |$)|.*", " ".join(text.split()))[0]  # type: ignore[index]


def short(doctree: nodes.document) -> str:
    """The title of a page, its first paragraph, and each block of code below the title of its section."""
    parts: list[str] = []
    heading = ""
    for node in doctree.findall(lambda each: isinstance(each, (nodes.title, nodes.paragraph, nodes.literal_block))):
        text = node.astext().rstrip()
        if not parts:
            parts.append(f"## {text}")
        elif isinstance(node, nodes.title):
            heading = f"### {text}"
        elif isinstance(node, nodes.literal_block):
            language = node.get("language", "")
            parts += [heading] * bool(heading) + [f"```{'' if language in PLAIN else language}\n{text}\n```"]
            heading = ""
        elif len(parts) == 1:
            parts.append(" ".join(text.split()))
    return "\n\n".join(parts)


def said_of(module: str, name: str) -> str:
    """A public name with its arguments and the first sentence of its docstring; nothing if it cannot be loaded."""
    try:
        found = getattr(import_module(module), name)
        parameters = inspect.signature(found).parameters.values()
    except (ImportError, AttributeError, TypeError, ValueError):
        return ""
    # types are on the page of the name
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    arguments = str(inspect.Signature(plain))
    return f"- `{name}{arguments}`: {sentence(inspect.getdoc(found) or '')}"


def keep(app: Sphinx, doctree: nodes.document) -> None:
    """Remember the sentence of one page, and of a guide its code."""
    page = app.env.docname
    app.env.__dict__.setdefault("dpselect_sentences", {})[page] = first_sentence(doctree)
    if page.startswith(GUIDES):
        app.env.__dict__.setdefault("dpselect_guides", {})[page] = short(doctree)


def in_order(app: Sphinx, page: str) -> Iterator[str]:
    """A page and those below it, as the tables of contents have them."""
    yield page
    for below in app.env.toctree_includes.get(page, ()):
        yield from in_order(app, below)


def names(app: Sphinx) -> Iterator[str]:
    """The functions and classes on the pages of the reference, package by package."""
    packages = defaultdict(list)
    for full, entry in app.env.domaindata["py"]["objects"].items():
        module, _, name = full.rpartition(".")
        if entry.docname.startswith("api/") and entry.objtype in ("class", "function") and not entry.aliased:
            packages[module].append(name)
    for module in sorted(packages):
        if said := [line for name in packages[module] if (line := said_of(module, name))]:
            yield f"## {module}\n\n" + "\n".join(said)


def write(app: Sphinx, error: Exception | None) -> None:
    """Both files, in the form of llmstxt.org."""
    if error is not None or app.builder.format != "html":
        return
    root, *pages = dict.fromkeys(in_order(app, app.config.root_doc))
    sentences = app.env.dpselect_sentences  # type: ignore[attr-defined]
    head = [f"# {app.env.titles[root].astext()} {app.config.release}", "", f"> {sentences[root]}", ""]
    lines = [
        *head,
        "[llms-full.txt](llms-full.txt) has the code of all guides and all public names.",
        "",
        "## Pages",
        "",
    ]
    for page in pages:
        source = f"_sources/{page}{Path(app.env.doc2path(page)).suffix}.txt"
        lines.append(f"- [{app.env.titles[page].astext()}]({source}): {sentences[page]}")
    guides = app.env.dpselect_guides  # type: ignore[attr-defined]
    parts = ["\n".join(head).rstrip(), *(guides[page] for page in pages if page in guides), *names(app)]
    for name, text in (("llms.txt", "\n".join(lines)), ("llms-full.txt", "\n\n".join(parts))):
        (Path(app.outdir) / name).write_text(text + "\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register."""
    app.connect("doctree-read", keep)
    app.connect("build-finished", write)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
