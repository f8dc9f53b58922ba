"""Every example has a picture in the gallery of the documentation, which can be drawn and says what it shows."""

import ast

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
