"""Selectors among private candidates that suggest themselves and are not private, with their exact leakage.

Liu, Talwar (2019), "Private Selection from Private Candidates", Appendix B and the remarks after their Theorem 3.1.
Each function builds the worst pair and claims what the right selector costs on candidates that are epsilon-private:
3 epsilon for the best of a random number of draws, 2 epsilon for the first above a threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dpselect.repetitions import Fixed, Geometric, capped
from dpselect.testing.defects import Defect, first_above_masses
from dpselect.testing.exact import FinitePair, best_of_masses

__all__ = [
    "NAIVE",
    "best_of_all_candidates",
    "best_of_rare_candidates",
    "decreasing_thresholds",
    "gives_up_at_a_limit",
    "median_of_the_runs",
    "pair",
    "random_rank_of_the_runs",
    "releases_the_number_of_tries",
    "stops_short_at_a_cap",
]

Array = NDArray[np.float64]


def response(epsilon: float) -> tuple[Array, Array]:
    """Randomised response: (rejected, accepted) on two neighbours, log-ratio epsilon both ways."""
    low = 1.0 / (1.0 + math.exp(epsilon))
    return np.array([1.0 - low, low]), np.array([low, 1.0 - low])


def pair(ours: Array, theirs: Array) -> FinitePair:
    """Two laws, as a pair."""
    return FinitePair(tuple(ours.tolist()), tuple(theirs.tolist()))


def two(event: float, neighbour: float) -> FinitePair:
    """The laws of one event and its complement."""
    return FinitePair((event, 1.0 - event), (neighbour, 1.0 - neighbour))


def best_of_all_candidates(epsilon: float = 0.5, count: int = 10, gamma: float = 0.02) -> Defect:
    """Run every candidate once and take the best (B.1): epsilon for each of them.

    One candidate always scores 0.9; `count` others score 0.8 or 0.95 by randomised response. The event is that the one
    wins. Corrected: the best of a geometric number of draws of a uniform mixture of all candidates.
    """
    (stay, _), (leave, _) = response(-epsilon)
    rest = count / (count + 1.0)
    mixture = [np.array([rest * low, 1.0 - rest, rest * (1.0 - low)]) for low in (stay, leave)]
    law = Geometric(gamma=gamma)
    return Defect(
        broken=two(stay**count, leave**count),
        corrected=pair(best_of_masses(mixture[0], law), best_of_masses(mixture[1], law)),
        epsilon=3.0 * epsilon,
        seen="Liu, Talwar (2019), Appendix B.1; every grid search over private training runs",
    )


def best_of_rare_candidates(epsilon: float = 0.1, count: int = 10_000, delta: float = 1e-6) -> Defect:
    """The same where a delta is allowed (B.1): candidates that seldom pass the one, log(1/delta)/count of the time."""
    often = math.log(1.0 / delta) / count
    seldom = often * math.exp(-epsilon)
    rest = count / (count + 1.0)
    mixture = [np.array([rest * (1.0 - p), 1.0 - rest, rest * p]) for p in (often, seldom)]
    law = Geometric(gamma=1.0 / count)
    return Defect(
        broken=two(math.exp(count * math.log1p(-often)), math.exp(count * math.log1p(-seldom))),
        corrected=pair(best_of_masses(mixture[0], law), best_of_masses(mixture[1], law)),
        epsilon=3.0 * epsilon,
        delta=delta,
        seen="Liu, Talwar (2019), Appendix B.1; every grid search over private training runs",
    )


def decreasing_thresholds(epsilon: float = 0.5, gamma: float = 0.01, steps: int = 5) -> Defect:
    """Lower the threshold by a coin of probability gamma after each failure, until everything passes (B.2).

    Scores are 0 or 1; the event is that a 0 is released, after `steps` lowerings. Corrected: one threshold, and a stop
    where it would be lowered.
    """
    laws = response(epsilon)

    def lowest(fails: float) -> float:
        return fails * (gamma * fails / ((1.0 - fails) * (1.0 - gamma) + gamma)) ** steps

    tries = Geometric(gamma=gamma)
    return Defect(
        broken=two(lowest(float(laws[0][0])), lowest(float(laws[1][0]))),
        corrected=pair(first_above_masses(laws[0], 1, tries), first_above_masses(laws[1], 1, tries)),
        epsilon=2.0 * epsilon,
        seen="Liu, Talwar (2019), Appendix B.2",
    )


def gives_up_at_a_limit(epsilon: float = 1.0, limit: int = 50) -> Defect:
    """First above a threshold, no stop coin, at most `limit` tries: finding none tells epsilon for each of them.

    Corrected: a stop coin of probability 1/limit, its number of tries redrawn until it is within the limit.
    """
    laws = response(epsilon)
    coin = Geometric(gamma=1.0 / limit).at_most(limit)
    broken, right = ([first_above_masses(law, 1, tries) for law in laws] for tries in (Fixed(count=limit), coin))
    return Defect(
        broken=pair(*broken),
        corrected=pair(*right),
        epsilon=2.0 * epsilon,
        seen="Liu, Talwar (2019), Theorem 3.1 with gamma = 0 and a finite T, which it excludes",
    )


def stops_short_at_a_cap(epsilon: float = 1.0, gamma: float = 0.1, cap: int = 5) -> Defect:
    """First above a threshold with a stop coin, and a hard stop far below the cap that the theorem asks for.

    Corrected: the coin's number of tries redrawn until it is within the cap.
    """
    laws, coin = response(epsilon), Geometric(gamma=gamma)
    broken, right = (
        [first_above_masses(law, 1, tries) for law in laws] for tries in (capped(coin, cap), coin.at_most(cap))
    )
    return Defect(
        broken=pair(*broken),
        corrected=pair(*right),
        epsilon=2.0 * epsilon,
        seen="Liu, Talwar (2019), Theorem 3.1 without its condition on T",
    )


def median_of_the_runs(epsilon: float = 0.1, count: int = 101) -> Defect:
    """The exact median of `count` draws (B.3): with two outputs, the majority.

    Outputs have masses (1 - epsilon)/2 and (1 + epsilon)/2, so a draw is log((1 + epsilon)/(1 - epsilon))-private.
    Corrected: the best of a geometric number of draws with that mean.
    """
    return _ranked(epsilon, count, lambda high: stats.binom.sf(count // 2, count, high))


def random_rank_of_the_runs(epsilon: float = 0.1, count: int = 101) -> Defect:
    """The k-th best of `count` draws, k uniform in the upper half (B.3): randomising the rank does not help."""
    ranks = np.arange(1, -(-count // 2) + 1)
    return _ranked(epsilon, count, lambda high: float(np.mean(stats.binom.sf(ranks - 1, count, high))))


def _ranked(epsilon: float, count: int, better: Callable[[float], float]) -> Defect:
    high, low = (1.0 + epsilon) / 2.0, (1.0 - epsilon) / 2.0
    law = Geometric.with_mean(mean=count)
    return Defect(
        broken=two(float(better(high)), float(better(low))),
        corrected=pair(best_of_masses([low, high], law), best_of_masses([high, low], law)),
        epsilon=3.0 * math.log(high / low),
        seen="Liu, Talwar (2019), Appendix B.3",
    )


def releases_the_number_of_tries(epsilon: float = 1.0, gamma: float = 0.05, limit: int = 40) -> Defect:
    """First above a threshold, and how many tries it took: j tries cost j epsilon. Corrected: the result alone.

    The cell (try j, rejected) is a stop at j, (try j, accepted) a success there.
    """
    tries = Geometric(gamma=gamma).at_most(limit)
    j = np.arange(1.0, limit + 1.0)
    reached = 1.0 - np.concatenate(([0.0], np.cumsum(tries.pmf(j))[:-1]))
    stops = tries.pmf(j)
    laws = response(epsilon)
    joint = [
        np.concatenate((stops * fails**j, np.maximum(reached, stops) * fails ** (j - 1.0) * passes))
        for fails, passes in laws
    ]
    return Defect(
        broken=pair(joint[0], joint[1]),
        corrected=pair(first_above_masses(laws[0], 1, tries), first_above_masses(laws[1], 1, tries)),
        epsilon=2.0 * epsilon,
        seen="Liu, Talwar (2019), remark on the secrecy of the number of runs; result objects with a field for it",
    )


NAIVE: tuple[Callable[[], Defect], ...] = (
    best_of_all_candidates,
    best_of_rare_candidates,
    decreasing_thresholds,
    gives_up_at_a_limit,
    stops_short_at_a_cap,
    median_of_the_runs,
    random_rank_of_the_runs,
    releases_the_number_of_tries,
)
