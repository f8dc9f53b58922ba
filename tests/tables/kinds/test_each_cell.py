"""Cells are read one by one: no cell makes it fail, and equal texts are read once."""

from __future__ import annotations

import numpy as np

from dpselect.tables.kinds.each_cell import column_of, each_cell, reading, text_of


class Hostile:
    def __float__(self):
        raise MemoryError

    def __len__(self):
        raise RuntimeError


def test_a_cell_that_raises_is_missing():
    found = each_cell([" 1.5 ", b"2", "x", None, Hostile(), 3], float)
    np.testing.assert_array_equal(found, [1.5, 2.0, np.nan, np.nan, np.nan, 3.0])
    assert found.dtype == np.float64
    assert reading(int, -1)("x") == -1


def test_equal_texts_are_read_once():
    seen = []
    read = reading(lambda cell: seen.append(cell) or len(seen), 0)
    assert [read(cell) for cell in ("a", " a", b"a ", "b", 7, 7)] == [1, 1, 1, 2, 3, 4]
    assert seen == ["a", "b", 7, 7]


def test_bytes_are_text_without_outer_blanks():
    assert [text_of(cell) for cell in (b" a\xff ", "\tb c\n", 5)] == ["a\ufffd", "b c", 5]


def test_cells_of_a_list_stay_what_they_are():
    cells = column_of([1, "1", [2, 3]])
    assert cells.dtype == object
    assert cells.tolist() == [1, "1", [2, 3]]
    numbers = np.arange(3)
    assert column_of(numbers) is numbers
