"""Class weights from noisy numbers of rows, for a small part of a fit's privacy cost.

Claim: let a fit be covered by a Gaussian mechanism of noise multiplier sigma. Take the noise of `rest_of_noise(sigma)`
in its place, and release the numbers of rows by class with the noise of `noisy_weights`. Both together are covered by
the same Gaussian mechanism.

Proof: a row is of one class, so a row that is added or removed moves the numbers by 1, and one that is replaced moves
two of them by 1 each. Their L2 sensitivity is 1 or sqrt(2), and the noise's deviation is sigma/sqrt(s) times that, with
s = 1/50. The weights are functions of the noisy numbers. The fit with these weights has 1/sqrt(1 - s) times the noise.
Gaussian mechanisms that are chosen by earlier outputs compose to one with the sum of the squares of their parameters:
s/sigma^2 + (1 - s)/sigma^2. QED

Source: Dong, Roth, Su (2022), Corollary 3.3.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.mechanisms.grid import gaussian_integers
from dpselect.numerics.search import Array
from dpselect.randomness import RandomSource

__all__ = ["BALANCED", "is_balanced", "noisy_weights", "rest_of_noise"]

BALANCED: Final = "balanced"
_SHARE: Final = 1.0 / 50.0
"""The part of the squared Gaussian differential privacy parameter that pays for the numbers of rows."""
_UP: Final = 1.0 + 2.0**-48
_LEAST: Final = 2.0
"""A number of rows below so many deviations of the noise counts as if it were as large."""


def is_balanced(weights: Any) -> bool:
    """Whether the weights are to follow from noisy numbers of rows."""
    return isinstance(weights, str) and weights == BALANCED


def rest_of_noise(noise_multiplier: float) -> float:
    """The noise multiplier that is left for the fit.

    >>> round(rest_of_noise(7.0), 3)
    7.071
    """
    return noise_multiplier / math.sqrt(1.0 - _SHARE) * _UP


def noisy_weights(
    numbers: NDArray[np.integer[Any]], classes: int, noise_multiplier: float, *, replace: bool, random: RandomSource
) -> Array:
    """The weight of each class: one over its noisy number of rows, the largest being 1, shape (classes,).

    Args:
        numbers: the class of each row, from 0 on.
        classes: how many classes there are.
        noise_multiplier: that of the Gaussian mechanism that covers the whole fit.
        replace: whether neighbours differ by a row that is replaced.
        random: what the noise is drawn from.

    >>> from dpselect.randomness import keyed_source
    >>> rows = np.repeat([0, 1], [9_900, 100])
    >>> noisy_weights(rows, 2, 1.0, replace=False, random=keyed_source(1)).round(3)
    array([0.01, 1.  ])
    """
    sensitivity = math.sqrt(2.0) if replace else 1.0
    deviation = max(1.0, noise_multiplier / math.sqrt(_SHARE) * sensitivity * _UP)
    counts = np.bincount(numbers, minlength=classes) + gaussian_integers(deviation, classes, random)
    kept = np.maximum(counts, _LEAST * deviation)
    return np.asarray(np.min(kept) / kept)
