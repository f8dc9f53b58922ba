"""The joint method, by `Quantiles`: stated errors hold on frequent values and empty columns."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpselect.ordered import Quantiles, quantiles
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source

THREE = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE


def test_heavy_atoms_empty_columns_and_stated_errors():
    rows = np.concatenate([np.zeros(500), np.linspace(10.0, 20.0, 500)])
    options = {"lower": 0.0, "upper": 100.0, "epsilon": 5.0, "method": "joint", "granularity": 0.01}
    released = quantiles(rows, qs=[0.2, 0.4, 0.7], random=keyed_source(1), **options)
    assert released.value[:2] == [0.0, 0.0]
    assert abs(released.value[2] - 14.0) < 0.6
    errors = released.rank_errors(0.05)
    assert errors == pytest.approx([errors[0]] * 3)
    for q, value in zip([0.2, 0.4, 0.7], released.value, strict=True):
        assert np.sum(rows <= value) >= q * 1000 - errors[0]
        assert np.sum(rows < value) <= q * 1000 + errors[0]
    assert len(quantiles([], qs=[k / 10 for k in range(10)], **options).value) == 10
    plan = Quantiles(epsilon=0.7, qs=[0.2, 0.4], method="joint", adjacency=REPLACE)
    assert plan.guarantee.epsilon(delta=0) == 0.7
    assert plan.rates == (Fraction(0.7) / 4,)


@pytest.mark.full
def test_atoms_of_any_weight_on_domains_of_any_size():
    """Rows take one of 2**32 places inside their code: 300,000 equal rows are no ties, even if the domain is 2**64."""
    released = quantiles(
        np.full(300_000, 7), qs=THREE, lower=0, upper=2**64 - 1, epsilon=5.0, method="joint", random=keyed_source(1)
    )
    assert released.value == [7, 7, 7]
