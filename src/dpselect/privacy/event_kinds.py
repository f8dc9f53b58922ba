"""The kinds of dp-accounting's DpEvents, each with the guarantee that its documentation states.

A kind is a name of a class, so kinds of newer releases are known without them. Under replace-one a row that was added
with norm C is taken out and another one put in, so the sum moves by 2 C. Noise that an event states relative to C is
half as large relative to that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

import attrs

from dpselect.errors import ArgumentError, integer, number
from dpselect.numerics.logs import ROUND_UP
from dpselect.privacy.adjacency import Adjacency
from dpselect.privacy.atoms import discrete_laplace, k_ary_response
from dpselect.privacy.composition import worst_of
from dpselect.privacy.event_losses import with_event_loss
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.mechanisms.fixed_batches import fixed_batches
from dpselect.privacy.mechanisms.gaussian import gaussian
from dpselect.privacy.mechanisms.known_curves import zcdp
from dpselect.privacy.mechanisms.laplace import laplace
from dpselect.privacy.mechanisms.mixed_gaussian import mixed_gaussian
from dpselect.privacy.mechanisms.poisson_samples import dp_sgd
from dpselect.privacy.mechanisms.pure import approximate_dp, pure_dp
from dpselect.privacy.renyi import AffineRenyi, LinearRenyi
from dpselect.privacy.sampled import fixed_sample, poisson_sample, repeated_sample

__all__ = ["KINDS", "EventKind", "event_kind", "gaussian_noise"]

Read = Callable[[Any, Adjacency], Guarantee]
"""The guarantee of an event, which events within it are read by."""


class EventKind(Protocol):
    """The guarantee of an event that is not a composition, given how to read the events within it."""

    def __call__(self, event: Any, adjacency: Adjacency, read: Read) -> Guarantee: ...


KINDS: Final[dict[str, EventKind]] = {}
"""By the name of the event's class."""


def event_kind(name: str) -> Callable[[EventKind], EventKind]:
    """Return a decorator that registers the kind of event with this class name. It raises if there is one already."""

    def register(kind: EventKind) -> EventKind:
        if name in KINDS:
            raise ArgumentError(f"the kind of event {name} exists already")
        KINDS[name] = kind
        return kind

    return register


def _moved(adjacency: Adjacency) -> int:
    """How far a neighbour moves a sum, in norms of one row."""
    return 2 if adjacency is Adjacency.REPLACE_ONE else 1


def gaussian_noise(event: Any, adjacency: Adjacency) -> float:
    """The noise of a GaussianDpEvent relative to how far a neighbour moves the sum."""
    return number("noise_multiplier", event.noise_multiplier, above=0.0, rounding="down") / _moved(adjacency)


@event_kind("NoOpDpEvent")
def _nothing(event: Any, adjacency: Adjacency, read: Read) -> Guarantee:  # noqa: ARG001
    return pure_dp(epsilon=0, adjacency=adjacency)


@event_kind("NonPrivateDpEvent")
def _no_privacy(event: Any, adjacency: Adjacency, read: Read) -> Guarantee:  # noqa: ARG001
    raise ArgumentError("event holds a NonPrivateDpEvent: there is no guarantee to speak of")


@event_kind("GaussianDpEvent")
def _gaussian(event: Any, adjacency: Adjacency, read: Read) -> Guarantee:  # noqa: ARG001
    return gaussian(noise_multiplier=gaussian_noise(event, adjacency), adjacency=adjacency)


@event_kind("LaplaceDpEvent")
def _laplace(event: Any, adjacency: Adjacency, read: Read) -> Guarantee:  # noqa: ARG001
    noise = number("noise_multiplier", event.noise_multiplier, above=0.0, rounding="down")
    return laplace(scale=noise / _moved(adjacency), adjacency=adjacency)


@event_kind("DiscreteLaplaceDpEvent")
def _discrete_laplace(event: Any, adjacency: Adjacency, read: Read) -> Guarantee:  # noqa: ARG001
    parameter = number("noise_parameter", event.noise_parameter, above=0.0, rounding="up")
    sensitivity = integer("sensitivity", event.sensitivity, at_least=0)
    return discrete_laplace(parameter, sensitivity * _moved(adjacency), adjacency)


