"""Fragments of the changelog are as changes/README.md says, and a release puts them on top."""

import datetime
import importlib.util

import pytest

from tests.root import ROOT

FOLDER = ROOT / "changes"
_spec = importlib.util.spec_from_file_location("collect_changes", FOLDER / "collect.py")
collect = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(collect)


def test_the_fragments_of_the_project_are_valid():
    collect.section(collect.fragments(FOLDER), "Unreleased")


def test_a_release_has_privacy_first_and_removes_the_fragments(tmp_path):
    (tmp_path / "README.md").write_text("not a fragment")
    (tmp_path / "new-law.added.md").write_text("A law.\nWith two lines.\n")
    (tmp_path / "tighter.privacy.md").write_text("The bound of x is tighter.\nOld: epsilon 1.2; new: 1.1.\n")
    changelog = tmp_path / "CHANGELOG"
    changelog.write_text("# Changelog\n\nWords.\n\n## 0.1.0\n\n- all\n")
    collect.release(tmp_path, changelog, "0.2.0", datetime.date(2027, 1, 2))
    assert changelog.read_text() == (
        "# Changelog\n\nWords.\n\n## 0.2.0 (2027-01-02)\n\n"
        "### Privacy\n\n- The bound of x is tighter.\n  Old: epsilon 1.2; new: 1.1.\n\n"
        "### Added\n\n- A law.\n  With two lines.\n\n## 0.1.0\n\n- all\n"
    )
    assert [path.name for path in tmp_path.glob("*.md")] == ["README.md"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bound.privacy.md", "A bound changed."),
        ("bound.improved.md", "No such category."),
        ("bound.md", "No category."),
        ("bound.added.md", "- a dash"),
        ("bound.added.md", " \n"),
    ],
)
def test_wrong_fragments_are_named(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(collect.FragmentError, match=name):
        collect.fragments(tmp_path)
