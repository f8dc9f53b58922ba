"""Guarantees from dp-accounting's DpEvents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import attrs
import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import pld_privacy_accountant
from dp_accounting.rdp import rdp_privacy_accountant
from numpy.typing import NDArray

from dpselect.errors import ArgumentError
from dpselect.privacy.adjacency import Adjacency, parse_adjacency
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.pld import LossProfile, event_loss, relation
from dpselect.privacy.renyi import TabulatedRenyi

__all__ = ["from_dp_event"]

Array = NDArray[np.float64]
# dp-accounting's own orders, and more near one and far out
_ORDERS = tuple(sorted({*rdp_privacy_accountant.DEFAULT_RDP_ORDERS, *range(64, 129, 4), 192.0, 384.0, 768.0, 2048.0}))


@dataclass(frozen=True)
class EventRenyi:
    """The Renyi curve of a DpEvent by dp-accounting on a fixed set of orders, chords between them."""

    event: dp_event.DpEvent
    adjacency: Adjacency
    theorem: str = "Renyi accounting of the event (dp-accounting)"

    @cached_property
    def _table(self) -> TabulatedRenyi:
        accountant = rdp_privacy_accountant.RdpAccountant(_ORDERS, relation(self.adjacency))
        accountant.compose(self.event)
        orders, epsilons = np.asarray(accountant._orders, float), np.asarray(accountant._rdp, float)
        # an order that dp-accounting gave up on is reported as 0 or inf; a sampled mechanism never has 0 exactly
        usable = np.isfinite(epsilons) & (epsilons >= 0.0)
        if np.any(epsilons[usable] > 0.0):
            usable &= epsilons > 0.0
        if not np.any(usable):
            return TabulatedRenyi((2.0,), (float("inf"),))
        return TabulatedRenyi(tuple(orders[usable].tolist()), tuple(epsilons[usable].tolist()))

    def __call__(self, orders: Array) -> Array:
        return self._table(orders)

    def __getstate__(self) -> dict[str, Any]:
        return {"event": self.event, "adjacency": self.adjacency, "theorem": self.theorem}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _with_float_noise(event: Any) -> Any:
    """The same event with float noise multipliers: dp-accounting 0.6.0 drops composition for integer ones."""
    if not attrs.has(type(event)):
        return event
    changes: dict[str, Any] = {}
    for attribute in attrs.fields(type(event)):
        value = getattr(event, attribute.name)
        if attribute.name == "noise_multiplier" and value is not None:
            changes[attribute.name] = float(value)
        elif attribute.name == "event":
            changes[attribute.name] = _with_float_noise(value)
        elif attribute.name == "events":
            changes[attribute.name] = [_with_float_noise(part) for part in value]
    return attrs.evolve(event, **changes) if changes else event


def from_dp_event(event: dp_event.DpEvent, *, adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE) -> Guarantee:
    """A guarantee from any DpEvent that dp-accounting can account, by Renyi accounting, loss distributions or both.

    Raises `ArgumentError` when neither of its accountants supports the event under this adjacency. A
    `RepeatAndSelectDpEvent` is refused: use `best_of` on the inner event, which is tighter and amplifies delta.
    """
    if not isinstance(event, dp_event.DpEvent):
        raise TypeError(f"event must be a dp_accounting.DpEvent, got {type(event).__name__}")
    if "RepeatAndSelect" in repr(event):
        raise ArgumentError(
            "event holds a repeat-and-select: give best_of the inner event and a repetition law instead"
        )
    adjacency = parse_adjacency(adjacency)
    event = _with_float_noise(event)
    in_renyi = rdp_privacy_accountant.RdpAccountant(_ORDERS[:2], relation(adjacency)).supports(event)
    in_losses = pld_privacy_accountant.PLDAccountant(relation(adjacency)).supports(event)
    if not (in_renyi or in_losses):
        raise ArgumentError(f"event: dp-accounting cannot account {type(event).__name__} under {adjacency.value}")
    loss = event_loss(event, adjacency) if in_losses else None
    return Guarantee(
        adjacency=adjacency,
        theorem="accounting of a DpEvent (dp-accounting)",
        terms={"mechanism": "dp-event", "event": repr(event)},
        renyi_curve=EventRenyi(event, adjacency) if in_renyi else None,
        profile=LossProfile(loss) if loss is not None else None,
        loss=loss,
    )
