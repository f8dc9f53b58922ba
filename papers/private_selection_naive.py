"""Appendix B of Liu, Talwar 2019: what the selectors that suggest themselves leak, exactly."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy import stats

from dpselect.accounting import best_of, threshold_stopping
from dpselect.privacy import pure_dp
from dpselect.repetitions import Fixed, Geometric
from papers.table import Context, Curve, Figure, Part, Row

__all__ = ["naive_selectors"]

_LOWERINGS: Final = {1: 1.48969421, 5: 5.44847106, 10: 10.3969421}
_MAJORITY: Final = {11: 0.545636269, 101: 1.68643991, 1001: 7.18751817}
_RANDOM_RANK: Final = {11: 0.743806613, 101: 2.48038614, 1001: 9.54095348}


def naive_selectors(context: Context) -> Part:  # noqa: ARG001 exact in both modes
    """Log-ratios of one event on two neighbours; "optimal" is the price of the right selector on the same base."""
    right = best_of(pure_dp(epsilon=0.5), Geometric(gamma=0.02)).epsilon(delta=0.0)
    low = 1.0 / (1.0 + math.exp(0.5))
    rare = _rare_candidates()
    rows = [
        Row(
            name="B.1: best of 10 candidates and one more, epsilon = 0.5: log-ratio",
            paper=5.0,
            ours=_none_better(10, low),
            optimal=right,
            tolerance=1e-9,
        ),
        Row(
            name="B.1: privacy of the candidate that scores 0.95 with probability 1/2 or 1 - exp(0.5)/2",
            paper=0.5,
            known="printed",
            ours=-math.log(2.0 - math.exp(0.5)),
            tolerance=1e-8,
            corrected=1.04617527,
            reason="an erratum (printed: (1 - exp(0.5))/2, below 0); randomised response does what is claimed",
        ),
        Row(
            name="B.1 with delta = 1e-6, 10,000 candidates, epsilon = 0.1: epsilon at delta",
            paper=0.1 * math.log(1e6),
            ours=rare,
            tolerance=1e-8,
            corrected=1.00083949,
            reason="the text's epsilon log(1/delta) is an approximation for small epsilon log(1/delta)",
        ),
    ]
    stopped = threshold_stopping(pure_dp(epsilon=0.5), stop_probability=0.01).epsilon(delta=0.0)
    rows += [
        Row(
            name=f"B.2: threshold lowered {steps} times, epsilon = 0.5, gamma = 0.01: log-ratio",
            paper=value,
            ours=_lowered(steps, 1.0 - low) - _lowered(steps, low),
            optimal=stopped,
            tolerance=1e-7,
        )
        for steps, value in _LOWERINGS.items()
    ]
    base = math.log(1.1 / 0.9)
    for count in _MAJORITY:
        corrected = best_of(pure_dp(epsilon=base), Geometric.with_mean(mean=count)).epsilon(delta=0.0)
        rows += [
            Row(
                name=f"B.3: {what} of {count} draws, each {base:.4f}-private: log-ratio",
                paper=values[count],
                ours=found,
                optimal=corrected,
                tolerance=1e-8,
            )
            for what, values, found in (
                ("the median", _MAJORITY, _majority(count)),
                ("a random rank in the upper half", _RANDOM_RANK, _random_rank(count)),
            )
        ]
    rows.append(
        Row(
            name="releasing the number of runs as well, 20 runs, epsilon = 0.5: log-ratio",
            paper=10.0,
            ours=_none_better(20, low),
            optimal=right,
            tolerance=1e-9,
        )
    )
    counts = tuple(range(1, 202, 10))
    mean_runs = tuple(
        best_of(pure_dp(epsilon=base), Geometric.with_mean(mean=1.0 + count)).epsilon(delta=0.0) for count in counts
    )
    figure = Figure(
        name="naive",
        title=f"Log-ratios of naive selectors, each draw {base:.4f}-private",
        x_label="draws (best of K: on average)",
        y_label="log-ratio of the worst event",
        curves=(
            Curve("best of all", counts, [base * count for count in counts]),
            Curve("median", counts, [_majority(count) for count in counts]),
            Curve("random rank", counts, [_random_rank(count) for count in counts]),
            Curve("best of a geometric number", counts, mean_runs, "--"),
        ),
    )
    unspecified = ("numbers: the paper has no experiments, so these are its examples at settings of ours",)
    return Part(source="Appendix B", rows=tuple(rows), figures=(figure,), unspecified=unspecified)


def _none_better(runs: int, low: float) -> float:
    """The log-ratio that the best of so many responses is the worse one, of mass `low` or 1 - `low`."""
    law = Fixed(count=runs)
    return math.log(float(law.pgf(1.0 - low)) / float(law.pgf(low)))


def _rare_candidates() -> float:
    """log((b - delta) / a) for the event that none of 10,000 rare candidates passes."""
    often = math.log(1e6) / 10_000
    ours, theirs = (math.exp(10_000 * math.log1p(-p)) for p in (often, often * math.exp(-0.1)))
    return math.log((theirs - 1e-6) / ours)


def _lowered(steps: int, fails: float) -> float:
    """The log-probability that the threshold is lowered so often that a failing output passes."""
    gamma = 0.01
    return math.log(fails) + steps * math.log(gamma * fails / ((1.0 - fails) * (1.0 - gamma) + gamma))


def _majority(count: int) -> float:
    return float(np.diff(stats.binom.logsf(count // 2, count, [0.45, 0.55]))[0])


def _random_rank(count: int) -> float:
    """The worse of two outputs of masses 0.55 and 0.45 at the k-th best place, k uniform in the upper half."""
    ranks = np.arange(1, -(-count // 2) + 1)
    ours, theirs = (float(np.mean(stats.binom.cdf(ranks - 1, count, high))) for high in (0.45, 0.55))
    return math.log(ours / theirs)
