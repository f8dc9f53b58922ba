"""Choosing a heavy node, privately and regardless of the number of nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpselect.ordered.interior_points.draws import SecretDraws

__all__ = ["StableChoice", "SupportChoice", "laplace_tail_steps"]


def laplace_tail_steps(epsilon: float, mass: float) -> int:
    """The least k >= 0 with P(X >= k) <= mass (1 + 1e-13) for P(X = x) proportional to exp(-epsilon |x|).

    Prices that rest on it are rounded up by more than that.

    >>> laplace_tail_steps(math.log(2), 1/12)
    3
    """
    needed = -math.log(mass) - math.log1p(math.exp(-epsilon))
    k = max(0, math.ceil(needed / epsilon - 1e-9))
    while -epsilon * k - math.log1p(math.exp(-epsilon)) > math.log(mass) + 1e-13:
        k += 1
    return k


@dataclass(frozen=True)
class StableChoice:
    """Each point is under one node: the largest noisy weight, if it reaches a threshold.

    Every occupied node gets noise of parameter `epsilon`. The largest noisy weight is chosen if it is at least 1 + k
    with P(noise >= k) <= delta, the first of equal ones. The choice is (epsilon, delta)-private for adding or removing
    a point, and (2 epsilon, 2 delta)-private for replacing one. Proof. The choice post-processes the noisy weights that
    reach the threshold. An added point changes one node's weight. If that node was occupied, the ratio is within
    exp(epsilon) and no mass is lost. If it was not, it has weight one and is seen with probability at most delta, and
    nothing else changes. A swap changes two nodes, with independent noises.
    """

    epsilon: float
    delta: float

    @property
    def threshold(self) -> int:
        """The smallest noisy weight that can be chosen."""
        return 1 + laplace_tail_steps(self.epsilon, self.delta)

    def choose(self, weights: NDArray[np.int64], *, level: int, draws: SecretDraws) -> int | None:  # noqa: ARG002
        """The chosen node's index in `weights` (ascending nodes, all positive), or None when none is heavy enough."""
        return draws.heaviest(weights, self.epsilon, self.threshold) if len(weights) else None


@dataclass(frozen=True)
class SupportChoice:
    """For weights that may all move at once, by up to 4 d 2^(level - 1): cumulative distance d (Cohen et al., App. B).

    The largest weight plus noise of scale a/epsilon_test must reach a threshold: the sum of (2a/epsilon_draw)
    log(size/ratio) and the noise's quantile. Then a node is drawn with probability proportional to exp(epsilon_draw
    weight / (2a)). This is (epsilon_test + epsilon_draw + log(1 + ratio), delta_test + exp(epsilon_draw/2)
    ratio)-private. Proof. Let a be the most a weight moves, and m the largest weight here. If m is below the first part
    of the threshold, the test passes with probability at most delta_test. Otherwise the normaliser here, Z, is at least
    size/ratio. A node that is occupied only there has weight at most a, and there are at most `size` of them. So Z' <=
    exp(epsilon_draw/2) (Z + size) <= exp(epsilon_draw/2) (1 + ratio) Z, and ratios on common nodes are within
    exp(epsilon_draw) (1 + ratio). Nodes occupied only here have mass at most size exp(epsilon_draw/2)/Z <=
    exp(epsilon_draw/2) ratio.
    """

    epsilon_test: float
    epsilon_draw: float
    delta_test: float
    ratio: float
    size: int
    distance: int = 1

    def movement(self, level: int) -> int:
        """By how much one node's weight may differ between neighbours, at this level (from 1 on)."""
        return 4 * self.distance << (level - 1)

    def threshold(self, level: int) -> int:
        """The smallest value of the noisy largest weight that passes the test."""
        a = self.movement(level)
        assured = math.ceil(2.0 * a / self.epsilon_draw * math.log(self.size / self.ratio) * (1.0 + 1e-14))
        return assured + laplace_tail_steps(self.epsilon_test / a, self.delta_test)

    @property
    def epsilon(self) -> float:
        """The price of one choice."""
        return self.epsilon_test + self.epsilon_draw + math.log1p(self.ratio)

    @property
    def delta(self) -> float:
        """Its failure mass."""
        return self.delta_test + math.exp(self.epsilon_draw / 2.0) * self.ratio

    def choose(self, weights: NDArray[np.int64], *, level: int, draws: SecretDraws) -> int | None:
        """The place of the chosen node in `weights`, as `StableChoice.choose`."""
        a = self.movement(level)
        largest = int(np.max(weights, initial=0))
        if not draws.reaches(largest, self.threshold(level), self.epsilon_test / a) or not len(weights):
            return None
        return draws.index(weights.tolist(), self.epsilon_draw / (2.0 * a))
