"""What the documentation site needs and Sphinx does not check; the build itself is a step of `.ci/run`."""

import dataclasses
import importlib
import inspect
import re

import pytest

from tests.root import ROOT

DOCS = ROOT / "docs"
ROOMS = (
    *(
        "accounting",
        "adaptive",
        "ledger",
        "learners",
        "mechanisms",
        "ordered",
        "ordered.interior_points",
        "ordered.slices",
        "preprocessing",
        "privacy",
        "privacy.output",
        "privacy.profile",
    ),
    *("repetitions", "selection", "tuning"),
)


def test_every_page_is_in_the_index():
    listed = set()
    for index in ("index.md", "how-to/index.md", "explanation/index.md", "reference/index.md", "api/index.md"):
        text = (DOCS / index).read_text(encoding="utf-8")
        for block in re.findall(r"^```{toctree}\n(.*?)^```", text, flags=re.M | re.S):
            listed |= {
                str(path.resolve().relative_to(DOCS.resolve())).removesuffix(".md")
                for line in block.split("\n")
                if line.strip() and not line.startswith(":")
                for path in (DOCS / index).parent.glob(f"{line}.md")
            }
    pages = {str(path.relative_to(DOCS)).removesuffix(".md") for path in DOCS.rglob("*.md")} - {"index"}
    assert pages == listed


def how_to_pages():
    text = (DOCS / "how-to/index.md").read_text(encoding="utf-8")
    names = [
        line for block in re.findall(r"^```{toctree}\n(.*?)^```", text, flags=re.M | re.S) for line in block.split()
    ]
    return sorted(
        name for name in names if name != "gallery" and (DOCS / "how-to" / f"{name}.md").exists() and "/" not in name
    )


@pytest.mark.parametrize("name", how_to_pages())
def test_a_how_to_page_begins_with_words_and_ends_with_the_next_step(name):
    title, first, *_, last = (DOCS / "how-to" / f"{name}.md").read_text(encoding="utf-8").strip().split("\n\n")
    assert title.startswith("# ")
    assert first[0] not in "#|$", first
    assert not first.startswith(("```", "`pip")), first  # what one gets comes before what one types
    assert last.startswith("**Next**: "), last
    assert re.search(r"\]\([\w./-]+\.md(#[\w-]+)?\)", last), last


def test_every_extra_is_on_the_page_of_what_is_installed():
    tomllib = importlib.import_module("tomllib")
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (DOCS / "how-to/installation.md").read_text(encoding="utf-8")
    table = text[text.index("## Extras") :]
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", table, flags=re.M))))
    assert named == set(project["optional-dependencies"]) - {"docs", "test", "dev", "benchmark", "peers"}


def test_sizes_of_what_is_installed(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(DOCS.parent))
    sizes = importlib.import_module("benchmarks.sizes")
    base, _ = sizes.all_of(sizes.required("dpselect"))
    assert {"numpy", "scipy", "cryptography", "mdurl"} <= base
    assert "pyarrow" not in base
    assert sizes.size("mdurl") > 1000


def names_of_the_library():
    """Public names, their attributes, and the names of their parameters."""
    known = set()
    for room in ROOMS:
        module = importlib.import_module(f"dpselect.{room}")
        for name in getattr(module, "__all__", vars(module)):
            value = getattr(module, name)
            known.add(name)
            for owner in (
                (value, getattr(value, "__init__", None), *vars(value).values())
                if isinstance(value, type)
                else (value,)
            ):
                owner = owner.fget if isinstance(owner, property) else owner
                known |= set(getattr(getattr(inspect.unwrap(owner), "__code__", None), "co_varnames", ()))
            if isinstance(value, type):
                known |= set(dir(value)) | set(getattr(value, "__annotations__", ()))
    return known


def test_the_notation_table_names_what_exists():
    text = (DOCS / "reference/notation.md").read_text(encoding="utf-8")
    # the last ones are variables of the examples
    known = names_of_the_library() | {"dpselect", "add_or_remove_one", "replace_one"}
    known |= {"candidate", "random", "output", "score", "value", "law", "analysis", "guarantee", "budget", "profile"}
    unknown = {
        name
        for code in re.findall(r"`([^`]+)`", text)
        for name in re.findall(r"[A-Za-z_]\w*", re.sub(r"\"[^\"]*\"", "", code))
        if name not in known
    }
    assert not unknown


