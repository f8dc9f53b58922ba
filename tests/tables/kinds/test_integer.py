"""Integers are exact, and cells that are none are missing."""

from decimal import Decimal
from fractions import Fraction

import numpy as np

from dpselect.tables import Declared
from tests.tables.object_columns import objects


def test_integers_are_exact_and_others_are_none():
    cells = [
        "9007199254740993",
        "-9223372036854775807",
        "2.0",
        "1e3",
        "TRUE",
        "2.5",
        "x",
        "",
        None,
        Decimal(7),
        Fraction(8, 2),
        10**30,
    ]
    found, present = Declared(kind="integer").block(cells)
    assert found[present].tolist() == [2**53 + 1, -(2**63) + 1, 2, 1000, 1, 7, 4, 2**63 - 1]
    np.testing.assert_array_equal(np.isnan(Declared(kind="integer").read(objects(cells))), ~present)
