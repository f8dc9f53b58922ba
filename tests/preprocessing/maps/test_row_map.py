"""Every map: norm at most 1 exactly, each row by itself, no cell refused, parameters checked."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.preprocessing import (
    CenteredScale,
    Cosines,
    OrientedGradients,
    PublicBins,
    RowDirection,
)
from tests.preprocessing.maps_cases import ALL, rows


@pytest.mark.parametrize("name", ALL)
def test_every_image_has_norm_at_most_one_exactly(name):
    images = ALL[name].fit_transform(rows(3))
    assert images.dtype == np.float64
    assert np.all(np.isfinite(images))
    for image in images:
        assert sum(Fraction(cell) ** 2 for cell in image.tolist()) <= 1


@pytest.mark.parametrize("name", ALL)
def test_an_image_is_a_function_of_its_row(name):
    table, rows_map = rows(5), ALL[name]
    whole = rows_map.fit(table).transform(table)
    assert np.array_equal(rows_map.fit(rows(6, 4)).transform(table), whole), "nothing is learnt"
    order = np.random.default_rng(1).permutation(len(table))
    assert np.array_equal(rows_map.transform(table[order]), whole[order])
    for place in (0, 2, 7, 150):
        assert np.array_equal(rows_map.transform(table[place : place + 1]), whole[place : place + 1])
    assert np.array_equal(rows_map.transform(np.asfortranarray(table)), whole)
    assert rows_map.transform(table[:0]).shape == (0, whole.shape[1])


@pytest.mark.parametrize("name", ALL)
def test_no_cell_is_refused_and_what_is_no_number_is_missing(name):
    class Odd:
        def __float__(self):
            raise RuntimeError("secret")

    cells = ["x", None, Odd(), [1], "2.5", 10**400, b"", 1, True]
    table = np.array([cells, [1.0] * 9], dtype=object)
    plain = [math.nan, math.nan, math.nan, math.nan, 2.5, math.inf, math.nan, 1.0, 1.0]  # 10**400 as the text 1e400
    with warnings.catch_warnings(action="error"):
        found = ALL[name].fit(table).transform(table)
    assert np.array_equal(found, ALL[name].transform([plain, [1.0] * 9]))


@pytest.mark.parametrize(
    ("rows_map", "named"),
    [
        (CenteredScale(bounds=(1, 1)), "bounds"),
        (CenteredScale(bounds=(0, math.inf)), "bounds"),
        (CenteredScale(bounds="wide"), "bounds"),
        (CenteredScale(bounds=[(0, 1)] * 3), "bounds"),
        (RowDirection(indicators=[[0], [0]]), "indicators"),
        (RowDirection(indicators=[[9]]), "indicators"),
        (RowDirection(indicators=[[]]), "indicators"),
        (RowDirection(indicators=[0]), "indicators"),
        (RowDirection(indicators=[["a"]]), "indicators"),
        (PublicBins(bins=1), "bins"),
        (PublicBins(bins=2.5), "bins"),
        (Cosines(waves=0), "waves"),
        (OrientedGradients(image_shape=(2, 3)), "image_shape"),
        (OrientedGradients(image_shape=4), "image_shape"),
        (OrientedGradients(cell=3), "cell"),
        (OrientedGradients(orientations=1), "orientations"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_by_name(rows_map, named):
    with pytest.raises((ArgumentError, TypeError), match=named):
        rows_map.fit(np.zeros((3, 4)))
