"""Gaussian noise on a random shift: what an event that is a mixture of Gaussians costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dpselect.errors import ArgumentError, number
from dpselect.numerics.logs import ROUND_UP
from dpselect.privacy.adjacency import Adjacency
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.losses.mixed_gaussian import MixedGaussianRenyi, mixed_gaussian_loss, mixed_gaussian_mesh
from dpselect.privacy.losses.pld import LossProfile, suitable_interval
from dpselect.privacy.mechanisms.pure import pure_dp

__all__ = ["mixed_gaussian"]

_LEAST = 1e-12
"""Smaller shifts are priced as this one: a larger shift costs more."""
_MOST = 1e150
"""Squares of larger shifts overflow."""
_LOSSES = "privacy-loss distribution of a mixture of Gaussians (docs/theory/samples.md, Theorem 5)"


def mixed_gaussian(shifts: Sequence[Any], probabilities: Sequence[Any], standard_deviation: float) -> Guarantee:
    """Return the guarantee of Gaussian noise on a sum that a row moves by a random shift, under adding or removing it.

    Args:
        shifts: how far the row may move the sum, each from 0 to 1e150 standard deviations. Of a vector, the norm.
        probabilities: one for each shift, at least 0, with sum 1 up to 1e-9.
        standard_deviation: of the noise, above 0.

    Raises:
        ArgumentError: if a number is out of range, or the lengths differ.
        TypeError: if an entry is not a number.
    """
    if len(shifts) != len(probabilities) or not len(shifts):
        raise ArgumentError("sensitivities and sampling_probs must have the same length, at least 1")
    moved: dict[float, float] = {}
    for shift, probability in zip(shifts, probabilities, strict=True):
        size = number("sensitivities", shift, at_least=0.0, rounding="up") / standard_deviation * ROUND_UP
        share = number("sampling_probs", probability, at_least=0.0, at_most=1.0, rounding="up")
        if share > 0.0 and size > _MOST:
            raise ArgumentError(f"sensitivities must be at most 1e150 standard deviations of the noise, got {shift!r}")
        if share > 0.0:
            key = max(size, _LEAST) if size > 0.0 else 0.0
            moved[key] = moved.get(key, 0.0) + share
    if not abs(math.fsum(moved.values()) - 1.0) <= 1e-9:
        raise ArgumentError("sampling_probs must add up to 1")
    known = _positive(moved)
    adjacency = Adjacency.ADD_OR_REMOVE_ONE
    if not known:
        return pure_dp(epsilon=0, adjacency=adjacency)
    curve, loss = MixedGaussianRenyi(known), mixed_gaussian_loss(known)
    interval = suitable_interval(curve, finest=mixed_gaussian_mesh(known))
    return Guarantee(
        adjacency=adjacency,
        theorem=_LOSSES,
        terms={"mechanism": "mixed-gaussian"},
        renyi_curve=curve,
        profile=LossProfile(loss, interval, _LOSSES) if interval is not None else None,
        loss=loss if interval is not None else None,
    )


def _positive(moved: dict[float, float]) -> tuple[tuple[float, float], ...]:
    """The shifts above 0, the largest first, with probabilities of at most 1 in all. A rest counts at the largest."""
    known, left = [], 1.0
    for shift in sorted(moved, reverse=True):
        share = min(moved[shift], left)
        left -= share
        if shift > 0.0 and share > 0.0:
            known.append((shift, share))
    if 0.0 not in moved and known:
        known[0] = known[0][0], min(known[0][1] + left, 1.0)
    return tuple(known)
