"""F1 scores, certified by counting: the share of hits among the rows where label or prediction is positive.

**Theorem.** Let P of N independent rows have a positive label. Let J be the expected number of rows where label and
prediction are both positive over that of rows where one of them is. Let S be the same ratio of counts. Then for every
p, P(P = p, S > J, p kl(S, J) > x) <= exp(-x), and likewise below.

*Proof.* Fix p, and let s > J be least with p kl(s, J) >= x. Let l be the slope with l s - f(l) = kl(s, J), where
f(l) = log(J e^l + 1 - J). Let m be the number of rows where one is positive, H that where both are. As m >= P, on the
event l H - m f(l) = m (l S - f(l)) >= m (l s - f(l)) >= p kl(s, J) >= x. Let a_i and b_i be the chances of both and of
one alone in row i. Then the expectation of exp(l H - m f(l)) is the product of
1 + (a_i e^l + b_i)/e^f(l) - (a_i + b_i). It is at most the N-th power of the mean of these factors, which is one: the
a_i sum up to J times the sum of a_i + b_i. Markov's inequality ends it. Below J, with l < 0, the proof is the same. QED

F1 is 2 S/(1 + S), which increases with S. The number of positive rows is public, so that there are up to N values of P.
Each has the functions of `dpselect.holdout.counting` that can be asked when it is known. That is N times as many
events, N being the rows (`choices`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import rel_entr

from dpselect.errors import ArgumentError
from dpselect.holdout.counting import ROUNDING, Counted, CountingPlan
from dpselect.holdout.draws import Draws
from dpselect.holdout.scores import Scored

__all__ = ["RatioPlan", "plan_ratios"]

_CELLS = 1200
_SAFE = 1.0 + 1e-9


def _score_of(share: Any) -> Any:
    """F1 of the share of hits."""
    return 2.0 * share / (1.0 + share)


def _share_of(score: float) -> float:
    return score / (2.0 - score)


@lru_cache(maxsize=64)
def _reach(bound: float) -> float:
    """How far a score may be from its expectation, no matter what it is. Rounded up.

    The expectation that is farthest from a share, on either side, increases with the share. So in a cell of shares it
    is at most the first point of the grid, beyond the upper end, whose divergence from that end is above the bound.
    """
    grid = np.linspace(0.0, 1.0, _CELLS + 1)
    scores = _score_of(grid)
    far = rel_entr(grid[:, None], grid) + rel_entr(1.0 - grid[:, None], 1.0 - grid) > bound
    above = far & (grid > grid[:, None])
    below = far & (grid < grid[:, None])
    high = np.where(above.any(axis=1), above.argmax(axis=1), _CELLS)
    low = np.where(below.any(axis=1), _CELLS - below[:, ::-1].argmax(axis=1), 0)
    return float(max((scores[high][1:] - scores[:-1]).max(), (scores[1:] - scores[low][:-1]).max())) * _SAFE


@dataclass(frozen=True, kw_only=True)
class RatioPlan(Counted):
    """`counting` counts what can be asked. Its `rows` are those of the positive class."""

    mechanism = "ratio"
    row_privacy = None  # exact scores promise nothing to a row

    @property
    def failure_probability(self) -> float:
        return self.counting.failure_probability

    @property
    def tolerance(self) -> float:
        return self.counting.tolerance

    @property
    def error(self) -> float:
        """The largest distance of an answer from the population's F1 that `interval` allows."""
        return _reach(self.counting.bound) + self.tolerance * _SAFE + 2.0 * ROUNDING

    @property
    def certified(self) -> bool:
        return self.error <= 0.5

    def answer(self, scored: Scored, claim: float | None, draws: Draws) -> tuple[bool | None, float]:
        """Whether the claim is confirmed, and what is shown: the claim, or the rounded score."""
        return self.counting.answer(scored, claim, draws)

    def interval(self, value: float, agrees: bool | None) -> tuple[float, float]:
        """An interval around the population's F1, given what was shown."""
        reach = (self.tolerance if agrees else 0.5 * self.tolerance) * _SAFE + ROUNDING
        shares = [_share_of(min(max(value + shift, 0.0), 1.0)) for shift in (-reach, reach)]
        low, high = (self.counting.beyond(share, end) for share, end in zip(shares, (0.0, 1.0), strict=True))
        return max(_score_of(low) - ROUNDING, 0.0), min(_score_of(high) + ROUNDING, 1.0)


def plan_ratios(counting: CountingPlan, *, rows: int) -> RatioPlan:
    """The certificate of rounded exact F1 scores. `counting` is of the positive rows, `rows` are all of them.

    Raises `ArgumentError` when no error below one half is certified.
    Source: docs/theory/generalisation.md, Theorem 9.

    >>> from dpselect.holdout.counting import plan_counting
    >>> plan = plan_ratios(plan_counting(questions=100, answers=5, rows=3000, failure_probability=0.05), rows=10_000)
    >>> round(plan.error, 3), [round(end, 3) for end in plan.interval(0.9, True)]
    (0.121, [0.831, 0.95])
    """
    found = RatioPlan(counting=replace(counting, choices=max(counting.choices, rows)))
    if not found.certified:
        raise ArgumentError("positive rows are too few for this many answers: no error below one half is certified")
    return found
