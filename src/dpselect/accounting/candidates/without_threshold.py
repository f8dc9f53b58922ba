"""Choosing among private candidates without a threshold: find one privately, then repeat until it is reached.

Liu, Talwar 2019, Theorem 4.7: 2 epsilon_1 + epsilon_0, against 3 epsilon_1 for the best of a random number of runs. The
numbers of runs that the theorem asks for are beyond any computer at most parameters; `runs_needed` says how many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import SupportsFloat

from dpselect.accounting.candidates.sampled_percentile import (
    SmoothedCount,
    concentration_smoothing,
    lemma_4_3_smoothing,
)
from dpselect.accounting.candidates.sampled_search import threshold_search, threshold_search_samples
from dpselect.accounting.candidates.threshold import threshold_stopping
from dpselect.errors import ArgumentError, integer, number
from dpselect.privacy import Guarantee, compose
from dpselect.privacy.promises import promise

__all__ = ["RunsNeeded", "runs_needed", "without_threshold"]

_VERSIONS = ("conditioned", "paper")
_LN10 = math.log(10.0)


@dataclass(frozen=True, kw_only=True)
class RunsNeeded:
    """The numbers that the theorem asks for. Logarithms to base ten, as they may exceed the range of float64.

    Attributes:
        log10_samples: runs of the first step, which finds the threshold.
        log10_later_runs: expected runs of the second step at most (in the worst case 1 / stop_probability on average).
        log10_passing: a lower bound on the probability that one run reaches the threshold found.
        log10_stop_probability: of the coin of the second step.
        smoothing: of the counts of the first step.
        slack: of the sensitivity of the first step.
        epsilon_search: the sparse vector's epsilon in the first step.
        target: the passing probability that the first step looks for, 1 / (2 candidates).
    """

    log10_samples: float
    log10_later_runs: float
    log10_passing: float
    log10_stop_probability: float
    smoothing: float
    slack: float
    epsilon_search: float
    target: float

    @property
    def total(self) -> float:
        """All runs, in expectation at most, inf beyond the range of float64."""
        parts = (self.log10_samples, self.log10_later_runs)
        return math.inf if max(parts) > 308.0 else 10.0 ** parts[0] + 10.0 ** parts[1]


def runs_needed(
    *,
    candidates: int,
    thresholds: int,
    epsilon_run: SupportsFloat,
    epsilon_search: SupportsFloat,
    delta: SupportsFloat,
    failure_probability: SupportsFloat = 0.1,
    version: str = "conditioned",
) -> RunsNeeded:
    """How many runs the threshold-free selector takes to find, among K `candidates`, a score near the best median.

    Total price 2 epsilon_run + epsilon_search and delta. The score found is within 1/R of the best candidate's
    median, R the number of `thresholds`, except with probability about `failure_probability`.

    `version` "paper": half of epsilon_search for the first step and half for the limit on the second step's tries
    (with the whole for each, as printed, the total would be 2 epsilon_run + 2 epsilon_search). "conditioned": the
    second step's tries are conditioned, which costs nothing, so the first step has all of epsilon_search. Raises
    `ArgumentError`. Source: Liu, Talwar 2019, Theorem 4.7.

    >>> needed = runs_needed(candidates=10, thresholds=10, epsilon_run=1.0, epsilon_search=1.0, delta=1e-6,
    ...                      version="paper")
    >>> f"{10**needed.log10_samples:.2e}", f"{10**needed.log10_passing:.5e}"
    ('5.83e+58', '1.49882e-57')
    """
    count = integer("candidates", candidates, at_least=1, at_most=1 << 1000)
    grid = integer("thresholds", thresholds, at_least=1)
    epsilon = number("epsilon_run", epsilon_run, at_least=0.0, rounding="up")
    extra = number("epsilon_search", epsilon_search, above=0.0, rounding="up")
    delta = number("delta", delta, above=0.0, below=1.0, rounding="up")
    beta = number("failure_probability", failure_probability, above=0.0, below=1.0)
    if version not in _VERSIONS:
        raise ArgumentError(f"version must be one of {', '.join(map(repr, _VERSIONS))}, got {version!r}")
    printed = version == "paper"
    search = 0.5 * extra if printed else extra
    # beyond a slack of 0.8 the promise on the threshold found becomes empty
    slack = min(search, 0.8)
    target = 1.0 / (2.0 * count)
    smoothing = lemma_4_3_smoothing(epsilon=epsilon, slack=slack, failure=delta / (2.0 * grid))
    if not printed:
        smoothing = max(smoothing, concentration_smoothing(slack=slack, failure=delta / (2.0 * grid)))
    log_samples = threshold_search_samples(
        smoothing=smoothing,
        sensitivity=epsilon + slack,
        slack=slack,
        epsilon=search,
        target=target,
        thresholds=grid,
        failure_probability=beta,
    )
    log_passing = math.log(3.0 * math.exp(-0.5 * slack) - 1.0) + math.log(smoothing) - log_samples
    if printed:
        power = 6.0 * (epsilon + slack) / search
        log_passing = -math.log(12.0 * count) + power * (2.0 * math.log(beta) - math.log(grid + 1.0))
    return RunsNeeded(
        log10_samples=log_samples / _LN10,
        log10_later_runs=-log_passing / _LN10,
        log10_passing=log_passing / _LN10,
        log10_stop_probability=(log_passing + math.log(beta)) / _LN10,
        smoothing=smoothing,
        slack=slack,
        epsilon_search=search,
        target=target,
    )


def without_threshold(
    base: Guarantee,
    *,
    statistic: SmoothedCount,
    epsilon_search: SupportsFloat,
    thresholds: int,
    stop_probability: SupportsFloat,
    max_runs: int | None = None,
) -> Guarantee:
    """The price of the two steps: `threshold_search` composed with `threshold_stopping`, the tries conditioned.

    Holds for any number of samples and any stop probability, fixed without the data (you must ensure this). For an
    epsilon_1-private base below 2 epsilon_1 + epsilon_search outside the first step's failure probability. Source: Liu,
    Talwar 2019, Theorem 4.7 (a).

    >>> from dpselect.privacy import pure_dp
    >>> from dpselect.accounting.candidates.sampled_search import smoothed_count
    >>> base = pure_dp(epsilon=0.5)
    >>> counts = smoothed_count(base, samples=1000, thresholds=10, delta=1e-6)
    >>> total = without_threshold(base, statistic=counts, epsilon_search=0.2, thresholds=10, stop_probability=0.01)
    >>> 1.18 < total.pure_epsilon < 1.2, total.failure <= 1e-6
    (True, True)
    """
    base = promise("base", base)
    first = threshold_search(base, statistic=statistic, epsilon=epsilon_search, thresholds=thresholds).guarantee
    second = threshold_stopping(base, stop_probability=stop_probability, max_runs=max_runs)
    total = compose(first, second)
    steps = f"{first.theorem}, then {second.theorem}"
    return replace(
        total,
        theorem=f"selection without a threshold (Liu, Talwar 2019, Theorem 4.7): {steps}",
        terms={"mechanism": "without-threshold", "search": dict(first.terms), "stopping": dict(second.terms)},
        lower_profile=None,
    )
