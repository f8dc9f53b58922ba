"""Privacy-loss distributions that dp-accounting computes, of kinds of event that dpselect does not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpselect.errors import ArgumentError
from dpselect.numerics.logs import ROUND_UP
from dpselect.privacy.adjacency import Adjacency
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.losses.composition import BothLosses, Losses
from dpselect.privacy.losses.pld import LossProfile, LossSource

__all__ = ["FixedLosses", "event_loss", "losses_of", "relation_of", "with_event_loss"]


@dataclass(frozen=True)
class event_loss(LossSource):
    """The privacy-loss distribution of one event of dp-accounting that composes nothing, by its accountant.

    That accountant keeps a mechanism without privacy in a flag outside the distribution.
    """

    event: Any
    adjacency: Adjacency

    def __call__(self, interval: float) -> BothLosses:
        from dp_accounting.pld import pld_privacy_accountant

        accountant = pld_privacy_accountant.PLDAccountant(relation_of(self.adjacency), interval)
        accountant.compose(self.event)
        if accountant._contains_non_dp_event:
            raise ArgumentError("event holds a mechanism without privacy")
        return losses_of(accountant._pld)


def losses_of(distribution: Any) -> BothLosses:
    """The losses of a `PrivacyLossDistribution` of dp-accounting, as they are."""
    remove, add = (Losses.of(pmf) for pmf in (distribution._pmf_remove, distribution._pmf_add))
    return BothLosses(remove, remove if distribution._symmetric else add)


def relation_of(adjacency: Adjacency) -> Any:
    """dp-accounting's name for an adjacency."""
    from dp_accounting import NeighboringRelation

    return NeighboringRelation[adjacency.name]


def with_event_loss(event: Any, adjacency: Adjacency) -> Guarantee:
    """The guarantee of an event by dp-accounting's loss distribution. Raises `ArgumentError` if that has none."""
    from dp_accounting.pld import pld_privacy_accountant

    if not pld_privacy_accountant.PLDAccountant(relation_of(adjacency)).supports(event):
        raise ArgumentError(f"event: dp-accounting cannot account {type(event).__name__} under {adjacency.value}")
    loss = event_loss(event, adjacency)
    return Guarantee(
        adjacency=adjacency,
        theorem="accounting of a DpEvent (dp-accounting)",
        terms={"mechanism": "dp-event", "event": repr(event)},
        profile=LossProfile(loss),
        loss=loss,
    )


@dataclass(frozen=True, eq=False)
class FixedLosses(LossSource):
    """A privacy-loss distribution on a mesh of its own, which does not depend on what is asked."""

    both: BothLosses

    def __call__(self, interval: float) -> BothLosses:  # noqa: ARG002
        return self.both

    @property
    def largest(self) -> float:
        """The largest loss in both directions, inf if some mass is at infinity. Rounded up."""
        if self.both.remove.infinite or self.both.add.infinite:
            return math.inf
        return max(0.0, *(float(each.values[each.masses > 0.0][-1]) for each in self.both)) * ROUND_UP
