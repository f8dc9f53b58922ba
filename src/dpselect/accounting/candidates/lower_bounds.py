"""Lower bounds for every selector among private candidates (Liu, Talwar 2019, Appendix D)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import SupportsFloat, SupportsIndex

from dpselect.errors import ArgumentError, integer, number

__all__ = ["HardSelection", "selector_lower_bound"]

_ROUND_DOWN = 1.0 - 1e-12


@dataclass(frozen=True, kw_only=True)
class HardSelection:
    """Candidates among which every useful selector leaks: the construction of Theorem D.2.

    Candidate i outputs 1 with probability `common` on a data set D_0; on D_j it does so with probability `winning` if
    i = j and `losing` otherwise. D_0 and D_j are `distance` rows apart and every candidate is epsilon-private on the
    way (for one bit: log p moves by at most epsilon a row while p <= 1/2, log(1 - p) above).

    Attributes:
        candidates: their number K.
        usefulness: K**-exponent. On D_j a useful selector names candidate j at least this often.
        common: probability of a 1 on D_0, for all candidates.
        winning: for candidate j on D_j.
        losing: for the others there.
        distance: rows between D_0 and D_j.
        dominance: probability that candidate j alone outputs 1 on D_j, at least 1 - usefulness.
        selector_epsilon: no useful selector is private with a smaller epsilon. Rounded down.
    """

    candidates: int
    usefulness: float
    common: float
    winning: float
    losing: float
    distance: int
    dominance: float
    selector_epsilon: float


def selector_lower_bound(
    *, candidates: SupportsIndex | float, epsilon: SupportsFloat, exponent: SupportsFloat = 0.05
) -> HardSelection:
    """A lower bound on the price of selecting among `candidates` epsilon-private ones, by any black-box selector.

    On D_j candidate j is the only one with output 1, except with probability K**-exponent. A selector is useful if it
    then names j with probability at least K**-exponent. On D_0 it names some j with probability at most 1/K, so group
    privacy over the rows in between gives selector_epsilon >= (1 - exponent) log(K) / distance, with distance =
    ceil((1/2 + exponent) log(K) / epsilon). This tends to (1 - exponent)/(1/2 + exponent) epsilon, nearly 2 epsilon, as
    K grows. For few candidates the rounding of the distance leaves less. It is a statement about all selectors, to
    compare a price with. It bounds no particular one from above.

    Raises `ArgumentError` for values out of range (`exponent` in (0, 1/2)). With x = usefulness/2 the dominance is
    (1 - x)(1 - x/K)**(K-1) >= (1 - x)**2 >= 1 - usefulness. Source: Liu, Talwar 2019, Theorem D.2.

    >>> hard = selector_lower_bound(candidates=10**6, epsilon=0.1)
    >>> hard.distance, round(hard.selector_epsilon, 6)
    (76, 0.172694)
    """
    count = integer("candidates", candidates, at_least=2, at_most=10**300)
    single = number("epsilon", epsilon, above=0.0, rounding="up")
    alpha = number("exponent", exponent, above=0.0, below=0.5)
    log_count = math.log(count)
    usefulness = math.exp(-alpha * log_count)
    common, losing = 0.5 / math.sqrt(count), 0.5 * usefulness / count
    winning = 1.0 - 0.5 * usefulness
    # a bit walks from `common` up to `winning`, or down to `losing`, in steps of epsilon
    up = math.log(0.5 / common) - math.log(2.0 * (1.0 - winning))
    down = math.log(common / losing)
    rows = max(up, down) / single
    if rows > 2.0**53:
        raise ArgumentError("epsilon is too small for this number of candidates")
    distance = math.ceil(rows * (1.0 + 1e-12))
    dominance = winning * math.exp((count - 1) * math.log1p(-losing))
    return HardSelection(
        candidates=count,
        usefulness=usefulness,
        common=common,
        winning=winning,
        losing=losing,
        distance=distance,
        dominance=dominance,
        selector_epsilon=(1.0 - alpha) * log_count / distance * _ROUND_DOWN,
    )
