"""Lists and arrays of objects: a type that no row decides, and cells that are clipped or missing, never an error."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpselect.numerics.moments import FIRST
from dpselect.tables.plain_lists import (
    LARGEST,
    cells_as,
    doubles_in,
    floor,
    hardly_any,
    typed,
    whole_as,
    whole_cells,
    whole_or_zero,
    with_presence,
)


def test_less_than_a_tenth_is_hardly_any():
    assert [hardly_any(1, 9), hardly_any(1, 10), hardly_any(0, 1), hardly_any(0, 0)] == [False, True, True, False]


def test_lists_hold_doubles():
    for values in ([], [1], [True, None], (2, 3.5)):
        assert typed(values).dtype == np.float64
    np.testing.assert_array_equal(typed([1, None, 10**400, "1", "x"]), [1, np.nan, np.inf, 1, np.nan])
    assert typed(np.array([1, 2])).dtype == np.int64
    with pytest.raises(TypeError, match="a list must hold numbers"):
        typed(["a", "b"])
    assert np.isnan(doubles_in(["1"] + ["x"] * 9, name="v", what="")[1:]).all()
    with pytest.raises(TypeError, match="v: no;"):
        doubles_in(["1"] + ["x"] * 10, name="v", what="no")


def test_objects_hold_integers():
    cells = [1, 2.0, Decimal(3), Fraction(8, 2), np.bool_(True), "5", 2.5, None, math.inf, np.timedelta64(1, "s")]
    whole, present = whole_or_zero(cells)
    assert whole.tolist() == [1, 2, 3, 4, 1, 5, 0, 0, 0, 0]
    assert present.tolist() == [True] * 6 + [False] * 4
    assert whole_cells([*range(9), 0.5])[1].tolist() == [True] * 9 + [False]  # one row decides nothing
    assert whole_cells([*range(18), 0.5, 0.5])[1].sum() == 18
    with pytest.raises(TypeError, match="must be integers"):
        whole_cells([*range(17), 0.5, 0.5])


def test_presence():
    values, present = with_presence(np.array([[1.0, np.nan]]), name="v")
    assert present.tolist() == [[True, False]]
    values, present = with_presence(np.array([[7, None]], dtype=object), name="v")
    assert (values.tolist(), present.tolist()) == ([[7, 0]], [[True, False]])


def test_cells_as_values_of_a_type():
    cells = ["300", -1, 2.5, "x", None, 1e400]
    values, present = cells_as(cells, np.dtype("u1"))
    assert (values.tolist(), present.tolist()) == ([255, 0, 2, 0, 0, 255], [True, True, True, False, False, True])
    values, present = cells_as([0, 1, None], np.dtype("f8"))
    assert (values[:2].tolist(), present.tolist()) == ([0.0, 1.0], [True, True, False])
    values, present = cells_as(["1970-01-03", "x", None], np.dtype("M8[D]"))
    assert values.view(np.int64).tolist() == [2, FIRST - 1, FIRST - 1]
    assert present.tolist() == [True, False, False]
    assert np.isnat(values).tolist() == [False, True, True]


def test_integers_are_clipped_to_their_type():
    assert whole_as([LARGEST, -LARGEST, 5], np.dtype("i2")).tolist() == [32767, -32768, 5]
    assert whole_as([LARGEST], np.dtype(object)).tolist() == [LARGEST]
    assert [floor(value) for value in (2.9, -2.1, math.nan, math.inf, -math.inf)] == [2, -3, 0, LARGEST, -LARGEST]
