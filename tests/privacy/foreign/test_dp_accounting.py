"""Accountants and loss distributions of dp-accounting; its events are in tests/privacy/test_event_kinds.py."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import NeighboringRelation, dp_event as de
from dp_accounting.pld import pld_privacy_accountant, privacy_loss_distribution as pld
from dp_accounting.rdp import rdp_privacy_accountant

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.privacy import as_guarantee, compose, from_dp_event, gaussian, laplace

REPLACE = NeighboringRelation.REPLACE_ONE


@pytest.mark.full
def test_an_accountant_is_its_ledger():
    event = de.PoissonSampledDpEvent(0.01, de.GaussianDpEvent(1.0))
    for make in (pld_privacy_accountant.PLDAccountant, rdp_privacy_accountant.RdpAccountant):
        accountant = make().compose(event, 100).compose(de.GaussianDpEvent(4.0))
        ours = from_dp_event(de.ComposedDpEvent([de.SelfComposedDpEvent(event, 100), de.GaussianDpEvent(4.0)]))
        assert as_guarantee(accountant).epsilon(1e-5) == ours.epsilon(1e-5)
    replaced = pld_privacy_accountant.PLDAccountant(REPLACE).compose(de.GaussianDpEvent(2.0))
    assert as_guarantee(replaced).epsilon(1e-5) == gaussian(noise_multiplier=1.0).epsilon(1e-5)
    assert as_guarantee(replaced).adjacency == "replace_one"
    with pytest.raises(AdjacencyError, match="replace_one"):
        as_guarantee(replaced, adjacency="add_or_remove_one")
    with pytest.raises(ArgumentError, match="REPLACE_SPECIAL"):
        as_guarantee(rdp_privacy_accountant.RdpAccountant([2.0], NeighboringRelation.REPLACE_SPECIAL))
    assert as_guarantee(pld_privacy_accountant.PLDAccountant()).epsilon(0) == 0.0


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    "made",
    [
        lambda **s: pld.from_laplace_mechanism(2.0, **s),
        lambda **s: pld.from_randomized_response(0.5, 3, **s),
        lambda **s: pld.from_discrete_laplace_mechanism(0.5, 2, **s),
        lambda **s: pld.from_gaussian_mechanism(2.0, **s),
        lambda **s: pld.from_gaussian_mechanism(1.0, sampling_prob=0.1, **s).self_compose(10),
    ],
)
def test_a_loss_distribution_keeps_its_curve(made):
    theirs, below = made(), made(pessimistic_estimate=False)
    ours = as_guarantee(theirs)
    for delta in (1e-8, 1e-5, 1e-2):
        assert below.get_epsilon_for_delta(delta) - 1e-9 <= ours.epsilon(delta)
        assert ours.epsilon(delta) == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=1e-6)
    assert "caller's word" in ours.terms["rests"]
    assert ours.lower_profile is None
    with pytest.raises(ArgumentError, match="optimistic"):
        as_guarantee(below)


def test_a_loss_distribution_without_infinite_mass_is_pure():
    table = {-2: 0.25, 1: 0.25, 2: 0.5}
    ours = as_guarantee(pld.PrivacyLossDistribution.create_from_rounded_probability(table, 0.0, 0.25))
    assert 0.5 <= ours.epsilon(0) <= 0.5 * (1 + 1e-11)
    assert as_guarantee(pld.from_laplace_mechanism(2.0)).epsilon(0) == float("inf")  # its rounding leaves a mass there


@pytest.mark.full
def test_a_loss_distribution_composes():
    ours = as_guarantee(pld.from_laplace_mechanism(2.0))
    both = compose(ours, gaussian(noise_multiplier=4.0))
    exact = compose(laplace(scale=2.0), gaussian(noise_multiplier=4.0))
    assert exact.epsilon(1e-5) <= both.epsilon(1e-5) <= exact.epsilon(1e-5) * 1.001
    with pytest.raises(AdjacencyError):
        compose(as_guarantee(pld.from_laplace_mechanism(2.0), adjacency="replace_one"), laplace(scale=1.0))


def test_other_objects_of_the_package_are_refused():
    with pytest.raises(ArgumentError, match="must be a Guarantee, got"):
        as_guarantee(REPLACE)


@pytest.mark.parametrize(
    "broken",
    [
        {"_probs": np.array([math.nan, 0.5])},
        {"_probs": np.array([-0.5, 1.5])},
        {"_probs": np.array([0.25, 0.25])},
        {"_discretization": -1e-4},
        {"_discretization": math.nan},
        {"_infinity_mass": -0.5},
    ],
)
def test_a_loss_distribution_that_is_none_is_refused(broken):
    distribution = pld.from_laplace_mechanism(1.0).self_compose(2)
    pmf = distribution._pmf_remove.to_dense_pmf()
    for name, value in broken.items():
        setattr(pmf, name, value)
    distribution._pmf_remove = pmf
    with pytest.raises(ArgumentError, match="distribution"):
        as_guarantee(distribution)


def test_an_event_is_read_as_it_was_when_it_was_given():
    once = de.ComposedDpEvent(iter([de.GaussianDpEvent(1.0)]))
    for _ in range(2):
        with pytest.raises(ArgumentError, match="list"):
            as_guarantee(once)
    parts = [de.LaplaceDpEvent(1.0)]
    guarantee = as_guarantee(de.PoissonSampledDpEvent(0.5, de.ComposedDpEvent(parts)))
    parts.clear()
    assert guarantee.epsilon(delta=0) > 0.6
