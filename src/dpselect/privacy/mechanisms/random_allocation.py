"""Gaussian noise under random allocation: each row takes part in one step of every epoch."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import SupportsFloat

from dpselect.errors import integer, number
from dpselect.numerics.logs import ROUND_UP
from dpselect.privacy.adjacency import Adjacency, parse_adjacency
from dpselect.privacy.bases import base_mechanism
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.losses.pld import LossProfile, suitable_interval
from dpselect.privacy.losses.random_allocation import (
    LEAST_NOISE,
    MOST_NOISE,
    allocation_mesh,
    random_allocation_loss,
)
from dpselect.privacy.losses.replaced_allocation import (
    LEAST_REPLACED,
    MOST_REPLACED,
    replaced_allocation_loss,
    replaced_allocation_mesh,
)
from dpselect.privacy.mechanisms.gaussian import gaussian
from dpselect.privacy.renyi import LinearRenyi

__all__ = ["random_allocation"]

_DEFAULT = Adjacency.ADD_OR_REMOVE_ONE
_LOSSES = "privacy-loss distribution of random allocation (docs/theory/random-allocation.md, Theorems 1 and 2)"
_REPLACED = "privacy-loss distribution of random allocation (docs/theory/random-allocation.md, Theorems 3 and 4)"


@base_mechanism("random-allocation", noise="noise_multiplier")
def random_allocation(
    *,
    noise_multiplier: SupportsFloat,
    steps_per_epoch: int,
    epochs: int = 1,
    adjacency: Adjacency | str = _DEFAULT,
) -> Guarantee:
    """Return the guarantee of DP-SGD in which each row takes part in exactly one step of every epoch.

    Each row draws its step uniformly and independently in each epoch (balls and bins). Batches of a shuffled table
    are another mechanism. The privacy-loss distribution is computed on a mesh and rounded up in both directions.

    Args:
        noise_multiplier: noise standard deviation / clipping norm, at least 1e-150. Below 0.05 it is priced as if the
            row took part in every step, and above 1e6 as 1e6.
        steps_per_epoch: the number of steps of an epoch, from 1 to 100,000. Many take seconds.
        epochs: the number of epochs, from 1 to 1,000,000. You must ensure that steps are drawn again for each.
        adjacency: the neighbours, an `Adjacency` or its text; add-or-remove-one unless given. Under replace-one
            noise below 0.4 or above 1e4 is priced as if the row took part in every step.

    Returns:
        The guarantee of all epochs.

    Raises:
        AdjacencyError: if `adjacency` is unknown.
        ArgumentError: if a number is out of range.
        TypeError: if an argument that must be a number is not.

    Source: docs/theory/random-allocation.md, Theorems 1 and 2, Theorems 3 and 4.

    >>> from dpselect.privacy import dp_sgd
    >>> print(round(random_allocation(noise_multiplier=1, steps_per_epoch=100).epsilon(delta=1e-6), 2))
    0.86
    >>> print(round(dp_sgd(noise_multiplier=1, sampling_rate=0.01, steps=100).epsilon(delta=1e-6), 2))
    0.95
    """
    noise_multiplier = number("noise_multiplier", noise_multiplier, at_least=1e-150, rounding="down")
    steps_per_epoch = integer("steps_per_epoch", steps_per_epoch, at_least=1, at_most=100_000)
    epochs = integer("epochs", epochs, at_least=1, at_most=1_000_000)
    adjacency = parse_adjacency(adjacency)
    terms = {
        "mechanism": "random-allocation",
        "noise_multiplier": noise_multiplier,
        "steps_per_epoch": steps_per_epoch,
        "epochs": epochs,
    }
    # a row that takes part in every step costs more: one step of an epoch moves as if it were the whole epoch
    replaced = adjacency is Adjacency.REPLACE_ONE
    moved = 2.0 if replaced else 1.0  # norms of a row that a neighbour moves a step's sum by
    one = noise_multiplier / (moved * math.sqrt(epochs))
    whole = replace(gaussian(noise_multiplier=one, adjacency=adjacency), terms=terms)
    if steps_per_epoch == 1:
        return whole
    bound = replace(whole, lower_profile=None)
    inside = LEAST_REPLACED <= noise_multiplier <= MOST_REPLACED if replaced else noise_multiplier >= LEAST_NOISE
    if not inside:
        return bound
    noise = min(noise_multiplier, MOST_NOISE)  # more noise costs no more
    curve = LinearRenyi(0.5 * epochs * (moved / noise) ** 2 * ROUND_UP)
    finest = (replaced_allocation_mesh if replaced else allocation_mesh)(noise, steps_per_epoch)
    interval = suitable_interval(curve, finest=finest)
    if interval is None:
        return bound
    loss = (replaced_allocation_loss if replaced else random_allocation_loss)(noise, steps_per_epoch, epochs)
    pair = "Theorem 3" if replaced else "Theorem 1"
    return Guarantee(
        adjacency=adjacency,
        theorem=f"random allocation (docs/theory/random-allocation.md, {pair})",
        terms=terms,
        renyi_curve=curve,
        profile=LossProfile(loss, interval, _REPLACED if replaced else _LOSSES),
        loss=loss,
    )
