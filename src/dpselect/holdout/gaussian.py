"""Every question gets the score with Gaussian noise. A claim is then compared with it, which costs nothing more.

Certified by stability (`dpselect.adaptive.means`). The error grows with the fourth root of the number of answers, and
counting them has the square root. So this is the mechanism for many answers. It serves any mean over rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import SupportsFloat

from dpselect.adaptive.means import MeanPlan, plan_means
from dpselect.holdout.draws import Draws
from dpselect.holdout.scores import BITS, Scored
from dpselect.mechanisms.grid import gaussian_steps
from dpselect.privacy import Adjacency, Guarantee, gaussian
from dpselect.randomness import RandomSource

__all__ = ["GaussianPlan", "noisy_mean", "plan_gaussian"]


def noisy_mean(scored: Scored, deviation: float, random: RandomSource) -> float:
    """The mean with Gaussian noise of this deviation: integers added, so exact."""
    noise = int(gaussian_steps(deviation * scored.rows * 2.0**BITS, 1, random)[0])
    return min(max((scored.total() + noise) / (scored.rows << BITS), 0.0), 1.0)


@dataclass(frozen=True, kw_only=True)
class GaussianPlan:
    """`means` says what is certified. A claim within `tolerance` of the noisy score is confirmed."""

    means: MeanPlan
    tolerance: float

    mechanism = "gaussian"

    @property
    def questions(self) -> int:
        return self.means.queries

    @property
    def answers(self) -> int:
        return self.means.queries

    @property
    def failure_probability(self) -> float:
        return self.means.failure_probability

    @property
    def error(self) -> float:
        """Of a score. A confirmed claim may be off by the tolerance more."""
        return self.means.error

    @property
    def certified(self) -> bool:
        return self.means.certified

    @property
    def row_privacy(self) -> Guarantee | None:
        """The guarantee of all answers together for a row."""
        mu = self.means.answer_mu * self.means.queries**0.5 * (1.0 + 1e-12)
        return gaussian(noise_multiplier=1.0 / mu, adjacency=Adjacency.REPLACE_ONE)

    def answer(self, scored: Scored, claim: float | None, draws: Draws) -> tuple[bool | None, float]:
        """Whether the claim is confirmed, and the noisy score."""
        value = noisy_mean(scored, self.means.deviation, draws.answer())
        return (None if claim is None else abs(value - claim) <= self.tolerance), value

    def interval(self, value: float, agrees: bool | None) -> tuple[float, float]:  # noqa: ARG002 - the protocol's
        """An interval of the population's score: around the noisy score, which is shown with a confirmed claim too."""
        return max(value - self.error, 0.0), min(value + self.error, 1.0)


def plan_gaussian(
    *,
    questions: int,
    rows: int,
    failure_probability: SupportsFloat,
    tolerance: float,
    largest_mu: float = 1.0,
) -> GaussianPlan:
    """The smallest certified error. `ArgumentError` when none below one half is. See `plan_means`."""
    means = plan_means(
        queries=questions, rows=rows, failure_probability=failure_probability, largest_mu=min(largest_mu, 1.0)
    )
    return GaussianPlan(means=means, tolerance=max(tolerance, means.deviation))
