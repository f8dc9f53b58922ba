"""Repeating a mechanism until its output is acceptable: known threshold, stop coin, limit on the number of tries.

Liu and Talwar 2019, Section 3.1. Whether an output is acceptable (a score at or above a threshold) is fixed without
the data. After a failure a coin stops the search with `stop_probability`; what is released is the first acceptable
output or "none", and nothing else: not the number of tries, which depends on the data.

Two ways to limit the tries are kept apart. "conditioned": the coin's number of tries is drawn anew until it is within
the limit, which costs nothing beyond the unlimited search. "capped": the search stops at the limit, as in Liu and
Talwar's algorithm, which piles probability onto the limit and costs more.
"""

from __future__ import annotations

import math
from typing import SupportsFloat

import numpy as np

from dpselect.accounting.optimal.profile import FirstOfLowerProfile, FirstOfProfile
from dpselect.accounting.theorems import lemma_20
from dpselect.errors import ArgumentError, BoundUnavailableError, integer, number
from dpselect.numerics import ROUND_UP
from dpselect.privacy import Guarantee, approximate_dp
from dpselect.repetitions import Geometric, Repetitions, capped

__all__ = ["first_acceptable", "liu_talwar_theorem_3_1", "threshold_stopping"]

ATOMS = 2000
_MOST_EDGES = 50_000
_TRUNCATIONS = ("conditioned", "capped")


def threshold_stopping(
    base: Guarantee,
    *,
    stop_probability: SupportsFloat,
    max_runs: int | None = None,
    truncation: str = "conditioned",
    bound: str = "optimal",
) -> Guarantee:
    """The guarantee of repeating a mechanism until its score clears a threshold, with a stop coin after each failure.

    One try satisfies `base`, its score included. `stop_probability` in (0, 1); `max_runs` limits the tries, by
    `truncation` "conditioned" or "capped" (see the module). Only the first acceptable output or "none" is released, and
    the threshold does not come from the data (owed by the caller).

    `bound` "optimal": the supremum over all mechanisms that `base` allows and all acceptable sets, enclosed numerically
    (`epsilon_bracket` gives both sides). "paper": Liu, Talwar 2019, Theorem 3.1, for a base with a pure epsilon; with
    "capped" it needs a `max_runs` as large as the theorem asks (`BoundUnavailableError` otherwise). Rounded up.

    >>> from dpselect.privacy import pure_dp
    >>> total = threshold_stopping(pure_dp(epsilon=1.0), stop_probability=0.05)
    >>> round(total.epsilon(delta=0.0), 2), threshold_stopping(
    ...     pure_dp(epsilon=1.0), stop_probability=0.05, bound="paper"
    ... ).epsilon(delta=0.0)
    (1.89, 2.0)
    """
    stop = number("stop_probability", stop_probability, above=0.0, below=1.0)
    limit = None if max_runs is None else integer("max_runs", max_runs, at_least=1)
    if truncation not in _TRUNCATIONS:
        raise ArgumentError(f"truncation must be one of {', '.join(map(repr, _TRUNCATIONS))}, got {truncation!r}")
    cap = limit if truncation == "capped" else None
    if bound == "paper":
        total = liu_talwar_theorem_3_1(base, stop_probability=stop, cap=cap)
    elif bound == "optimal":
        tries: Repetitions = Geometric(gamma=stop)
        if limit is not None:
            tries = capped(tries, limit) if truncation == "capped" else tries.at_most(limit)
        total = first_acceptable(base, tries)
    else:
        raise BoundUnavailableError(f"bound must be 'optimal' or 'paper', got {bound!r}")
    terms = {
        "mechanism": "threshold-stopping",
        "base": dict(base.terms),
        "stop_probability": stop,
        "max_runs": limit,
        "truncation": truncation,
        "bound": bound,
    }
    return Guarantee(
        adjacency=base.adjacency,
        theorem=total.theorem,
        terms=terms,
        failure=total.failure,
        pure_epsilon=total.pure_epsilon,
        profile=total.profile,
        lower_profile=total.lower_profile,
    )


def first_acceptable(base: Guarantee, tries: Repetitions, *, atoms: int = ATOMS) -> Guarantee:
    """The first acceptable output among T tries, or "none", priced by the supremum over mechanisms and acceptable sets.

    T is drawn from `tries` independently of the data. Covers conditional sampling with a stop coin before each round
    (Papernot, Steinke 2022, Appendix C): T is then geometric on 0, 1, ..., the law of one less than a geometric.
    The statement and its proof: docs/theory/optimal-selection.md. Rounded up.
    """
    atoms = integer("atoms", atoms, at_least=16, at_most=200_000)
    tilted, failure = lemma_20(law=tries, failure=base.failure)
    pure = _pure_first(tilted, base.pure_epsilon) if failure < 1.0 else math.inf
    pairs = base.pair_source()
    attained = getattr(pairs, "attained", True)
    return Guarantee(
        adjacency=base.adjacency,
        theorem="optimal accounting of the first acceptable of T tries",
        terms={"mechanism": "first-acceptable", "base": dict(base.terms), "tries": tries.describe()},
        failure=failure,
        pure_epsilon=pure,
        profile=FirstOfProfile(pairs, tries, atoms, pure, failure),
        lower_profile=FirstOfLowerProfile(pairs, tries, atoms) if attained else None,
    )


