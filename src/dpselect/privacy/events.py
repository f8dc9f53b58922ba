"""Guarantees from dp-accounting's DpEvents."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import attrs
import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import pld_privacy_accountant
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import rdp_privacy_accountant

from dpselect.caching import CopiedByFields
from dpselect.errors import ArgumentError, integer, number
from dpselect.numerics.logs import ROUND_UP, sum_up
from dpselect.numerics.search import Array
from dpselect.privacy.adjacency import Adjacency, parse_adjacency
from dpselect.privacy.below import AttainedGaussian, AttainedSampledGaussian, parts_below
from dpselect.privacy.group import times_up
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.losses.composition import BothLosses, Losses, compose_distributions
from dpselect.privacy.losses.pld import LossProfile, LossSource, sampled_gaussian_loss, suitable_interval
from dpselect.privacy.mechanisms.gaussian import gaussian
from dpselect.privacy.mechanisms.laplace import laplace
from dpselect.privacy.profile import PrivacyProfile
from dpselect.privacy.renyi import TabulatedRenyi

__all__ = ["from_dp_event"]

# dp-accounting's own orders, and more near one and far out
_ORDERS = tuple(sorted({*rdp_privacy_accountant.DEFAULT_RDP_ORDERS, *range(64, 129, 4), 192.0, 384.0, 768.0, 2048.0}))


_RELATIONS = {
    Adjacency.ADD_OR_REMOVE_ONE: NeighboringRelation.ADD_OR_REMOVE_ONE,
    Adjacency.REPLACE_ONE: NeighboringRelation.REPLACE_ONE,
}
"""dp-accounting's names for adjacencies."""


@dataclass(frozen=True)
class event_loss(LossSource):
    """The privacy-loss distribution of a DpEvent: Gaussians by us, sampled or not, other mechanisms by dp-accounting.

    Its accountant prices one mechanism at a time. Version 0.6.0 ignores the count of a self-composed
    `RandomizedResponseDpEvent`. It also keeps a mechanism without privacy in a flag outside the distribution.
    """

    event: dp_event.DpEvent
    adjacency: Adjacency

    def __call__(self, interval: float) -> BothLosses:
        return compose_distributions([(self._single(event, interval), n) for event, n in self._mechanisms])

    @property
    def parts(self) -> int:
        """How many distributions are added up."""
        return sum(count for _, count in self._mechanisms)

    @property
    def _mechanisms(self) -> list[tuple[Any, int]]:
        """The mechanisms of the event, or the event itself if it has none. Equal Gaussians compose exactly."""
        return [
            (dp_event.GaussianDpEvent(event.noise_multiplier / math.sqrt(count)), 1)
            if isinstance(event, dp_event.GaussianDpEvent)
            else (event, count)
            for event, count in _mechanisms(self.event) or [(self.event, 1)]
        ]

    def _single(self, event: Any, interval: float) -> BothLosses:
        noise, rate = _gaussian(event, self.adjacency)
        if noise > 0.0 and rate > 0.0:
            return sampled_gaussian_loss(noise, rate)(interval)
        accountant = pld_privacy_accountant.PLDAccountant(_RELATIONS[self.adjacency], interval)
        accountant.compose(event)
        if accountant._contains_non_dp_event:
            raise ArgumentError("event holds a mechanism without privacy")
        remove, add = (Losses.of(pmf) for pmf in (accountant._pld._pmf_remove, accountant._pld._pmf_add))
        return BothLosses(remove, remove if accountant._pld._symmetric else add)


