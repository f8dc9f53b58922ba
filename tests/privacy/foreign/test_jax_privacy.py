"""Execution plans of JAX-Privacy, by what its objects hold."""

from __future__ import annotations

from enum import Enum
from types import SimpleNamespace

import dp_accounting
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent, SelfComposedDpEvent

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.privacy import as_guarantee, dp_sgd

Partition = Enum("Partition", "INDEPENDENT EQUAL_SPLIT")


def theirs(name, **fields):
    return type(name, (SimpleNamespace,), {"__module__": "jax_privacy.made_up"})(**fields)


def plan(relation=NeighboringRelation.ADD_OR_REMOVE_ONE):
    event = SelfComposedDpEvent(PoissonSampledDpEvent(0.1, GaussianDpEvent(1.5)), 100)
    return theirs(
        "BandMFExecutionPlanConfig",
        accountant=dp_accounting.pld.PLDAccountant(relation),
        partition_type=Partition.INDEPENDENT,
        truncated_batch_size=None,
        plan=SimpleNamespace(dp_event=event),
    )


def test_a_plan_is_its_event_under_its_own_relation():
    found = as_guarantee(plan())
    assert found.epsilon(1e-5) == dp_sgd(noise_multiplier=1.5, sampling_rate=0.1, steps=100).epsilon(1e-5)
    assert as_guarantee(plan(), adjacency="add_or_remove_one").epsilon(1e-5) == found.epsilon(1e-5)
    with pytest.raises(AdjacencyError, match="the plan"):
        as_guarantee(plan(), adjacency="replace_one")


def test_what_says_too_little_is_refused():
    with pytest.raises(ArgumentError, match="params_guarantee"):
        as_guarantee(theirs("DpParams", noise_multipliers=1.0))
    with pytest.raises(ArgumentError, match="must be a Guarantee, got BoundedSensitivityCallable"):
        as_guarantee(theirs("BoundedSensitivityCallable"))
    with pytest.raises(ArgumentError, match="REPLACE_SPECIAL"):
        as_guarantee(plan(NeighboringRelation.REPLACE_SPECIAL))
