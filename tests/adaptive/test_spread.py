"""The generalisation statements of Feldman and Steinke (2017) beside exact laws of rows of zeros and ones.

As in `tests/privacy/test_statements.py`; the marks make the theorem index of the documentation. The statements are tail
bounds with room to spare, so each test also says by how much: what it promises fails for that share of the blocks.
"""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import binom, norm

from dpselect.adaptive.generalisation import (
    concentrated_blocks,
    mean_generalisation,
    mean_generalisation_blocks,
    paper_blocks,
    paper_epsilon,
    projection_grid_size,
    sparse_vector_blocks,
    transfer_blocks,
    verification_blocks,
)
from dpselect.adaptive.median_bounds import search_median_blocks
from dpselect.adaptive.spread import error_from_mean_deviation, error_from_standard_deviation
from dpselect.errors import ArgumentError
from dpselect.privacy import gaussian
from tests.privacy.test_statements import within_one_per_cent

BETA = 0.05


def counts(blocks, rank):
    """The numbers of ones among so many blocks, and their probabilities."""
    ones = np.arange(blocks + 1)
    return ones, binom.pmf(ones, blocks, rank)


@pytest.mark.theorem(
    "Feldman, Steinke 2017, Theorem 4.1", exact=True, loose="a tail bound, and a union over what may be asked"
)
@pytest.mark.parametrize(("rank", "epsilon", "blocks"), [(0.01, 0.05, 400), (0.1, 0.1, 1000), (0.5, 0.02, 4000)])
def test_the_mean_of_a_function_that_was_chosen_by_looking(rank, epsilon, blocks):
    """Of x and 1 - x the one with the larger excess is named, by an exponential mechanism."""
    beta = 0.2
    promised = mean_generalisation(epsilon=epsilon, delta=0, blocks=blocks, queries=1, failure_probability=beta)
    ones, mass = counts(blocks, rank)
    excess = ones / blocks - rank
    named = expit(epsilon / 2.0 * 2.0 * blocks * excess)

    def failure(share):
        most = share * (promised.alpha + promised.gamma * 2.0 * rank * (1.0 - rank))
        return float(np.sum(mass * (named * (excess > most) + (1.0 - named) * (-excess > most))))

    assert 0.0 < failure(1.0) <= beta < failure(1 / 100)
    # read backwards, half of alpha is left for the failure mass
    again = mean_generalisation_blocks(
        alpha=2.0 * promised.alpha, gamma=promised.gamma, queries=1, failure_probability=beta
    )
    assert (again.epsilon, again.blocks) == pytest.approx((epsilon, blocks), rel=1e-9)


@pytest.mark.theorem(
    "Feldman, Steinke 2017, Theorem 4.2", exact=True, loose="a tail bound, and a union over what may be asked"
)
def test_medians_of_the_sample_are_quartiles_of_fresh_rows():
    """The answer 1 is below the upper quartile as soon as fewer than a quarter of new rows are 1."""
    needed = transfer_blocks(queries=1, failure_probability=BETA)

    def failure(blocks):
        ones, mass = counts(blocks, 0.25 * (1.0 - 1e-12))
        return float(np.sum(mass[ones > 3.0 * blocks / 8.0]))

    assert 0.0 < failure(math.ceil(needed)) <= 2.0 * BETA < failure(math.ceil(needed / 800))


def median_failure(blocks, epsilon, rank):
    """That the exponential median on {0, 1} says 1 although fewer than `rank` of new rows are 1."""
    ones, mass = counts(blocks, rank * (1.0 - 1e-12))
    # badness of 1: the zeros; of 0: the ones
    return float(np.sum(mass * expit(epsilon / 2.0 * (2.0 * ones - blocks))))


