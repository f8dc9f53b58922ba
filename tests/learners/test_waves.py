"""Waves of columns: the images of `Cosines`, their norm, missing cells and indicators, each row by itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpselect.learners.encoding import TableEncoding
from dpselect.learners.waves import cosines
from dpselect.preprocessing import Cosines

FACTS = {"bounds": [(-1, 1), (0, 4)], "indicators": [[1, 3]]}


def images(cells, waves=4, **facts):
    return cosines(TableEncoding(**facts).encoded(np.array(cells, dtype=np.float64)), waves)


def test_images_are_waves_of_each_number_by_hand():
    weight = 1.2 / math.sqrt(sum(1 / k**2 for k in range(1, 5)))
    x = 0.3 * math.pi / 2
    expected = [math.sin(x), math.cos(2 * x) / 2, math.sin(3 * x) / 3, math.cos(4 * x) / 4]
    (found,) = images([[0.3] * 50])
    assert found == pytest.approx(np.tile(expected, 50) * weight / math.sqrt(50), abs=2**-14)


def test_images_are_those_of_the_public_map():
    random = np.random.default_rng(1)
    cells = random.normal(size=(60, 4))
    cells[random.random(cells.shape) < 0.2] = np.nan
    assert np.array_equal(Cosines(waves=3, **FACTS).fit_transform(cells), images(cells, 3, **FACTS))


@pytest.mark.parametrize("waves", [1, 4, 9])
def test_no_image_is_longer_than_one_and_each_is_of_its_row_alone(waves):
    random = np.random.default_rng(2)
    cells = random.choice([-np.inf, -1.0, 0.0, 0.5, 1.0, 4.0, np.nan], (200, 4))
    found = images(cells, waves, **FACTS)
    assert np.max(np.sum(np.square(found), axis=1)) <= 1, "exact: all are multiples of a power of two"
    assert np.array_equal(found, np.vstack([images(cells[[k]], waves, **FACTS) for k in range(200)]))


def test_missing_cells_are_zeros_and_indicators_stay():
    (found,) = images([[np.nan, 1.0, np.nan, 0.0]], **FACTS)
    assert found[:8].tolist() == [0] * 8
    assert found[8] > 0.5
    assert found[9] == 0
