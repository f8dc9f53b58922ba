"""Sparse vector and threshold search by sampling private candidates (Liu, Talwar 2019, Sections 4.2 and 4.3).

The price is (epsilon, delta): epsilon is the sparse vector's, and delta the probability that counting draws lets some
statistic move by more than its sensitivity. Two bounds on delta, of which the smaller is taken: the theorem's, for
every number of samples, and an exact one for the number in use, which is smaller by many orders of magnitude and
exists for every base: by quantiles where every test has draws of its own, by two binomial tails where one batch serves
several tests. Sensitivities differ: 2 (epsilon_1 + slack) where odds are compared, epsilon_1 +
slack where counts are.
"""

from __future__ import annotations

import math
from typing import SupportsFloat, TypeVar

from dpselect.accounting.best_of_k.feasible_region import symmetric_trade_off, trade_offs
from dpselect.accounting.candidates.sampled_percentile import (
    SmoothedCount,
    SmoothedOdds,
    far_apart_probability,
    lemma_4_3,
)
from dpselect.accounting.candidates.search_price import PriceByOutput, first_positive_price
from dpselect.accounting.candidates.smoothing import fewest_samples, with_smoothing
from dpselect.errors import ArgumentError, BoundUnavailableError, integer, number
from dpselect.numerics.logs import ROUND_UP
from dpselect.privacy import Guarantee
from dpselect.privacy.promises import promise

__all__ = [
    "sampled_sparse_vector",
    "smoothed_count",
    "smoothed_odds",
    "threshold_search",
    "threshold_search_margin",
    "threshold_search_samples",
]

Statistic = TypeVar("Statistic", SmoothedOdds, SmoothedCount)

_LARGEST_SLACK = math.nextafter(1.0, 0.0)


def smoothed_odds(
    base: Guarantee,
    *,
    max_queries: int,
    delta: SupportsFloat,
    samples: int | None = None,
    target: SupportsFloat | None = None,
    slack: SupportsFloat = 0.1,
    smoothing: SupportsFloat | None = None,
) -> SmoothedOdds:
    """The statistic of a sparse vector by sampling whose failure is at most `delta`, with sensitivity 2 (epsilon_1 +
    slack).

    Its smoothing is the smallest, to some %, at which `sampled_sparse_vector` charges at most `delta` for
    `max_queries` queries of `samples` draws each. (The theorem's, `lemma_4_3_smoothing`, holds for any number of draws
    and is larger by orders of magnitude.) Without `samples`: the fewest at which counting errs by less than the noise
    does for a candidate that passes with probability `target` (`fewest_samples`).

    Raises `ArgumentError` for a `smoothing` that does not keep `delta`, naming one that does. Raises
    `BoundUnavailableError` for a base without an epsilon outside a failure mass (build `SmoothedOdds` by hand then).
    Source: Liu, Talwar 2019, Theorem 4.4. The price is that of `dpselect.accounting.candidates.quantile_coupling`.

    >>> from dpselect.privacy import pure_dp
    >>> found = smoothed_odds(pure_dp(epsilon=0.5), max_queries=10, delta=1e-6, samples=1000)
    >>> from dpselect.accounting.candidates.sampled_percentile import lemma_4_3_smoothing
    >>> theorem = lemma_4_3_smoothing(epsilon=0.5, slack=0.1, failure=1e-6 / 40)
    >>> found.sensitivity, 1.0 < found.smoothing < 3.0, round(theorem)
    (1.2, True, 1715)
    """
    tests = integer("max_queries", max_queries, at_least=1)
    return _smoothed(SmoothedOdds, promise("base", base), tests, delta, samples, target, slack, smoothing)


def smoothed_count(
    base: Guarantee,
    *,
    thresholds: int,
    delta: SupportsFloat,
    samples: int | None = None,
    target: SupportsFloat | None = None,
    slack: SupportsFloat = 0.1,
    smoothing: SupportsFloat | None = None,
) -> SmoothedCount:
    """The statistic of a threshold search whose failure is at most `delta`, with sensitivity epsilon_1 + slack.

    As `smoothed_odds`, for `threshold_search` and its R `thresholds`, which one batch serves: more than one need the
    smoothing of two exact tails each. Source: Liu, Talwar 2019, Theorem 4.6.

    >>> from dpselect.privacy import pure_dp
    >>> found = smoothed_count(pure_dp(epsilon=0.1), samples=4000, thresholds=4, delta=1e-6, slack=0.25)
    >>> 290.0 < found.smoothing < 300.0
    True
    """
    tests = integer("thresholds", thresholds, at_least=1)
    return _smoothed(SmoothedCount, promise("base", base), tests, delta, samples, target, slack, smoothing)


