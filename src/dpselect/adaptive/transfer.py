"""From stability to validity: the direct transfer bound, for any guarantee.

An interaction with blocks S_1..S_m answers questions with v_1, v_2, ... . Suppose two things. (1) Regardless of the
blocks, with probability at least 1 - accuracy_failure this holds for every v_j. A share of at least c of the block
values is at most v_j, and a share of at least c is at least v_j. (2) The interaction is private for a block
(replace-one) with trade-off bound h: P(M(s) in E) <= h(P(M(s') in E)), h concave and increasing.

**Theorem.** If c (beta - accuracy_failure) > h(rank beta), then with probability above 1 - beta every v_j is in
qi(rank, 1 - rank) of its estimator on new rows.

*Proof.* Suppose the set F of transcripts with an invalid answer has probability at least beta. Thin it by an
independent coin until it has exactly beta. For y in F let f_y be the first predicate 1(f_j <= v_j) or 1(f_j >= v_j)
with population mean at most rank. It depends on y only. Take a block i and a fresh block Z. Privacy with the other
blocks fixed, Jensen's inequality and the exchangeability of S_i and Z give P(F, f_y(S_i) = 1) <= h(P(F, f_y(Z) = 1)) <=
h(rank beta). On accurate transcripts the mean of f_y over the blocks is at least c, so the mean over i of the left side
is at least c (beta - accuracy_failure). QED

The last step needs less: it is enough that the expected shortfall of the worst share below c, regardless of the blocks,
is at most c accuracy_failure. A share is hardly ever far below c, so this is much cheaper than a probability.

After Jung, Ligett, Neel, Roth, Sharifi-Malvajerdi and Shenfeld (2020). For medians it replaces Feldman and Steinke's
Theorems 4.1 and 4.2, with neither a least number of blocks nor a tiny delta. It certifies released answers only.
"""

from __future__ import annotations

import math
from typing import Any, SupportsFloat

import numpy as np
from scipy.special import ndtr, ndtri

from dpselect.errors import ArgumentError, number
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array, minimise, root_between
from dpselect.privacy import Guarantee
from dpselect.privacy.profile import both_directions
from dpselect.privacy.promises import promise

__all__ = [
    "certifies",
    "certifies_interval",
    "gaussian_mu_of_range",
    "largest_mu",
    "largest_rho",
    "trade_off_bound",
    "transfer_bound",
]

_SAFE = 1e-9
"""What a condition must hold by, relative to its size: far above the rounding of everything that enters it."""


def trade_off_bound(guarantee: Guarantee, probability: SupportsFloat) -> float:
    """Return h(q): the largest probability that an event of probability q on the neighbouring data can have.

    It is rounded up. It is the smallest bound that the curves of the guarantee give. These are the Gaussian's own
    trade-off curve, exp(epsilon) q + delta over the profile, the Renyi divergences and pure privacy. The divergences
    are those of the two Bernoulli distributions, by data processing. The bound is concave and increasing in q, as a
    minimum of such functions.

    Args:
        guarantee: of the mechanism whose output the event is about.
        probability: q, in [0, 1].

    Raises:
        PromiseError: if `guarantee` is not a `Guarantee`.
        ArgumentError: if `probability` is out of range.
        TypeError: if `probability` is not a number.

    >>> from dpselect.privacy import gaussian, pure_dp
    >>> round(trade_off_bound(gaussian(noise_multiplier=1), 0.5), 6), trade_off_bound(pure_dp(epsilon=0), 0.5) < 0.5001
    (0.841345, True)
    """
    guarantee = promise("guarantee", guarantee)
    q = number("probability", probability, at_least=0.0, at_most=1.0)
    if q == 1.0:
        return 1.0
    found = [1.0]
    if guarantee.gaussian_mu is not None:
        found.append(float(ndtr(ndtri(q) + guarantee.gaussian_mu)))
    else:
        if guarantee.profile is not None:
            found.append(_from_profile(guarantee.profile, q))
        if guarantee.renyi_curve is not None and q > 0.0:
            inside = _from_renyi(guarantee.renyi_curve, min(1.0, q / (1.0 - guarantee.failure)))
            found.append(inside * (1.0 - guarantee.failure) + guarantee.failure)
    if math.isfinite(guarantee.pure_epsilon):
        e, slack = guarantee.pure_epsilon, guarantee.failure
        found += [math.exp(min(e, 700.0)) * q + slack, 1.0 - math.exp(-e) * max(1.0 - q - slack, 0.0)]
    return min(1.0, min(found) * (1.0 + _SAFE))


def _from_profile(profile: Any, q: float) -> float:
    def bound(epsilons: Array) -> Array:
        delta = both_directions(profile, epsilons)
        # of the event, and of what is not in it, read in the other direction
        forward = np.exp(np.minimum(epsilons, 700.0)) * q + delta
        return np.minimum(forward, 1.0 - np.exp(-epsilons) * np.maximum(1.0 - q - delta, 0.0))

    return minimise(bound, 0.0, 8.0 - math.log(max(q, 1e-300)))[1]


