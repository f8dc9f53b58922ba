"""Rounded exact scores, certified by counting what the submitters can have been told.

**Theorem.** Let k questions be asked of N independent rows, each chosen by the answers so far and by coins that do not
depend on the rows. A claim is either confirmed, or answered like a question without a claim: with one of G grid points.
After B such answers the service stops. Let M = sum over b < B of C(k, b+1) G^b. Then except with probability beta all
scores S_j on the rows and their expectations D_j satisfy N kl(S_j, D_j) <= log(2 M/beta).

*Proof.* Fix the coins. The j-th question is a function of the first j-1 answers. Those are, with b < B grid points
among them (else the service had stopped), one of at most C(j-1, b) G^b sequences. So at most
sum_j C(j-1, b) = C(k, b+1), times G^b, summed over b, functions can ever be asked, and they are fixed before the rows
are drawn. For each, P(S >= D and N kl(S, D) > x) <= exp(-x), and likewise below. Chernoff's bound holds for means of
independent values in [0, 1] (Hoeffding 1963, Theorem 1). The union bound over 2 M events ends the proof. QED

*Near scores.* Look at the first question whose inequality fails. All scores that were shown before it are near their
expectations, which are fixed numbers for fixed functions. N kl(S, D) <= x puts S within sqrt(x/(2 N)) of D. So S is
shown as one of at most floor(2 sqrt(x/(2 N)) (G - 1)) + 2 points. Only histories of such points need to be counted.
With g of them in place of G, x = log(2 M/beta) is a bound as soon as g is their number for an x as large (`near`).

*Areas under the curve.* Given the labels, let N be the number of rows of the rarer class. The area is an average over
all ways to give each of those rows its own row of the other class. Each way contributes a mean of N independent
comparisons with expectation D. The exponential is convex, so the area's moment generating function is no larger than
that of one such mean (Hoeffding 1963, section 5). So the same bound holds with this N, given the labels and hence
without.

*Several metrics.* Which metric a question asks for is part of the question, so M counts the questions about all of them
together, and each is within its own bound. The number of rows of a class is shown then, and is not fixed for the other
metrics: with its c values there are c M functions (`choices`).

The idea is the compression of Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015, "Generalization in adaptive data
analysis and holdout reuse") and of the Ladder (Blum, Hardt 2015). Nothing is promised to a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import SupportsFloat

import numpy as np
from scipy.special import gammaln, logsumexp

from dpselect.errors import ArgumentError, integer, number
from dpselect.holdout.draws import Draws
from dpselect.holdout.scores import Scored
from dpselect.numerics.search import root_between

__all__ = ["ROUNDING", "Counted", "CountingPlan", "divergence", "plan_counting"]

ROUNDING = 2.0**-30
"""More than the fixed-point form of a row's value moves a mean by."""

_SAFE = 1.0 + 1e-9


def divergence(sample: float, population: float) -> float:
    """kl(s, d) of two Bernoulli laws, in nats."""
    first = 0.0 if sample <= 0.0 else sample * math.log(sample / population) if population > 0.0 else math.inf
    other, rest = 1.0 - sample, 1.0 - population
    return first + (0.0 if other <= 0.0 else other * math.log(other / rest) if rest > 0.0 else math.inf)


