"""The front door for guarantees: one function from everything that is taken to a `Guarantee`."""

from __future__ import annotations

from typing import Any

from dpselect.errors import AdjacencyError
from dpselect.privacy.adjacency import Adjacency, parse_adjacency
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.promises import promise

__all__ = ["as_guarantee"]


def as_guarantee(thing: Any, *, adjacency: Adjacency | str | None = None) -> Guarantee:
    """Return the guarantee of a mechanism from what another library, a paper or a product says about it.

    Every function that takes a `Guarantee` calls it, so you may pass any of these in its place. A pair
    `(epsilon, delta)` is `approximate_dp`. A list of pairs is `from_profile`. A mapping such as `{"epsilon": 1}`,
    `{"rho": 0.1}` or `{"mu": 0.5}` names the parameters of (epsilon, delta)-, zero-concentrated or Gaussian privacy.
    A `DpEvent` of dp-accounting, or the ledger of its accountants, is `from_dp_event`. A pessimistic
    `PrivacyLossDistribution` of dp-accounting is its profile. An accountant of Opacus, its `state_dict()` or a
    `PrivacyEngine` is the steps that it recorded. A `BandMFExecutionPlanConfig` of JAX-Privacy is its `DpEvent`. A
    `PrivacyRandomVariable` or `PRVAccountant` of prv-accountant is its mechanisms. A `Mechanism` of autodp is its
    curves at fixed points. A `Measurement` of OpenDP on data sets is its privacy map at one row.

    dpselect computes the cost again if the object names its mechanism. Otherwise it takes the object's numbers. The
    terms of the guarantee then say "on the caller's word", and you must ensure that these numbers are proved.

    Args:
        thing: a `Guarantee`, which is returned as it is, or one of these objects.
        adjacency: the neighbours, an `Adjacency` or its text. None, the default, is the adjacency of the object, or
            add-or-remove-one if the object has none.

    Returns:
        A guarantee with that adjacency.

    Raises:
        AdjacencyError: if `adjacency` is unknown, or is not the adjacency of the object.
        ArgumentError: if the object holds no guarantee, is of a kind that is not taken (`PromiseError`), or a number in
            it is out of range.

    >>> as_guarantee((1.0, 1e-6)).epsilon(delta=1e-6)
    1.0
    >>> from dp_accounting import LaplaceDpEvent
    >>> as_guarantee(LaplaceDpEvent(2)).epsilon(delta=0)
    0.5
    """
    found = promise("thing", thing, adjacency=adjacency)
    if adjacency is not None and found.adjacency is not parse_adjacency(adjacency):
        raise AdjacencyError(f"adjacency {str(adjacency)!r} was asked for, and thing is for {found.adjacency.value!r}")
    return found
