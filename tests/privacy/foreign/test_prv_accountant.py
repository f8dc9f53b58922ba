"""Random variables of prv-accountant: made-up objects with its fields, and the library itself where it is installed."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.privacy import approximate_dp, as_guarantee, compose, dp_sgd, gaussian, laplace, pure_dp


def theirs(name, **fields):
    return type(name, (SimpleNamespace,), {"__module__": "prv_accountant.made_up"})(**fields)


SAMPLED = theirs("PoissonSubsampledGaussianMechanism", p=0.01, sigma=1.0)
GAUSSIAN = theirs("GaussianMechanism", mu=0.25)
CASES = [
    (GAUSSIAN, gaussian(noise_multiplier=4)),
    (theirs("LaplaceMechanism", mu=0.5), laplace(scale=2)),
    (SAMPLED, dp_sgd(noise_multiplier=1, sampling_rate=0.01, steps=1)),
    (theirs("PureDPMechanism", eps=1.0), pure_dp(epsilon=1)),
    (
        theirs("ApproximateDPMechanism", pure_dp=SimpleNamespace(eps=1.0), delta=1e-6),
        approximate_dp(epsilon=1, delta=1e-6),
    ),
]


@pytest.mark.parametrize(("thing", "same"), CASES)
def test_a_random_variable_is_its_mechanism(thing, same):
    for delta in (0.0, 1e-6, 1e-3):
        assert as_guarantee(thing).epsilon(delta) == pytest.approx(same.epsilon(delta), rel=1e-11)
        assert as_guarantee(thing).epsilon(delta) >= same.epsilon(delta) * (1 - 1e-15)


def test_a_sampled_gaussian_is_of_rows_that_are_added_or_removed():
    with pytest.raises(AdjacencyError, match="added or removed"):
        as_guarantee(SAMPLED, adjacency="replace_one")


def test_an_accountant_is_its_largest_composition():
    accountant = theirs("PRVAccountant", prvs=[SAMPLED, GAUSSIAN], max_self_compositions=[100, 2])
    two = gaussian(noise_multiplier=4)
    ours = compose(dp_sgd(noise_multiplier=1, sampling_rate=0.01, steps=100), two, two)
    assert as_guarantee(accountant).epsilon(1e-5) == pytest.approx(ours.epsilon(1e-5), rel=1e-9)


def test_others_are_refused():
    with pytest.raises(ArgumentError, match="names no mechanism"):
        as_guarantee(theirs("DiscretePrivacyRandomVariable", pmf=[1.0]))
    with pytest.raises(ArgumentError, match="mu"):
        as_guarantee(theirs("LaplaceMechanism", mu=math.nan))
    with pytest.raises(ArgumentError, match="max_self_compositions"):
        as_guarantee(theirs("PRVAccountant", prvs=[GAUSSIAN], max_self_compositions=[0]))


@pytest.mark.full
def test_the_library_itself():
    prv = pytest.importorskip("prv_accountant")
    variables = [prv.PoissonSubsampledGaussianMechanism(0.01, 1.0), prv.LaplaceMechanism(0.1)]
    accountant = prv.PRVAccountant(variables, eps_error=0.01, delta_error=1e-10, max_self_compositions=[1000, 2])
    low, _, high = accountant.compute_epsilon(1e-5, [1000, 2])
    assert low <= as_guarantee(accountant).epsilon(1e-5) <= high
