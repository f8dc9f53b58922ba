"""One of a fixed number of private runs, or a dummy, by weight (Liu, Talwar 2019, Appendix C)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpselect.accounting.candidates.dummies import select_among_dummies
from dpselect.errors import integer, number
from dpselect.privacy import Guarantee
from dpselect.privacy.boundary import silence
from dpselect.privacy.promises import hold_promises
from dpselect.randomness import RandomSource
from dpselect.selection.candidates import Candidate, Selector, run_once

__all__ = ["SelectWithDummies"]

_UNIT = 1 << 53
"""Weights are integers of 2**-53: any function of the score is private, and integers are drawn exactly."""


@dataclass(frozen=True, kw_only=True)
class SelectWithDummies(Selector):
    """A search that runs the candidate `runs` times and releases one output, drawn by weight, or None for the dummy.

    A run of score q has weight exp(sharpness (min(threshold, q) - threshold)). This is 1 at the threshold and above. A
    run that raises or scores NaN has weight 0. The dummy has weight 1 + 1/gamma and represents a score at the
    threshold. Take enough runs (`dummy_runs_needed`) for it to be rare.

    This is the only selector here whose number of runs is public: nothing about it depends on the data. It costs many
    more of them than `select_above` does. One run's output is kept at a time.

    The guarantee is at most 2 epsilon_1, epsilon_1 being that of the base.

    Args:
        threshold: the score from which weights are 1, finite. You must ensure that all numbers here are fixed without
            the data.
        runs: the number of runs, from 1 to 10**9.
        gamma: sets the weight of the dummy, from 1e-12 to below 1/4.
        base: the guarantee of one run of the candidate, its score and failure included (you must ensure this).
        sharpness: how fast weights fall below the threshold, above 0. With inf, the default, they are 0 there.

    Raises:
        ArgumentError: if a number is out of range. It names the argument. All but `threshold` are checked when the
            guarantee is asked for.
        TypeError: if a number is of another type. It names the argument.
        PromiseError: if `base` is not a `Guarantee`.

    >>> from dpselect.privacy import pure_dp
    >>> select = SelectWithDummies(threshold=0.5, runs=1000, gamma=0.2, base=pure_dp(epsilon=0.5))
    >>> select(lambda random: (1.0, "found")).guarantee.epsilon(delta=0) < 1.0
    True
    """

    threshold: float
    runs: int
    gamma: float
    base: Guarantee
    sharpness: float = math.inf

    def __post_init__(self) -> None:
        hold_promises(self, "base")
        object.__setattr__(self, "threshold", number("threshold", self.threshold))

    @property
    def guarantee(self) -> Guarantee:
        """`accounting.candidates.dummies.select_among_dummies` of these."""
        return select_among_dummies(self.base, runs=self.runs, gamma=self.gamma, sharpness=self.sharpness)

    def _found(self, candidate: Candidate, random: RandomSource) -> Any:
        """Each run replaces the one kept with probability its weight over all weights so far, the dummy's first."""
        total, kept = dummy_weight(float(self.gamma)), None
        with silence():
            for _ in range(integer("runs", self.runs)):
                outcome = run_once(candidate, random)
                added = 0 if outcome is None else weight(outcome.score, self.threshold, float(self.sharpness))
                total += added
                if random.below(total) < added and outcome is not None:
                    kept = outcome.output
        return kept


def dummy_weight(gamma: float) -> int:
    """1 + 1/gamma in units of 2**-53, rounded up: more dummies never cost more."""
    return math.ceil((1 + 1 / Fraction(gamma)) * _UNIT)


def weight(score: float, bar: float, sharpness: float) -> int:
    """The weight of a score in units of 2**-53, between 0 and one, from the score alone."""
    if not score < bar:
        return _UNIT if score == score else 0
    exponent = sharpness * (score - bar)
    return int(math.exp(exponent) * _UNIT) if exponent == exponent else 0
