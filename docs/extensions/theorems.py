"""The theorem index: which proven statement each bound rests on, and the tests that hold it.

A docstring names its statements in a sentence "Source: Liu, Talwar 2019, Theorem 4.4; Mironov 2017, Proposition 3." or,
for one of our own, "Source: docs/theory/noise-reduction.md, Theorem 2." A test names those that it holds by a mark:

    @pytest.mark.theorem("Liu, Talwar 2019, Theorem 4.4", exact=True, sharp=True)

`exact`: the bound is compared with the exact law of what it is about. `sharp`: the test fails when the bound is made
1 % smaller; where nothing attains a statement, `loose="why"` stands instead. A statement that a docstring
names elsewhere must have an entry of a work that its file names, and so must every statement of docs/theory; the
exceptions stand in `NO_ENTRY`. The directive `{theorem-index}` puts all together, and warns of what is missing. Sources
and tests are read, never imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import source_pages
from citations import surnames
from cited import CITED, as_sources_write, without_support
from docutils import nodes
from pybtex.database import parse_file
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]
SOURCE = re.compile(r"(?<!\w)Source: (.*?)\.(?= [^\d]|$)")
CLAUSE = re.compile(r"(docs/theory/[\w-]+\.md|[A-Z][^;:()]*? \d{4})(.*)")
NUMBER = r"(?:[A-Z]\.)?\d+(?:\.\d+)*|[A-Z]\b"
KINDS = ("Theorem", "Lemma", "Corollary", "Proposition", "Algorithm")
STATEMENT = re.compile(rf"({'|'.join(KINDS)})s? ({NUMBER})(?: and ({NUMBER}))?(?: \((page \d+)\))?")
CLAIM = re.compile(rf"({'|'.join(KINDS[:-1])})s? ((?:{NUMBER})(?:(?:, | and | to )(?:{NUMBER}))*)")
PROVED = re.compile(rf"^(?:(?:> )?\*\*|## )((?:{'|'.join(KINDS[:-1])}) (?:{NUMBER}))\b", re.MULTILINE)
ANY = re.compile(f"Source: |{'|'.join(KINDS)}")
YEAR = re.compile(r"\b(?:19|20)\d\d\b")
MARK = re.compile(r"mark\.theorem\(")
ELSEWHERE = ("testing",)
"""Packages that show known mistakes."""

NO_ENTRY = {
    ("accounting/best_of_k/feasible_region.py", "Proposition 2.12"): "a definition read in its dual form",
    ("accounting/stopping/optimal_stopping.py", "Lemma 12"): "the pair is that of Kairouz, Oh, Viswanath 2015",
    ("adaptive/multiplicative_weights.py", "Theorem 5.4"): "the constants are ours, and a certificate checks each plan",
    ("audit/black_box.py", "Clopper, Pearson 1934"): "limits of confidence: a definition",
    ("audit/black_box.py", "Ding et al. 2018"): "a method: an event is chosen on one half of the draws",
    ("integrations/sklearn/diffprivlib_models.py", "Theorem 9"): "what the models of another library rest on",
    ("learners/strongly_convex.py", "Theorem 2.2.3"): "the speed of a solver, which the tolerance checks",
    ("learners/dp_sgd.py", "Corollary 3.3"): "the sum of squared lengths of Gaussian shifts",
    ("learners/tree_sums.py", "Corollary 3.3"): "the same; the tests compare the sum with what neighbours move",
    ("ledger/filters.py", "Theorem 4.3"): "a filter is no bound: the ledger's tests compare it with exact compositions",
    (
        "ordered/interior_points/tree_log_price.py",
        "Theorem 3.7",
    ): "a number of rows for comparison; nothing runs with it",
    ("ordered/slices/price.py", "Corollary 2.2"): "not used: as printed it does not follow",
    ("privacy/losses/composition.py", "Theorem 24.2"): "the rounding of a Fourier transform; the tests measure it",
    ("privacy/losses/pld.py", "Proposition 3"): "a rough number that a mesh is chosen by",
    ("privacy/mechanisms/pure.py", "Proposition 3.3"): "a weaker bound, named beside the exact curve",
    ("randomness/integers.py", "Corollary 9"): "a remark on the variance; no price rests on it",
    ("docs/theory/adaptive-proposals.md", "Lemma 1"): "a step in the proof of the bounds, which are held by Lemma 2",
    ("docs/theory/adaptive-proposals.md", "Lemma 3"): "an identity: weights are integers that add up",
    ("docs/theory/noise-reduction.md", "Theorem 3"): "an identity of Gaussian covariances; a test draws both laws",
}
"""What is named without an entry, by the file that names it (or proves it), and why."""


@dataclass
class Entry:
    """A statement: where the library rests on it, the page it is on, and its tests."""

    used: list[str] = field(default_factory=list)
    page: str = ""
    exact: list[str] = field(default_factory=list)
    sharp: list[str] = field(default_factory=list)
    loose: str = ""


def definitions(path: Path, sign: re.Pattern[str]) -> Iterator[tuple[str, ast.Module | ast.ClassDef | ast.FunctionDef]]:
    """(name, node) of a module and of all that it defines, if there is a `sign` in it."""
    text = path.read_text(encoding="utf-8")
    todo: list[tuple[str, ast.Module | ast.ClassDef | ast.FunctionDef]] = []
    if sign.search(text):
        todo.append(("", ast.parse(text)))
    while todo:
        name, node = todo.pop()
        yield name, node
        inside = [child for child in node.body if isinstance(child, (ast.ClassDef, ast.FunctionDef))]
        todo += [(f"{name}.{child.name}".lstrip("."), child) for child in inside]


def cited(docstring: str) -> Iterator[tuple[str, str, str]]:
    """(work, statement, page) of all that the source sentences name; no statement where a work is named alone."""
    for source in SOURCE.finditer(" ".join(docstring.split())):
        for part in source[1].split("; "):
            clause = CLAUSE.match(part)
            work, rest = clause.groups() if clause else (part, "")
            found = STATEMENT.findall(rest)
            yield from ((work, f"{kind} {n}", page) for kind, *numbers, page in found for n in numbers if n)
            if not found:
                yield work, "", ""


def claimed(docstring: str) -> Iterator[str]:
    """The statements that a docstring names, in its source sentences and elsewhere; those between two are not known."""
    for kind, numbers in CLAIM.findall(" ".join(docstring.split())):
        yield from (f"{kind} {number}" for number in re.split(", | and | to ", numbers))


def index(
    root: Path, works: dict[str, str], without: Collection[tuple[str, str]] = ()
) -> tuple[dict[tuple[str, str], Entry], list[str]]:
    """Every statement by work and name, in order, and what is wrong; `without` an entry are these, by file and name."""
    entries: dict[tuple[str, str], Entry] = {}
    wrong = []
    named: dict[tuple[str, str], list[str]] = {}
    for path in sorted((root / "src" / "dpselect").rglob("*.py")):
        file = path.relative_to(root / "src" / "dpselect").as_posix()
        here = works_named(path, works)
        for name, node in definitions(path, ANY):
            if not file.startswith(ELSEWHERE):
                named |= {(file, statement): here for statement in claimed(ast.get_docstring(node) or "")}
            for work, statement, page in cited(ast.get_docstring(node) or ""):
                if not known(root, works, work, statement):
                    wrong.append(
                        f"{file}, {name}: no work of references.bib, or no statement of its page: {work} {statement}"
                    )
                elif not statement:
                    named[file, work] = []
                else:
                    entry = entries.setdefault((work, statement), Entry())
                    entry.used += [place] if (place := f"{file}: {name}".rstrip(": ")) not in entry.used else []
                    entry.page = entry.page or page
    for path in sorted((root / "docs" / "theory").glob("*.md")):
        page = f"docs/theory/{path.name}"
        named |= {(page, statement): [page] for statement in PROVED.findall(path.read_text(encoding="utf-8"))}
    missing = {key for key, here in named.items() if not any((work, key[1]) in entries for work in here)}
    wrong += [f"{file} names {what}, which has no entry" for file, what in sorted(missing.difference(without))]
    wrong += [f"{file}, {what}: the exception is not needed" for file, what in sorted(set(without) - missing)]
    for path in sorted((root / "tests").rglob("test_*.py")):
        test = path.relative_to(root / "tests").as_posix()
        for name, node in definitions(path, MARK):
            for said, mark in marks(node):
                entry = entries.get(tuple(said.rsplit(", ", 1)))
                if entry is None:
                    wrong.append(f"{test}: no docstring has the source {said}")
                    continue
                entry.exact += [f"{test}: {name}"] if mark.get("exact") else []
                entry.sharp += [f"{test}: {name}"] if mark.get("sharp") else []
                entry.loose = entry.loose or mark.get("loose", "")
    for key, entry in entries.items():
        wrong += [f"{', '.join(key)}: no exact test"] if not entry.exact else []
        wrong += [f"{', '.join(key)}: no test fails 1 % lower"] if not (entry.sharp or entry.loose) else []
    return dict(sorted(entries.items(), key=lambda item: in_order(*item[0]))), wrong


def works_named(path: Path, works: dict[str, str]) -> list[str]:
    """The works whose authors a file names, and the pages of ours that it names."""
    text = " ".join(path.read_text(encoding="utf-8").split())
    pages = sorted(set(re.findall(r"docs/theory/[\w-]+\.md", text)))
    authors = {work: re.sub(r"( et al\.)? \d+$", "", work).split(", ") for work in works}
    return [*(work for work, names in authors.items() if re.search(",?(?: and)? ".join(names), text)), *pages]


def marks(node: ast.AST) -> Iterator[tuple[str, dict[str, object]]]:
    """(statement, what is said of the test) of the marks of a test or a class of tests."""
    for mark in getattr(node, "decorator_list", ()):
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.theorem":
            said = {each.arg: ast.literal_eval(each.value) for each in mark.keywords}
            yield from ((ast.literal_eval(each), said) for each in mark.args)


def known(root: Path, works: dict[str, str], work: str, statement: str) -> bool:
    """Whether a work is one of the bibliography, or a page of ours that has the statement."""
    if not work.startswith("docs/"):
        return work in works
    page = root / work
    return page.exists() and re.search(rf"{statement}\b", page.read_text(encoding="utf-8")) is not None


def in_order(work: str, statement: str) -> tuple[bool, str, int, list[tuple[bool, int, str]]]:
    """Papers before our own pages; by kind, then by number."""
    kind, number = statement.split()
    parts = [(not p.isdigit(), int(p) if p.isdigit() else 0, p) for p in number.split(".")]
    return work.startswith("docs/"), work, KINDS.index(kind), parts


def bibliography(root: Path = ROOT) -> dict[str, str]:
    """Every work as sources name it (of four authors and more the first, "et al."), and its arXiv number."""
    found = {}
    for entry in parse_file(str(root / "docs" / "references.bib")).entries.values():
        names = surnames(entry)
        authors = ", ".join(names) if len(names) < 4 else f"{names[0]} et al."
        for year in {entry.fields["year"], entry.fields.get("cited", entry.fields["year"])}:
            found[f"{authors} {year}"] = entry.fields.get("eprint", "")
    return found


def citations_without_support(
    root: Path, entries: dict[tuple[str, str], Entry], held: Mapping[tuple[str, str], str] = CITED
) -> list[str]:
    """What is wrong with the citations that stand outside source sentences; see `cited`."""
    source = root / "src" / "dpselect"
    docstrings = [
        (path.relative_to(source).as_posix(), SOURCE.sub(" ", " ".join((ast.get_docstring(node) or "").split())))
        for path in sorted(source.rglob("*.py"))
        for _, node in definitions(path, YEAR)
    ]
    used = {key: {place.partition(":")[0] for place in entry.used} for key, entry in entries.items()}
    return without_support(docstrings, as_sources_write(ROOT / "docs" / "references.bib"), used, held, root / "tests")


class TheoremIndex(SphinxDirective):
    """The tables, one a work."""

    def run(self) -> list[nodes.Node]:
        """Read everything afresh: what has changed since the last build is not known."""
        self.env.note_reread()
        works = bibliography()
        entries, wrong = index(ROOT, works, NO_ENTRY)
        for message in [*wrong, *citations_without_support(ROOT, entries)]:
            logging.getLogger(__name__).warning("theorem index: %s", message)
        found = []
        for work, statements in groupby(entries.items(), key=lambda item: item[0][0]):
            section = nodes.section(ids=[nodes.make_id(work)])
            section += nodes.title("", work)
            number = f", arXiv:{works[work]}" if works.get(work) else ""
            section += nodes.paragraph("", f"{work}{number}.")
            section += table([self.row(statement, entry) for (_, statement), entry in statements], HEAD)
            found.append(section)
        section = nodes.section(ids=["without-an-entry"])
        section += nodes.title("", "Without an entry")
        texts = [[f"{what}, {file}", reason] for (file, what), reason in sorted({**CITED, **NO_ENTRY}.items())]
        cells = [[nodes.entry("", nodes.paragraph("", each)) for each in row] for row in texts]
        section += table([nodes.row("", *row) for row in cells], ("Named", "What holds it, or why it has no entry"))
        return [*found, section]

    def row(self, statement: str, entry: Entry) -> nodes.row:
        """One statement."""
        named = nodes.paragraph("", f"{statement} ({entry.page})" if entry.page else statement)
        sharp = self.lines(entry.sharp) or [nodes.paragraph("", f"None: {entry.loose}")]
        cells = (self.lines(entry.used), self.lines(entry.exact), sharp)
        return nodes.row("", nodes.entry("", named), *(nodes.entry("", *cell) for cell in cells))

    def lines(self, places: list[str]) -> list[nodes.Node]:
        """Each place in a paragraph of its own, with a link to the code."""
        return [nodes.paragraph("", "", source_pages.link(self.env, self.env.docname, place)) for place in places]


def table(rows: list[nodes.row], names: tuple[str, ...]) -> nodes.table:
    """A table of these rows."""
    head = nodes.row("", *(nodes.entry("", nodes.paragraph("", each)) for each in names))
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in names), cols=len(names))
    group += [nodes.thead("", head), nodes.tbody("", *rows)]
    return nodes.table("", group)


HEAD = ("Statement", "Rests on it", "Exact test", "Fails 1 % lower")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register."""
    app.setup_extension("source_pages")
    app.add_directive("theorem-index", TheoremIndex)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
