"""How many blocks certify a verification: many guesses checked, a few refused (Feldman, Steinke 2017, Theorem 5.1).

A guess v for an estimator is checked by two counts, of block values at most v and at least v. A sparse vector decides
whether each reaches a share u. Its runs are pure. l of them compose to at most randomised response l times, whose
trade-off curve is known exactly, and the transfer bound is used in both directions:

- a wrong yes has v outside qi(rank - margin, 1 - rank + margin). Then one count's population share is at most rank -
  margin, its sample share at least u_low. Impossible with probability p once u_low (p - b) > h((rank - margin) p).
- a wrong no has v inside qi(rank, 1 - rank). Then the share of the count that failed is above rank, its sample share at
  most u_high. Impossible once rank p > h(u_high p + b): privacy read from the fresh blocks to the sample.

b is the probability that the sparse vector's noise passes half the band between u_low and u_high. Each kind of error
gets half the failure probability. The interaction shows which count failed, so the second is asked only if the first is
a yes. It also makes "no answer left" happen exactly after l refusals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import SupportsFloat

import numpy as np

from dpselect.adaptive.runs import response_vertices, runs_trade_off, runs_trade_off_inverse
from dpselect.errors import ArgumentError, integer, number
from dpselect.numerics.search import Array, root_between

__all__ = ["VerificationPlan", "plan_verification"]

_SPLIT = 1.0 / (1.0 + 2.0 ** (2.0 / 3.0))
"""The share of a run's epsilon for the threshold that is best for counts that do not move together."""
_MANY_RUNS = 0.44
"""Of many runs the game has about the trade-off curve of randomised responses of this share of their epsilon."""
_HOPELESS = 1e100


@dataclass(frozen=True, kw_only=True)
class VerificationPlan:
    """`queries` guesses checked on `blocks` blocks until `refusals` of them were refused. See the module.

    With probability at least 1 - failure_probability both of these hold. Every yes has its guess in qi(rank - margin,
    1 - rank + margin) and every no has it outside qi(rank, 1 - rank). A run up to its refusal is (epsilon_threshold +
    epsilon_queries)-private for a replaced block.
    """

    queries: int
    refusals: int
    rank: float
    margin: float
    failure_probability: float
    blocks: int
    lower_share: float
    upper_share: float
    accuracy_failure: float
    epsilon_threshold: float
    epsilon_queries: float

    @property
    def epsilon(self) -> float:
        """Of one run, up to and including its refusal."""
        return self.epsilon_threshold + self.epsilon_queries

    @property
    def threshold(self) -> float:
        """The share that a count is compared with."""
        return (self.lower_share + self.upper_share) / 2.0

    @property
    def certified(self) -> bool:
        """Whether the inequalities of the certificate hold, evaluated once more."""
        half, b = self.failure_probability / 2.0, self.accuracy_failure
        width = (self.upper_share - self.lower_share) / 2.0 * self.blocks
        tail = _noise_tail(width, self.epsilon_threshold, self.epsilon_queries)
        levels = np.array([(self.rank - self.margin) * half, self.upper_share * half + b])
        yes, no = runs_trade_off(self.epsilon_threshold, self.epsilon_queries, self.refusals, levels).tolist()
        return (
            2.0 * self.queries * tail <= b
            and self.lower_share * (half - b) > yes
            and self.rank * half > no
            and 0.0 < self.lower_share < self.upper_share < 0.5
        )

    def at(self, blocks: int) -> VerificationPlan:
        """The same certificate on more blocks: less epsilon, more privacy. Raises `ArgumentError` for fewer."""
        blocks = integer("blocks", blocks)
        if blocks < self.blocks:
            raise ArgumentError(f"blocks must be at least the {self.blocks} that this certificate needs, got {blocks}")
        growth = blocks / self.blocks * (1.0 - 1e-12)
        return replace(
            self,
            blocks=blocks,
            epsilon_threshold=self.epsilon_threshold / growth,
            epsilon_queries=self.epsilon_queries / growth,
        )


def _noise_tail(width: float, epsilon_threshold: float, epsilon_queries: float) -> float:
    """P(Lap(1/epsilon_threshold) + Lap(2/epsilon_queries) > width), for different scales."""
    a, b = 1.0 / epsilon_threshold, 2.0 / epsilon_queries
    return 0.5 * (a * a * math.exp(-width / a) - b * b * math.exp(-width / b)) / (a * a - b * b) * (1.0 + 1e-9)


def _shares(plan: VerificationPlan, yes: float, no: float, b: Array) -> tuple[Array, Array]:
    """The least lower and the largest upper share that b allows, where these are h((rank - margin) p) and h^-1(rank p).

    The plan's own check backs them.
    """
    half = plan.failure_probability / 2.0
    return yes / (half - b) * (1.0 + 1e-8), (no - b) / half * (1.0 - 1e-8)


def _need(units: Array, epsilon: float, lower: Array, upper: Array) -> Array:
    """How many blocks make the noise narrow enough for the band between the shares."""
    band = np.where((lower > 0.0) & (upper > lower), upper - lower, 1.0 / _HOPELESS**2)
    return np.asarray(units / epsilon / band)


