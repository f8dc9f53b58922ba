"""Claims checked by a sparse vector, few noisy answers: a private holdout for many claims.

A claim v is confirmed when the distance of the rows' mean S from it, with noise, is below a tolerance, with noise. The
tolerance's noise is drawn again after every answer. Without a confirmed claim the answer is S with Gaussian noise,
rounded.

**Privacy.** A run of checks up to its refusal is a sparse vector with one positive (the distance moves by one row). Its
noises are drawn on integers in units of 2**-BITS. Its privacy profile is that of the game of coins
(docs/theory/sparse-vector.md, Theorem 7), and is below that of N(0,1) against N(mu_c,1). `mu_of_run` compares them.
There are at most B runs and B answers, one after the other. Gaussian trade-offs compose adaptively with mu^2 adding up
(Dong, Roth, Su 2022, and Smith, Thakurta 2022).

**Validity.** Fix the noise, which does not depend on the rows. The shown answers are then one of the sequences counted
in `dpselect.holdout.counting`. Its theorem holds no matter what rule maps rows to answers. So the rows' scores are near
their expectations. Everything shown is near the rows' scores when no noise is large:

- No answer's noise passes x deviations: probability at most 2 B ndtr(-x).
- No claim is confirmed that is off by the tolerance and g more. After a refusal a run is over. So in a run in which
  that happens, it happens to the first claim so far off that the run meets. The query noise Q of that claim is fresh
  when the claim is chosen. Let R be the threshold's noise. No matter what the run has survived,
  P(it survived, R - Q > g) <= P(Lap(1/e1) + Lap(2/e2) > g). So the probability is at most B of those.
- No claim is refused that is nearer than the tolerance less g'. Given what was before the run, whether it survives to
  its i-th claim is an event that increases with R. The event Q - R > g' decreases with R. So the latter is no likelier
  given the former. Each claim is in one run, and the probability is at most k P(Lap(1/e1) + Lap(2/e2) > g').

Each of the three gets a thirtieth of the failure probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import SupportsFloat

import numpy as np
from scipy.special import ndtri

from dpselect.errors import ArgumentError, number
from dpselect.holdout.counting import ROUNDING, Counted, plan_counting
from dpselect.holdout.draws import Draws
from dpselect.holdout.gaussian import noisy_mean
from dpselect.holdout.scores import BITS, Scored
from dpselect.mechanisms.sparse_vector_prices import sparse_vector_guarantee
from dpselect.numerics.search import root_between
from dpselect.privacy import Adjacency, Guarantee, gaussian
from dpselect.privacy.profile import GaussianProfile
from dpselect.randomness import RandomSource
from dpselect.randomness.integers import discrete_laplace

__all__ = ["CheckedPlan", "mu_of_pure", "mu_of_run", "plan_checked"]

_SPLIT = 1.0 / (1.0 + 2.0 ** (2.0 / 3.0))
"""The share of a run's epsilon for the threshold (Lyu, Su, Li 2017, for queries that do not move together)."""
_SAFE = 1.0 + 1e-6
"""Beyond what integer Laplace noise in units of 2**-BITS differs from the continuous one."""
_MU_EACH = 0.55
"""About the mu of a run over its epsilon."""
_POINTS = 2000


def mu_of_pure(epsilon: SupportsFloat) -> float:
    """The mu of the Gaussian trade-off that dominates an epsilon-private mechanism. Rounded up.

    >>> round(mu_of_pure(0.1), 6)
    0.125309
    """
    epsilon = number("epsilon", epsilon, at_least=0.0, at_most=30.0)
    return float(-2.0 * ndtri(1.0 / (1.0 + math.exp(epsilon)))) * (1.0 + 1e-9)


