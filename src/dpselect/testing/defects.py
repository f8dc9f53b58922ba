"""A program on its worst pair of neighbours, beside the corrected one, and the price that is claimed for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.audit import FiniteSubject
from dpselect.privacy import approximate_dp, pure_dp
from dpselect.repetitions import Repetitions
from dpselect.testing.exact import FinitePair

__all__ = ["Defect", "first_above_masses"]


@dataclass(frozen=True, kw_only=True)
class Defect:
    """What a wrong program releases on two neighbours, exactly, and what the right one does on the same two.

    Attributes:
        broken: laws of the release of the program with the defect.
        corrected: laws of the release once the defect is removed.
        epsilon: the claim; it holds for `corrected`.
        delta: the claim's second part.
        seen: where the defect is found, in public.
    """

    broken: FinitePair
    corrected: FinitePair
    epsilon: float
    delta: float = 0.0
    seen: str

    def audit_subject(self, *, corrected: bool = False) -> FiniteSubject:
        """What `dpselect.audit` looks at: the laws of the broken program (or of the corrected one) and the claim.

        Outputs are named by their place.
        """
        pair = self.corrected if corrected else self.broken
        claim = approximate_dp(epsilon=self.epsilon, delta=self.delta) if self.delta else pure_dp(epsilon=self.epsilon)
        return FiniteSubject(
            name="corrected" if corrected else "broken",
            data=dict(enumerate(pair.upper)),
            neighbour=dict(enumerate(pair.lower)),
            claim=claim,
        )

    def excess(self, pair: FinitePair) -> float:
        """By how much a pair exceeds the claim, in the worse direction: in epsilon for a pure claim, else in delta."""
        if self.delta == 0.0:
            return float(pair(np.array([math.inf]))[0]) - self.epsilon
        at = np.array([self.epsilon])
        return max(float(pair.remove(at)[0]), float(pair.add(at)[0])) - self.delta


def first_above_masses(masses: ArrayLike, accepted: int, tries: Repetitions) -> NDArray[np.float64]:
    """The law of the first acceptable of at most `tries` runs: "none", then the acceptable outputs as given.

    `masses` is the law of one run; the outputs from place `accepted` on are acceptable.

    >>> from dpselect.repetitions import Fixed
    >>> first_above_masses([0.5, 0.25, 0.25], 1, Fixed(count=2)).tolist()
    [0.25, 0.375, 0.375]
    """
    one = np.asarray(masses, dtype=np.float64)
    success = float(one[accepted:].sum())
    return np.concatenate(([tries.pgf(1.0 - success)], one[accepted:] * (tries.success_probability(success) / success)))
