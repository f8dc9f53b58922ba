"""Fates of cells: each row has one, by its own cell, so one more row changes one count by one."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.tables.fates import (
    ABOVE,
    BELOW,
    FATES,
    INSIDE,
    MISSING,
    NO_FATES,
    UNREADABLE,
    block_fates,
    is_missing_text,
    lost_fates,
    number_fates,
    tally,
    text_fates,
)


def test_names_are_in_the_order_of_their_numbers():
    named = [FATES[fate] for fate in (INSIDE, BELOW, ABOVE, MISSING, UNREADABLE)]
    assert named == ["inside", "below", "above", "missing", "unreadable"]
    assert tally(np.array([4, 0, 4], dtype=np.int8)).tolist() == [1, 0, 0, 0, 2]
    assert not NO_FATES.any()
    assert not NO_FATES.flags.writeable


def test_bounds_belong_to_the_inside():
    cells = np.array([0.0, 5.0, np.nextafter(0.0, -1.0), np.nextafter(5.0, 6.0), np.nan, np.inf, -np.inf])
    assert number_fates(cells, 0.0, 5.0).tolist() == [INSIDE, INSIDE, BELOW, ABOVE, MISSING, ABOVE, BELOW]
    present = np.array([False] * 7)
    assert number_fates(cells, 0.0, 5.0, present).tolist() == [MISSING] * 7


def test_bounds_of_short_floats_are_rounded_as_their_cells_are():
    """The float32 nearest to 0.1 is above the float64, and is not beyond the bound 0.1."""
    assert number_fates(np.array([0.1], dtype=np.float32), 0.0, 0.1).tolist() == [INSIDE]
    assert number_fates(np.array([np.inf], dtype=np.float32), 0.0, 1e300).tolist() == [INSIDE]


@pytest.mark.parametrize(
    ("low", "high", "fates"),
    [
        (-3.5, 3.5, [BELOW, INSIDE, INSIDE, ABOVE]),
        (-4, 4, [INSIDE] * 4),
        (-3, 3, [BELOW, INSIDE, INSIDE, ABOVE]),
        (-128, 127, [INSIDE] * 4),
        (-1000, 1000, [INSIDE] * 4),
        (128, 1000, [BELOW] * 4),
        (-1000, -129, [ABOVE] * 4),
    ],
)
def test_integers_under_bounds_between_and_beyond_them(low, high, fates):
    assert number_fates(np.array([-4, -3, 3, 4], dtype=np.int8), low, high).tolist() == fates


def test_a_bound_may_be_the_end_of_the_type():
    ends = np.array([-128, -127, 126, 127], dtype=np.int8)
    assert number_fates(ends, 127, 127).tolist() == [BELOW, BELOW, BELOW, INSIDE]
    assert number_fates(ends, -128, -128).tolist() == [INSIDE, ABOVE, ABOVE, ABOVE]


def test_time_stamps_by_their_ticks():
    days = np.array(["1970-01-01", "1970-01-11", "NaT"], dtype="M8[D]")
    assert number_fates(days, 1, 10).tolist() == [BELOW, INSIDE, MISSING]
    assert number_fates(days, 0, 9).tolist() == [INSIDE, ABOVE, MISSING]


def test_cells_that_say_that_they_are_missing():
    assert all(map(is_missing_text, ["", " ", "NaN", "#N/A", "<NA>", "null", None, np.nan, np.datetime64("NaT")]))
    assert not any(map(is_missing_text, ["0", "unknown", "-", 0, False]))


def test_categories_and_lost_cells():
    assert text_fates(["a", "x", "na"], np.array([0, -1, -1])).tolist() == [INSIDE, UNREADABLE, MISSING]
    fates = np.array([INSIDE, MISSING, MISSING], dtype=np.int8)
    assert lost_fates(fates, ["oops", "oops", "na"]).tolist() == [INSIDE, UNREADABLE, MISSING]
    assert fates.tolist() == [INSIDE, MISSING, MISSING]
    assert lost_fates(fates, ["oops", "oops", "na"], lambda cell: cell == "oops").tolist() == [INSIDE, MISSING, 4]


def test_blocks_are_counted_and_read_again_for_missing_cells_alone():
    blocks = [(np.array([1.0, np.nan]), None), (np.array([9, 0]), np.array([True, False]))]
    cells = [["1", "x"], ["9", ""]]
    readings = []

    def written():
        readings.append(1)
        return zip(blocks, cells, strict=True)

    assert block_fates(lambda: iter(blocks), 0, 5).tolist() == [1, 0, 1, 2, 0]
    assert block_fates(lambda: iter(blocks), 0, 5, written).tolist() == [1, 0, 1, 1, 1]
    assert block_fates(lambda: iter(blocks[:1] * 0), 0, 5, written).tolist() == [0] * 5
    assert len(readings) == 1
