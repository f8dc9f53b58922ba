"""How much of a noisy leaf is signal: an empirical Bayes estimate from released numbers, which costs nothing.

The means of a tree's leaves are taken for Gaussian with the prior covariance t^2 r^h: h is on how many levels two
leaves differ. Their noise is known. So the best linear estimate of the true means is known too, given the signal t and
the likeness r of near leaves. These are the ones under which the noisy means of the last rounds are most likely.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dpselect.numerics.search import Array

__all__ = ["LeafPrior"]

_LIKENESS: Final = (0.0, 0.3, 0.6, 0.8, 0.9, 0.97)
_SIGNALS: Final = np.geomspace(1e-3, 1.0, 13)
_MEMORY: Final = 0.9
"""What a round's likelihood counts one round later."""


class LeafPrior:
    """The prior of the leaves' means of trees of one depth, which learns from each noisy tree that it is shown."""

    def __init__(self, depth: int) -> None:
        """`depth` is that of the trees."""
        ones = np.array([[1.0]])
        kernels = []
        for likeness in _LIKENESS:
            kernel = ones
            for _ in range(depth):
                kernel = np.kron(kernel, np.array([[1.0, likeness], [likeness, 1.0]]))
            kernels.append(kernel)
        self._kernels = np.stack(kernels)
        self._likelihood = np.zeros((len(_LIKENESS), len(_SIGNALS)))

    def estimate(self, means: Array, deviations: Array) -> Array:
        """The estimates of the true means, shape (leaves, outputs), after learning from these noisy ones.

        `means` have that shape too, and `deviations` are those of their noise, shape (leaves,).
        """
        variances = np.diag(np.square(deviations))
        self._likelihood *= _MEMORY
        for place, signal in enumerate(_SIGNALS):
            whole = signal**2 * self._kernels + variances
            factor = np.linalg.cholesky(whole)
            scaled = np.linalg.solve(factor, np.broadcast_to(means, (len(factor), *means.shape)))
            sizes = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
            self._likelihood[:, place] -= 0.5 * np.square(scaled).sum(axis=(1, 2)) + means.shape[1] * sizes
        kernel, signal = np.unravel_index(int(np.argmax(self._likelihood)), self._likelihood.shape)
        prior = _SIGNALS[signal] ** 2 * self._kernels[kernel]
        return np.asarray(prior @ np.linalg.solve(prior + variances, means))