@lru_cache(maxsize=256)
def mu_of_run(epsilon: float) -> float:
    """The mu of a Gaussian trade-off that dominates a run of checks. Rounded up.

    At most `mu_of_pure`. Between two points the run's profile is at most what it is at the first, and the Gaussian's at
    least what it is at the second. Source: docs/theory/sparse-vector.md, Theorem 7.

    >>> round(mu_of_run(0.1), 3)
    0.053
    """
    most = mu_of_pure(epsilon)
    wide = epsilon * _SAFE
    promised = sparse_vector_guarantee(
        epsilon_threshold=wide * _SPLIT,
        epsilon_queries=wide * (1.0 - _SPLIT),
        max_positives=1,
        monotonic=False,
        adjacency=Adjacency.REPLACE_ONE,
    ).worst()
    points = np.linspace(0.0, promised.pure_epsilon, _POINTS)
    largest = promised.delta(points)[:-1]

    def covers(mu: float) -> bool:
        return bool(np.all(GaussianProfile(mu).below(points[1:]) >= largest))

    return root_between(covers, safe=most, unsafe=0.1 * epsilon, relative=1e-9) if covers(most) else most


def _run_of_mu(mu: float) -> float:
    """The largest epsilon of a run up to 30, nearly, that `mu` covers."""
    epsilon = min(mu / _MU_EACH, 30.0)
    for _ in range(3):  # a run's mu is nearly proportional to its epsilon
        epsilon = min(epsilon * mu / mu_of_run(epsilon), 30.0) * (1.0 - 1e-6)
    while mu_of_run(epsilon) > mu:
        epsilon *= 0.99
    return epsilon


def _tail(rows: float, epsilon: float) -> float:
    """P(Lap(1/e1) + Lap(2/e2) > rows), e1 and e2 being the parts of epsilon. Rounded up."""
    a, b = 1.0 / (epsilon * _SPLIT), 2.0 / (epsilon * (1.0 - _SPLIT))
    return 0.5 * (a * a * math.exp(-rows / a) - b * b * math.exp(-rows / b)) / (a * a - b * b) * _SAFE


def _gap(probability: float, epsilon: float) -> float:
    """How many rows the noise of a check passes with this probability. Rounded up."""

    def rare(rows: float) -> bool:
        return _tail(rows, epsilon) <= probability

    return root_between(rare, safe=4000.0 / epsilon, unsafe=0.0)


@dataclass(frozen=True, kw_only=True)
class CheckedPlan(Counted):
    """`counting` has nine tenths of the failure probability, the noise the rest.

    A claim is compared with `tolerance` = slack + refusal_gap. `epsilon` is that of a run of checks, `deviation` that
    of an answer's noise.
    """

    failure_probability: float
    slack: float
    gap: float
    refusal_gap: float
    epsilon: float
    deviation: float

    mechanism = "checked"

    @property
    def tolerance(self) -> float:
        """The threshold for the distance of a claim."""
        return self.slack + self.refusal_gap

    @property
    def claim_error(self) -> float:
        """How far a confirmed claim may be from the rows' score."""
        return self.tolerance + self.gap

    @property
    def answer_error(self) -> float:
        """How far an answer may be from the rows' score."""
        return self._deviations * self.deviation + 0.5 * self.counting.tolerance * (1.0 + 1e-9)

    @property
    def _deviations(self) -> float:
        return float(-ndtri(self.failure_probability / 30.0 / (2.0 * self.answers))) * (1.0 + 1e-9)

    @property
    def error(self) -> float:
        """The largest distance of what is shown from the population's score."""
        near = max(self.claim_error, self.answer_error) * (1.0 + 1e-9)
        return math.sqrt(self.counting.bound / 2.0) * (1.0 + 1e-9) + near + 2.0 * ROUNDING

    @property
    def mu(self) -> float:
        """Everything shown is as private for a replaced row as N(0,1) against N(mu,1)."""
        one = math.hypot(1.0 / (self.counting.rows * self.deviation), mu_of_run(self.epsilon))
        return math.sqrt(self.answers) * one * (1.0 + 1e-12)

    @property
    def certified(self) -> bool:
        """Whether the bounds of the module hold, evaluated once more."""
        allowed, rows = self.failure_probability / 30.0, self.counting.rows
        return (
            self.answers * _tail(self.gap * rows, self.epsilon) <= allowed
            and self.questions * _tail(self.refusal_gap * rows, self.epsilon) <= allowed
            and self.counting.failure_probability <= 0.9 * self.failure_probability
            and self.slack >= 0.0
        )

    @property
    def row_privacy(self) -> Guarantee | None:
        """The guarantee of everything shown for a row."""
        return gaussian(noise_multiplier=1.0 / self.mu, adjacency=Adjacency.REPLACE_ONE)

    def answer(self, scored: Scored, claim: float | None, draws: Draws) -> tuple[bool | None, float]:
        """Whether the claim is confirmed, and what is shown: the claim, or the score with noise."""
        if claim is not None and self.confirms(scored, claim, draws):
            return True, claim
        value = self.counting.rounded(noisy_mean(scored, self.deviation, draws.answer()))
        return (None if claim is None else False), value

    def confirms(self, scored: Scored, claim: float, draws: Draws) -> bool:
        """Whether a claim is confirmed in this run."""
        whole = scored.rows << BITS
        distance = abs(scored.total() - round(claim * whole))
        noise = self._laplace(2.0 / (self.epsilon * (1.0 - _SPLIT)), draws.check())
        return distance + noise < round(self.tolerance * whole) + self._laplace(
            1.0 / (self.epsilon * _SPLIT), draws.threshold()
        )

    @staticmethod
    def _laplace(scale: float, random: RandomSource) -> int:
        return discrete_laplace(math.ceil(scale * 2.0**BITS), random)

    def interval(self, value: float, agrees: bool | None) -> tuple[float, float]:
        """An interval around the population's score, given what was shown."""
        return self.counting.around(value, self.claim_error if agrees else self.answer_error)


