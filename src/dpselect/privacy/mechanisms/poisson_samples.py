"""DP-SGD: Gaussian noise on Poisson samples, step by step."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import SupportsFloat

from dpselect.errors import integer, number
from dpselect.privacy.adjacency import Adjacency, parse_adjacency
from dpselect.privacy.bases import base_mechanism
from dpselect.privacy.below import AttainedReplacedGaussian, AttainedSampledGaussian, parts_below
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.losses.pld import LossProfile, sampled_gaussian_loss, suitable_interval
from dpselect.privacy.losses.replaced_gaussian import replaced_gaussian_loss
from dpselect.privacy.losses.sampled_gaussian import sampled_gaussian_mesh
from dpselect.privacy.mechanisms.gaussian import gaussian
from dpselect.privacy.replaced_gaussian import ReplacedGaussianRenyi
from dpselect.privacy.sampled_gaussian import SampledGaussianRenyi

__all__ = ["dp_sgd"]

_LEAST_RATE = 1e-300
_DEFAULT = Adjacency.ADD_OR_REMOVE_ONE
_SAMPLED_LOSSES = "privacy-loss distribution of the sampled Gaussian (Zhu, Dong, Wang 2022, Theorem 11)"
_REPLACED_LOSSES = "privacy-loss distribution of the sampled Gaussian (docs/theory/samples.md, Theorem 4)"


@base_mechanism("dp-sgd", noise="noise_multiplier")
def dp_sgd(
    *,
    noise_multiplier: SupportsFloat,
    sampling_rate: SupportsFloat,
    steps: int,
    adjacency: Adjacency | str = _DEFAULT,
) -> Guarantee:
    """Return the guarantee of DP-SGD: rounds of the Gaussian mechanism on Poisson samples.

    The Renyi curve is computed by quadrature at every real order (Mironov, Talwar, Zhang 2019). The privacy-loss
    distribution is in closed form for a step and composed by transforms, rounded up. With a sampling rate of 1 the
    rounds are Gaussian noise, which composes exactly.

    Args:
        noise_multiplier: noise standard deviation / clipping norm, at least 1e-150. Under replace-one, too, it is
            relative to the norm of one row. You need not double it.
        sampling_rate: the probability that a row is in a round's sample, in (0, 1]. You must ensure that each row is
            drawn independently in each round.
        steps: the number of rounds, from 1 to 2**1000.
        adjacency: add-or-remove-one, the default, or replace-one, as an `Adjacency` or its text.

    Returns:
        The guarantee under that adjacency.

    Raises:
        AdjacencyError: if `adjacency` is unknown.
        ArgumentError: if a number is out of range.
        TypeError: if an argument that must be a number is not.

    Source: Zhu, Dong, Wang 2022, Theorem 11; docs/theory/samples.md, Theorem 4.

    >>> one = dp_sgd(noise_multiplier=1, sampling_rate=0.01, steps=1000)
    >>> replaced = dp_sgd(noise_multiplier=1, sampling_rate=0.01, steps=1000, adjacency="replace_one")
    >>> print(round(one.epsilon(delta=1e-5), 2), round(replaced.epsilon(delta=1e-5), 2))
    1.83 2.84
    """
    noise_multiplier = number("noise_multiplier", noise_multiplier, at_least=1e-150, rounding="down")
    sampling_rate = number("sampling_rate", sampling_rate, above=0.0, at_most=1.0, rounding="up")
    steps = integer("steps", steps, at_least=1, at_most=1 << 1000)
    adjacency = parse_adjacency(adjacency)
    replaced = adjacency is Adjacency.REPLACE_ONE
    terms = {
        "mechanism": "dp-sgd",
        "noise_multiplier": noise_multiplier,
        "sampling_rate": sampling_rate,
        "steps": steps,
    }
    if sampling_rate == 1.0:  # every row is in every step: Gaussian noise, which composes exactly
        noise = noise_multiplier / math.sqrt(steps) / (2.0 if replaced else 1.0)
        return replace(gaussian(noise_multiplier=noise, adjacency=adjacency), terms=terms)
    # a larger rate costs more, and the inverse of a smaller one may overflow
    one_step = noise_multiplier, max(sampling_rate, _LEAST_RATE) if replaced else sampling_rate
    curve = (ReplacedGaussianRenyi if replaced else SampledGaussianRenyi)(*one_step, steps)
    loss = (replaced_gaussian_loss if replaced else sampled_gaussian_loss)(*one_step, steps)
    attained = (AttainedReplacedGaussian if replaced else AttainedSampledGaussian)(*one_step)
    finest = sampled_gaussian_mesh(noise_multiplier=noise_multiplier, sampling_rate=one_step[1])
    interval = suitable_interval(curve, finest=2.0 * finest if replaced else finest)
    theorem = _REPLACED_LOSSES if replaced else _SAMPLED_LOSSES
    return Guarantee(
        adjacency=adjacency,
        theorem="DP-SGD (Abadi et al. 2016)",
        terms=terms,
        renyi_curve=curve,
        profile=LossProfile(loss, interval, theorem) if interval is not None else None,
        lower_profile=parts_below([(attained, steps)], interval) if one_step[1] == sampling_rate else None,
        loss=loss if interval is not None else None,
    )
