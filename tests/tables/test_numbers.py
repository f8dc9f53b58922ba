"""Numbers in text: decimal commas, digits of all scripts, and the fast reading."""

import numpy as np
import pytest

from dpselect.tables.numbers import number_in, numbers_in, restated


def test_the_fast_reading_is_the_slow_one():
    cells = ["1", " 2.5 ", "-3e2", "inf", "1e400", "0.1000000000000000055511151231257827", "-0"]
    assert numbers_in(cells).tobytes() == np.array([number_in(cell) for cell in cells]).tobytes()
    mixed = [*cells, "TRUE", "x", "", "1_0"]
    np.testing.assert_array_equal(numbers_in(mixed), [number_in(cell) for cell in mixed])


@pytest.mark.parametrize(
    "cell", ["1.994,5", "-0,1", "1.234", "12.34", "7", ",5", "5,", "1e3", "1,5e-3", "x", "", "inf"]
)
def test_a_restated_cell_is_the_same_number(cell):
    (found,) = restated([cell], ",", ".", strict=True)
    np.testing.assert_array_equal(number_in(found), number_in(cell, ",", "."))


def test_digits_of_all_scripts_count_with_a_decimal_comma_too():
    assert number_in("\uff11\uff12", ",") == number_in("\uff11\uff12") == 12.0
    assert number_in("\u0661.\u0662\u0663\u0664,5", ",", ".") == 1234.5


def test_digits_of_a_date_are_no_number_that_separators_change():
    cells = ["20240102", "1.234,5", "9007199254740993", "1,5", "x"]
    assert restated(cells, ",", ".", strict=False) == ["20240102", "1234.5", "9007199254740993", "1.5", "x"]
