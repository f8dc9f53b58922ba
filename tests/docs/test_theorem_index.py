"""The theorem index is whole: each statement that is a docstring's source has tests (docs/reference/theorems.md)."""

import importlib
import re

import pytest

from tests.root import ROOT

PROVED = {("docs/theory/page.md", "Theorem 1")}
"""What the page proves, where the function does not rest on it."""
WORKS = {"Liu, Talwar 2019": "1811.07971"}


CITED_ALONE = ("privacy/bound.py", "Liu, Talwar 2019")


@pytest.fixture
def theorems(monkeypatch):
    pytest.importorskip("sphinx")
    pytest.importorskip("pybtex")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "extensions"))
    return importlib.import_module("theorems")


@pytest.mark.full
def test_every_statement_has_an_exact_test_and_one_that_fails_one_per_cent_lower(theorems):
    entries, wrong = theorems.index(ROOT, theorems.bibliography(), theorems.NO_ENTRY)
    assert wrong == []
    assert len(entries) > 100
    assert theorems.citations_without_support(ROOT, entries) == []


def test_every_work_that_is_cited_has_its_reference(theorems):
    """The page of theorems links each; the site is built only in CI."""
    works = set(theorems.bibliography())
    cited = {re.sub(r" (\d{4}),.*", r" \1", what) for _, what in theorems.CITED}
    assert sorted(cited - works) == []


def test_exceptions_are_few_and_have_reasons(theorems):
    assert len(theorems.NO_ENTRY) < 20
    assert all(theorems.NO_ENTRY.values())


def index_of(theorems, root, *, docstring, test):
    """The index of a library of one function and one test."""
    for folder, name, text in (
        ("src/dpselect", "bound.py", f'def bound():\n    """A bound.\n\n    {docstring}\n    """\n'),
        ("tests", "test_bound.py", f"{test}\ndef test_bound(): ...\n"),
        ("docs/theory", "page.md", "**Theorem 1.** One and one are two.\n"),
    ):
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / name).write_text(text)
    return theorems.index(root, WORKS, PROVED if "page.md" not in docstring else ())


SOURCE = "Source: Liu, Talwar 2019, Theorem 3.1 (page 7). More."
MARK = '@pytest.mark.theorem("Liu, Talwar 2019, Theorem 3.1", {})'


def test_a_statement_with_its_tests(theorems, tmp_path):
    entries, wrong = index_of(theorems, tmp_path, docstring=SOURCE, test=MARK.format("exact=True, sharp=True"))
    assert wrong == []
    assert entries == {
        ("Liu, Talwar 2019", "Theorem 3.1"): theorems.Entry(
            used=["bound.py: bound"],
            page="page 7",
            exact=["test_bound.py: test_bound"],
            sharp=["test_bound.py: test_bound"],
        )
    }


@pytest.mark.parametrize(
    ("docstring", "test", "said"),
    [
        (SOURCE, "", "Theorem 3.1: no exact test"),
        (SOURCE, MARK.format("sharp=True"), "Theorem 3.1: no exact test"),
        (SOURCE, MARK.format("exact=True"), "Theorem 3.1: no test fails 1 % lower"),
        (SOURCE, MARK.format("exact=True").replace("3.1", "3.2"), "test_bound.py: no docstring has the source Liu"),
        ("Source: Liu, Talwar 2018, Theorem 3.1.", "", "no work of references.bib"),
        ("Source: the theory page.", "", "no work of references.bib"),
        ("Source: docs/theory/page.md, Theorem 2.", "", "no statement of its page"),
        ("Source: docs/theory/page.md, Theorem 1.", "", "Theorem 1: no exact test"),
        (
            "Source: Liu, Talwar 2019, Theorems 3.1 and 3.3.",
            MARK.format("exact=True, sharp=True"),
            "3.3: no exact test",
        ),
        ("Source: Blackwell 1953; Liu, Talwar 2019, Lemma 4.3.", "", "Lemma 4.3: no exact test"),
    ],
)
def test_what_is_missing_is_said(theorems, tmp_path, docstring, test, said):
    _, wrong = index_of(theorems, tmp_path, docstring=docstring, test=test)
    assert any(said in each for each in wrong), wrong


def test_what_nothing_attains_needs_a_reason_in_place_of_a_sharp_test(theorems, tmp_path):
    _, wrong = index_of(theorems, tmp_path, docstring=SOURCE, test=MARK.format('exact=True, loose="a tail bound"'))
    assert wrong == []
    _, wrong = index_of(theorems, tmp_path, docstring=SOURCE, test=MARK.format('loose="a tail bound"'))
    assert wrong == ["Liu, Talwar 2019, Theorem 3.1: no exact test"]


