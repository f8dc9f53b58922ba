"""Pairs, parameters by name and curves of points."""

from __future__ import annotations

from collections import OrderedDict
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.privacy import approximate_dp, as_guarantee, from_profile, gaussian, pure_dp, zcdp


@pytest.mark.parametrize(
    ("thing", "same"),
    [
        ((1.0, 1e-6), approximate_dp(epsilon=1.0, delta=1e-6)),
        ((1, 0), pure_dp(epsilon=1)),
        ((np.float64(1.0), 1e-6), approximate_dp(epsilon=1.0, delta=1e-6)),
        ({"epsilon": 1.0}, pure_dp(epsilon=1)),
        ({"epsilon": 1.0, "delta": 0}, pure_dp(epsilon=1)),
        ({"delta": 1e-6, "epsilon": 1.0}, approximate_dp(epsilon=1.0, delta=1e-6)),
        ({"rho": 0.1}, zcdp(rho=0.1)),
        (OrderedDict(mu=0.5), gaussian(noise_multiplier=2)),
        ({"mu": 0}, pure_dp(epsilon=0)),
        ([(1.0, 1e-5), (2.0, 1e-7)], from_profile([1.0, 2.0], [1e-5, 1e-7])),
        ([(2.0, 1e-7), (1.0, 1e-5), (2.0, 1e-6)], from_profile([1.0, 2.0], [1e-5, 1e-7])),
        (((1.0, 1e-5), (2.0, 0.0)), from_profile([1.0, 2.0], [1e-5, 0.0])),
    ],
)
def test_they_are_the_constructors(thing, same):
    found = as_guarantee(thing)
    for delta in (0.0, 1e-7, 1e-6, 1e-5, 1e-2):
        assert found.epsilon(delta) == pytest.approx(same.epsilon(delta), rel=1e-11)
    assert found.pure_epsilon == same.pure_epsilon
    assert found.failure == same.failure
    assert found.terms["rests"] == "on the caller's word"
    assert as_guarantee(thing, adjacency="replace_one").adjacency == "replace_one"


def test_a_delta_that_is_no_float64_is_not_rounded_to_zero():
    assert as_guarantee((1.0, Fraction(1, 10**400))).failure > 0.0


@pytest.mark.parametrize(
    ("thing", "match"),
    [
        ((-1.0, 1e-6), "epsilon"),
        ((1.0, 1.0), "delta"),
        ((1.0, -0.1), "delta"),
        ((float("nan"), 1e-6), "epsilon"),
        ((float("inf"), 1e-6), "epsilon"),
        ({"rho": -1}, "rho"),
        ({"mu": "x"}, "mu"),
        ({"epsilon": 1, "rho": 2}, "must be a Guarantee"),
        ([(1.0, 1.0)], "says nothing"),
        ([(1.0, 1e-6), (2.0,)], "must be a Guarantee"),
        ((1.0, 1e-6, 2.0), "must be a Guarantee"),
        ([1.0, 1e-6], "must be a Guarantee"),
        (1.0, "pure_dp"),
        ("(1, 1e-6)", "must be a Guarantee"),
        ({}, "must be a Guarantee"),
        ([], "must be a Guarantee"),
    ],
)
def test_what_is_ambiguous_or_out_of_range_is_refused(thing, match):
    with pytest.raises(ArgumentError, match=match):
        as_guarantee(thing)