def _from_renyi(curve: Any, q: float) -> float:
    """The largest p whose Bernoulli law has divergences from Bernoulli(q) within the curve at all orders tried."""
    orders = 1.0 + np.geomspace(1e-3, 1e6, 400)
    limit = np.asarray(curve(orders), dtype=np.float64)

    def refused(p: float) -> bool:
        return bool(np.any(bernoulli_divergence(p, q, orders) > limit))

    # a point at which some order refuses is above every possible probability
    return root_between(refused, safe=1.0, unsafe=q, relative=1e-11)


def bernoulli_divergence(p: Any, q: Any, orders: Any) -> Array:
    """The Renyi divergence of Bernoulli(p) from Bernoulli(q), 0 < q <= p <= 1, orders above 1, with broadcasting."""
    with np.errstate(divide="ignore"):
        first = orders * np.log(p) + (1.0 - orders) * np.log(q)
        second = np.where(
            np.asarray(p) < 1.0, orders * np.log1p(-np.asarray(p)) + (1.0 - orders) * np.log1p(-np.asarray(q)), -np.inf
        )
    return np.asarray(np.logaddexp(first, second) / (orders - 1.0))


def _for_replacement(guarantee: Guarantee) -> Guarantee:
    guarantee = promise("guarantee", guarantee)
    if guarantee.adjacency.value != "replace_one":
        raise ArgumentError("guarantee must be for the adjacency replace_one: the number of blocks is public")
    return guarantee


def certifies(
    guarantee: Guarantee,
    *,
    sample_rank: SupportsFloat,
    rank: SupportsFloat,
    failure_probability: SupportsFloat,
    accuracy_failure: SupportsFloat = 0.0,
) -> bool:
    """Return whether the transfer bound certifies answers with this guarantee.

    That is the theorem's condition c (beta - accuracy_failure) > h(rank beta), as the module proves it.

    Source: docs/theory/generalisation.md, Theorem 1.

    Args:
        guarantee: of the whole interaction, per block and for replacement (you must ensure this).
        sample_rank: c: on every data set the answers have a share of at least c of the block values on either side. It
            is above `rank` and at most 0.5.
        rank: released answers are to be in qi(rank, 1 - rank) of the population, at least 1e-100 and below 0.5.
        failure_probability: beta, the probability, at most, that some answer is outside, above 0 and below 1.
        accuracy_failure: the probability, at most, that some answer lacks that share, on any data set. At least 0 and
            below `failure_probability`. The default is 0.

    Raises:
        PromiseError: if `guarantee` is not a `Guarantee`.
        ArgumentError: for a number out of range, or a guarantee of adjacency add-or-remove, which says something else.
        TypeError: if an argument is not a number.
    """
    guarantee = _for_replacement(guarantee)
    c, rank, beta, accuracy = _ranks(sample_rank, rank, failure_probability, accuracy_failure)
    return c * (beta - accuracy) > trade_off_bound(guarantee, rank * beta)


def transfer_bound(
    guarantee: Guarantee, *, sample_rank: SupportsFloat, rank: SupportsFloat, accuracy_failure: SupportsFloat = 0.0
) -> float:
    """Return the smallest proved probability that some released answer is outside qi(rank, 1 - rank) of the population.

    Source: docs/theory/generalisation.md, Theorem 1.

    Args:
        guarantee: of the whole interaction, per block and for replacement (you must ensure this).
        sample_rank: c: on every data set the answers have a share of at least c of the block values on either side. It
            is above `rank` and at most 0.5.
        rank: released answers are to be in qi(rank, 1 - rank) of the population, at least 1e-100 and below 0.5.
        accuracy_failure: the probability, at most, that some answer lacks that share, on any data set, in [0, 1]. The
            default is 0.

    Returns:
        The probability, 1.0 if nothing is proved.

    Raises:
        PromiseError: if `guarantee` is not a `Guarantee`.
        ArgumentError: for a number out of range, or a guarantee of adjacency add-or-remove, which says something else.
        TypeError: if an argument is not a number.

    >>> from dpselect.privacy import pure_dp
    >>> g = pure_dp(epsilon=0.4, adjacency="replace_one")
    >>> round(transfer_bound(g, sample_rank=0.375, rank=0.25, accuracy_failure=1e-4), 5)
    0.01835
    """
    guarantee = _for_replacement(guarantee)
    accuracy = number("accuracy_failure", accuracy_failure, at_least=0.0, at_most=1.0)
    c, rank, _, _ = _ranks(sample_rank, rank, 0.5, min(accuracy, 0.499))

    def proved(beta: float) -> bool:
        return c * (beta - accuracy) > trade_off_bound(guarantee, rank * beta)

    low, high = max(accuracy, 1e-15), 1.0 - 1e-12
    # h is concave, so the condition holds from one beta on
    return root_between(proved, safe=high, unsafe=low, start=1e-3, relative=1e-9) if proved(high) else 1.0


