"""A table of probabilities as the distribution of K."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpselect.errors import ArgumentError
from dpselect.repetitions import (
    Tabulated,
)
from tests.repetitions.exact_tables import agrees_with_table


def test_a_nearly_normalised_table_is_divided_out():
    law = Tabulated(probabilities=[0.25, 0.75 + 5e-10])
    assert law.pgf(1.0) == pytest.approx(1.0, abs=1e-15)
    assert law.zero_probability == pytest.approx(0.25 / (1 + 5e-10), rel=1e-15)


def test_a_table_is_taken_exactly():
    table = [0.0, 0.5, 0.0, 0.375, 0.125]
    agrees_with_table(Tabulated(probabilities=table), [Fraction(p) for p in table])


def test_zeros_at_the_end_do_not_count():
    law = Tabulated(probabilities=[0.25, 0.75, 0.0, 0.0])
    agrees_with_table(law, [Fraction(1, 4), Fraction(3, 4)])
    assert law.describe() == {"law": "tabulated", "probabilities": [0.25, 0.75, 0.0, 0.0]}


def test_the_sum_may_be_off_by_1e_9_and_no_more():
    Tabulated(probabilities=[0.5, 0.5 - 0.9e-9])
    for wrong in (0.5 - 1.1e-9, 0.5 + 1.1e-9):
        with pytest.raises(ArgumentError, match="probabilities must sum to 1"):
            Tabulated(probabilities=[0.5, wrong])