@pytest.mark.theorem(
    "Feldman, Steinke 2017, Theorem 4.3", exact=True, loose="a tail bound, and a union over what may be asked"
)
def test_one_median_with_the_blocks_and_the_price_of_the_paper():
    asked = {"queries": 1, "grid_size": 2, "failure_probability": BETA}
    blocks, epsilon = math.ceil(paper_blocks(**asked)), paper_epsilon(**asked)
    assert 0.0 < median_failure(blocks, epsilon, 0.25) <= BETA < median_failure(blocks // 12, epsilon, 0.25)


@pytest.mark.theorem(
    "Feldman, Steinke 2017, Theorem 4.7", exact=True, loose="a tail bound, and a union over what may be asked"
)
def test_a_median_of_concentrated_blocks():
    needed = concentrated_blocks(queries=1, grid_size=2, failure_probability=BETA)
    blocks = math.ceil(needed.blocks)
    epsilon = 4.0 * math.log(2.0 * 2.0 / BETA) / needed.blocks
    assert (
        0.0 < median_failure(blocks, epsilon, needed.rank) <= BETA < median_failure(blocks // 3, epsilon, needed.rank)
    )
    assert needed.escape <= BETA / 2.0


@pytest.mark.theorem("Feldman, Steinke 2017, Corollary 4.4", exact=True, sharp=True)
@pytest.mark.parametrize("gap", [1.0, 8.0 / 3.0])
def test_the_quartile_of_two_values_that_is_farthest_from_the_mean(gap):
    """A quarter of the mass, `gap` below the rest. The grid of the paper goes up to 5 from 0."""
    deviation, distance = 2.0 * 0.25 * 0.75 * gap, 0.75 * gap
    assert within_one_per_cent(distance / deviation, error_from_mean_deviation(0.25))
    if deviation == 1.0:
        assert distance + 1.0 <= 5.0
        assert projection_grid_size(0.01, half_range=distance + 1.0) == 601


@pytest.mark.theorem(
    "Feldman, Steinke 2017, Corollary 3.3", exact=True, loose="tail bounds for the price and for the noise"
)
@pytest.mark.parametrize("size", [2, 1001, 2**64])
def test_a_search_with_two_gaussian_counts_a_step(size):
    """The largest noise that errs by a quarter of the accuracy rarely enough is exactly priced below epsilon."""
    epsilon, delta, accuracy = 0.1, 1e-6, 0.25
    asked = {"grid_size": size, "failure_probability": BETA, "epsilon": epsilon, "delta": delta, "accuracy": accuracy}
    steps = 2 * math.ceil(math.log2(size))

    def price(blocks):
        # 1 - (1 - p)^steps = BETA for the probability p that one count is off
        off = -math.expm1(math.log1p(-BETA) / steps)
        noise = accuracy / 4.0 * blocks / float(norm.isf(off / 2.0))
        return gaussian(noise_multiplier=noise / math.sqrt(steps)).epsilon(delta)

    blocks = search_median_blocks(**asked, one_sided=False)
    assert 0.0 < price(blocks) <= epsilon < price(blocks / 3.0)


def laplace_tail(x, scale):
    """P(L > x) for Laplace noise of that scale."""
    return 0.5 * math.exp(-x / scale) if x > 0.0 else 1.0 - 0.5 * math.exp(x / scale)


def some_below(gap, scale, questions):
    """That one of so many counts, `gap` above a threshold with noise of `scale`, seems below; twice the noise each."""

    def term(noise):
        return (
            math.exp(-abs(noise) / scale) / (2.0 * scale) * (1.0 - laplace_tail(noise - gap, 2.0 * scale) ** questions)
        )

    return float(quad(term, -60.0 * scale, 60.0 * scale, points=[0.0, gap], limit=200)[0])


@pytest.mark.theorem(
    "Feldman, Steinke 2017, Theorem 5.2", exact=True, loose="a tail bound, and a union over what may be asked"
)
@pytest.mark.parametrize("questions", [1, 1000])
def test_a_sparse_vector_of_many_questions(questions):
    """All counts at the upper end of the undecided band, whose middle is the threshold: one refusal is a failure."""
    epsilon, delta, accuracy = 0.1, 1e-6, 0.25
    blocks = sparse_vector_blocks(
        queries=questions, refusals=1, epsilon=epsilon, delta=delta, accuracy=accuracy, failure_probability=BETA
    )
    scale = math.sqrt(32.0 * -math.log(delta)) / epsilon
    assert 0.0 < some_below(accuracy / 2.0 * blocks, scale, questions) <= BETA
    assert some_below(accuracy / 2.0 * blocks / 3.0, scale, questions) > BETA


@pytest.mark.theorem(
    "Feldman, Steinke 2017, Theorem 5.1", exact=True, loose="a tail bound, and a union over what may be asked"
)
@pytest.mark.parametrize("honest", [True, False])
def test_one_guess_at_either_end_of_what_is_verified(honest):
    """A guess with just the rank asked for is refused rarely; one below the margin is rarely accepted."""
    rank, margin = 0.2, 0.1
    asked = {"rank": rank, "margin": margin, "queries": 1, "refusals": 1}
    blocks = math.ceil(max(verification_blocks(**asked, failure_probability=BETA)))
    epsilon, delta = 0.5 * math.log1p(margin / (8.0 * rank)), margin * BETA / 384.0
    scale = math.sqrt(32.0 * -math.log(delta)) / epsilon

    def failure(size):
        true = rank if honest else rank - margin
        deviation = math.sqrt(size * true * (1.0 - true))
        near = np.unique(np.round(size * true + deviation * np.linspace(-8.0, 8.0, 33)))
        edges = np.concatenate([[-np.inf], near[1:] - 1.0, [np.inf]])
        mass = np.diff(binom.cdf(edges, size, true))
        # the count of every cell is moved to its end that fails more often
        worst = near if honest else np.append(near[1:], near[-1] + deviation)
        gaps = worst - (rank - margin / 2.0) * size
        return sum(m * some_below(gap if honest else -gap, scale, 1) for m, gap in zip(mass, gaps, strict=True))

    assert 0.0 < failure(blocks) <= BETA < failure(blocks // 20)


@pytest.mark.parametrize("error", [error_from_standard_deviation, error_from_mean_deviation])
def test_an_empty_interval_is_refused(error):
    with pytest.raises(ArgumentError, match="lower_rank"):
        error(0.75)
    assert error(0.75, 0.9) > 0.0
