"""Notebooks of the documentation: scripts in cells, run by the build; and the site's folders, one a version."""

import importlib
import json
import os
import runpy
import sys
from pathlib import Path

import pytest

from tests.root import ROOT

DOCS = ROOT / "docs"
SCRIPT = '''"""A title."""

# %% [markdown]
# # Words
#
# More.

# %%
import os
import sys

import matplotlib.pyplot as plt

x = 1
print(x, sys.argv[1:], os.environ["XDG_STATE_HOME"] == os.getcwd())

# %% [markdown]
# A line that rises.

# %%
plt.plot([x, 2])
plt.show()
'''


@pytest.fixture
def notebooks(monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(DOCS / "extensions"))
    return importlib.import_module("notebooks")


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def test_cells_are_run_one_after_the_other(notebooks, script):
    """In quick mode, in a folder of their own; nothing of it stays."""
    before = sys.argv, dict(os.environ), Path.cwd()
    words, first, more, second = notebooks.run(script)
    assert (words.text, more.text) == ("# Words\n\nMore.", "A line that rises.")
    assert first.printed == "1 ['--quick'] True"
    assert [len(each.figures) for each in (words, first, more, second)] == [0, 0, 0, 1]
    assert [said for _, said in notebooks.figures(script)] == ["A line that rises."]
    assert (sys.argv, dict(os.environ), Path.cwd()) == before


def test_the_page_has_words_code_and_what_was_printed(notebooks, script):
    page = "\n\n".join(notebooks.markdown(script))
    assert page.startswith("# Words\n\n")
    assert "```python\nplt.plot([x, 2])\nplt.show()\n```" in page
    assert ":class: printed\n\n1 ['--quick'] True\n```" in page
    assert 'aria-label="A line that rises."><svg' in page


def test_the_same_for_jupyter(notebooks, script):
    found = json.loads(json.dumps(notebooks.jupyter(script)))
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)
    assert [cell["cell_type"] for cell in found["cells"]] == ["markdown", "code", "markdown", "code"]
    assert found["cells"][1]["outputs"][0]["text"] == "1 ['--quick'] True\n"
    assert "<svg" in found["cells"][3]["outputs"][0]["data"]["image/svg+xml"]
    assert len({cell["id"] for cell in found["cells"]}) == 4


def test_what_goes_wrong_in_a_cell_is_raised(notebooks, tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("# %%\n1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        notebooks.run(wrong)


def test_every_script_in_cells_has_a_page(notebooks):
    """What it does is held by tests/docs/test_examples.py."""
    examples = DOCS.parent / "examples"
    in_cells = {each.stem for each in examples.glob("*.py") if any(notebooks.cells(each.read_text(encoding="utf-8")))}
    pages = {each: notebooks.PAGE.match(each.read_text(encoding="utf-8")) for each in (DOCS / "notebooks").glob("*.md")}
    assert {found[1] for found in pages.values()} == {page.stem for page in pages} == in_cells


PUBLISH = runpy.run_path(str(DOCS / "publish.py"))


def test_versions_lie_beside_each_other(tmp_path):
    built, pages = tmp_path / "built", tmp_path / "pages"
    (built / ".doctrees").mkdir(parents=True)
    (built / "objects.inv").write_text("")
    (built / "index.html").write_text("first")
    pages.mkdir()
    assert PUBLISH["publish"](built, pages, "dev") == ["dev"]
    assert 'url=dev/"' in (pages / "index.html").read_text()
    (built / "index.html").write_text("second")
    for version in ("v0.9.0", "v0.10.0", "v0.10.1", "dev"):
        names = PUBLISH["publish"](built, pages, version)
    assert names == json.loads((pages / "versions.json").read_text()) == ["0.10", "0.9", "dev"]
    assert 'url=0.10/"' in (pages / "index.html").read_text()
    assert (pages / "dev" / "index.html").read_text() == "second"
    assert not (pages / "dev" / ".doctrees").exists()


def test_a_version_that_is_none_is_refused():
    with pytest.raises(SystemExit, match=r"VERSION must be dev or a tag such as v0\.2\.0"):
        PUBLISH["folder_of"]("../0.2")
