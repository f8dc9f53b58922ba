"""Loss distributions that dp-accounting computes, as they are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event as de
from dp_accounting.pld import privacy_loss_distribution as pld

from dpselect.errors import ArgumentError
from dpselect.privacy import Adjacency
from dpselect.privacy.event_losses import FixedLosses, event_loss, losses_of, relation_of, with_event_loss
from dpselect.privacy.losses.pld import pair_from_losses

ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE
SAMPLED = de.PoissonSampledDpEvent(0.1, de.GaussianDpEvent(4.0))


def test_an_events_losses_are_those_of_the_library():
    found = event_loss(SAMPLED, REPLACE)(1e-3)
    exact = pld.from_gaussian_mechanism(
        4.0, sampling_prob=0.1, value_discretization_interval=1e-3, neighboring_relation=relation_of(REPLACE)
    )
    epsilons = np.linspace(0.0, 1.0, 11)
    theirs = pair_from_losses(losses_of(exact).remove).hockey_stick(epsilons)
    assert pair_from_losses(found.remove).hockey_stick(epsilons) == pytest.approx(theirs, abs=1e-13)
    assert found.remove.width == 1e-3


def test_the_flag_outside_the_distribution_is_read():
    with pytest.raises(ArgumentError, match="without privacy"):
        event_loss(de.GaussianDpEvent(0.0), ADD)(1e-3)


def test_what_the_library_does_not_support_is_refused():
    with pytest.raises(ArgumentError, match="cannot account UnsupportedDpEvent"):
        with_event_loss(de.UnsupportedDpEvent(), ADD)


def test_a_fixed_distribution_ignores_the_mesh_and_knows_its_largest_loss():
    table = pld.PrivacyLossDistribution.create_from_rounded_probability({-2: 0.25, 1: 0.25, 2: 0.5}, 0.0, 0.25)
    pure = FixedLosses(losses_of(table))
    assert pure(1e-5).remove.width == pure.both.remove.width == 0.25
    assert 0.5 <= pure.largest <= 0.5 * (1 + 1e-11)
    assert FixedLosses(losses_of(pld.from_gaussian_mechanism(2.0))).largest == math.inf
    assert FixedLosses(losses_of(pld.identity())).largest == 0.0
