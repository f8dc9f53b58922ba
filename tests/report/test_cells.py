"""Counts of cells in words: which columns are named, and why a model is withheld."""

from dpselect.report.cells import cells_in_words, withheld_in_words

NONE = {"below": 0, "above": 0, "missing": 0, "unreadable": 0}
CELLS = {
    "margin_95": 10,
    "epsilon": 0.12341,
    "withheld": [],
    "most_unreadable": 0.05,
    "columns": {
        "age": {**NONE, "below": 11, "unreadable": 10},
        "grade": {**NONE, "unreadable": 300},
        "day": {**NONE, "above": 10},
        "y": NONE,
    },
}
RELEASE = {
    "found": True,
    "cells": CELLS,
    "data": {"label": "y", "label_bounds": None, "columns": {"age": {"bounds": [0, 9]}, "day": {"bounds": [0, 1]}}},
}


def test_columns_above_the_margin_are_named_and_others_are_counted():
    assert list(cells_in_words(RELEASE)) == [
        "Cells of age: about 11 below the bounds and clipped.",
        "Cells of grade: about 300 none of its classes or categories.",
        "In 2 other columns no count of lost or clipped cells is above 10.",
        "These counts have noise: all are off by at most 10, 95 % sure. They cost epsilon 0.124 by themselves, within "
        "the total.",
    ]


def test_without_counts_a_found_model_says_its_condition():
    assert list(cells_in_words({})) == []
    assert list(cells_in_words({"cells": None, "found": False})) == []
    (condition,) = cells_in_words({"cells": None, "found": True})
    assert "holds if every cell can be read" in condition


def test_a_withheld_model_names_at_most_twelve_columns():
    assert withheld_in_words(RELEASE) is None
    assert withheld_in_words({"cells": None}) is None
    many = {**CELLS, "withheld": [f"c{place}" for place in range(14)]}
    words = withheld_in_words({"cells": many})
    assert "more than 5 % of the cells" in words
    assert "'c11' and 2 more" in words
    assert "'c12'" not in words
    assert "more, so" not in withheld_in_words({"cells": {**CELLS, "withheld": ["age"]}})