def _smoothed(
    kind: type[Statistic],
    base: Guarantee,
    tests: int,
    delta: SupportsFloat,
    samples: int | None,
    target: SupportsFloat | None,
    slack: SupportsFloat,
    smoothing: SupportsFloat | None,
) -> Statistic:
    total = number("delta", delta, above=0.0, below=1.0, rounding="up")
    slack = number("slack", slack, above=0.0, below=1.0)
    if not math.isfinite(base.pure_epsilon):
        raise BoundUnavailableError(
            "base must have an epsilon outside a failure mass for the theorem's sensitivity; for others give the "
            "statistic itself (SmoothedOdds or SmoothedCount), whose failure is then priced by binomial tails"
        )
    odds = kind is SmoothedOdds
    sensitivity = (2.0 if odds else 1.0) * (base.pure_epsilon + slack)
    if samples is not None:
        draws = integer("samples", samples, at_least=1, at_most=10**9)
    elif target is None:
        raise ArgumentError("give samples, or a target from which to find how many are needed")
    else:
        share = number("target", target, above=0.0, below=1.0)
        draws = fewest_samples(target=share, sensitivity=sensitivity, odds=odds)
    return with_smoothing(
        lambda size: kind(samples=draws, smoothing=size, sensitivity=sensitivity),
        lambda statistic, enough: min(_failure(base, statistic, tests, enough=enough)),
        delta=total,
        smoothing=None if smoothing is None else number("smoothing", smoothing, above=0.0),
    )


def sampled_sparse_vector(
    base: Guarantee, *, statistic: SmoothedOdds, epsilon: SupportsFloat, max_queries: int
) -> PriceByOutput:
    """The price of a sparse vector whose passing probabilities are counted from fresh draws for each query.

    Privacy holds for any number of samples, fixed without the data (you must ensure this). Every query's candidate
    satisfies `base`. Draws that fall into the base's failure mass are counted over all `max_queries` batches, run or
    not. The exact failure is that of two counts read from one uniform number: see
    `dpselect.accounting.candidates.quantile_coupling`. Source: Liu, Talwar 2019, Theorem 4.4.

    >>> from dpselect.privacy import pure_dp
    >>> base = pure_dp(epsilon=0.5)
    >>> statistic = smoothed_odds(base, samples=5000, max_queries=10, delta=1e-6, slack=0.25)
    >>> price = sampled_sparse_vector(base, statistic=statistic, epsilon=1.0, max_queries=10)
    >>> price.guarantee.pure_epsilon, price.guarantee.failure <= 1e-6
    (1.0, True)
    """
    base = promise("base", base)
    if not isinstance(statistic, SmoothedOdds):
        raise TypeError("statistic must be a SmoothedOdds: odds are compared here")
    queries = integer("max_queries", max_queries, at_least=1, at_most=1 << 1000)
    return _price("sampled-sparse-vector", "Theorem 4.4", base, statistic, epsilon, queries)


def threshold_search(
    base: Guarantee, *, statistic: SmoothedCount, epsilon: SupportsFloat, thresholds: int
) -> PriceByOutput:
    """The price of finding the largest of R thresholds that one candidate passes often enough, from one batch of draws.

    The batch serves all thresholds, so the counts of two data sets are bounded jointly over both of their orders.
    Otherwise as `sampled_sparse_vector`. Source: Liu, Talwar 2019, Theorem 4.6.
    """
    base = promise("base", base)
    if not isinstance(statistic, SmoothedCount):
        # odds move twice as far as the theorem's constant for counts says
        raise TypeError("statistic must be a SmoothedCount: counts are compared here")
    return _price(
        "threshold-search", "Theorem 4.6", base, statistic, epsilon, integer("thresholds", thresholds, at_least=1)
    )


def _failure(
    base: Guarantee, statistic: SmoothedOdds | SmoothedCount, tests: int, *, enough: float = 0.0
) -> tuple[float, float]:
    """By the theorem, and by exact sums, which are not followed below `enough`.

    A query, or a single threshold, has a count of its own. Several thresholds share one batch, for which any coupling
    must do.
    """
    near, draws = statistic.sensitivity, statistic.samples
    if isinstance(statistic, SmoothedOdds):
        theorem = _theorem(base, near / 2.0, statistic.smoothing, 4.0 * tests, tests * draws)
        own, events = True, tests
    else:
        theorem = _theorem(base, near, statistic.smoothing, 2.0 * tests, draws)
        own, events = tests == 1, 1 if tests == 1 else 2 * tests
    apart = far_apart_probability(
        statistic, symmetric_trade_off(trade_offs(base)), coupled=own, enough=enough / (events * ROUND_UP)
    )
    return theorem, events * apart * ROUND_UP


