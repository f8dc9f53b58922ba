"""Discrete Laplace noise and k-ary randomised response against their distributions, output by output."""

from __future__ import annotations

import math
import pickle

import mpmath as mp
import numpy as np
import pytest

from dpselect.accounting import best_of
from dpselect.errors import ArgumentError
from dpselect.privacy import Adjacency, compose
from dpselect.privacy.atoms import AtomsProfile, AtomsRenyi, discrete_laplace, k_ary_response
from dpselect.repetitions import Geometric

ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE
LAPLACES = [(0.5, 1), (0.5, 2), (0.3, 3), (1.0, 4), (0.05, 7), (4.0, 1), (0.01, 30), (0.01, 100)]
RESPONSES = [(0.3, 4), (0.9, 2), (0.01, 2), (0.5, 100), (0.999, 3)]


def laplace_pair(parameter, sensitivity):
    """Masses of the noise moved by the sensitivity and of the noise at 0, in 40 digits, far into both tails."""
    reach = int(60 / parameter) + sensitivity
    with mp.workdps(40):
        a = mp.mpf(parameter)
        masses = {x: mp.tanh(a / 2) * mp.exp(-a * abs(x)) for x in range(-reach, reach + sensitivity + 1)}
        return [(masses[x], masses[x - sensitivity]) for x in range(sensitivity - reach, reach + 1)]


def response_pair(noise, buckets):
    with mp.workdps(40):
        other, own = mp.mpf(noise) / buckets, 1 - mp.mpf(noise) + mp.mpf(noise) / buckets
        return [(own, other), (other, own)] + [(other, other)] * (buckets - 2)


CASES = [(discrete_laplace(*c, ADD), laplace_pair(*c)) for c in LAPLACES]
CASES += [(k_ary_response(*c, REPLACE), response_pair(*c)) for c in RESPONSES]


@pytest.mark.theorem("docs/theory/samples.md, Theorem 3", exact=True, sharp=True)
@pytest.mark.cases(4)
@pytest.mark.parametrize(("guarantee", "pair"), CASES)
def test_the_profile_is_that_of_the_outputs(guarantee, pair):
    assert guarantee.pure_epsilon == pytest.approx(max(abs(float(mp.log(p / q))) for p, q in pair), rel=1e-11)
    for share in (0.0, 0.01, 0.5, 0.9, 0.999):
        epsilon = share * guarantee.pure_epsilon
        with mp.workdps(40):
            exact = float(mp.fsum(max(mp.mpf(0), p - mp.exp(epsilon) * q) for p, q in pair))
        assert exact * (1 - 1e-14) <= guarantee.delta(epsilon) <= exact * (1 + 1e-10) + 2e-13
        lower = float(guarantee.lower_profile.remove(np.array([epsilon]))[0])
        assert exact * (1 - 1e-8) - 1e-11 <= lower <= exact


@pytest.mark.cases(3)
@pytest.mark.parametrize(("guarantee", "pair"), CASES)
def test_the_renyi_curve_is_that_of_the_outputs(guarantee, pair):
    for order in (1.001, 1.5, 2.0, 17.0, 1000.0):
        with mp.workdps(40):
            moment = mp.fsum(p**order * q ** (1 - order) for p, q in pair)
            exact = float(mp.log(moment) / (order - 1))
        assert exact <= guarantee.renyi(order) <= exact * (1 + 1e-9) + 1e-15


def test_brackets_and_searches_hold():
    one = discrete_laplace(0.5, 2, ADD)
    both = compose(one, one)
    lower, upper = both.epsilon_bracket(1e-3)
    assert upper * (1 - 1e-3) <= lower <= upper
    assert both.epsilon(0) == 2.0
    assert pickle.loads(pickle.dumps(one)).epsilon(1e-3) == one.epsilon(1e-3)
    assert one.epsilon(0) < best_of(one, Geometric(gamma=0.1)).epsilon(0) < 3.0


def test_the_ends():
    assert k_ary_response(1.0, 5, REPLACE).epsilon(0) == 0.0
    assert k_ary_response(0.2, 1, REPLACE).epsilon(0) == 0.0
    assert discrete_laplace(0.5, 0, ADD).epsilon(0) == 0.0
    assert discrete_laplace(1e-4, 10_000, ADD).epsilon(0) == pytest.approx(1.0, rel=1e-12)
    with pytest.raises(ArgumentError, match="noise_parameter"):
        k_ary_response(0.0, 2, REPLACE)


@pytest.mark.parametrize(
    ("losses", "masses"),
    [((), ()), ((1.0,), (0.5, 0.2)), ((-1.0,), (0.5,)), ((1.0, 0.5), (0.1, 0.1)), ((1.0,), (1.5,)), ((1.0,), (0.0,))],
)
def test_a_table_that_is_none_is_refused(losses, masses):
    with pytest.raises(ArgumentError):
        AtomsProfile(losses, masses)


def test_the_moment_keeps_its_digits_near_order_one():
    curve = AtomsRenyi((1e-6,), (1.0 / (1.0 + math.exp(-1e-6)),))
    found = float(curve(np.array([1.0 + 1e-9]))[0])
    assert found == pytest.approx(1e-6 * math.tanh(0.5e-6), rel=1e-6)
