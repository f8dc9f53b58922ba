"""Counts of a column's cells as a quantile prints them."""

from types import SimpleNamespace

from dpselect.cli.cells import cells_in_words, described_cells, withheld_in_words
from dpselect.ordered.order_statistics.cell_counts import CountedCells

FOUND = CountedCells(inside=90, below=-3, above=2, missing=5, unreadable=1)


def test_counts_below_zero_are_shown_as_zero():
    found = described_cells(SimpleNamespace(margin=lambda: 7, epsilon=0.1), FOUND)
    assert found == {
        "inside": 90, "below": 0, "above": 2, "missing": 5, "unreadable": 1, "margin_95": 7, "epsilon": 0.1,
    }  # fmt: skip


def test_the_words_are_those_of_numbers_or_of_categories():
    cells = {**FOUND._asdict(), "margin_95": 7}
    assert cells_in_words(cells, possible=(True, True, True, False, True)) == (
        "cells: 90 within the bounds, -3 below and clipped, 2 above and clipped, 1 unreadable "
        "(each count off by at most 7, 95 % sure)"
    )
    assert cells_in_words(cells, possible=(True, False, False, True, True)) == (
        "cells: 90 one of the categories, 5 missing, 1 none of the categories (each count off by at most 7, 95 % sure)"
    )
    assert "--no-count has not counted the cells" in cells_in_words(None)


def test_a_withheld_answer_says_what_would_help():
    for options, cure in (
        ({"categories": True, "csv": True}, "give every --category"),
        ({"categories": False, "csv": True}, "--true-value"),
        ({"categories": False, "csv": False}, "cast the column in a view"),
    ):
        words = withheld_in_words("age", 0.05, **options)
        assert "more than 5 % of the cells of column 'age'" in words
        assert cure in words
        assert ("none of the categories" in words) == options["categories"]