@dataclass(frozen=True)
class EventRenyi(CopiedByFields):
    """The Renyi curve of a DpEvent by dp-accounting on a fixed set of orders, chords between them."""

    event: dp_event.DpEvent
    adjacency: Adjacency
    theorem: str = "Renyi accounting of the event (dp-accounting)"

    @cached_property
    def _table(self) -> TabulatedRenyi:
        accountant = rdp_privacy_accountant.RdpAccountant(_ORDERS, _RELATIONS[self.adjacency])
        accountant.compose(self.event)
        orders, epsilons = np.asarray(accountant._orders, float), np.asarray(accountant._rdp, float)
        # an order that dp-accounting gave up on is reported as 0 or inf; a sampled mechanism never has 0 exactly
        usable = np.isfinite(epsilons) & (epsilons >= 0.0)
        if np.any(epsilons[usable] > 0.0):
            usable &= epsilons > 0.0
        if not np.any(usable):
            return TabulatedRenyi((2.0,), (float("inf"),))
        # the library's log moments carry an absolute rounding error, up to 1e-14 for each mechanism at order 500
        count = sum(times for _, times in _mechanisms(self.event))
        epsilons = epsilons * ROUND_UP + 1e-15 * count * orders / (orders - 1.0)
        return TabulatedRenyi(tuple(orders[usable].tolist()), tuple(epsilons[usable].tolist()))

    @property
    def orders(self) -> tuple[float, ...]:
        """The orders at which the curve is known."""
        return self._table.orders

    def __call__(self, orders: Array) -> Array:
        return self._table(orders)


def _mechanisms(event: Any, count: int = 1) -> list[tuple[Any, int]]:
    """The mechanisms that an event composes, each with how often it runs. A sampled mechanism counts as one."""
    if isinstance(event, dp_event.ComposedDpEvent):
        return [each for part in event.events for each in _mechanisms(part, count)]
    if isinstance(event, dp_event.SelfComposedDpEvent):
        return _mechanisms(event.event, count * event.count)
    return [(event, count)]


def _gaussian(event: Any, adjacency: Adjacency) -> tuple[float, float]:
    """Noise and sampling rate of a (Poisson-sampled) Gaussian under adding or removing a row; no noise for others."""
    sampled = isinstance(event, dp_event.PoissonSampledDpEvent)
    inner, rate = (event.event, event.sampling_probability) if sampled else (event, 1.0)
    ours = adjacency is Adjacency.ADD_OR_REMOVE_ONE and isinstance(inner, dp_event.GaussianDpEvent)
    return (float(inner.noise_multiplier), float(rate)) if ours else (0.0, 0.0)


def _checked(event: Any) -> Any:
    """The same event with its numbers checked, and floats for noise.

    If several Gaussians are in one Poisson sample, the Renyi accountant of dp-accounting 0.6.0 counts one of them if
    their noise is an int. Without noise nothing is private, and its loss-distribution accountant keeps that in a flag
    beside the distribution.
    """
    if isinstance(event, dp_event.NonPrivateDpEvent):
        raise ArgumentError("event holds a NonPrivateDpEvent: there is no guarantee to speak of")
    if not attrs.has(type(event)):
        return event
    present = {name: getattr(event, name) for name in attrs.fields_dict(type(event)) if name in _PARSERS}
    return attrs.evolve(event, **{name: _PARSERS[name](name, value) for name, value in present.items()})


_PARSERS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("noise_multiplier", "noise_parameter", "standard_deviation"), partial(number, above=0.0)),
    "count": partial(integer, at_least=1),  # a negative one would give budget back
    "sampling_probability": partial(number, at_least=0.0, at_most=1.0),
    "event": lambda _, event: _checked(event),
    "events": lambda _, events: [_checked(part) for part in events],
}