@pytest.mark.parametrize("docstring", ["Liu, Talwar (2019), Theorem 3.2.", "Theorems 3.1 to 3.2 (Liu, Talwar 2019)."])
def test_a_statement_that_is_named_needs_an_entry_or_an_exception(theorems, tmp_path, docstring):
    with_source = f"{SOURCE} {docstring}"
    test = MARK.format("exact=True, sharp=True")
    _, wrong = index_of(theorems, tmp_path, docstring=with_source, test=test)
    assert wrong == ["bound.py names Theorem 3.2, which has no entry"]
    exceptions = {("bound.py", "Theorem 3.2"), ("bound.py", "Theorem 3.3")}
    _, wrong = theorems.index(tmp_path, WORKS, exceptions | {("docs/theory/page.md", "Theorem 1")})
    assert wrong == ["bound.py, Theorem 3.3: the exception is not needed"]


def test_a_work_alone_and_a_theorem_of_a_page_need_an_exception(theorems, tmp_path):
    _, wrong = index_of(theorems, tmp_path, docstring="Source: Liu, Talwar 2019.", test="")
    _, ours = theorems.index(tmp_path, WORKS, ())
    assert wrong == ["bound.py names Liu, Talwar 2019, which has no entry"]
    assert ours == [*wrong, "docs/theory/page.md names Theorem 1, which has no entry"]


def test_a_source_may_go_over_lines_and_name_a_work_alone(theorems):
    text = "Source: Clopper,\n    Pearson 1934 (the limits); Ding et al. 2018; Liu, Talwar 2019, Lemma A.4. End"
    assert list(theorems.cited(text)) == [
        ("Clopper, Pearson 1934", "", ""),
        ("Ding et al. 2018", "", ""),
        ("Liu, Talwar 2019", "Lemma A.4", ""),
    ]


# -- citations outside source sentences


def supported(theorems, root, docstring, held):
    """What is wrong with the citations of a library of one function, which has an entry of its own elsewhere."""
    file = root / "src" / "dpselect" / "privacy" / "bound.py"
    file.parent.mkdir(parents=True)
    file.write_text(f'def bound():\n    """{docstring}"""\n')
    (root / "tests").mkdir()
    (root / "tests" / "test_bound.py").write_text("class TestBound:\n    def test_bound(self): ...\n")
    entry = theorems.Entry(used=["privacy/other.py: other"])
    return theorems.citations_without_support(root, {("Liu, Talwar 2019", "Theorem 3.1"): entry}, held)


@pytest.mark.parametrize(
    ("docstring", "what"),
    [
        ("The best (Liu, Talwar 2019).", "Liu, Talwar 2019"),
        ("The best (Liu, Talwar 2019, Section 4).", "Liu, Talwar 2019"),
        ("After Liu and Talwar (2019).", "Liu, Talwar 2019"),
        ("After Hartmann et al. 2022.", "Hartmann et al. 2022"),
        ("After Hartmann, Bindschaedler, Bentkamp, West (2022), Theorem 7.", "Hartmann et al. 2022, Theorem 7"),
        ("The best (Liu, Talwar 2019, Theorem 3.2).", "Liu, Talwar 2019, Theorem 3.2"),
        ("After Liu, Talwar 2019, Theorems 3.1 and 3.9.", "Liu, Talwar 2019, Theorem 3.9"),
        ("The best (Liu,\n    Talwar 2019).", "Liu, Talwar 2019"),
        ("After Nobody, Else 1901.", "Nobody, Else 1901"),
    ],
)
def test_a_citation_needs_an_entry_or_what_holds_it(theorems, tmp_path, docstring, what):
    wrong = supported(theorems, tmp_path, docstring, {})
    assert wrong == [f"privacy/bound.py cites {what}: no entry, and nothing that holds it"]


def test_a_statement_with_an_entry_needs_nothing_else(theorems, tmp_path):
    assert supported(theorems, tmp_path, "After Liu and Talwar (2019), Theorem 3.1. Days of 1970.", {}) == []


@pytest.mark.parametrize(
    ("reason", "wrong"),
    [
        ("entry: Liu, Talwar 2019, Theorem 3.1", False),
        ("entry: Liu, Talwar 2019, Theorem 3.2", True),
        ("test: test_bound.py: test_bound", False),
        ("test: test_bound.py: test_boun", True),
        ("test: test_no.py: test_bound", True),
        ("no price: a definition", False),
        ("no price: ", True),
        ("it is known", True),
    ],
)
def test_what_holds_a_citation_is_there(theorems, tmp_path, reason, wrong):
    found = supported(theorems, tmp_path, "The best (Liu, Talwar 2019).", {CITED_ALONE: reason})
    assert found == ([f"{', '.join(CITED_ALONE)}: there is no such thing: {reason}"] if wrong else [])


def test_what_holds_no_citation_goes(theorems, tmp_path):
    found = supported(theorems, tmp_path, "The best.", {CITED_ALONE: "no price: a definition"})
    assert found == [f"{', '.join(CITED_ALONE)}: nothing needs to hold it"]