def certifies_interval(
    guarantee: Guarantee,
    *,
    sample: tuple[float, float],
    population: tuple[float, float],
    failure_probability: SupportsFloat,
    accuracy_failure: SupportsFloat = 0.0,
) -> bool:
    """The theorem for answers in the sample's qi(c, d) to be in the population's qi(a, b), any quantile: a < c < d < b.

    An invalid answer offends on the left (population share at most a, sample share at least c) or on the right (1 - b
    and 1 - d). Let p and beta - p be the probabilities of the two. The proof needs c p + (1 - d)(beta - p) - max(c, 1 -
    d) accuracy_failure > h(a p + (1 - b)(beta - p)) for every p. The difference is convex in p, so a search finds its
    minimum.
    """
    guarantee = _for_replacement(guarantee)
    (c, d), (a, b) = sample, population
    beta = number("failure_probability", failure_probability, above=0.0, below=1.0)
    lost = max(c, 1.0 - d) * number("accuracy_failure", accuracy_failure, at_least=0.0, below=beta)
    if not 0.0 < a < c <= d < b < 1.0:
        raise ArgumentError("ranks must be 0 < a < c <= d < b < 1, with population (a, b) and sample (c, d)")

    def spare(lefts: Array) -> Array:
        return np.array(
            [
                c * p + (1.0 - d) * (beta - p) - lost - trade_off_bound(guarantee, a * p + (1.0 - b) * (beta - p))
                for p in lefts.tolist()
            ]
        )

    return minimise(spare, 0.0, beta, points=33, zooms=6, shrink=17)[1] > _SAFE * beta


def _ranks(
    sample_rank: SupportsFloat,
    rank: SupportsFloat,
    failure_probability: SupportsFloat,
    accuracy_failure: SupportsFloat = 0.0,
) -> tuple[float, float, float, float]:
    low = number("rank", rank, at_least=1e-100, below=0.5)
    beta = number("failure_probability", failure_probability, above=0.0, below=1.0)
    c = number("sample_rank", sample_rank, above=low, at_most=0.5)
    return c, low, beta, number("accuracy_failure", accuracy_failure, at_least=0.0, below=beta)


def largest_mu(**ranks: SupportsFloat) -> float:
    """The mu below which an interaction with Gaussian trade-off N(0,1) against N(mu,1) is certified.

    `ranks`: `sample_rank`, `rank`, `failure_probability` and `accuracy_failure`, as for `certifies`.

    >>> round(largest_mu(sample_rank=0.375, rank=0.25, failure_probability=0.05), 7)
    0.1611243
    """
    c, rank, beta, accuracy = _ranks(**ranks)
    return float(ndtri(c * (beta - accuracy)) - ndtri(rank * beta))


def largest_rho(**ranks: SupportsFloat) -> float:
    """The rho below which a rho-zCDP interaction is certified: the largest Bernoulli divergence over its order.

    `ranks` as for `largest_mu`.

    >>> round(largest_rho(sample_rank=0.375, rank=0.25, failure_probability=0.05), 7)
    0.0098744
    """
    c, rank, beta, accuracy = _ranks(**ranks)
    p, q = c * (beta - accuracy), rank * beta
    if p <= q:
        return 0.0

    def negative(logs: Array) -> Array:
        orders = 1.0 + np.exp(logs)
        return -bernoulli_divergence(p, q, orders) / orders

    return -minimise(negative, math.log(1e-3), math.log(1e5))[1]


def gaussian_mu_of_range(epsilon: SupportsFloat) -> float:
    """A mu such that every mechanism of range `epsilon` has a trade-off at least as good as N(0,1) against N(mu,1).

    So it composes adaptively with Gaussian noise without loss. The worst pairs of range epsilon have two outcomes (see
    `bounded_range`), and their trade-off curves are two chords. A Gaussian curve is convex, so it is below both if it
    passes below their common vertex. The vertex of the pair with largest ratio exp(t) is at q = (1 - exp(t -
    epsilon))/(exp(t) - exp(t - epsilon)), p = exp(t) q. The largest ndtri(p) - ndtri(q) is needed. It is at the even
    pair t = epsilon/2: mu = 2 ndtri(1/(1 + exp(-epsilon/2))). Rounded up. Source: docs/theory/generalisation.md,
    Theorem 3.

    >>> round(gaussian_mu_of_range(0.1), 6)
    0.062663
    """
    epsilon = number("epsilon", epsilon, at_least=0.0, at_most=50.0)
    return float(2.0 * -ndtri(1.0 / (1.0 + math.exp(epsilon / 2.0)))) * ROUND_UP


def range_of_gaussian_mu(mu: SupportsFloat) -> float:
    """The inverse: the largest range epsilon that `mu` covers, rounded down."""
    mu = number("mu", mu, at_least=0.0, at_most=10.0)
    return 2.0 * float(np.log(ndtr(mu / 2.0)) - np.log(ndtr(-mu / 2.0))) * (1.0 - 1e-11)