def plan_checked(
    *,
    questions: int,
    answers: int,
    rows: int,
    failure_probability: SupportsFloat,
    tolerance: float,
    largest_mu: float,
) -> CheckedPlan:
    """The smallest error, nearly, at a price of at most N(0,1) against N(largest_mu,1) for a row. See the module.

    `tolerance` is how far a claim may be from the rows' score and still be confirmed (except with a thirtieth of the
    failure probability). Raises `ArgumentError` when no error below one half is certified.

    >>> plan = plan_checked(questions=1000, answers=10, rows=50_000, failure_probability=0.05, tolerance=0.004,
    ...                     largest_mu=0.3)
    >>> plan.error < 0.11, plan.certified, plan.mu <= 0.3
    (True, True, True)
    """
    beta = number("failure_probability", failure_probability, at_least=1e-12, below=1.0)
    counting = plan_counting(
        questions=questions, answers=answers, rows=rows, failure_probability=0.9 * beta, tolerance=max(tolerance, 2e-6)
    )
    each = min(largest_mu, 20.0) / math.sqrt(counting.answers) * (1.0 - 1e-9)

    unit = each / _MU_EACH * each / mu_of_run(min(each / _MU_EACH, 30.0))

    def at(share: float, epsilon: float) -> CheckedPlan:
        return CheckedPlan(
            counting=counting,
            failure_probability=beta,
            slack=tolerance,
            gap=_gap(beta / 30.0 / counting.answers, epsilon) / rows * (1.0 + 1e-9),
            refusal_gap=_gap(beta / 30.0 / counting.questions, epsilon) / rows * (1.0 + 1e-9),
            epsilon=epsilon,
            deviation=max(1.0 / (rows * each * math.sqrt(1.0 - share)) * (1.0 + 1e-9), 2.0**-5 / rows),
        )

    shares = np.linspace(0.3, 0.999, 60).tolist()
    share = min(shares, key=lambda share: at(share, min(unit * math.sqrt(share), 30.0)).error)
    best = at(share, _run_of_mu(each * math.sqrt(share)))
    if not best.error <= 0.5 or not best.certified:
        raise ArgumentError(
            "rows are too few for this many answers at this price: no error below one half is certified"
        )
    return best
