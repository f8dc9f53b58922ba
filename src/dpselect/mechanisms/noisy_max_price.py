"""What report noisy max with Laplace noise, and permute-and-flip, promise beside their pure epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpselect.copied_by_fields import CopiedByFields
from dpselect.mechanisms.bounded_range_price import BoundedRangeProfile
from dpselect.mechanisms.score_mechanism import ScoreMechanism, pure_guarantee
from dpselect.numerics import ROUND_UP, Array, root_between
from dpselect.privacy import Guarantee
from dpselect.privacy.below import Below
from dpselect.privacy.profile import LaplaceProfile, RandomizedResponseProfile, SymmetricProfile

__all__ = ["LaplaceMaxProfile", "flipping_guarantee", "laplace_max_guarantee"]

_SMALL, _LARGE = 1e-5, 500.0
"""Outside of these epsilons the profile saves nothing that double precision resolves."""
_DOWN = 1.0 - 1e-9


@dataclass(frozen=True)
class LaplaceMaxProfile(CopiedByFields, SymmetricProfile):
    """The privacy profile of report noisy max with Laplace noise: at most randomised response's, and at most

        max( 1 - exp((e - epsilon0)/2),  sup over T > t of  1 - exp(-T) - exp(e) (1 - exp(-k T)) ).

    k is the smallest ratio of -log(1 - exp(s - epsilon0)/4) to s, and t the s at which it is attained.
    Source: docs/theory/sparse-vector.md, Theorem 8.
    """

    epsilon0: float
    theorem: str = "report noisy max: the winners against the largest of the others"

    @cached_property
    def _power(self) -> tuple[float, float]:
        """(t, k), k rounded down: where the line through 0 touches g(s) = -log(1 - exp(s - epsilon0)/4)."""
        first = math.log(2.0)

        def past(s: float) -> bool:
            x = 0.25 * math.exp(s - self.epsilon0)
            return s * x / (1.0 - x) + math.log1p(-x) >= 0.0

        t = root_between(past, safe=first + self.epsilon0, unsafe=first)
        return t, -math.log1p(-0.25 * math.exp(t - self.epsilon0)) / t * (1.0 - 1e-12)

    def at(self, epsilons: Array) -> Array:
        """The divergence at epsilon >= 0, rounded up."""
        epsilons = np.asarray(epsilons, dtype=np.float64)
        pure = RandomizedResponseProfile(self.epsilon0).at(epsilons)
        if not _SMALL <= self.epsilon0 <= _LARGE:
            return pure
        one = LaplaceProfile(self.epsilon0).at(epsilons)
        least, power = self._power
        near = np.minimum(epsilons, self.epsilon0)
        exponent = np.maximum(-(near + math.log(power)) / (1.0 - power), least)
        # exp(e) (1 - exp(-k T)), in one exponent where epsilon is large
        missed = np.exp(near + np.log(-np.expm1(-power * exponent)))
        several = -np.expm1(-exponent) - missed * (1.0 - 1e-15 * (1.0 + near)) + 1e-15
        found = np.where(exponent > least, np.maximum(one, several * ROUND_UP), one)
        return np.asarray(np.where(epsilons < self.epsilon0, np.minimum(pure, found), pure))


def laplace_max_guarantee(mechanism: ScoreMechanism, name: str, theorem: str) -> Guarantee:
    """Pure epsilon with `LaplaceMaxProfile`; far down in the tails the exponential mechanism's law is attained."""
    pure = pure_guarantee(mechanism, name, theorem)
    profile = LaplaceMaxProfile(mechanism.epsilon)
    lower = Below(BoundedRangeProfile(mechanism.epsilon * _DOWN))
    return replace(pure, profile=profile, lower_profile=lower)


def flipping_guarantee(mechanism: ScoreMechanism, name: str, theorem: str) -> Guarantee:
    """Pure epsilon; two candidates attain the profile of Laplace noise, so hardly anything better is to be had."""
    pure = pure_guarantee(mechanism, name, theorem)
    return replace(pure, lower_profile=Below(LaplaceProfile(mechanism.epsilon * _DOWN)))