def _tail_width(tail: float) -> float:
    """The width that the noise of a run with epsilon = 1 passes with this probability."""

    def rare(width: float) -> bool:
        return _noise_tail(width, _SPLIT, 1.0 - _SPLIT) <= tail

    return root_between(rare, safe=200.0, unsafe=0.0, absolute=200.0 * 2.0**-60)


def plan_verification(
    *,
    queries: int,
    refusals: int,
    failure_probability: SupportsFloat,
    rank: SupportsFloat = 0.25,
    margin: SupportsFloat = 0.125,
) -> VerificationPlan:
    """Return the plan with the fewest blocks, nearly, that certify a verification.

    `VerificationPlan` says what is certified.

    Args:
        queries: how many guesses may be checked, an integer of at least 1.
        refusals: how many guesses may be refused, an integer in [1, 100000].
        failure_probability: the probability, at most, that some yes or no is wrong, at least 1e-12 and below 1.
        rank: every no has its guess outside qi(rank, 1 - rank), above 0 and below 1/2. The default is 0.25.
        margin: every yes has its guess in qi(rank - margin, 1 - rank + margin), at least 1e-9 and below `rank`. The
            default is 0.125.

    Raises:
        ArgumentError: for a number out of range, or if no certificate is found: take a larger margin or fewer refusals.
        TypeError: if an argument is not a number.

    >>> plan_verification(queries=100, refusals=1, failure_probability=0.05, rank=0.2, margin=0.1).certified
    True
    """
    rank = number("rank", rank, above=0.0, below=0.5)
    plan = VerificationPlan(
        queries=integer("queries", queries, at_least=1, at_most=1 << 1000),
        refusals=integer("refusals", refusals, at_least=1, at_most=100_000),
        rank=rank,
        margin=number("margin", margin, at_least=1e-9, below=rank),
        failure_probability=number("failure_probability", failure_probability, at_least=1e-12, below=1.0),
        blocks=0,
        lower_share=0.0,
        upper_share=0.0,
        accuracy_failure=0.0,
        epsilon_threshold=0.0,
        epsilon_queries=0.0,
    )
    # where to look: as if runs were randomised responses of about the epsilon that the game has for many of them
    shrunk = _MANY_RUNS + (1.0 - _MANY_RUNS) * plan.refusals**-0.85
    factors = (shrunk,) if plan.refusals > 3 else (shrunk, 1.0)
    return min((_planned(plan, factor) for factor in factors), key=lambda one: one.blocks)


def _planned(plan: VerificationPlan, factor: float) -> VerificationPlan:
    """The best plan where it is sought as if runs were randomised responses of `factor` times their epsilon."""
    most = math.log(plan.rank / (plan.rank - plan.margin))
    logs = (math.log(most * 1e-3 / math.sqrt(plan.refusals)), math.log(most / factor))
    shares = (math.log(plan.failure_probability * 1e-6), math.log(plan.failure_probability * 0.2))
    best, half = (math.inf, 0.0, 0.0), plan.failure_probability / 2.0
    outside, inside = (plan.rank - plan.margin) * half, plan.rank * half
    for _ in range(5):
        log_b = np.linspace(*shares, 13)
        b = np.exp(log_b)
        units = 2.0 * np.array([_tail_width(float(tail)) for tail in b / (2.0 * plan.queries)])
        for log_epsilon in np.linspace(*logs, 17).tolist():
            level, power = response_vertices(math.exp(log_epsilon) * factor, plan.refusals)
            yes, no = np.interp(outside, level, power), np.interp(inside, power, level)
            need = _need(units, math.exp(log_epsilon), *_shares(plan, float(yes), float(no), b))
            place = int(np.argmin(need))
            best = min(best, (float(need[place]), log_epsilon, float(log_b[place])))
        reach = ((logs[1] - logs[0]) / 6.0, (shares[1] - shares[0]) / 4.0)
        logs = (best[1] - reach[0], best[1] + reach[0])
        shares = (best[2] - reach[1], min(best[2] + reach[1], math.log(plan.failure_probability * 0.4)))
    epsilon = math.exp(best[1])
    plan = replace(plan, epsilon_threshold=epsilon * _SPLIT, epsilon_queries=epsilon * (1.0 - _SPLIT))
    b = np.exp(np.linspace(best[2] - 1.0, shares[1], 60))
    runs = (plan.epsilon_threshold, plan.epsilon_queries, plan.refusals)
    allowed = float(runs_trade_off(*runs, np.array([outside]))[0])
    lower, upper = _shares(plan, allowed, runs_trade_off_inverse(*runs, inside), b)
    units = 2.0 * np.array([_tail_width(float(tail)) for tail in b / (2.0 * plan.queries)])
    need = _need(units, epsilon, lower, upper)
    place = int(np.argmin(need))
    if not need[place] < _HOPELESS:
        raise ArgumentError("no certificate was found: take a larger margin or fewer refusals")
    blocks = math.ceil(need[place])
    while True:
        found = replace(
            plan,
            blocks=blocks,
            lower_share=float(lower[place]),
            upper_share=float(upper[place]),
            accuracy_failure=float(b[place]),
        )
        if found.certified:
            return found
        blocks += 1