@event_kind("DiscreteGaussianDpEvent")
def _discrete_gaussian(event: Any, adjacency: Adjacency, read: Read) -> Guarantee:  # noqa: ARG001
    """Source: Canonne, Kamath, Steinke 2020, Theorem 4, for any dimension. The sensitivity is the event's own."""
    sigma = number("sigma", event.sigma, above=0.0, rounding="down")
    sensitivity = number("sensitivity", event.sensitivity, at_least=0.0, rounding="up")
    return zcdp(rho=0.5 * (sensitivity / sigma) ** 2 * ROUND_UP, adjacency=adjacency)


@event_kind("ZCDpEvent")
def _zcdp(event: Any, adjacency: Adjacency, read: Read) -> Guarantee:  # noqa: ARG001
    rho = number("rho", event.rho, at_least=0.0, rounding="up")
    xi = number("xi", event.xi, at_least=0.0, rounding="up")
    linear = zcdp(rho=rho, adjacency=adjacency)
    if xi == 0.0:
        return linear
    pure = xi if rho == 0.0 else math.inf  # the divergence of every order is then at most xi
    return replace(linear, renyi_curve=AffineRenyi(xi, rho), pure_epsilon=pure)


@event_kind("EpsilonDeltaDpEvent")
def _epsilon_delta(event: Any, adjacency: Adjacency, read: Read) -> Guarantee:  # noqa: ARG001
    if number("delta", event.delta, at_least=0.0, below=1.0, rounding="up") == 0.0:
        return pure_dp(epsilon=event.epsilon, adjacency=adjacency)
    return approximate_dp(epsilon=event.epsilon, delta=event.delta, adjacency=adjacency)


@event_kind("PermuteAndFlipDpEvent")
def _permute_and_flip(event: Any, adjacency: Adjacency, read: Read) -> Guarantee:  # noqa: ARG001
    """Its epsilon. Source: McKenna, Sheldon 2020, Theorem 1."""
    return pure_dp(epsilon=event.epsilon, adjacency=adjacency)


@event_kind("ExponentialMechanismDpEvent")
def _exponential(event: Any, adjacency: Adjacency, read: Read) -> Guarantee:  # noqa: ARG001
    """Its epsilon, and epsilon**2 / 8 zCDP (Cesar, Rogers 2021)."""
    pure = pure_dp(epsilon=event.epsilon, adjacency=adjacency)
    return replace(pure, renyi_curve=LinearRenyi(pure.pure_epsilon**2 / 8.0 * ROUND_UP), lower_profile=None)


@event_kind("RandomizedResponseDpEvent")
def _response(event: Any, adjacency: Adjacency, read: Read) -> Guarantee:  # noqa: ARG001
    if adjacency is not Adjacency.REPLACE_ONE:
        raise ArgumentError("event: cannot account RandomizedResponseDpEvent under add_or_remove_one: give replace_one")
    noise = number("noise_parameter", event.noise_parameter, at_least=0.0, at_most=1.0, rounding="down")
    return k_ary_response(noise, integer("num_buckets", event.num_buckets, at_least=1), adjacency)


@event_kind("PoissonSampledDpEvent")
def _poisson_sampled(event: Any, adjacency: Adjacency, read: Read) -> Guarantee:
    """The mechanism on a Poisson sample. Under replace-one it must be of Gaussians."""
    rate = number("sampling_probability", event.sampling_probability, at_least=0.0, at_most=1.0, rounding="up")
    inner = read(event.event, adjacency)
    if rate in (0.0, 1.0):
        return inner if rate else pure_dp(epsilon=0, adjacency=adjacency)
    mu = inner.gaussian_mu
    if mu is not None and 1e-150 < mu < 1e150:
        noise = math.nextafter(_moved(adjacency) / mu, 0.0)
        return dp_sgd(noise_multiplier=noise, sampling_rate=rate, steps=1, adjacency=adjacency)
    if adjacency is Adjacency.REPLACE_ONE:
        raise ArgumentError("event: cannot account a PoissonSampledDpEvent under replace_one if it is not of Gaussians")
    return poisson_sample(inner, rate)


