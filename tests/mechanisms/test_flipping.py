"""Permute and flip: its distribution, noisy max with exponential noise, and its profile for two candidates."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy import integrate

from dpselect.privacy.profile import LaplaceProfile
from tests.audits.score_laws import exponential_law, permute_and_flip_law

ROUNDING = 1e-12


def test_permute_and_flip_law_is_that_of_the_algorithm() -> None:
    """McKenna, Sheldon (2020), Algorithm 1 by brute force over all orders and coins."""
    for vector in ([0.0, -1.0, -2.5], [0.0, 0.0, -0.3, -4.0], [0.0, -0.1, -0.1, -0.1, -7.0]):
        heads = np.exp(np.array(vector))
        law = np.zeros(len(vector))
        orders = list(itertools.permutations(range(len(vector))))
        for order in orders:
            reached = 1.0
            for index in order:
                law[index] += reached * heads[index] / len(orders)
                reached *= 1.0 - heads[index]
        assert_allclose(permute_and_flip_law(vector, 1.0), law, rtol=ROUNDING)


def test_permute_and_flip_is_noisy_max_with_exponential_noise() -> None:
    """Ding et al. (2021): P(i wins) = integral of exp(-(x - q_i)) prod_j (1 - exp(-(x - q_j)))_+, by quadrature."""
    q = np.array([0.0, -0.4, -1.7])
    law = []
    for i in range(3):
        others = np.delete(q, i)
        value, _ = integrate.quad(
            lambda x, i=i, others=others: math.exp(-(x - q[i])) * np.prod(-np.expm1(-(x - others))), 0.0, 60.0
        )
        law.append(value)
    assert_allclose(permute_and_flip_law(q, 1.0), law, rtol=1e-7)


@pytest.mark.theorem(
    "McKenna, Sheldon 2020, Theorem 2",
    exact=True,
    loose="it compares two mechanisms, and has no constant",
)
@given(
    vector=st.lists(st.floats(0.0, 10.0), min_size=2, max_size=7),
    rate=st.floats(0.01, 5.0),
)
@settings(deadline=None)
def test_permute_and_flip_is_never_worse(vector: list[float], rate: float) -> None:
    """McKenna, Sheldon (2020), Theorem 2: in expected score, and the distribution of the error is dominated too."""
    q = np.sort(np.array(vector))
    flip, power = permute_and_flip_law(q, rate), exponential_law(q, rate)
    assert flip @ q >= power @ q - 1e-12 * q.max()
    assert np.all(np.cumsum(flip) <= np.cumsum(power) + 1e-12)


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_two_candidates_of_permute_and_flip_have_the_profile_of_laplace_noise(epsilon):
    """The better one is first in half of the orders, else it is chosen when the coin of the other one fails."""
    gaps = np.linspace(-8.0, 8.0, 4001) / epsilon

    def second(gap):
        coin = 0.5 * np.exp(-0.5 * epsilon * np.abs(gap))
        return np.where(gap >= 0, coin, 1 - coin)

    here, there = second(gaps - 1.0), second(gaps + 1.0)
    for e in (0.0, 0.3 * epsilon, 0.8 * epsilon):
        attained = float(np.max(here - math.exp(e) * there))
        assert attained == pytest.approx(float(LaplaceProfile(epsilon).at(np.array([e]))[0]), rel=2e-3)
