"""Every picture of the examples, and the eight of a page, can be drawn and says what it shows."""

import ast
import re

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from tests.root import ROOT

PICTURES = ROOT / "docs" / "gallery"
# the first takes the least time
NAMES = ["reusable_holdout"]
NAMES += sorted({each.stem for each in PICTURES.glob("*.py")} - {"printed", *NAMES})


def test_every_example_has_a_picture():
    """Those with cells draw one themselves; see tests/docs/test_notebooks.py."""
    cells = {each.stem for each in (ROOT / "examples").glob("*.py") if "\n# %%\n" in each.read_text(encoding="utf-8")}
    assert set(NAMES) | cells == {each.stem for each in (ROOT / "examples").glob("*.py")}


@pytest.mark.parametrize("name", NAMES)
def test_pictures_have_words_for_those_who_cannot_see_them(name):
    words = ast.get_docstring(ast.parse((PICTURES / f"{name}.py").read_text(encoding="utf-8")))
    assert 60 < len(" ".join(words.split())) < 260


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", NAMES)
def test_pictures_are_drawn(name, monkeypatch):
    """Something between labelled axes."""
    if name == "optuna_space":
        pytest.importorskip("optuna")
    mpl.use("Agg")
    for folder in (PICTURES, ROOT / "examples"):
        monkeypatch.syspath_prepend(str(folder))
    script = PICTURES / f"{name}.py"
    try:
        exec(compile(script.read_text(encoding="utf-8"), str(script), "exec"), {"__name__": "plot"})
        axes = plt.gca()
        assert axes.get_xlabel() or axes.get_xticklabels()
        assert len(axes.lines) + len(axes.collections) + len(axes.patches) > 0
        assert all("nan" not in str(line.get_ydata()) for line in axes.lines)
    finally:
        plt.close("all")


EIGHT = re.findall(
    r"^## ([^\n]*)\n\n([^#`]+)\n\n```{plot} ([^\n]*)\n:code:\n(.*?)^```$",
    (ROOT / "docs/how-to/pictures.md").read_text(encoding="utf-8"),
    flags=re.M | re.S,
)


def test_there_are_eight_with_words():
    assert len(EIGHT) == 8
    for _, sentences, words, _ in EIGHT:
        assert 50 < len(sentences) < 260
        assert 60 < len(words) < 260


@pytest.mark.full
@pytest.mark.parametrize(("title", "code"), [(title, code) for title, _, _, code in EIGHT])
def test_each_of_the_eight_is_drawn(title, code, monkeypatch):
    """Only what is true may be on the page, so the picture of agents says what the gate accepts."""
    mpl.use("Agg")
    monkeypatch.chdir(ROOT)
    try:
        exec(compile(code, title, "exec"), {"__name__": "plot"})
        axes = plt.gca()
        assert axes.get_xlabel()
        assert len(axes.lines) + len(axes.patches) > 0
        if "agents" in title:
            assert axes.get_title() == "the gate accepts 0 of 300 ideas, the useful one: yes"
    finally:
        plt.close("all")
