"""Fragments of the changelog are as changes/README.md says, and a release archives them."""

import datetime
import importlib.util
import re

import pytest

from tests.root import ROOT

FOLDER = ROOT / "changes"
_spec = importlib.util.spec_from_file_location("collect_changes", FOLDER / "collect.py")
collect = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(collect)


def test_the_fragments_of_the_project_are_valid():
    collect.section(collect.fragments(FOLDER), "Not in the changelog yet")
    for record in (FOLDER / "archive").iterdir():
        if record.is_dir():
            assert any(collect.fragments(record).values())


def test_a_version_has_few_lines_and_the_files_that_it_names():
    text = collect.CHANGELOG.read_text(encoding="utf-8")
    sections = text.split("\n## ")[1:]
    assert max(section.count("\n") for section in sections) <= 150
    for name in re.findall(r"`(changes/archive/[^`]*)`|\]\(([^)#:]+)\)", text):
        assert (ROOT / "".join(name)).exists()


def test_a_release_archives_its_fragments_and_dates_its_section(tmp_path):
    (tmp_path / "README.md").write_text("not a fragment")
    (tmp_path / "new-law.added.md").write_text("A law.\nWith two lines.\n")
    (tmp_path / "tighter.privacy.md").write_text("The bound of x is tighter.\nOld: epsilon 1.2; new: 1.1.\n")
    changelog = tmp_path / "CHANGELOG"
    changelog.write_text("# Changelog\n\n## 0.2.0 (unreleased)\n\n- all\n")
    day = datetime.date(2027, 1, 2)
    with pytest.raises(collect.FragmentError, match="--archive"):
        collect.release(tmp_path, changelog, "0.2.0", day)
    assert collect.archive(tmp_path, "0.2.0") == ["new-law.added.md", "tighter.privacy.md"]
    assert (tmp_path / "archive/0.2.0/new-law.added.md").read_text() == "A law.\nWith two lines.\n"
    assert [path.name for path in tmp_path.glob("*.md")] == ["README.md"]
    with pytest.raises(collect.FragmentError, match=r"0\.3\.0 \(unreleased\)"):
        collect.release(tmp_path, changelog, "0.3.0", day)
    collect.release(tmp_path, changelog, "0.2.0", day)
    assert changelog.read_text() == "# Changelog\n\n## 0.2.0 (2027-01-02)\n\n- all\n"


def test_fragments_are_shown_with_privacy_first(tmp_path):
    (tmp_path / "new-law.added.md").write_text("A law.\nWith two lines.\n")
    (tmp_path / "tighter.privacy.md").write_text("The bound of x is tighter.\nOld: epsilon 1.2; new: 1.1.\n")
    assert collect.section(collect.fragments(tmp_path), "0.2.0") == (
        "## 0.2.0\n\n### Privacy\n\n- The bound of x is tighter.\n  Old: epsilon 1.2; new: 1.1.\n\n"
        "### Added\n\n- A law.\n  With two lines.\n"
    )


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
