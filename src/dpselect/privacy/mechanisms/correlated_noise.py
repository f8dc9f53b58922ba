"""Training with noise that is correlated over the steps: DP-FTRL and banded matrix factorisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, SupportsFloat

import numpy as np

from dpselect.errors import ArgumentError, integer, number
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array
from dpselect.privacy.adjacency import Adjacency, parse_adjacency
from dpselect.privacy.bases import base_mechanism
from dpselect.privacy.below import AttainedGaussian
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.mechanisms.gaussian import gaussian
from dpselect.privacy.mechanisms.poisson_samples import dp_sgd

__all__ = ["correlated_noise", "toeplitz_sensitivity"]

_MOST_STEPS: Final = 10_000_000
_LEAST_NOISE: Final = 1e-150
_MOST_NOISE: Final = 1e150
"""More noise costs no more. Its inverse has all digits."""
_SUMMING: Final = 1e-9
"""More than the relative error of sums of ten million terms that are not negative."""
_BELOW: Final = 5e-9
"""More than all that a sensitivity is rounded up by."""


@base_mechanism("correlated-noise", noise="noise_multiplier")
def correlated_noise(
    *,
    noise_multiplier: SupportsFloat,
    coefficients: Sequence[SupportsFloat] | int,
    steps: int,
    min_separation: int = 1,
    max_participations: int | None = None,
    sampling_rate: SupportsFloat | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
) -> Guarantee:
    """Return the guarantee of training with noise that is correlated over the steps by a Toeplitz strategy matrix.

    This is DP-FTRL by matrix factorisation: step t adds row t of C^-1 Z to the sum of clipped gradients. Z has
    independent Gaussian rows, and C is lower triangular with the same coefficients c_0, c_1, ... in each column. With
    `sampling_rate` it is the amplified banded mechanism. A rule splits rows into `min_separation` groups, which take
    turns. Each row of a group is in the step's sample by a coin.

    Args:
        noise_multiplier: standard deviation of Z / clipping norm, at least 1e-150, also relative to how far a row moves
            C G. Under replace-one, too, it is relative to the norm of one row.
        coefficients: c_0, c_1, ..., the first above 0. Others are 0. An integer b stands for the first b coefficients
            of the square root of the matrix of ones below the diagonal: 1, 1/2, 3/8, ...
        steps: the number of steps, from 1 to 10**7.
        min_separation: at least so many steps are from one participation of a row to the next. You must ensure this.
            A row that replaces another one takes part in the same steps.
        max_participations: at most so many steps have a row. None means as many as `min_separation` leaves.
        sampling_rate: the probability that a row of the group whose turn it is takes part, in (0, 1]. None, the
            default, claims nothing about samples. You must ensure that a row's group does not depend on other rows.
            Under add-or-remove-one take its key for that, not its index.
        adjacency: the neighbours, an `Adjacency` or its text; add-or-remove-one unless given.

    Returns:
        The guarantee of the whole training.

    Raises:
        AdjacencyError: if `adjacency` is unknown.
        ArgumentError: if a number is out of range. Also if there are more coefficients than `min_separation`, and they
            are negative or grow, or `sampling_rate` is given. Also if you give both `sampling_rate` and
            `max_participations`.
        TypeError: if an argument that must be a number is not.

    Source: docs/theory/correlated-noise.md, Theorems 1 and 2.

    >>> plain = correlated_noise(noise_multiplier=8, coefficients=4, steps=1000, min_separation=100)
    >>> sampled = correlated_noise(noise_multiplier=8, coefficients=4, steps=1000, min_separation=4, sampling_rate=0.04)
    >>> print(round(plain.epsilon(delta=1e-6), 2), round(sampled.epsilon(delta=1e-6), 2))
    2.17 0.39
    """
    noise_multiplier = number("noise_multiplier", noise_multiplier, at_least=_LEAST_NOISE, rounding="down")
    steps = integer("steps", steps, at_least=1, at_most=_MOST_STEPS)
    column = _column(coefficients, steps)
    separation = integer("min_separation", min_separation, at_least=1)
    adjacency = parse_adjacency(adjacency)
    # relative to the largest, as squares of tiny or huge numbers have no digits
    unit = float(np.max(np.abs(column)))
    scaled = column / unit
    terms = {
        "mechanism": "correlated-noise",
        "noise_multiplier": noise_multiplier,
        "coefficients": column.tolist() if isinstance(coefficients, (Sequence, np.ndarray)) else int(coefficients),
        "steps": steps,
        "min_separation": separation,
    }
    if sampling_rate is None:
        most = -(-steps // separation)
        if max_participations is not None:
            most = min(most, integer("max_participations", max_participations, at_least=1))
        moved = 2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0
        noise = _relative(noise_multiplier, unit, moved * toeplitz_sensitivity(scaled, steps, separation, most))
        found = gaussian(noise_multiplier=noise, adjacency=adjacency)
        # the sensitivity is attained, and was rounded up
        lower = AttainedGaussian.of((1.0 - _BELOW) / noise)
        return replace(found, terms={**terms, "max_participations": most}, lower_profile=lower)
    if max_participations is not None:
        raise ArgumentError("max_participations cannot be given with sampling_rate: coins decide how often a row is in")
    if column.size > separation:
        raise ArgumentError("coefficients must be at most min_separation many with sampling_rate, one for each group")
    noise, blocks = _relative(noise_multiplier, unit, _norm(scaled)), -(-steps // separation)
    found = dp_sgd(noise_multiplier=noise, sampling_rate=sampling_rate, steps=blocks, adjacency=adjacency)
    # the steps may end before the last block does
    whole = blocks if steps - (blocks - 1) * separation >= column.size else blocks - 1
    attained = dp_sgd(
        noise_multiplier=noise * (1.0 + _BELOW), sampling_rate=sampling_rate, steps=whole, adjacency=adjacency
    )
    kept = {**terms, "sampling_rate": found.terms["sampling_rate"]}
    return replace(found, terms=kept, lower_profile=attained.lower_profile)


def toeplitz_sensitivity(column: Array, steps: int, separation: int, most: int) -> float:
    """How far one row of norm 1 moves C G in Euclidean norm, if it takes part at most so often. Rounded up.

    Raises `ArgumentError` if columns overlap and the coefficients are negative or grow.
    """
    if column.size <= separation:
        last = _norm(column[: steps - (most - 1) * separation])
        return math.hypot(_norm(column) * math.sqrt(most - 1), last) * ROUND_UP
    if np.any(column < 0.0) or np.any(np.diff(column) > 0.0):
        raise ArgumentError(
            "coefficients must not be negative or grow, if they are more than min_separation: no bound is known"
        )
    rows = -(-steps // separation)
    chunks = -(-rows // most)
    padded = np.zeros(chunks * most * separation)
    padded[: column.size] = column
    # the last `most` blocks up to each: within its chunk, and the rest of the chunk before
    blocks = padded.reshape(chunks, most, separation)
    sums = np.cumsum(blocks, axis=1)
    sums[1:, :-1] += np.cumsum(blocks[:-1, :0:-1], axis=1)[:, ::-1]
    return _norm(sums.ravel()[:steps])


def _relative(noise_multiplier: float, unit: float, moved: float) -> float:
    """The noise relative to what a row moves: `moved`, in this unit."""
    noise = min(noise_multiplier / unit / moved, _MOST_NOISE)
    if noise < _LEAST_NOISE:
        raise ArgumentError("noise_multiplier must be at least 1e-150 times what a row of norm 1 moves C G by")
    return noise


def _norm(values: Array) -> float:
    return math.sqrt(float(np.sum(np.square(values)))) * (1.0 + _SUMMING)


def _column(coefficients: Sequence[SupportsFloat] | int, steps: int) -> Array:
    """The coefficients that fall on the steps, without zeros at the end."""
    if not isinstance(coefficients, (Sequence, np.ndarray)):
        bands = min(integer("coefficients", coefficients, at_least=1), steps)
        later = np.arange(1, bands, dtype=np.float64)
        return np.cumprod(np.append(1.0, (2.0 * later - 1.0) / (2.0 * later)))
    given = np.array([number("coefficients", each) for each in coefficients], dtype=np.float64)[:steps]
    if not given.size or not given[0] > 0.0:
        raise ArgumentError("coefficients must begin with a number above 0: C has an inverse then")
    return np.trim_zeros(given, "b")
