"""The verdict of two counts on a claim: the only step on which the soundness of a black-box audit rests."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpselect.audit.events import Question
from dpselect.audit.limits import lower_limit, upper_limit

__all__ = ["Verdict", "judge"]


@dataclass(frozen=True)
class Verdict:
    """A measured epsilon, and where the claim is exceeded, if it is: epsilon, the delta shown, the delta claimed."""

    epsilon: float
    violation: dict[str, float] | None


def judge(counts: tuple[int, int], sizes: tuple[int, int], question: Question, *, reverse: bool) -> Verdict:
    """The verdict on an event that was chosen without these draws.

    With P the law that is said to exceed (the neighbour's when `reverse`) and Q the other, p <= P(E) and Q(E) <= q hold
    together with probability at least 1 - 2 error. A guarantee (epsilon, delta) implies P(E) <= exp(epsilon) Q(E) +
    delta and, of the complement in the other direction, 1 - Q(E) <= exp(epsilon) (1 - P(E)) + delta. Each is checked
    with p and q in place of the truth, at every point of the claim.
    """
    high, low = (1, 0) if reverse else (0, 1)
    p = float(lower_limit(counts[high], sizes[high], question.error))
    q = float(upper_limit(counts[low], sizes[low], question.error))
    # (the side that exceeds, the side that bounds it): for the event, and for its complement
    pairs = ((p, q), (1.0 - q, (1.0 - p) * (1.0 + 1e-15)))
    epsilon = max(0.0, *(_epsilon(more, less, question.delta) for more, less in pairs))
    factors = np.exp(question.epsilons) * (1.0 + 1e-14)
    deltas = np.max([more * (1.0 - 1e-15) - factors * less for more, less in pairs], axis=0)
    worst = int(np.argmax(deltas - question.deltas))
    if deltas[worst] <= question.deltas[worst]:
        return Verdict(epsilon, None)
    where = {"epsilon": question.epsilons[worst], "delta": deltas[worst], "claimed_delta": question.deltas[worst]}
    return Verdict(epsilon, {name: float(value) for name, value in where.items()})


def _epsilon(more: float, less: float, delta: float) -> float:
    """The smallest epsilon with more <= exp(epsilon) less + delta, rounded down."""
    more *= 1.0 - 1e-15
    if more <= delta:
        return 0.0
    if less <= 0.0:
        return math.inf
    return (math.log(more - delta) - math.log(less)) * (1.0 - 1e-14) - 1e-14