@event_kind("SampledWithoutReplacementDpEvent")
def _without_replacement(event: Any, adjacency: Adjacency, read: Read) -> Guarantee:
    """The mechanism on a sample of fixed size."""
    _expect_replacement(event, adjacency)
    inner = read(event.event, adjacency)
    found = fixed_sample(inner, size=event.source_dataset_size, draws=event.sample_size)
    mu = inner.gaussian_mu
    if mu is None or found is inner or not 1e-150 < mu < 1e150:
        return found
    sizes = {"dataset_size": event.source_dataset_size, "batch_size": event.sample_size}
    return fixed_batches(noise_multiplier=math.nextafter(2.0 / mu, 0.0), **sizes, steps=1, adjacency=adjacency)


@event_kind("SampledWithReplacementDpEvent")
def _with_replacement(event: Any, adjacency: Adjacency, read: Read) -> Guarantee:
    _expect_replacement(event, adjacency)
    return repeated_sample(read(event.event, adjacency), size=event.source_dataset_size, draws=event.sample_size)


@event_kind("SingleEpochTreeAggregationDpEvent")
def _tree(event: Any, adjacency: Adjacency, read: Read) -> Guarantee:  # noqa: ARG001
    """Gaussian noise on each node above a leaf. A replaced row moves at most as many nodes as the largest tree is high.

    By up to twice its norm each, or by its norm in twice as many nodes. Source: docs/theory/samples.md, Theorem 2.
    """
    _expect_replacement(event, adjacency)
    noise = number("noise_multiplier", event.noise_multiplier, above=0.0, rounding="down")
    counts = event.step_counts if isinstance(event.step_counts, Sequence) else [event.step_counts]
    most = max((integer("step_counts", count, at_least=0) for count in counts), default=0)
    if most == 0:
        return pure_dp(epsilon=0, adjacency=adjacency)
    return gaussian(noise_multiplier=noise / (2.0 * math.sqrt(most.bit_length()) * ROUND_UP), adjacency=adjacency)


def _expect_replacement(event: Any, adjacency: Adjacency) -> None:
    if adjacency is not Adjacency.REPLACE_ONE:
        raise ArgumentError(
            f"event: cannot account {type(event).__name__} under add_or_remove_one, where the number of rows is not "
            "public: give replace_one"
        )


@event_kind("MixtureOfGaussiansDpEvent")
def _mixture(event: Any, adjacency: Adjacency, read: Read) -> Guarantee:  # noqa: ARG001
    """Gaussian noise on a random shift, under adding or removing a row. Source: docs/theory/samples.md, Theorem 5."""
    deviation = number("standard_deviation", event.standard_deviation, above=0.0, rounding="down")
    if adjacency is Adjacency.REPLACE_ONE:
        raise ArgumentError("event: cannot account MixtureOfGaussiansDpEvent under replace_one: give add_or_remove_one")
    return mixed_gaussian(event.sensitivities, event.sampling_probs, deviation)


@event_kind("TruncatedSubsampledGaussianDpEvent")
def _truncated(event: Any, adjacency: Adjacency, read: Read) -> Guarantee:  # noqa: ARG001
    number("noise_multiplier", event.noise_multiplier, above=0.0, rounding="down")
    number("sampling_probability", event.sampling_probability, at_least=0.0, at_most=1.0, rounding="up")
    rows = integer("dataset_size", event.dataset_size, at_least=1)
    if adjacency is Adjacency.REPLACE_ONE:
        return with_event_loss(event, adjacency)
    # its loss is that of a row that is removed from so many rows, and one may be added
    return worst_of(*(with_event_loss(attrs.evolve(event, dataset_size=n), adjacency) for n in (rows, rows + 1)))