@pytest.mark.full
def test_the_tutorial_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    text = (DOCS / "tutorials/tutorial.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)
    exec(compile("\n".join(blocks), "tutorial.md", "exec"), {"__name__": "tutorial"})
    printed = capsys.readouterr().out.splitlines()
    assert printed[:4] == ["1.061", "3.747", "1.474", "1.493"]
    assert printed[4] == "Cosines(bounds=[(18, 80), (0, 30)])"
    assert float(printed[5]) == pytest.approx(0.933, abs=0.02)
    assert printed[6] == "1.0"
    assert printed.count("refused before anything ran") == 1
    assert printed[-2] == "True"
    assert 47 <= float(printed[-1].split()[0]) <= 51


def test_the_benchmarks_run_resume_and_write_their_page(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS.parent))
    driver = importlib.import_module("benchmarks.__main__")
    page, data = tmp_path / "page.md", tmp_path / "data.json"
    first = driver.main(["--quick", "--only", "sparse vector", "--json", str(data)])
    found = driver.main(
        ["--quick", "--only", "sparse vector", "ledger", "--json", str(data), "--page", str(page), "--resume"]
    )
    assert [question["area"] for question in found["questions"]] == ["sparse vector", "ledger"]
    assert found["questions"][0] == first["questions"][0]  # not measured again
    assert all(min(times) > 0 for question in found["questions"] for times in question["seconds"].values())
    assert "## Ledger" in page.read_text(encoding="utf-8")
    data.write_text(data.read_text().replace('"numpy": "', '"numpy": "0.'))
    with pytest.raises(SystemExit):
        driver.main(["--quick", "--json", str(data), "--resume"])


@pytest.mark.full
def test_the_curves_can_be_run(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS.parent))
    scaling, driver = (importlib.import_module(f"benchmarks.{name}") for name in ("scaling", "__main__"))
    for curve in scaling.curves(quick=True):
        curve.make(curve.at[0])()
    measured = driver.measure_curve(dataclasses.replace(curve, at=curve.at[:1]), 1)
    assert measured["points"][0][1] > 0


def test_a_peer_that_is_not_installed_is_said(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS.parent))
    driver = importlib.import_module("benchmarks.__main__")
    question = importlib.import_module("benchmarks.questions").Question

    def absent():
        raise ModuleNotFoundError("No module named 'peer'")

    found = driver.measure(question("area", "title", {"ours": lambda: lambda: 1, "peer": absent}), 1, [])
    assert "| peer | not installed: No module named 'peer' |" in driver.table(found)


@pytest.mark.parametrize("page", ["explanation/comparison.md"])
def test_versions_of_the_comparison_are_those_installed(page):
    """Where a library is installed here, the page speaks of that version."""
    metadata = importlib.import_module("importlib.metadata")
    text = (DOCS / page).read_text(encoding="utf-8")
    for name, version in re.findall(r"^\| \[([\w-]+)\]\([^)]*\) \| ([\d.]+) \| installed", text, flags=re.M):
        try:
            assert metadata.version(name.lower()) == version, name
        except metadata.PackageNotFoundError:
            continue


def test_the_files_that_the_architecture_names_exist():
    root = DOCS.parent
    text = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    ways = text[text.index("## Four ways") : text.index("## Rules")]
    named = set(re.findall(r"`([\w/]+\.py)`", ways))
    assert len(named) > 30
    below = [
        root / "src" / "dpselect",
        root / "src" / "dpselect" / "study",
        *(root / "src" / "dpselect" / "accounting" / part for part in ("optimal", "best_of_k")),
    ]
    assert [path for path in sorted(named) if not any((folder / path).exists() for folder in below)] == []


@pytest.fixture
def extension(monkeypatch):
    """A module of docs/extensions by its name."""
    pytest.importorskip("latex2mathml")
    pytest.importorskip("myst_parser")
    monkeypatch.syspath_prepend(str(DOCS / "extensions"))
    return importlib.import_module


def test_formulae_are_typeset_or_said(extension):
    formulae = extension("formulae")
    assert "<mfrac>" in formulae.mathml(r"\frac{1}{2}", "inline")
    aligned = formulae.mathml("\\begin{aligned} a &= b \\\\ c &= d \\end{aligned}", "block")
    assert aligned.count("<mtr>") == 2
    assert list(formulae.not_typeset(aligned)) == []
    for unknown in (r"\unknown x", "a & b", r"\mathcal N"):
        assert list(formulae.not_typeset(formulae.mathml(unknown, "inline"))) != []


def test_a_comma_stays_with_the_formula_before_it(extension):
    formulae = extension("formulae")
    nodes = importlib.import_module("docutils.nodes")
    parts = nodes.Text("For "), nodes.math("", "x"), nodes.Text(", and "), nodes.math("", "y")
    paragraph = nodes.paragraph("", "", *parts)
    formulae.keep_together(None, paragraph, "page")
    assert [each.get("after") for each in paragraph.findall(nodes.math)] == [",", None]
    assert paragraph.children[2].astext() == " and "


def test_every_formula_of_every_page_is_typeset(extension):
    formulae = extension("formulae")
    for page in DOCS.rglob("*.md"):
        text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for block, line in re.findall(r"\$\$(.*?)\$\$|\$([^$]+)\$", text, flags=re.S):
            latex = re.sub(r"^> ?", "", block or line, flags=re.M)
            assert list(formulae.not_typeset(formulae.mathml(latex, "inline"))) == [], (page.name, latex)


