"""The page of study files lists every name that a study can use, as the code has them."""

import subprocess
import sys

import pytest

from tests.root import ROOT

DOCS = ROOT / "docs"
LISTED = """
from dpselect.preprocessing import MAPS
from dpselect.repetitions.by_name import law_names
from dpselect.study.columns.kind import KINDS
from dpselect.study.learners import LEARNERS
from dpselect.study.metrics import METRICS
from dpselect.tables import SOURCES
print(*MAPS, *law_names(), *KINDS, *LEARNERS, *METRICS, *SOURCES)
"""
GENERATOR = DOCS / "extensions" / "study_names.py"


def said(*arguments):
    """By a process of its own: tests of this one add names."""
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.full
def test_the_page_is_as_the_code_is():
    found = said(str(GENERATOR), "--check")
    assert found.returncode == 0, found.stderr


@pytest.mark.full
def test_every_name_is_on_the_page():
    page = (DOCS / "reference/study-file.md").read_text(encoding="utf-8")
    names = said("-c", LISTED).stdout.split()
    assert len(names) > 30
    assert [name for name in names if f"`{name}`" not in page] == []


@pytest.mark.full
def test_a_page_that_is_behind_is_found(tmp_path):
    page = (
        (DOCS / "reference/study-file.md")
        .read_text(encoding="utf-8")
        .replace("| `momentum` | `0.0` |", "| `momentum` | `0.1` |")
    )
    (tmp_path / "extensions").mkdir()
    (tmp_path / "study-file.md").write_text(page, encoding="utf-8")
    copied = tmp_path / "extensions" / GENERATOR.name
    copied.write_text(GENERATOR.read_text(encoding="utf-8"), encoding="utf-8")
    assert said(str(copied), "--check").returncode == 1
