"""DP-SGD: Gaussian noise on Poisson samples, step by step."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import SupportsFloat

from dpselect.errors import AdjacencyError, integer, number
from dpselect.privacy.adjacency import Adjacency, parse_adjacency
from dpselect.privacy.bases import base_mechanism
from dpselect.privacy.below import AttainedSampledGaussian, parts_below
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.losses.pld import LossProfile, sampled_gaussian_loss, suitable_interval
from dpselect.privacy.losses.sampled_gaussian import sampled_gaussian_mesh
from dpselect.privacy.mechanisms.gaussian import gaussian
from dpselect.privacy.sampled_gaussian import SampledGaussianRenyi

__all__ = ["dp_sgd"]

_DEFAULT = Adjacency.ADD_OR_REMOVE_ONE
_SAMPLED_LOSSES = "privacy-loss distribution of the sampled Gaussian (Zhu, Dong, Wang 2022, Theorem 11)"


@base_mechanism("dp-sgd", noise="noise_multiplier")
def dp_sgd(
    *,
    noise_multiplier: SupportsFloat,
    sampling_rate: SupportsFloat,
    steps: int,
    adjacency: Adjacency | str = _DEFAULT,
) -> Guarantee:
    """Return the guarantee of DP-SGD: rounds of the Gaussian mechanism on Poisson samples, under adding or removing one
    row.

    The Renyi curve is computed by quadrature at every real order (Mironov, Talwar, Zhang 2019). The privacy-loss
    distribution is in closed form for a step and composed by transforms, rounded up. With a sampling rate of 1 the
    rounds are Gaussian noise, which composes exactly.

    Args:
        noise_multiplier: noise standard deviation / clipping norm, at least 1e-150.
        sampling_rate: the probability that a row is in a round's sample, in (0, 1]. You must ensure that each row is
            drawn independently in each round.
        steps: the number of rounds, from 1 to 2**1000.
        adjacency: add-or-remove-one, the default, as an `Adjacency` or its text.

    Raises:
        AdjacencyError: if `adjacency` is unknown, or replace-one, where this does not apply.
        ArgumentError: if a number is out of range.
        TypeError: if an argument that must be a number is not.
    """
    noise_multiplier = number("noise_multiplier", noise_multiplier, at_least=1e-150, rounding="down")
    sampling_rate = number("sampling_rate", sampling_rate, above=0.0, at_most=1.0, rounding="up")
    steps = integer("steps", steps, at_least=1, at_most=1 << 1000)
    adjacency = parse_adjacency(adjacency)
    if adjacency is not Adjacency.ADD_OR_REMOVE_ONE:
        raise AdjacencyError("dp_sgd is proved for add_or_remove_one; compose your own event for replace_one")
    terms = {
        "mechanism": "dp-sgd",
        "noise_multiplier": noise_multiplier,
        "sampling_rate": sampling_rate,
        "steps": steps,
    }
    if sampling_rate == 1.0:  # every row is in every step: Gaussian noise, which composes exactly
        return replace(gaussian(noise_multiplier=noise_multiplier / math.sqrt(steps), adjacency=adjacency), terms=terms)
    curve = SampledGaussianRenyi(noise_multiplier, sampling_rate, steps)
    loss = sampled_gaussian_loss(noise_multiplier, sampling_rate, steps)
    finest = sampled_gaussian_mesh(noise_multiplier=noise_multiplier, sampling_rate=sampling_rate)
    interval = suitable_interval(curve, finest=finest)
    return Guarantee(
        adjacency=adjacency,
        theorem="DP-SGD (Abadi et al. 2016)",
        terms=terms,
        renyi_curve=curve,
        profile=LossProfile(loss, interval, _SAMPLED_LOSSES) if interval is not None else None,
        lower_profile=parts_below([(AttainedSampledGaussian(noise_multiplier, sampling_rate), steps)], interval),
        loss=loss if interval is not None else None,
    )
