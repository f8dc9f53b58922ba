"""How long and how fast to train, from public numbers: the defaults of a learner by noisy gradients.

With full batches and a small bound C on each row's gradient, two things decide. The reach H = C * steps * rate is how
far the weights can come. The steps must be enough that none is a leap. The numbers were found on public and synthetic
tables. Within a factor of two of H accuracy differs by about a hundredth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

__all__ = ["BOOSTING", "CLASSIFICATION", "REGRESSION", "BoostingRule", "TrainingRule"]

_ROWS: Final = 1000.0
"""What stands for the number of rows where none is public."""


@dataclass(frozen=True)
class TrainingRule:
    """A rule for the steps T and the reach H.

    H = growth * sqrt(n * mu) within `reach`. T = H / (a_step * clip_norm), within `steps`. Here n is the public number
    of rows and mu the Gaussian differential privacy parameter of the whole run.
    """

    clip_norm: float
    growth: float
    reach: tuple[float, float]
    a_step: float
    steps: tuple[int, int]
    intercept_scale: float = 0.3

    def reach_for(self, rows: float | None, mu: float) -> float:
        """H."""
        return min(max(self.growth * math.sqrt((rows or _ROWS) * mu), self.reach[0]), self.reach[1])

    def steps_for(self, rows: float | None, noise_multiplier: float) -> float:
        """T for full batches with this noise a step, before it is rounded up: where as many as are asked for are taken.

        It falls with the noise, and mu = sqrt(T) / noise all the more, so that more noise always means more privacy.
        """
        # T = growth * sqrt(n * sqrt(T) / noise) / one_step, between the ends
        one_step = self.a_step * self.clip_norm
        steps = (self.growth * math.sqrt((rows or _ROWS) / noise_multiplier) / one_step) ** (4.0 / 3.0)
        least, most = (each / one_step for each in self.reach)
        return min(max(steps, least, self.steps[0]), most, self.steps[1])


CLASSIFICATION: Final = TrainingRule(clip_norm=0.3, growth=30.0, reach=(150.0, 2000.0), a_step=15.0, steps=(40, 250))
"""For the cross-entropy of softmax scores."""

REGRESSION: Final = TrainingRule(clip_norm=0.1, growth=2.5, reach=(10.0, 60.0), a_step=2.0, steps=(40, 300))
"""For the square of the error of labels in [-1, 1]; with fewer steps it diverges."""


@dataclass(frozen=True)
class BoostingRule:
    """How many trees, how deep, and which part of mu squared the linear start has, by n mu.

    Each triple is the value below `few`, from there on, and from `many` on.
    """

    few: float
    many: float
    trees: tuple[int, int, int]
    depth: tuple[int, int, int]
    linear_share: tuple[float, float, float]

    def choose(self, rows: float | None, noise_multiplier: float) -> tuple[int, int, float]:
        """The number of trees, their depth and the share of the linear start."""
        signals = (rows or _ROWS) / noise_multiplier
        place = (signals >= self.few) + (signals >= self.many)
        return self.trees[place], self.depth[place], self.linear_share[place]


BOOSTING: Final = BoostingRule(
    few=1000.0, many=20_000.0, trees=(100, 150, 200), depth=(4, 5, 6), linear_share=(0.75, 0.5, 0.25)
)
"""For boosted trees. With more noise the linear start is the better part of the model."""