@dataclass(frozen=True, kw_only=True)
class CountingPlan:
    """`questions` questions. Up to `answers` of them may be answered by a score. `rows` is N of the theorem.

    A claim within `tolerance` of the score on the rows is confirmed. Other scores are rounded to a grid on [0, 1] whose
    steps are at most `tolerance`.
    """

    questions: int
    answers: int
    rows: int
    failure_probability: float
    tolerance: float
    choices: int = 1
    """How many values that has which is public and not fixed before the rows are drawn, such as a count of labels."""
    near: bool = False
    """Whether only scores near their expectations are counted, for exact scores alone, without noise."""

    mechanism = "counting"
    row_privacy = None  # exact scores promise nothing to a row

    @property
    def grid_size(self) -> int:
        """G: the points of the grid, 0 and 1 among them."""
        return math.ceil(1.0 / self.tolerance) + 1

    @property
    def bound(self) -> float:
        """log(2 M/beta)/N, rounded up."""
        found = self._bound_with(self.grid_size)
        while self.near:  # each value is a bound, since the next one counts no more points than it was made with
            nearer = self._bound_with(min(self.points_near(found), self.grid_size))
            if nearer >= found * (1.0 - 1e-6):
                break
            found = nearer
        return found

    def points_near(self, bound: float) -> int:
        """As how many points a score is shown, at most, when its divergence from its expectation is at most this."""
        return math.floor(2.0 * math.sqrt(bound / 2.0) * _SAFE * (self.grid_size - 1)) + 2

    def _bound_with(self, points: int) -> float:
        b = np.arange(self.answers, dtype=np.float64)
        chosen = gammaln(self.questions + 1.0) - gammaln(b + 2.0) - gammaln(self.questions - b)
        functions = float(logsumexp(b * math.log(points) + chosen))
        events = functions + math.log(self.choices) + math.log(2.0 / self.failure_probability)
        return events / self.rows * _SAFE + 1e-12

    @property
    def error(self) -> float:
        """The largest distance of an answer from its expectation that `interval` allows: at a score of one half."""
        return math.sqrt(self.bound / 2.0) * _SAFE + self.tolerance * _SAFE + 2.0 * ROUNDING

    @property
    def certified(self) -> bool:
        return self.error <= 0.5

    def interval(self, value: float, agrees: bool | None) -> tuple[float, float]:
        """An interval around the expectation, given what was shown. All hold, except with the failure probability."""
        return self.around(value, self.tolerance if agrees else 0.5 * self.tolerance)

    def around(self, value: float, distance: float) -> tuple[float, float]:
        """An interval around the expectation if the score on the rows is within `distance` of a value."""
        reach = distance * _SAFE + ROUNDING
        low, high = max(value - reach, 0.0), min(value + reach, 1.0)
        ends = self.beyond(low, 0.0), self.beyond(high, 1.0)
        return max(ends[0] - ROUNDING, 0.0), min(ends[1] + ROUNDING, 1.0)

    def beyond(self, sample: float, end: float) -> float:
        """A point between a score on the rows and `end`, 0 or 1, beyond which its expectation is not.

        kl(sample, .) is above the bound there. Rounded outwards.
        """
        bound = self.bound
        if divergence(sample, end) <= bound:
            return end
        return root_between(lambda p: divergence(sample, p) > bound, safe=end, unsafe=sample, absolute=2.0**-60)

    def answer(self, scored: Scored, claim: float | None, draws: Draws) -> tuple[bool | None, float]:  # noqa: ARG002
        """Whether the claim is confirmed, and what is shown: the claim, or the rounded score."""
        score = scored.exact()
        if claim is not None and abs(score - claim) <= self.tolerance:
            return True, claim
        return (None if claim is None else False), self.rounded(score)

    def rounded(self, score: float) -> float:
        """The value that is shown of a score."""
        steps = self.grid_size - 1
        return round(score * steps) / steps


@dataclass(frozen=True, kw_only=True)
class Counted:
    """A plan whose questions and answers are counted by another plan."""

    counting: CountingPlan

    @property
    def questions(self) -> int:
        return self.counting.questions

    @property
    def answers(self) -> int:
        return self.counting.answers


def plan_counting(
    *,
    questions: int,
    answers: int,
    rows: int,
    failure_probability: SupportsFloat,
    tolerance: SupportsFloat | None = None,
    choices: int = 1,
    near: bool = False,
) -> CountingPlan:
    """The certificate of rounded exact scores. `tolerance` is by default one over the root of the rows.

    `choices`: how many values there are of what is shown and depends on the rows, such as how many are positive.
    `near`: count only scores near their expectations, which is for exact scores without noise.

    Raises `ArgumentError` when no error below one half is certified.
    Source: docs/theory/generalisation.md, Theorem 7; docs/theory/generalisation.md, Theorem 8 (areas under the curve).

    >>> plan = plan_counting(questions=1000, answers=10, rows=10_000, failure_probability=0.05)
    >>> round(plan.error, 4), [round(end, 3) for end in plan.interval(0.95, True)]
    (0.0804, [0.901, 0.982])
    """
    rows = integer("rows", rows, at_least=4, at_most=1 << 30)
    questions = integer("questions", questions, at_least=1, at_most=10_000_000)
    given = (
        1.0 / math.sqrt(rows) if tolerance is None else number("tolerance", tolerance, at_least=2.0**-20, at_most=0.25)
    )
    plan = CountingPlan(
        questions=questions,
        answers=integer("answers", answers, at_least=1, at_most=min(questions, 1_000_000)),
        rows=rows,
        failure_probability=number("failure_probability", failure_probability, at_least=1e-12, below=1.0),
        tolerance=given,
        choices=integer("choices", choices, at_least=1),
        near=near,
    )
    if not plan.certified:
        raise ArgumentError("rows are too few for this many answers: no error below one half is certified")
    return plan
