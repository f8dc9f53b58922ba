"""Fixed-point numbers: rounding towards zero, limits on weights, products that are exact in any order."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.learners.fixed_point import EXACT, STEP, WEIGHT_LIMIT, exact_products, round_weights, truncate


def test_numbers_are_cut_towards_zero_on_the_grid():
    values = np.array([STEP, 1.99 * STEP, -1.99 * STEP, -0.99 * STEP, 0.0, 1.0])
    assert truncate(values).tolist() == [STEP, STEP, -STEP, 0.0, 0.0, 1.0]
    assert truncate(np.array([0.74, -0.76]), 0.25).tolist() == [0.5, -0.75]


@pytest.mark.parametrize("largest", [1.0, 2.0, 9.4, 1025.0])
def test_weights_are_limited_and_have_few_enough_bits(largest):
    """A weight in steps times a row in steps, summed, is an integer below 2**53; with steps half as wide it is not."""
    found = round_weights(np.array([1e9, -1e9, math.pi, -0.3]), largest)
    assert found[:2].tolist() == [WEIGHT_LIMIT, -WEIGHT_LIMIT]
    step = 2.0 ** math.ceil(math.log2(WEIGHT_LIMIT * largest / STEP / EXACT))
    assert WEIGHT_LIMIT * largest / (step * STEP) <= EXACT < WEIGHT_LIMIT * largest / (step * STEP / 2) * (1 + 1e-15)
    assert all((Fraction(float(each)) / Fraction(step)).denominator == 1 for each in found)
    assert np.all(np.abs(found[2:] - [math.pi, -0.3]) <= step / 2)


def test_products_are_the_sums_of_real_numbers():
    random = np.random.default_rng(1)
    rows = truncate(random.uniform(-0.25, 0.25, (20, 15)))
    weights = random.normal(size=(15, 3)) * 1000.0
    found = exact_products(rows, weights)
    rounded = round_weights(weights, math.sqrt(15) + 1.0)
    for row, products in zip(rows, found, strict=True):
        for column, product in zip(rounded.T, products, strict=True):
            exact = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(row, column, strict=True))
            assert Fraction(float(product)) == exact
    order = random.permutation(15)
    assert np.array_equal(exact_products(rows[:, order], weights[order]), found)
