"""A program on its worst pair of neighbours, beside the corrected one, and the price that is claimed for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpselect.audit import FiniteSubject
from dpselect.privacy import approximate_dp, pure_dp
from dpselect.testing.exact import FinitePair

__all__ = ["Defect", "two"]


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


def two(event: float, neighbour: float) -> FinitePair:
    """The laws of one event and its complement."""
    return FinitePair((event, 1.0 - event), (neighbour, 1.0 - neighbour))
