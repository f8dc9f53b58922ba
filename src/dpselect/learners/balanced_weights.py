"""Class weights from noisy numbers of rows, for a small part of a fit's privacy cost.

Claim: let a fit be covered by a Gaussian mechanism of noise multiplier sigma. Take the noise multiplier
`rest_of_noise(sigma, s)` in its place, and release the numbers of rows by class with the noise of `noisy_weights`. Both
together are covered by the same Gaussian mechanism, for each public s from 0 to 1.

Proof: a row is of one class. If it is added or removed, one number moves by 1. If it is replaced, two of them do. Their
L2 sensitivity is 1 or sqrt(2), and the noise's deviation is sigma/sqrt(s) times that. The weights are functions of the
noisy numbers. The fit with these weights has 1/sqrt(1 - s) times the noise. Gaussian mechanisms that are chosen by
earlier outputs compose to one, as in `tree_sums`. The squares of their parameters add up to s/sigma^2 + (1 -
s)/sigma^2. QED
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.mechanisms.grid import gaussian_integers
from dpselect.numerics.search import Array
from dpselect.randomness import RandomSource

__all__ = ["BALANCED", "is_balanced", "noisy_weights", "rest_of_noise", "share_of_counts"]

BALANCED: Final = "balanced"
_SHARES: Final = (0.01, 0.1)
"""The least and the largest part of the squared Gaussian differential privacy parameter for the numbers of rows."""
_FEWEST: Final = 1.0 / 400.0
"""The deviation of the noise aimed at, as a part of the rows: then a class with 2 % of the rows is counted well."""
_UP: Final = 1.0 + 2.0**-48


def is_balanced(weights: Any) -> bool:
    """Whether the weights are to follow from noisy numbers of rows."""
    return isinstance(weights, str) and weights == BALANCED


def share_of_counts(noise_multiplier: float, rows: float) -> float:
    """The part s that the numbers of rows have, from the public number of rows. The more noise a row has, the larger.

    >>> share_of_counts(4.0, 1600.0), share_of_counts(1.4, 50_000.0)
    (0.1, 0.01)
    """
    return min(max((noise_multiplier / (_FEWEST * rows)) ** 2, _SHARES[0]), _SHARES[1])


def rest_of_noise(noise_multiplier: float, share: float) -> float:
    """The noise multiplier that is left for the fit.

    >>> round(rest_of_noise(7.0, 0.04), 3)
    7.144
    """
    return noise_multiplier / math.sqrt(1.0 - share) * _UP


def noisy_weights(
    numbers: NDArray[np.integer[Any]], classes: int, noise_multiplier: float, *, replace: bool, random: RandomSource
) -> Array:
    """The weight of each class: one over its noisy number of rows, the largest being 1, shape (classes,).

    Args:
        numbers: the class of each row, from 0 on.
        classes: how many classes there are.
        noise_multiplier: that of the numbers of rows alone, sigma/sqrt(s).
        replace: whether neighbours differ by a row that is replaced.
        random: what the noise is drawn from.

    >>> from dpselect.randomness import keyed_source
    >>> rows = np.repeat([0, 1], [9_900, 100])
    >>> noisy_weights(rows, 2, 5.0, replace=False, random=keyed_source(1)).round(3)
    array([0.011, 1.   ])
    """
    sensitivity = math.sqrt(2.0) if replace else 1.0
    deviation = max(1.0, noise_multiplier * sensitivity * _UP)
    counts = np.bincount(numbers, minlength=classes) + gaussian_integers(deviation, classes, random)
    kept = np.maximum(counts, deviation)  # a smaller number is hardly anything but noise
    return np.asarray(np.min(kept) / kept)
