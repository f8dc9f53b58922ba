"""The theorem index: which published statement each bound rests on, and the tests that hold it.

A docstring names its statement in a line "Source: Liu, Talwar 2019, Theorem 4.4." (or, for a theorem of our own,
"Source: docs/theory/optimal-selection.md, Theorem 2."). A test names the statement that it checks by a mark:

    @pytest.mark.theorem("Liu, Talwar 2019, Theorem 4.4", exact=True, sharp=True)

`exact`: the bound is compared with the truth of finite mechanisms. `sharp`: the test fails when the bound is made one per
cent smaller. The directive `{theorem-index}` puts both together. Sources and tests are read, never imported.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docutils import nodes
from pybtex.database import parse_file
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]
SOURCE = re.compile(r"\bSource: (?P<work>docs/theory/[\w-]+\.md|[A-Z][^;:]*? \(?(?:19|20)\d\d\)?), (?P<rest>[^;:]*)")
STATEMENT = re.compile(
    r"(Theorem|Lemma|Corollary|Proposition|Algorithm)(s?) ([A-Z]?\d*(?:\.\d+)?(?: and [A-Z]?\d[\d.]*\d)?)"
)
ORDER = ("Theorem", "Lemma", "Corollary", "Proposition", "Algorithm")


@dataclass(frozen=True, order=True)
class Place:
    """A function, class or module of the library, or a test."""

    path: str
    line: int
    name: str


@dataclass(frozen=True)
class Check:
    """A test that holds a statement."""

    place: Place
    exact: bool
    sharp: bool


def cited(docstring: str) -> Iterator[str]:
    """The statements that the source lines of a docstring name, as "Liu, Talwar 2019, Theorem 4.4"."""
    for source in SOURCE.finditer(re.sub(r"\s+", " ", docstring)):
        work = re.sub(r"\((\d{4})\)", r"\1", source["work"]).replace(" and ", ", ")
        for kind, several, numbers in STATEMENT.findall(source["rest"]):
            for number in numbers.split(" and ") if several else [numbers.split(" and ")[0]]:
                yield f"{work}, {kind} {number}"


def documented(path: Path) -> Iterator[tuple[str, ast.AST, str]]:
    """(qualified name, node, docstring) of a module and all that it defines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    todo: list[tuple[str, ast.AST]] = [(path.stem, tree)]
    while todo:
        name, node = todo.pop()
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            yield name, node, ast.get_docstring(node) or ""
            inside = "" if isinstance(node, ast.Module) else f"{name}."
            todo += [
                (inside + child.name, child)
                for child in node.body
                if isinstance(child, (ast.ClassDef, ast.FunctionDef))
            ]


def statements(root: Path = ROOT) -> dict[str, list[Place]]:
    """Every statement that the library's docstrings give as a source, and where."""
    found: dict[str, list[Place]] = defaultdict(list)
    for path in sorted((root / "src" / "dpselect").rglob("*.py")):
        for name, node, docstring in documented(path):
            for key in dict.fromkeys(cited(docstring)):
                found[key].append(Place(str(path.relative_to(root)), getattr(node, "lineno", 1), name))
    return found


def checks(root: Path = ROOT) -> dict[str, list[Check]]:
    """Every statement that a test is marked with, and the tests."""
    found: dict[str, list[Check]] = defaultdict(list)
    for path in sorted((root / "tests").glob("test_*.py")):
        for name, node, _ in documented(path):
            for mark in getattr(node, "decorator_list", ()):
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.theorem":
                    said = {k.arg: ast.literal_eval(k.value) for k in mark.keywords}
                    place = Place(str(path.relative_to(root)), node.lineno, name)  # type: ignore[attr-defined]
                    for key in map(ast.literal_eval, mark.args):
                        found[key].append(Check(place, said.get("exact", False), said.get("sharp", False)))
    return found


def in_order(key: str) -> tuple[str, int, list[tuple[int, int, str]]]:
    """By work, then by kind, then by number."""
    work, statement = key.rsplit(", ", 1)
    kind, number = statement.split(" ", 1)
    return (
        work,
        ORDER.index(kind),
        [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in re.findall(r"\d+|[A-Z]", number)],
    )


def versions() -> dict[str, str]:
    """The arXiv number, with its version, of every work of the bibliography that has one: by surnames and year."""
    from citations import surnames  # beside this file, on the path that conf.py makes

    found = {}
    for entry in parse_file(str(ROOT / "docs" / "references.bib")).entries.values():
        number = re.search(
            r"\d{4}\.\d{4,5}(v\d+)?", entry.fields.get("eprint", "") + entry.fields.get("howpublished", "")
        )
        if number:
            names = surnames(entry)
            for authors in (", ".join(names), f"{names[0]} et al."):
                found[f"{authors} {entry.fields['year']}"] = number[0]
    return found


class TheoremIndex(SphinxDirective):
    """The table."""

    def run(self) -> list[nodes.Node]:
        """One row a statement."""
        known, held, arxiv = statements(), checks(), versions()
        head = ("Statement", "arXiv", "Where it is used", "Exact tests", "Fails one per cent lower")
        table = nodes.table(classes=["theorem-index"])
        group = nodes.tgroup(cols=len(head))
        group += [nodes.colspec(colwidth=1) for _ in head]
        body = nodes.tbody()
        group += nodes.thead("", self.row(head))
        for key in sorted(known, key=in_order):
            found = held.get(key, [])
            body += self.row(
                (
                    key,
                    arxiv.get(key.rsplit(", ", 1)[0], ""),
                    self.places(known[key]),
                    self.places([c.place for c in found if c.exact]),
                    self.places([c.place for c in found if c.sharp]),
                )
            )
        group += body
        table += group
        return [table]

    @staticmethod
    def places(places: list[Place]) -> list[nodes.Node]:
        """Names, each with its file."""
        return [
            nodes.line(
                "", "", nodes.literal("", place.name), nodes.Text(f" in {place.path.removeprefix('src/dpselect/')}")
            )
            for place in sorted(places)
        ]

    @staticmethod
    def row(cells: tuple[str | list[nodes.Node], ...]) -> nodes.row:
        """A row of a table."""
        entries = []
        for cell in cells:
            content = nodes.paragraph("", cell) if isinstance(cell, str) else nodes.line_block("", *cell)
            entries.append(nodes.entry("", content))
        return nodes.row("", *entries)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register."""
    app.add_directive("theorem-index", TheoremIndex)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
