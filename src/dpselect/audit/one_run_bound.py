"""The bound on guesses about many canaries in one run, exact in the worst case.

Each of `canaries` rows was put into the data by a coin of its own. A rule that sees the output alone guesses of
`guesses` of them whether they are in. For a mechanism that is (epsilon, delta)-private under adding or removing one
row, the probability of at least v right guesses is at most

    beta + canaries delta beta (1 - beta) / (v b),        beta = P(X >= v), b = P(X = v), and at most 1,

with X binomial of `guesses` trials and probability 1 / (1 + exp(-epsilon)). Some mechanism and rule attain it, so no
smaller bound is valid. The statement for delta = 0 is that of Steinke, Nasr and Jagielski, "Privacy Auditing with One
(1) Training Run" (NeurIPS 2023); for delta > 0 their program has another, mostly larger, second term. The proof of this
one is in docs/theory/one-run-audit.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import bdtr, bdtrc, gammaln, xlog1py, xlogy

from dpselect.errors import ArgumentError, integer, number
from dpselect.numerics.search import Array, root_between
from dpselect.privacy import Guarantee
from dpselect.privacy.promises import promise

__all__ = ["ClaimTest", "claim_test", "one_run_epsilon", "one_run_p_value"]

_ROUND_UP = 1.0 + 1e-7
"""Above the error of the logarithms of factorials up to a million."""

_LARGEST = 700.0
"""Beyond this epsilon exp overflows. A thousand right guesses of a thousand show less than 12."""

_POINTS = 512


@dataclass(frozen=True)
class ClaimTest:
    """The point of a claim that the guesses contradict most.

    Attributes:
        p_value: if the claim holds, at least so many right guesses have at most this probability. Rounded up.
        epsilon: where on the claim's privacy profile the bound is smallest.
        delta: what the claim says there.
    """

    p_value: float
    epsilon: float
    delta: float


def one_run_p_value(*, correct: int, guesses: int, canaries: int, epsilon: float, delta: float = 0.0) -> float:
    """The largest probability of `correct` or more right guesses under (epsilon, delta)-privacy. Rounded up.

    You must ensure that the coins are fair, independent and seen by no one but the mechanism, and that `guesses` was
    fixed before the output was seen. The canaries to guess, and how, may depend on the output.

    Raises `ArgumentError` unless 0 <= correct <= guesses <= canaries, epsilon >= 0 and 0 <= delta <= 1.

    >>> round(one_run_p_value(correct=10, guesses=10, canaries=10, epsilon=0.0), 9)
    0.000976563
    """
    correct, guesses, canaries = _counts(correct, guesses, canaries)
    epsilon = number("epsilon", epsilon, at_least=0.0, finite=False)
    delta = number("delta", delta, at_least=0.0, at_most=1.0)
    return _p_value(correct, guesses, canaries, epsilon, delta)


def one_run_epsilon(
    *, correct: int, guesses: int, canaries: int, delta: float = 0.0, confidence: float = 0.99
) -> float:
    """An epsilon that every true guarantee at `delta` reaches, with probability at least `confidence` over the run.

    0 when nothing is shown. The p-value grows with epsilon, so the epsilons that are rejected at 1 - confidence form an
    interval from 0. This is its end, rounded down. Same duties and errors as `one_run_p_value`.

    >>> round(one_run_epsilon(correct=75, guesses=100, canaries=1000, delta=1e-4, confidence=0.95), 3)
    0.695
    >>> one_run_epsilon(correct=55, guesses=100, canaries=1000, delta=1e-4, confidence=0.95)
    0.0
    """
    correct, guesses, canaries = _counts(correct, guesses, canaries)
    delta = number("delta", delta, at_least=0.0, at_most=1.0)
    return _epsilon(correct, guesses, canaries, delta, 1.0 - number("confidence", confidence, above=0.0, below=1.0))


@lru_cache(maxsize=1024)
def _epsilon(correct: int, guesses: int, canaries: int, delta: float, level: float) -> float:
    def rejected(epsilon: float) -> bool:
        return _p_value(correct, guesses, canaries, epsilon, delta) <= level

    if not rejected(0.0):
        return 0.0
    return root_between(rejected, safe=0.0, unsafe=_LARGEST, start=1.0, relative=1e-7)


def claim_test(*, correct: int, guesses: int, canaries: int, claim: Guarantee) -> ClaimTest:
    """How improbable these guesses are under a claim: the smallest bound over its privacy profile.

    Every point (epsilon, delta) of the profile bounds the same probability, so the smallest bound is one too, no
    matter what the number of points looked at, and although they are picked with `correct` in hand.
    Source: docs/theory/one-run-audit.md, Theorem 1.

    >>> from dpselect.privacy import gaussian
    >>> claim_test(correct=95, guesses=100, canaries=100, claim=gaussian(noise_multiplier=2.0)).p_value < 0.001
    True
    """
    claim = promise("claim", claim)
    correct, guesses, canaries = _counts(correct, guesses, canaries)
    # right guesses beyond this epsilon are expected: no point further out rejects
    last = math.log((correct + 1.0) / (guesses - correct + 0.5)) if correct < guesses else math.log(guesses + 1.0) + 6.0
    epsilons = np.linspace(0.0, max(last, 0.0), _POINTS)
    if math.isfinite(claim.pure_epsilon):
        epsilons = np.append(epsilons, claim.pure_epsilon)
    deltas = claim.delta(epsilons)
    bounds = _p_values(correct, guesses, canaries, epsilons, deltas)
    best = int(np.argmin(bounds))
    return ClaimTest(float(bounds[best]), float(epsilons[best]), float(deltas[best]))


def _counts(correct: int, guesses: int, canaries: int) -> tuple[int, int, int]:
    canaries = integer("canaries", canaries, at_least=1, at_most=10**9)
    guesses = integer("guesses", guesses, at_least=1, at_most=10**6)
    if guesses > canaries:
        raise ArgumentError(f"guesses must be at most canaries, {canaries}, got {guesses}")
    correct = integer("correct", correct, at_least=0)
    if correct > guesses:
        raise ArgumentError(f"correct must be at most guesses, {guesses}, got {correct}")
    return correct, guesses, canaries


def _p_values(correct: int, guesses: int, canaries: int, epsilons: Array, deltas: Array) -> Array:
    """The bound of the module's docstring, by the number of wrong guesses: its probability keeps its digits."""
    if correct == 0:
        return np.ones(epsilons.shape)
    wrong = guesses - correct
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        error = 1.0 / (1.0 + np.exp(epsilons))
        beta = bdtr(wrong, guesses, error)
        rest = bdtrc(wrong, guesses, error) if wrong < guesses else np.zeros(epsilons.shape)
        log_ways = gammaln(guesses + 1.0) - gammaln(wrong + 1.0) - gammaln(correct + 1.0)
        log_mass = log_ways + xlogy(wrong, error) + xlog1py(correct, -error)
        # beta and the mass underflow together; the terms of beta fall by at least this factor each
        factor = np.exp(epsilons) * wrong / (correct + 1.0)
        far = -np.log1p(-np.minimum(factor, 1.0))
        log_ratio = np.where(beta > 1e-290, np.log(beta) - log_mass, far)
        log_second = np.log(canaries * deltas / correct) + log_ratio + np.log(rest)
        second = np.where(deltas > 0.0, np.exp(np.minimum(log_second, 0.0)), 0.0)
    bounds = np.minimum(1.0, (beta + second) * _ROUND_UP)
    return np.where((epsilons > _LARGEST) | (deltas >= 1.0) | np.isnan(bounds), 1.0, bounds)


def _p_value(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    return float(_p_values(correct, guesses, canaries, np.array([epsilon]), np.array([delta]))[0])
