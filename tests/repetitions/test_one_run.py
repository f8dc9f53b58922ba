"""Renyi orders as the closed forms take them."""

from __future__ import annotations

import math

import pytest

from dpselect.errors import ArgumentError
from dpselect.repetitions.one_run import orders_above_one


def test_orders_above_one_are_an_array_of_float64():
    assert orders_above_one(2).tolist() == 2.0
    found = orders_above_one([math.nextafter(1.0, 2.0), 3, math.inf])
    assert found.dtype == float
    assert found.tolist() == [math.nextafter(1.0, 2.0), 3.0, math.inf]


@pytest.mark.parametrize("order", [1.0, [2.0, 0.5], math.nan, [3.0, math.nan]])
def test_other_orders_are_refused(order):
    with pytest.raises(ArgumentError, match="order must be above 1"):
        orders_above_one(order)