def _pure_first(tries: Repetitions, epsilon: float) -> float:
    """Pure epsilon of the first acceptable of T: the base's plus the largest log h(u) / h(u'), or the ratio of "none".

    h(u) = (1 - phi(1 - u)) / u falls with u, and so does the probability phi(1 - u) of "none"; an epsilon-private base
    allows u' <= min(exp(epsilon) u, 1 - exp(-epsilon) (1 - u)). Cells of u by their ends, so rounded up; they are
    halved where the bound is largest until it stops falling.
    """
    if not math.isfinite(epsilon) or epsilon == 0.0:
        return epsilon
    edges = np.concatenate(([0.0], np.geomspace(1e-15, 0.5, 2000), 1.0 - np.geomspace(0.5, 1e-8, 2000)[1:], [1.0]))
    bound = math.inf
    for _ in range(16):
        low, high = edges[:-1], edges[1:]
        reached = np.minimum(math.exp(epsilon) * high, 1.0 - math.exp(-epsilon) * (1.0 - high))
        log_h = np.log(_released(tries, low)) - np.log(_released(tries, reached))
        with np.errstate(divide="ignore"):
            log_none = np.log(tries.pgf(1.0 - low)) - np.log(tries.pgf(np.maximum(1.0 - reached, 0.0)))
        # where both probabilities of "none" vanish: phi(s) / s^m does not fall with s, m the smallest T
        least, s_max = float(tries.minimum), 1.0 - low[-1]
        log_none[-1] = least * epsilon + math.log(float(tries.pgf(s_max)) / (s_max**least * float(tries.pmf(least))))
        cells = np.maximum(epsilon + log_h, log_none)
        previous, bound = bound, min(bound, float(np.max(cells)))
        # every round is a valid bound: stop where halving gains little, or where too many cells tie
        if previous - bound <= 1e-8 * bound or edges.size > _MOST_EDGES:
            break
        # the last cell has its own bound, which does not need a smaller cell
        loose = np.flatnonzero(cells[:-1] > bound - 2.0 * min(previous - bound, bound))
        edges = np.sort(np.append(edges, 0.5 * (low[loose] + high[loose])))
    return bound * ROUND_UP


def _released(tries: Repetitions, u: np.ndarray) -> np.ndarray:
    """h(u), E[T] at u = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(u > 0.0, tries.success_probability(u) / u, tries.mean)


def liu_talwar_theorem_3_1(base: Guarantee, *, stop_probability: SupportsFloat, cap: int | None = None) -> Guarantee:
    """(2 epsilon_1 + epsilon_0, 3 exp(2 epsilon_1 + epsilon_0) delta_1 / gamma)-privacy; epsilon_0 = 0 without a cap.

    `base` is (epsilon_1, delta_1)-private, gamma the stop probability. With a cap T the theorem asks for epsilon_0 in
    [0, 1] with T >= max(log(2 / epsilon_0) / gamma, 1 + 1 / (e gamma)): epsilon_0 is taken as small as T allows, and
    `BoundUnavailableError` is raised when T is too small. A conditioned limit costs no more than none.
    Source: Liu, Talwar 2019, Theorem 3.1.
    """
    gamma = number("stop_probability", stop_probability, above=0.0, below=1.0)
    if not math.isfinite(base.pure_epsilon):
        raise BoundUnavailableError("bound 'paper' needs a base with a pure epsilon; available: 'optimal'")
    slack = 0.0
    if cap is not None:
        cap = integer("cap", cap, at_least=1)
        slack = 2.0 * math.exp(-gamma * cap) * ROUND_UP
        if slack > 1.0 or cap < 1.0 + 1.0 / (math.e * gamma):
            raise BoundUnavailableError(
                f"bound 'paper' needs max_runs of at least {max(math.log(2.0), 1.0 / math.e + gamma) / gamma:.4g} "
                f"at this stop probability, got {cap}; available: 'optimal'"
            )
    epsilon = 2.0 * base.pure_epsilon + slack
    delta = min(3.0 * math.exp(min(epsilon, 700.0)) * base.failure / gamma, 1.0)
    if delta >= 1.0:
        raise BoundUnavailableError("bound 'paper' is vacuous here: its delta reaches 1; available: 'optimal'")
    total = approximate_dp(epsilon=epsilon, delta=delta, adjacency=base.adjacency)
    return Guarantee(
        adjacency=base.adjacency,
        theorem="known threshold (Liu, Talwar 2019, Theorem 3.1)",
        failure=delta,
        pure_epsilon=epsilon,
        profile=total.profile,
    )