def _theorem(base: Guarantee, near: float, smoothing: float, events: float, draws: int) -> float:
    """The bound of Lemma 4.3 for so many events plus 1 - (1 - failure)^draws, at most 1. It is 1 without slack."""
    slack = near - base.pure_epsilon
    if not slack > 0.0 or base.failure >= 1.0:
        return 1.0
    # a smaller slack than there is: the event shrinks as the sensitivity grows
    slack = min(slack * (1.0 - 1e-12), _LARGEST_SLACK)
    inside = events * lemma_4_3(epsilon=base.pure_epsilon, slack=slack, smoothing=smoothing)
    outside = (0.0 - math.expm1(draws * math.log1p(-base.failure))) * ROUND_UP
    return min(inside + outside, 1.0)


def _price(
    mechanism: str,
    source: str,
    base: Guarantee,
    statistic: SmoothedOdds | SmoothedCount,
    epsilon: SupportsFloat,
    tests: int,
) -> PriceByOutput:
    theorem, tails = _failure(base, statistic, tests)
    epsilon = number("epsilon", epsilon, above=0.0, rounding="up")
    how = "its delta" if theorem <= tails else "an exact delta"
    terms = {
        "mechanism": mechanism,
        "base": dict(base.terms),
        "epsilon": epsilon,
        "tests": tests,
        "samples": statistic.samples,
        "smoothing": statistic.smoothing,
        "sensitivity": statistic.sensitivity,
    }
    return first_positive_price(
        epsilon=epsilon,
        tests=tests,
        failure=min(theorem, tails, 1.0),
        adjacency=base.adjacency,
        theorem=f"search by sampling (Liu, Talwar 2019, {source}, {how})",
        terms=terms,
    )


def threshold_search_samples(
    *,
    smoothing: SupportsFloat,
    sensitivity: SupportsFloat,
    slack: SupportsFloat,
    epsilon: SupportsFloat,
    target: SupportsFloat,
    thresholds: int,
    failure_probability: SupportsFloat,
) -> float:
    """log N, N = 3 smoothing exp(slack/2) / target beta^(-12 S/epsilon) (R+1)^(6 S/epsilon), S the sensitivity.

    With that many samples the threshold found has passing probability at least (3 exp(-slack/2) - 1) smoothing / N,
    except with probability beta + delta/2. The logarithm, because N is astronomical at most parameters.
    Source: Liu, Talwar 2019, Theorem 4.6.

    >>> log_n = threshold_search_samples(
    ...     smoothing=5174.83703, sensitivity=0.2, slack=0.1, epsilon=1.0, target=0.05, thresholds=10,
    ...     failure_probability=0.1)
    >>> f"{math.exp(log_n):.6e}"
    '1.456914e+09'
    """
    slack = number("slack", slack, above=0.0, below=1.0)
    power = (
        6.0
        * number("sensitivity", sensitivity, above=0.0, rounding="up")
        / number("epsilon", epsilon, above=0.0, rounding="down")
    )
    beta = number("failure_probability", failure_probability, above=0.0, below=1.0)
    first = math.log(3.0 * number("smoothing", smoothing, above=0.0) / number("target", target, above=0.0, at_most=1.0))
    count = integer("thresholds", thresholds, at_least=1)
    return first + 0.5 * slack + power * (math.log(count + 1.0) - 2.0 * math.log(beta))


def threshold_search_margin(
    *,
    sensitivity: SupportsFloat,
    slack: SupportsFloat,
    epsilon: SupportsFloat,
    failure_probability: SupportsFloat,
) -> float:
    """Lambda = 6 S/epsilon log(1/beta) + slack/2: how far the search lowers its bar so as not to miss a threshold.

    Source: Liu, Talwar 2019, proof of Theorem 4.6.

    >>> round(threshold_search_margin(sensitivity=0.2, slack=0.1, epsilon=1.0, failure_probability=0.1), 8)
    2.81310211
    """
    power = (
        6.0
        * number("sensitivity", sensitivity, above=0.0, rounding="up")
        / number("epsilon", epsilon, above=0.0, rounding="down")
    )
    beta = number("failure_probability", failure_probability, above=0.0, below=1.0)
    return -power * math.log(beta) + 0.5 * number("slack", slack, at_least=0.0)
