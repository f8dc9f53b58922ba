"""How long and how fast to train, from public numbers: what a learner by noisy gradients does that is told nothing.

With full batches and a small bound C on each row's gradient, two things decide: the reach H = C * steps * rate, how
far the weights can come, and enough steps that none is a leap. The numbers were found on public and synthetic tables;
within a factor of two of H accuracy differs by about a hundredth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from dpselect.numerics import first_true

__all__ = ["CLASSIFICATION", "REGRESSION", "TrainingRule"]

_ROWS: Final = 1000.0
"""What stands for the number of rows where none is public."""


@dataclass(frozen=True)
class TrainingRule:
    """A rule for the steps T and the reach H.

    H = growth * sqrt(n * mu) within `reach`; T = H / (a_step * clip_norm), rounded up, within `steps`. n is the public
    number of rows and mu the Gaussian differential privacy parameter of the whole run.
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

    def steps_for(self, rows: float | None, noise_multiplier: float) -> int:
        """T for full batches with this noise a step: the least that is as many as the rule asks for.

        More noise never means more steps, so that it always means more privacy.
        """
        least, most = self.steps

        def wanted(steps: int) -> float:
            mu = math.sqrt(steps) / noise_multiplier
            return math.ceil(self.reach_for(rows, mu) / (self.a_step * self.clip_norm))

        # what is wanted grows as the fourth root of the steps, so that enough steps stay enough
        return first_true(lambda steps: steps >= wanted(steps), least, most) or most


CLASSIFICATION: Final = TrainingRule(clip_norm=0.3, growth=30.0, reach=(150.0, 2000.0), a_step=15.0, steps=(40, 250))
"""For the cross-entropy of softmax scores."""

REGRESSION: Final = TrainingRule(clip_norm=0.1, growth=2.5, reach=(10.0, 60.0), a_step=2.0, steps=(40, 300))
"""For the square of the error of labels in [-1, 1]; with fewer steps it diverges."""
