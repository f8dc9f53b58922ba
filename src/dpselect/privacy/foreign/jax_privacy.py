"""Execution plans of JAX-Privacy."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dpselect.errors import ArgumentError
from dpselect.privacy.adjacency import Adjacency
from dpselect.privacy.foreign_kinds import foreign_reader, own_adjacency
from dpselect.privacy.guarantee import Guarantee

__all__ = ["read_jax_privacy"]


@foreign_reader("jax_privacy", takes="a BandMFExecutionPlanConfig of JAX-Privacy")
def read_jax_privacy(thing: Any, adjacency: Adjacency | None) -> Guarantee | None:
    """Read a plan's event under its own relation."""
    if type(thing).__name__ == "DpParams":
        raise ArgumentError("DpParams does not say how many steps there are: use jax_privacy.params_guarantee")
    integration = import_module("dpselect.integrations.jax_privacy")
    try:
        found: Guarantee = integration.plan_guarantee(thing)
    except TypeError:
        return None
    own_adjacency("the plan", found.adjacency, adjacency)
    return found
