"""The first acceptable of T tries: hard limits and arguments."""

from __future__ import annotations

import pytest

from dpselect.accounting.optimal.first_acceptable import first_acceptable
from dpselect.errors import ArgumentError
from dpselect.privacy import laplace, pure_dp
from dpselect.repetitions import Geometric, capped


@pytest.mark.parametrize(
    ("gamma", "limit", "value"),
    [
        (0.1, 2, 1.79567204),
        (0.1, 4, 2.23085435),
        (0.1, 5, 2.14738704),
        (0.1, 7, 1.97363920),
        (0.1, 10, 1.85007610),
        (0.1, 30, 1.79568497),
        (0.01, 5, 3.78354355),
        (0.001, 7, 5.48709576),
    ],
)
def test_a_hard_cap_on_threshold_stopping(gamma, limit, value):
    """Below the theorem's T the cost exceeds 2 epsilon."""
    total = first_acceptable(pure_dp(epsilon=1.0), capped(Geometric(gamma=gamma), limit))
    assert value * (1 - 1e-8) <= total.pure_epsilon <= value * (1 + 1e-5)


def test_first_acceptable_checks_its_arguments() -> None:
    with pytest.raises(ArgumentError, match="chance"):
        first_acceptable(laplace(scale=1.0), Geometric(gamma=0.1), chance=0.0)
    with pytest.raises(ArgumentError, match="atoms"):
        first_acceptable(laplace(scale=1.0), Geometric(gamma=0.1), atoms=1)