PAGE = """
> **Theorem 1 (both).** One and one are two.

*Proof.* Count.

Count again. ∎

After it.
"""


def test_statements_and_proofs_are_framed(extension):
    statements = extension("statements")
    core = importlib.import_module("docutils.core")
    parser = importlib.import_module("myst_parser.docutils_")
    nodes = importlib.import_module("docutils.nodes")
    page = core.publish_doctree(PAGE, parser=parser.Parser())
    assert statements.stated(next(page.findall(nodes.block_quote))[0]) == "Theorem 1"
    first = next(each for each in page.findall(nodes.paragraph) if statements.opening(each, nodes.emphasis))
    statements.prove(first)
    assert [node["classes"] for node in page.children if isinstance(node, nodes.container)] == [["proof"]]
    assert page.children[-1].astext() == "After it."


def test_links_lead_to_the_line_of_the_code(extension):
    pages = extension("source_pages")
    file = "tests/docs/test_site.py"
    text = (DOCS.parent / file).read_text(encoding="utf-8").splitlines()
    line = pages.lines_of(file)["test_links_lead_to_the_line_of_the_code"]
    assert text[line - 1].startswith("def test_links_lead")


def test_pages_are_summed_up_by_their_first_sentence(extension):
    core = importlib.import_module("docutils.core")
    parser = importlib.import_module("myst_parser.docutils_")
    page = core.publish_doctree("# Title\n\nOne at\nepsilon 1.5, all of it. Two.\n", parser=parser.Parser())
    assert extension("llms").first_sentence(page) == "One at epsilon 1.5, all of it."


def test_a_guide_for_programs_has_its_code_below_its_titles(extension):
    core = importlib.import_module("docutils.core")
    parser = importlib.import_module("myst_parser.docutils_")
    text = "# Title\n\nFirst words.\n\nMore.\n\n## Part\n\n```python\nx = 1\n```\n\n## Words alone\n\nNo code.\n"
    page = core.publish_doctree(text, parser=parser.Parser(), settings_overrides={"doctitle_xform": False})
    assert extension("llms").short(page) == "## Title\n\nFirst words.\n\n### Part\n\n```\nx = 1\n```"


def test_a_name_for_programs_has_its_arguments_and_what_it_does(extension):
    llms = extension("llms")
    said = llms.said_of("dpselect.privacy", "pure_dp")
    assert said.startswith("- `pure_dp(*, epsilon, adjacency=")
    assert said.endswith(".")
    assert "\n" not in said
    assert llms.said_of("dpselect.privacy", "no_such_name") == ""


def test_the_gallery_has_words_for_every_example(extension):
    words = extension("gallery").words
    for script in (DOCS.parent / "examples").glob("*.py"):
        title, paragraphs = words(script)
        assert 10 < len(title) < 130, script.name
        assert title.endswith((".", "?")), script.name
        assert paragraphs, script.name


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "by hand from commit abc of 2026-01-02"),
        ({"CI": "1"}, "by continuous integration from commit abc of 2026-01-02"),
    ],
)
def test_the_evidence_says_who_built_it(extension, environment, said):
    assert said in extension("last_run").sentence("abc of 2026-01-02", environment)[0]
    assert "without its history" in extension("last_run").sentence("", environment)[0]


def test_the_evidence_links_to_the_run(extension):
    environment = {"CI": "1", "GITHUB_SERVER_URL": "https://host", "GITHUB_REPOSITORY": "a/b", "GITHUB_RUN_ID": "7"}
    assert extension("last_run").sentence("abc", environment)[1] == "https://host/a/b/actions/runs/7"


def test_the_evidence_names_commands_that_exist():
    text = (DOCS / "evidence/index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!claim|---)(.+) \| `([^`]+)` \| (.+) \|$", text, flags=re.M)
    assert len(rows) > 20
    for claim, command, run in rows:
        assert run in ("each commit", "each week", "by hand"), claim
        for file in re.findall(r"(?:tests|benchmarks|examples)/[\w/.]+|\.ci/run", command):
            assert (DOCS.parent / file).exists(), file
        # what measures time or accuracy is no test
        assert (run == "by hand") == command.startswith(("python benchmarks", "python -m benchmarks", "dpselect tune"))


def test_the_picture_of_the_report_is_made_of_the_quickstart_and_small():
    """Its maker takes the first blocks of Python and TOML, and a package index shows no large picture at once."""
    page = (DOCS / "tutorials/quickstart.md").read_text(encoding="utf-8")
    assert re.search(r"^```python\n(.*?)^```$", page, flags=re.M | re.S)[1].startswith("import csv")
    assert re.search(r"^```toml\n(.*?)^```$", page, flags=re.M | re.S)[1].startswith("[data]")
    assert (DOCS / "images/report.png").stat().st_size < 200_000
