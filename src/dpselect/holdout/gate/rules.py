"""Tests of one pair, fixed in advance: is the candidate better than the incumbent by more than the margin?

Each takes the differences, candidate less incumbent, of independent draws in an order that is random, and a level.
Under the null hypothesis (what is claimed does not hold) it accepts with probability at most the level. Rounding goes
to "rejected".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final

import numpy as np
from scipy.special import gammaln, logsumexp

from dpselect.holdout.gate.error_budget import log_of
from dpselect.numerics.search import Array

__all__ = ["CLAIMS", "RULES", "bet", "bet_wealth", "gain_bound", "sign_test"]

_EXACT: Final = 4096
"""So many discordant tasks are counted in integers."""
_PRIOR: Final = 1.0
"""What the running second moment of the differences starts from, as if one had been seen."""
_BOLDEST: Final = 0.9
_SLACK: Final = 1e-9
_GRID: Final = 256
"""Margins from 0 to 1 in steps of one over this."""


def sign_test(wins: int, losses: int, level: Fraction) -> bool:
    """The exact one-sided sign test on discordant tasks (McNemar 1947): ties count for neither.

    P(Binomial(wins + losses, 1/2) >= wins) <= level. Given the number of discordant tasks, wins are binomial with a
    probability of at most 1/2 when the candidate is not better.

    >>> sign_test(65, 35, Fraction(1, 400)), sign_test(64, 36, Fraction(1, 400))
    (True, False)
    """
    count = wins + losses
    if count <= _EXACT:
        tail, term = 0, 1  # of the losses, which have the same law
        for lost in range(losses + 1):
            tail += term
            term = term * (count - lost) // (lost + 1)
        return tail * level.denominator <= level.numerator << count
    k = np.arange(wins, count + 1, dtype=np.float64)
    terms = gammaln(count + 1.0) - gammaln(k + 1.0) - gammaln(count - k + 1.0)
    slack = 1e-14 * count * math.log(count) + _SLACK
    return float(logsumexp(terms)) - count * math.log(2.0) + slack <= log_of(level)


def bet_wealth(gains: Array, log_target: Array) -> Array:
    """The logarithm of the largest wealth that a bet on the gains reaches. Shapes (..., n) and (...).

    Wealth starts at 1 and is multiplied by 1 + fraction * gain. The fraction depends on earlier gains alone and is 0
    once the target is reached. A gain is the difference less the margin, divided by 1 + margin: it is at least -1.
    """
    count = gains.shape[-1]
    wealth, most = np.zeros(gains.shape[:-1]), np.zeros(gains.shape[:-1])
    moment = np.full(gains.shape[:-1], _PRIOR)
    for place in range(count):
        gain = gains[..., place]
        # what a constant fraction would need to reach the target by the end, were the second moment to last
        needed = 2.0 * np.maximum(log_target - wealth, 0.0) * (place + 1) / ((count - place) * moment)
        wealth = wealth + np.log1p(np.minimum(np.sqrt(needed), _BOLDEST) * gain)
        most = np.maximum(most, wealth)
        moment = moment + gain * gain
    return most


def bet(differences: Array, level: Fraction, margin: float) -> bool:
    """A bet on the differences, in [-1, 1], in their secret order (Waudby-Smith, Ramdas 2024).

    When the mean is at most the margin the wealth is a non-negative supermartingale, which reaches 1/level with
    probability at most the level (Ville 1939).

    >>> bet(np.tile([1.0, 1.0, 0.0, -1.0, 1.0], 20), Fraction(1, 400), 0.0)
    True
    """
    target = -log_of(level) + _SLACK
    gains = (differences - margin) / (1.0 + margin)
    return bool(bet_wealth(gains, np.asarray(target)) >= target)


def gain_bound(differences: Array, level: Fraction, known: float) -> float:
    """How much better an accepted candidate is: the last margin of a grid before the first that the bet rejects.

    It is above the true gain with probability at most the level, for a pair fixed in advance. In that event the first
    margin of the grid at or above the true gain would be accepted. At least `known`, the margin that the gate itself
    has certified, which is all where the level is 0: nothing is left for bounds. The test "wins" certifies no mean: it
    is -1 then.

    Source: docs/theory/gate.md, Theorem 2.
    """
    if not level:
        return known
    margins = np.arange(_GRID) / _GRID
    target = -log_of(level) + _SLACK
    gains = (differences - margins[:, None]) / (1.0 + margins[:, None])
    refused = bet_wealth(gains, np.full(_GRID, target)) < target
    passed = int(np.argmax(refused)) if refused.any() else _GRID
    return max(known, float(margins[passed - 1])) if passed else known


def _signs(differences: Array, level: Fraction, margin: float) -> bool:  # noqa: ARG001 - margins are refused before
    return sign_test(int((differences > 0.0).sum()), int((differences < 0.0).sum()), level)


RULES: Final[Mapping[str, Callable[[Array, Fraction, float], bool]]] = {"sign": _signs, "wins": _signs, "bet": bet}
CLAIMS: Final[Mapping[str, str]] = {
    "sign": "on a fresh task the candidate succeeds with a higher probability than the incumbent",
    "wins": "on a fresh task the candidate is more likely to do better than the incumbent than to do worse",
    "bet": "on fresh tasks the mean outcome of the candidate is above that of the incumbent by more than the margin",
}
"""What an accepted candidate has shown, by test."""
