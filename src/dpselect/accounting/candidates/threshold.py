"""Repeating a mechanism until its output is acceptable: known threshold, stop coin, limit on the number of tries.

Liu and Talwar 2019, Section 3.1. Whether an output is acceptable (a score at or above a threshold) is fixed without
the data. After a failure a coin stops the search with `stop_probability`. The release is the first acceptable
output or "none" and no more: not the number of tries, which depends on the data.

Two ways to limit the tries are kept apart. "conditioned": the coin's number of tries is drawn again until it is within
the limit, which costs nothing beyond the unlimited search. "capped": the search stops at the limit, as in Liu and
Talwar's algorithm, which piles probability onto the limit and costs more.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import SupportsFloat

from dpselect.accounting.optimal.first_acceptable import first_acceptable
from dpselect.cures import write_one_of
from dpselect.errors import ArgumentError, BoundUnavailableError, integer, number
from dpselect.numerics.logs import ROUND_UP
from dpselect.privacy import Guarantee, approximate_dp
from dpselect.privacy.promises import promise
from dpselect.repetitions import Geometric, Repetitions, capped

__all__ = ["liu_talwar_theorem_3_1", "threshold_stopping"]

_TRUNCATIONS = ("conditioned", "capped")


def threshold_stopping(
    base: Guarantee,
    *,
    stop_probability: SupportsFloat,
    max_runs: int | None = None,
    truncation: str = "conditioned",
    bound: str = "optimal",
) -> Guarantee:
    """Return the guarantee of repeating a mechanism until its score clears a threshold.

    A coin may stop the search after each failure.

    Only the first acceptable output or "none" is released. The threshold must not come from the data, and the number of
    tries must stay secret (you must ensure both).

    Args:
        base: the guarantee of one try, its score included, or what `as_guarantee` takes.
        stop_probability: the probability to stop after a failure, from 1e-100 to below 1; public.
        max_runs: the largest number of tries, at least 1. None, the default, sets no limit.
        truncation: how `max_runs` limits the tries. With "conditioned", the default, the coin's number of tries is
            drawn again until it is within the limit, which costs nothing. With "capped" the search stops at the limit,
            which costs more.
        bound: the name of the bound.

            - "optimal", the default: the supremum over all mechanisms that `base` allows and all acceptable sets,
              enclosed numerically. `epsilon_bracket` gives both sides.
            - "paper": Liu, Talwar 2019, Theorem 3.1, for a base with a pure epsilon. With "capped" it needs a
              `max_runs` as large as the theorem asks.

    Returns:
        A guarantee with the base's adjacency, rounded up.

    Raises:
        BoundUnavailableError: if `bound` is another name, or "paper" does not exist: the base has no pure epsilon,
            `max_runs` is too small, or delta reaches 1.
        ArgumentError: if a number is out of range, `truncation` is unknown, or `base` is not a `Guarantee`
            (`PromiseError`).
        TypeError: if `stop_probability` or `max_runs` is not a number.

    >>> from dpselect.privacy import pure_dp
    >>> total = threshold_stopping(pure_dp(epsilon=1.0), stop_probability=0.05)
    >>> round(total.epsilon(delta=0.0), 4)
    1.8908
    >>> threshold_stopping(pure_dp(epsilon=1.0), stop_probability=0.05, bound="paper").epsilon(delta=0.0)
    2.0
    """
    base = promise("base", base)
    stop = number("stop_probability", stop_probability, at_least=1e-100, below=1.0)
    limit = None if max_runs is None else integer("max_runs", max_runs, at_least=1)
    if truncation not in _TRUNCATIONS:
        said = f"truncation must be one of {', '.join(map(repr, _TRUNCATIONS))}, got {truncation!r}"
        raise ArgumentError(said + write_one_of("truncation", truncation, _TRUNCATIONS))
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
    return replace(total, terms=terms)


def liu_talwar_theorem_3_1(base: Guarantee, *, stop_probability: SupportsFloat, cap: int | None = None) -> Guarantee:
    """(2 epsilon_1 + epsilon_0, 3 exp(2 epsilon_1 + epsilon_0) delta_1 / gamma)-privacy, epsilon_0 = 0 without a cap.

    `base` is (epsilon_1, delta_1)-private, gamma the stop probability. With a cap T the theorem asks for epsilon_0 in
    [0, 1] with T >= max(log(2 / epsilon_0) / gamma, 1 + 1 / (e gamma)): epsilon_0 is taken as small as T allows, and
    `BoundUnavailableError` is raised when T is too small. A conditioned limit costs no more than none.
    Source: Liu, Talwar 2019, Theorem 3.1.
    """
    base = promise("base", base)
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
    theorem = "known threshold (Liu, Talwar 2019, Theorem 3.1)"
    return replace(total, theorem=theorem, terms={}, renyi_curve=None, lower_profile=None)
