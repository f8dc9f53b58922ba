"""Selectors among private candidates that suggest themselves and are not private, with their exact leakage.

Liu, Talwar (2019), "Private Selection from Private Candidates", Appendix B and the remarks after their Theorem 3.1.
Each function builds the worst pair and claims what the right selector costs on candidates that are epsilon-private:
3 epsilon for the best of a random number of draws, 2 epsilon for the first above a threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import stats

from dpselect.numerics.search import Array
from dpselect.repetitions import Fixed, Geometric, Repetitions, capped
from dpselect.testing.exact import FinitePair, finite_pair
from tests.audits.defects import Defect, two

__all__ = [
    "NAIVE",
    "best_of_all_candidates",
    "best_of_rare_candidates",
    "decreasing_thresholds",
    "gives_up_at_a_limit",
    "median_of_the_runs",
    "random_rank_of_the_runs",
    "releases_the_number_of_tries",
    "stops_short_at_a_cap",
]


def response(epsilon: float) -> tuple[Array, Array]:
    """Randomised response: (rejected, accepted) on two neighbours, log-ratio epsilon both ways."""
    low = 1.0 / (1.0 + math.exp(epsilon))
    return np.array([1.0 - low, low]), np.array([low, 1.0 - low])


def first_above(laws: tuple[Array, Array], tries: Repetitions) -> FinitePair:
    """The pair of laws of the first acceptable of at most `tries` runs: "none", then the acceptable output.

    >>> from dpselect.repetitions import Fixed
    >>> first_above(response(0.0), Fixed(count=2)).upper
    (0.25, 0.75)
    """
    ours, theirs = ((float(tries.pgf(no)), float(tries.success_probability(yes))) for no, yes in laws)
    return FinitePair(ours, theirs)


def best_of_all_candidates(epsilon: float = 0.5, count: int = 10, gamma: float = 0.02) -> Defect:
    """Run every candidate once and take the best (B.1): epsilon for each of them.

    One candidate always scores 0.9; `count` others score 0.8 or 0.95 by randomised response. The event is that the one
    wins. Corrected: the best of a geometric number of draws of a uniform mixture of all candidates.
    """
    (stay, _), (leave, _) = response(-epsilon)
    rest = count / (count + 1.0)
    mixture = [(rest * low, 1.0 - rest, rest * (1.0 - low)) for low in (stay, leave)]
    return Defect(
        broken=two(stay**count, leave**count),
        corrected=finite_pair(*mixture).best_of(Geometric(gamma=gamma)),
        epsilon=3.0 * epsilon,
        seen="Liu, Talwar (2019), Appendix B.1; every grid search over private training runs",
    )


def best_of_rare_candidates(epsilon: float = 0.1, count: int = 10_000, delta: float = 1e-6) -> Defect:
    """The same where a delta is allowed (B.1): candidates that rarely pass the one, log(1/delta)/count of the time."""
    often = math.log(1.0 / delta) / count
    rarely = often * math.exp(-epsilon)
    rest = count / (count + 1.0)
    mixture = [(rest * (1.0 - p), 1.0 - rest, rest * p) for p in (often, rarely)]
    return Defect(
        broken=two(math.exp(count * math.log1p(-often)), math.exp(count * math.log1p(-rarely))),
        corrected=finite_pair(*mixture).best_of(Geometric(gamma=1.0 / count)),
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

    return Defect(
        broken=two(lowest(float(laws[0][0])), lowest(float(laws[1][0]))),
        corrected=first_above(laws, Geometric(gamma=gamma)),
        epsilon=2.0 * epsilon,
        seen="Liu, Talwar (2019), Appendix B.2",
    )


def gives_up_at_a_limit(epsilon: float = 1.0, limit: int = 50) -> Defect:
    """First above a threshold, no stop coin, at most `limit` tries: finding none tells epsilon for each of them.

    Corrected: a stop coin of probability 1/limit, its number of tries redrawn until it is within the limit.
    """
    laws = response(epsilon)
    return Defect(
        broken=first_above(laws, Fixed(count=limit)),
        corrected=first_above(laws, Geometric(gamma=1.0 / limit).at_most(limit)),
        epsilon=2.0 * epsilon,
        seen="Liu, Talwar (2019), Theorem 3.1 with gamma = 0 and a finite T, which it excludes",
    )


def stops_short_at_a_cap(epsilon: float = 1.0, gamma: float = 0.1, cap: int = 5) -> Defect:
    """First above a threshold with a stop coin, and a hard stop far below the cap that the theorem asks for.

    Corrected: the coin's number of tries redrawn until it is within the cap.
    """
    laws, coin = response(epsilon), Geometric(gamma=gamma)
    return Defect(
        broken=first_above(laws, capped(coin, cap)),
        corrected=first_above(laws, coin.at_most(cap)),
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
    return Defect(
        broken=two(float(better(high)), float(better(low))),
        corrected=FinitePair((low, high), (high, low)).best_of(Geometric.with_mean(mean=count)),
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
        broken=finite_pair(*joint),
        corrected=first_above(laws, tries),
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
