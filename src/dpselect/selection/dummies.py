"""One of a fixed number of private runs, or a dummy, by weight (Liu, Talwar 2019, Appendix C)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, SupportsFloat

from dpselect.accounting.candidates.dummies import select_among_dummies
from dpselect.errors import integer, number
from dpselect.privacy import Guarantee, Release, Spender
from dpselect.privacy.boundary import silence
from dpselect.privacy.promises import promise
from dpselect.randomness import RandomSource, resolve
from dpselect.selection.candidates import Candidate, check_candidate, run_once, searched
from dpselect.selection.rehearsal import Rehearsal

__all__ = ["select_with_dummies"]

_UNIT = 1 << 53
"""Weights are whole numbers of 2**-53: any function of the score is private, and whole numbers are drawn exactly."""


def select_with_dummies(
    candidate: Candidate,
    *,
    threshold: SupportsFloat,
    runs: int,
    gamma: SupportsFloat,
    guarantee: Guarantee,
    sharpness: SupportsFloat = math.inf,
    rehearse: Rehearsal = True,
    spender: Spender | None = None,
    label: str = "select with dummies",
    random: RandomSource | None = None,
) -> Release:
    """Run the candidate `runs` times and release one output, drawn by weight, or None for the dummy.

    A run of score q has weight exp(sharpness (min(threshold, q) - threshold)): 1 at the threshold and above, and with
    sharpness inf 0 below it. The dummy has weight 1 + 1/gamma, gamma in [1e-12, 1/4), and stands for a score at the
    threshold: take enough runs (`dummy_runs_needed`) for it to be rare. A run that raises or scores NaN has weight 0.

    The only selector here whose number of runs is public: nothing about it depends on the data. It costs many more of
    them than `select_above` does. Threshold, runs, gamma and sharpness are fixed without the data and `guarantee`
    covers one run, its score and failure included (the caller must ensure it). One run's output is kept at a time.
    `rehearse`: as in `select_best`.

    The guarantee is `accounting.dummies.select_among_dummies(...)`, at most 2 epsilon_1. Raises `ArgumentError` or
    `TypeError` naming the argument.

    >>> from dpselect.privacy import pure_dp
    >>> release = select_with_dummies(lambda random: (1.0, "found"), threshold=0.5, runs=1000, gamma=0.2,
    ...                               guarantee=pure_dp(epsilon=0.5))
    >>> release.guarantee.epsilon(delta=0) < 1.0
    True
    """
    check_candidate(candidate, rehearse)
    guarantee = promise("guarantee", guarantee)
    bar = number("threshold", threshold)
    total = select_among_dummies(guarantee, runs=runs, gamma=gamma, sharpness=sharpness)
    source = resolve(random)

    def run() -> Any:
        dummy = dummy_weight(float(gamma))
        return draw_by_weight(candidate, bar, integer("runs", runs), dummy, float(sharpness), source)

    return searched(run, total, spender=spender, label=label, replayable=source.replayable)


def dummy_weight(gamma: float) -> int:
    """1 + 1/gamma in units of 2**-53, rounded up: more dummies never cost more."""
    return math.ceil((1 + 1 / Fraction(gamma)) * _UNIT)


def weight(score: float, bar: float, sharpness: float) -> int:
    """The weight of a score in units of 2**-53, between 0 and one; a function of the score alone."""
    if not score < bar:
        return _UNIT if score == score else 0
    exponent = sharpness * (score - bar)
    return int(math.exp(exponent) * _UNIT) if exponent == exponent else 0


def draw_by_weight(
    candidate: Candidate, bar: float, runs: int, dummy: int, sharpness: float, source: RandomSource
) -> Any:
    """The algorithm without its price.

    Each run replaces the one kept with probability its weight over all weights so far, the dummy's first.
    """
    total, kept = dummy, None
    with silence():
        for _ in range(runs):
            outcome = run_once(candidate, source)
            added = 0 if outcome is None else weight(outcome.score, bar, sharpness)
            total += added
            if source.below(total) < added and outcome is not None:
                kept = outcome.output
    return kept
