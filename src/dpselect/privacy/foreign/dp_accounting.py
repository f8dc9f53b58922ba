"""Events, accountants and privacy-loss distributions of dp-accounting."""

from __future__ import annotations

import math
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from dpselect.errors import ArgumentError
from dpselect.privacy.adjacency import Adjacency
from dpselect.privacy.event_losses import FixedLosses, losses_of
from dpselect.privacy.events import from_dp_event, is_dp_event
from dpselect.privacy.foreign_kinds import ON_THE_CALLERS_WORD, foreign_reader, own_adjacency
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.losses.pld import LossProfile

__all__ = ["read_dp_accounting"]

_ROUNDING: Final = 1e-5
"""The masses of a distribution may differ by so much from 1, after many compositions by transforms."""
_NOTHING: Final = 1e-12
"""A mass may be so much below 0, by the same transforms."""


@runtime_checkable
class _EventAccountant(Protocol):
    @property
    def ledger(self) -> Any: ...
    @property
    def neighboring_relation(self) -> Any: ...


@runtime_checkable
class _LossDistribution(Protocol):
    _pmf_remove: Any
    _pmf_add: Any
    _symmetric: bool


@foreign_reader("dp_accounting", takes="a DpEvent, an accountant or a PrivacyLossDistribution of dp-accounting")
def read_dp_accounting(thing: Any, adjacency: Adjacency | None) -> Guarantee | None:
    """Read an event, the ledger of an accountant, or a loss distribution."""
    if is_dp_event(thing):
        return from_dp_event(thing, adjacency=own_adjacency("the event", None, adjacency))
    if isinstance(thing, _EventAccountant):
        return from_dp_event(thing.ledger, adjacency=_relation(thing, adjacency))
    if isinstance(thing, _LossDistribution):
        return _distribution(thing, own_adjacency("the distribution", None, adjacency))
    return None


def _relation(accountant: _EventAccountant, asked: Adjacency | None) -> Adjacency:
    name = str(accountant.neighboring_relation.name)
    if name not in Adjacency.__members__:
        raise ArgumentError(f"the accountant's neighboring_relation {name} is not one of dpselect's adjacencies")
    return own_adjacency("the accountant", Adjacency[name], asked)


def _distribution(thing: _LossDistribution, adjacency: Adjacency) -> Guarantee:
    """The profile of a pessimistic loss distribution, with its largest loss if no mass is infinite."""
    if not all(pmf._pessimistic_estimate for pmf in (thing._pmf_remove, thing._pmf_add)):
        raise ArgumentError("the distribution is optimistic, no upper bound: build it with pessimistic_estimate=True")
    both = losses_of(thing)
    for side in (both.remove, both.add):
        whole = float(np.sum(side.masses)) + side.infinite
        if not (0.0 < side.width < math.inf and np.all(side.masses >= -_NOTHING) and side.infinite >= 0.0):
            raise ArgumentError("the distribution must have a positive interval and masses of at least 0")
        if not abs(whole - 1.0) <= _ROUNDING:
            raise ArgumentError("the masses of the distribution must add up to 1")
    losses = FixedLosses(both)
    return Guarantee(
        adjacency=adjacency,
        theorem=f"privacy-loss distribution of dp-accounting, {ON_THE_CALLERS_WORD}",
        terms={"mechanism": "loss-distribution", "rests": ON_THE_CALLERS_WORD},
        pure_epsilon=losses.largest,
        profile=LossProfile(losses, losses.both.remove.width),
    )
