"""A public sample of a column: how many of its cells may be lost, and which are shown."""

import pytest

from dpselect.cli.like import check_like
from dpselect.errors import ArgumentError, ContentError
from dpselect.tables import Declared, Written


def check(tmp_path, cells, *, most=0.25, kind="number", categories=()):
    path = tmp_path / "sample.csv"
    path.write_text("x,other\n" + "".join(f"{cell},1\n" for cell in cells))
    check_like(str(path), "x", most=most, categories=categories, declared=Declared(kind=kind), form=Written())


def test_a_share_of_the_cells_may_be_lost_and_missing_cells_do_not_count(tmp_path):
    check(tmp_path, ["1", "2", "3", "a", "", ""])
    with pytest.raises(
        ContentError, match=r"--like: 2 of 5 cells of column 'x' .* \(record 4 has 'a', record 5 has 'b'\)"
    ):
        check(tmp_path, ["1", "2", "3", "a", "b", ""])
    check(tmp_path, ["1", "2", "3", "a", "b"], most=0.4)


def test_at_most_three_cells_are_shown(tmp_path):
    with pytest.raises(ContentError, match="record 3 has 'c'") as refused:
        check(tmp_path, ["a", "b", "c", "d"])
    assert "'d'" not in str(refused.value)


def test_categories(tmp_path):
    check(tmp_path, ["yes", "no", "no", "maybe"], kind="category", categories=["yes", "no"])
    with pytest.raises(ContentError, match=r"none of the categories \(record 2 has 'maybe'\)"):
        check(tmp_path, ["yes", "maybe"], kind="category", categories=["yes", "no"])


def test_a_sample_without_the_column_or_without_a_cell(tmp_path):
    with pytest.raises(ContentError, match="has no cell of column 'x'"):
        check(tmp_path, ["", ""])
    (tmp_path / "other.csv").write_text("y\n1\n")
    with pytest.raises(ArgumentError, match=r"^--like: "):
        check_like(str(tmp_path / "other.csv"), "x", most=0.1, categories=(), declared=Declared(), form=Written())
