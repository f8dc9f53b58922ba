"""DP-SGD on batches of fixed size, drawn without replacement."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, SupportsFloat

import numpy as np

from dpselect.errors import AdjacencyError, integer, number
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy.adjacency import Adjacency, parse_adjacency
from dpselect.privacy.bases import base_mechanism
from dpselect.privacy.exports.event_of import MORE, event_of
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.losses.composition import BothLosses, compose_distributions
from dpselect.privacy.losses.pld import LossProfile, LossSource, suitable_interval
from dpselect.privacy.losses.sampled_gaussian import fixed_sample_losses, sampled_gaussian_mesh
from dpselect.privacy.mechanisms.gaussian import gaussian

__all__ = ["FixedSampleRenyi", "fixed_batches", "fixed_sample_loss"]

_LOSSES = "privacy-loss distribution of a sample without replacement (Balle, Barthe, Gaboardi 2018, Theorem 9)"


@dataclass(frozen=True)
class FixedSampleRenyi:
    """`steps` Gaussians on samples of fixed size: x^order y^(1-order) is jointly convex, in closed form.

    `mu` is how far a replaced row moves a sum, in standard deviations of the noise.
    """

    mu: float
    rate: float
    steps: int
    theorem: str = "mechanism on a sample without replacement, by joint convexity"

    def __call__(self, orders: Array) -> Array:
        orders = np.asarray(orders, dtype=np.float64)
        with np.errstate(over="ignore"):
            plain = 0.5 * orders * self.mu * self.mu
            growth = (orders - 1.0) * plain
            far = np.logaddexp(math.log1p(-self.rate), math.log(self.rate) + growth)
            mixed = np.where(growth < 1.0, np.log1p(self.rate * np.expm1(np.minimum(growth, 1.0))), far)
            return np.asarray(self.steps * np.minimum(mixed / (orders - 1.0), plain) * ROUND_UP)


@dataclass(frozen=True)
class fixed_sample_loss(LossSource):
    """The privacy-loss distribution of `steps` Gaussians on samples of fixed size, under replacing one row."""

    mu: float
    size: int
    draws: int
    steps: int

    @property
    def rate(self) -> float:
        """The share of the rows in a sample, rounded up."""
        return min(self.draws / self.size * ROUND_UP, 1.0)

    def __call__(self, interval: float) -> BothLosses:
        one = fixed_sample_losses(mu=self.mu, sampling_rate=self.rate, width=interval)
        return compose_distributions([(BothLosses(one, one), self.steps)])

    @property
    def parts(self) -> int:
        """How many distributions are added up."""
        return self.steps

    @property
    def transforms(self) -> int:
        """Both directions have the same distribution."""
        return 1


@event_of.register(fixed_sample_loss)
def _event(part: fixed_sample_loss, adjacency: Adjacency) -> Any:  # noqa: ARG001
    """dp-accounting takes noise relative to how far a replaced row moves the sum."""
    from dp_accounting.dp_event import GaussianDpEvent, SampledWithoutReplacementDpEvent, SelfComposedDpEvent

    one = SampledWithoutReplacementDpEvent(part.size, part.draws, GaussianDpEvent(1.0 / (part.mu * MORE)))
    return one if part.steps == 1 else SelfComposedDpEvent(one, part.steps)


@base_mechanism("fixed-batches", noise="noise_multiplier")
def fixed_batches(
    *,
    noise_multiplier: SupportsFloat,
    dataset_size: int,
    batch_size: int,
    steps: int,
    adjacency: Adjacency | str = Adjacency.REPLACE_ONE,
) -> Guarantee:
    """Return the guarantee of DP-SGD on batches of fixed size, each drawn without replacement by itself.

    The number of rows is public. Shuffled epochs, in which a row is in one batch only, are another mechanism.

    Args:
        noise_multiplier: noise standard deviation / clipping norm, at least 1e-150. It is relative to the norm of one
            row. You need not double it.
        dataset_size: the number of rows, public, up to 10**12.
        batch_size: the number of rows in a batch, from 1 to `dataset_size`.
        steps: the number of batches, from 1 to 2**1000.
        adjacency: replace-one, the default, as an `Adjacency` or its text.

    Returns:
        The guarantee of all steps.

    Raises:
        AdjacencyError: if `adjacency` is unknown, or add-or-remove-one, where the number of rows is private.
        ArgumentError: if a number is out of range.
        TypeError: if an argument that must be a number is not.

    Source: Balle, Barthe, Gaboardi 2018, Theorem 9.

    >>> training = fixed_batches(noise_multiplier=2, dataset_size=1000, batch_size=10, steps=100)
    >>> print(round(training.epsilon(delta=1e-5), 2))
    0.77
    """
    noise_multiplier = number("noise_multiplier", noise_multiplier, at_least=1e-150, rounding="down")
    dataset_size = integer("dataset_size", dataset_size, at_least=1, at_most=10**12)
    batch_size = integer("batch_size", batch_size, at_least=1, at_most=dataset_size)
    steps = integer("steps", steps, at_least=1, at_most=1 << 1000)
    adjacency = parse_adjacency(adjacency)
    if adjacency is not Adjacency.REPLACE_ONE:
        raise AdjacencyError(
            'fixed_batches is proved for replace_one, as the number of rows is public: give adjacency="replace_one"'
        )
    terms = {
        "mechanism": "fixed-batches",
        "noise_multiplier": noise_multiplier,
        "dataset_size": dataset_size,
        "batch_size": batch_size,
        "steps": steps,
    }
    if batch_size == dataset_size:  # every row is in every step: Gaussian noise, which composes exactly
        noise = 0.5 * noise_multiplier / math.sqrt(steps)
        return replace(gaussian(noise_multiplier=noise, adjacency=adjacency), terms=terms)
    loss = fixed_sample_loss(2.0 / noise_multiplier * ROUND_UP, dataset_size, batch_size, steps)
    curve = FixedSampleRenyi(loss.mu, loss.rate, steps)
    finest = sampled_gaussian_mesh(noise_multiplier=0.5 * noise_multiplier, sampling_rate=loss.rate)
    interval = suitable_interval(curve, finest=finest)
    return Guarantee(
        adjacency=adjacency,
        theorem="DP-SGD on batches of fixed size (Balle, Barthe, Gaboardi 2018, Theorem 9)",
        terms=terms,
        renyi_curve=curve,
        profile=LossProfile(loss, interval, _LOSSES) if interval is not None else None,
        loss=loss if interval is not None else None,
    )