def from_dp_event(event: dp_event.DpEvent, *, adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE) -> Guarantee:
    """Return a guarantee from any DpEvent that dp-accounting can account.

    It is computed by Renyi accounting, loss distributions or both. Under replace-one the two accountants of
    dp-accounting read a `GaussianDpEvent` differently. Loss distributions take its noise relative to the sensitivity
    under add/remove, and double that. Renyi accounting does not. So only the loss distributions count here.

    Args:
        event: the event, public.
        adjacency: the neighbours, an `Adjacency` or its text; add-or-remove-one unless given.

    Returns:
        A guarantee with that adjacency.

    Raises:
        ArgumentError: if neither accountant supports the event under this adjacency, it has no noise, or a number in it
            is out of range. A `RepeatAndSelectDpEvent` is refused too: use `best_of` on the inner event, which is
            tighter and amplifies delta. So is a Gaussian or Laplace event that the loss distributions do not support
            under replace-one: name its sensitivity there with `gaussian` or `laplace` instead.
        AdjacencyError: if `adjacency` is unknown.
        TypeError: if `event` is not a DpEvent.
    """
    if not isinstance(event, dp_event.DpEvent):
        raise TypeError(f"event must be a dp_accounting.DpEvent, got {type(event).__name__}")
    if "RepeatAndSelect" in repr(event):
        raise ArgumentError(
            "event holds a repeat-and-select: give best_of the inner event and a repetition law instead"
        )
    adjacency = parse_adjacency(adjacency)
    event = _checked(event)
    in_renyi = rdp_privacy_accountant.RdpAccountant(_ORDERS[:2], _RELATIONS[adjacency]).supports(event)
    in_losses = pld_privacy_accountant.PLDAccountant(_RELATIONS[adjacency]).supports(event)
    if not (in_renyi or in_losses):
        raise ArgumentError(f"event: dp-accounting cannot account {type(event).__name__} under {adjacency.value}")
    if adjacency is Adjacency.REPLACE_ONE and in_renyi:
        unclear = (dp_event.GaussianDpEvent, dp_event.LaplaceDpEvent)
        if not in_losses and any(isinstance(part, unclear) for part, _ in _mechanisms(event)):
            raise ArgumentError(
                "event: the sensitivity of a Gaussian or Laplace event under replace_one is not clear; "
                "use gaussian(noise_multiplier=) or laplace(scale=) with adjacency='replace_one' and compose"
            )
        in_renyi = not in_losses
    terms = {"mechanism": "dp-event", "event": repr(event)}
    if (native := _native(event, adjacency)) is not None:
        return replace(native, terms=terms)
    curve = EventRenyi(event, adjacency) if in_renyi else None
    interval = suitable_interval(curve)
    loss = event_loss(event, adjacency) if in_losses and interval is not None else None
    return Guarantee(
        adjacency=adjacency,
        theorem="accounting of a DpEvent (dp-accounting)",
        terms=terms,
        pure_epsilon=_pure(event, adjacency),
        renyi_curve=curve,
        profile=LossProfile(loss, interval) if loss is not None and interval is not None else None,
        lower_profile=_attained(event, adjacency, interval),
        loss=loss,
    )


def _native(event: dp_event.DpEvent, adjacency: Adjacency) -> Guarantee | None:
    """Our own guarantee of an event that is Gaussian or Laplace noise, with every statement that this has."""
    parts = _mechanisms(event)
    if adjacency is not Adjacency.ADD_OR_REMOVE_ONE or not parts:
        return None
    if all(isinstance(part, dp_event.GaussianDpEvent) for part, _ in parts):
        mu = math.hypot(*(math.sqrt(count) / float(part.noise_multiplier) for part, count in parts))
        whole = gaussian(noise_multiplier=1.0 / (mu * ROUND_UP), adjacency=adjacency)
        return replace(whole, lower_profile=_attained(event, adjacency, None))  # not of the mu that was rounded up
    (first, count), *others = parts
    if isinstance(first, dp_event.LaplaceDpEvent) and count == 1 and not others:
        return laplace(scale=first.noise_multiplier, adjacency=adjacency)
    return None


def _pure(event: dp_event.DpEvent, adjacency: Adjacency) -> float:
    """The sum of the epsilons of an event made of Laplace noise only, inf for others."""
    parts = _mechanisms(event)
    laplace_only = parts and all(isinstance(part, dp_event.LaplaceDpEvent) for part, _ in parts)
    if adjacency is not Adjacency.ADD_OR_REMOVE_ONE or not laplace_only:
        return math.inf
    return sum_up([times_up(laplace(scale=part.noise_multiplier).pure_epsilon, count) for part, count in parts])


def _attained(event: dp_event.DpEvent, adjacency: Adjacency, interval: float | None) -> PrivacyProfile | None:
    """The profile that an event attains if all its mechanisms are Gaussian, on Poisson samples or not."""
    parts: list[tuple[Any, int]] = []
    for part, count in _mechanisms(event):
        noise, rate = _gaussian(part, adjacency)
        gaussian = AttainedGaussian.of(1.0 / noise) if noise > 0.0 else None
        if rate == 0.0 or gaussian is None:
            return None
        parts.append((gaussian if rate == 1.0 else AttainedSampledGaussian(noise, rate), count))
    return parts_below(parts, interval)
