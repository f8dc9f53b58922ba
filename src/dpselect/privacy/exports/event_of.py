"""The dp-accounting event of what a guarantee is made of, where there is one that costs at least as much.

Noise is lowered, and any other parameter raised, by 5e-5. The accountants of dp-accounting do not round outwards. Their
transforms and meshes take off less than that at deltas from 1e-10 on. Its two accountants read some events
differently. The event here is one that neither prices below the guarantee:

- Under replace_one its loss distributions double the sensitivity of Gaussian noise, and its Renyi accountant does not.
  So Gaussian noise becomes zCDP there.
- Its loss distributions count a randomised response once, however often it runs. A pure guarantee becomes a discrete
  Laplace event of sensitivity 1. Its losses are plus and minus epsilon, with the masses of randomised response.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from dpselect.privacy.adjacency import Adjacency
from dpselect.privacy.losses.pairs import (
    GaussianPairs,
    LaplacePairs,
    LossPairs,
    ProfilePairs,
    RandomizedResponsePairs,
)
from dpselect.privacy.losses.pld import LossProfile, LossSource, profile_loss, sampled_gaussian_loss
from dpselect.privacy.profile import (
    GaussianProfile,
    LaplaceProfile,
    MinimumProfile,
    RandomizedResponseProfile,
    RenyiProfile,
)
from dpselect.privacy.renyi import LinearRenyi

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

__all__ = ["MORE", "event_of"]

MORE: Final = 1.0 + 5e-5
"""What a parameter is raised by."""


@runtime_checkable
class ReadEvent(Protocol):
    """A curve or a loss distribution that was read from an event of dp-accounting, as in `privacy.events`."""

    @property
    def event(self) -> Any:
        """The event."""

    @property
    def adjacency(self) -> Adjacency:
        """The neighbours that it was accounted under."""


@runtime_checkable
class ComposedSources(Protocol):
    """A composition of loss distributions, as in `privacy.composition`."""

    @property
    def sources(self) -> tuple[tuple[LossSource, int], ...]:
        """The distributions, each with how often it runs."""


@singledispatch
def event_of(part: object, adjacency: Adjacency) -> DpEvent | None:
    """The event of a profile, a loss distribution, a Renyi curve or a recipe for pairs, or None if it has none.

    A module that defines another one registers its event here.
    """
    if isinstance(part, ComposedSources):
        return _composed(part, adjacency)
    if not isinstance(part, ReadEvent) or part.adjacency is not adjacency:
        return None
    doubled = isinstance(part, LossSource) and adjacency is Adjacency.REPLACE_ONE
    return None if doubled or "RandomizedResponse" in repr(part.event) else part.event


def _composed(part: ComposedSources, adjacency: Adjacency) -> DpEvent | None:
    from dp_accounting.dp_event import ComposedDpEvent, SelfComposedDpEvent

    events = []
    for source, count in part.sources:
        event = event_of(source, adjacency)
        if event is None:
            return None
        events.append(event if count == 1 else SelfComposedDpEvent(event, count))
    return ComposedDpEvent(events)


def _gaussian(mu: float, adjacency: Adjacency) -> DpEvent:
    from dp_accounting.dp_event import GaussianDpEvent, ZCDpEvent

    if adjacency is Adjacency.REPLACE_ONE:
        return ZCDpEvent(rho=0.5 * mu * mu * MORE)
    return GaussianDpEvent(noise_multiplier=1.0 / (mu * MORE))


def _laplace(epsilon: float) -> DpEvent:
    from dp_accounting.dp_event import LaplaceDpEvent

    return LaplaceDpEvent(noise_multiplier=1.0 / (epsilon * MORE))


def _response(epsilon: float, failure: float, adjacency: Adjacency) -> DpEvent | None:
    from dp_accounting.dp_event import DiscreteLaplaceDpEvent, NoOpDpEvent

    if failure > 0.0 or adjacency is Adjacency.REPLACE_ONE:
        return None
    return DiscreteLaplaceDpEvent(epsilon * MORE, 1) if epsilon > 0.0 else NoOpDpEvent()


@event_of.register(GaussianProfile)
@event_of.register(GaussianPairs)
def _(part: GaussianProfile | GaussianPairs, adjacency: Adjacency) -> DpEvent | None:
    return _gaussian(part.mu, adjacency)


@event_of.register(LaplaceProfile)
def _(part: LaplaceProfile, adjacency: Adjacency) -> DpEvent | None:  # noqa: ARG001
    return _laplace(part.epsilon0)


@event_of.register(LaplacePairs)
def _(part: LaplacePairs, adjacency: Adjacency) -> DpEvent | None:  # noqa: ARG001
    return _laplace(part.epsilon)


@event_of.register(RandomizedResponseProfile)
def _(part: RandomizedResponseProfile, adjacency: Adjacency) -> DpEvent | None:
    return _response(part.epsilon0, part.failure, adjacency)


@event_of.register(RandomizedResponsePairs)
def _(part: RandomizedResponsePairs, adjacency: Adjacency) -> DpEvent | None:
    return _response(part.epsilon, part.failure, adjacency)


@event_of.register(LinearRenyi)
def _(part: LinearRenyi, adjacency: Adjacency) -> DpEvent | None:  # noqa: ARG001
    from dp_accounting.dp_event import ZCDpEvent

    return ZCDpEvent(rho=part.rho * MORE)


@event_of.register(RenyiProfile)
def _(part: RenyiProfile, adjacency: Adjacency) -> DpEvent | None:
    return event_of(part.curve, adjacency) if part.failure == 0.0 else None


@event_of.register(MinimumProfile)
def _(part: MinimumProfile, adjacency: Adjacency) -> DpEvent | None:
    found = (event_of(profile, adjacency) for profile in part.profiles)
    return next((event for event in found if event is not None), None)


@event_of.register(LossProfile)
def _(part: LossProfile, adjacency: Adjacency) -> DpEvent | None:
    return event_of(part.source, adjacency)


@event_of.register(LossPairs)
@event_of.register(ProfilePairs)
@event_of.register(profile_loss)
def _(part: LossPairs | ProfilePairs | profile_loss, adjacency: Adjacency) -> DpEvent | None:
    return event_of(part.profile, adjacency)


@event_of.register(sampled_gaussian_loss)
def _(part: sampled_gaussian_loss, adjacency: Adjacency) -> DpEvent | None:
    from dp_accounting.dp_event import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent

    if adjacency is Adjacency.REPLACE_ONE:
        return None
    step = PoissonSampledDpEvent(part.sampling_rate, GaussianDpEvent(part.noise_multiplier / MORE))
    return SelfComposedDpEvent(step, part.steps)
