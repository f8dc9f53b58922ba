"""Statements on adaptive analysis and on slices beside exact laws that come within 1 % of them.

As in `tests/privacy/test_statements.py`; the marks make the theorem index of the documentation.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.adaptive.median_bounds import exact_exponential_failure, exponential_median_blocks
from dpselect.adaptive.search_noise import search_cost
from dpselect.adaptive.transfer import certifies, certifies_interval, transfer_bound
from dpselect.errors import ArgumentError
from dpselect.ordered.order_statistics.one import rank_error
from dpselect.ordered.slices.price import SlicePrice
from dpselect.privacy import approximate_dp, pure_dp
from dpselect.testing.exact import renyi_divergence
from tests.privacy.test_statements import within_one_per_cent


@pytest.mark.theorem(
    "Feldman, Steinke 2017, Theorem 3.1",
    exact=True,
    loose="every other answer is counted as if it were as good as allowed",
)
@pytest.mark.parametrize(("grid_size", "epsilon", "accuracy"), [(6, 1.0, 0.5), (1001, 0.1, 0.25), (2, 0.5, 0.3)])
def test_blocks_for_an_approximate_median(grid_size, epsilon, accuracy):
    """The largest failure over all data, which enumeration confirms on small grids, at that many blocks."""
    asked = {"grid_size": grid_size, "epsilon": epsilon, "accuracy": accuracy}
    blocks = math.ceil(exponential_median_blocks(failure_probability=0.05, **asked))
    assert exact_exponential_failure(blocks=blocks, **asked) <= 0.05


@pytest.mark.theorem("docs/theory/generalisation.md, Theorem 1", exact=True, sharp=True)
@pytest.mark.parametrize(("rank", "delta"), [(1e-3, 0.05), (1e-6, 0.2)])
def test_answers_that_are_invalid_on_fresh_rows(rank, delta):
    """Two blocks, each with one of 1/rank values: with probability delta each, the question is about its value.

    The answer, 1, is what this block has and the other has not; new rows reach it with probability `rank` only.
    Else a question is asked that everybody answers alike. So one block changes the law of the questions by delta.
    """
    values = round(1.0 / rank)
    law, other = ([delta * (value == own) for value in range(3)] + [1.0 - delta] for own in (0, 1))
    assert sum(max(p - q, 0.0) for p, q in zip(law, other, strict=True)) == pytest.approx(delta)
    private = approximate_dp(epsilon=0.0, delta=delta, adjacency="replace_one")
    # a value at the rank itself would be valid: one of `values` is below it
    below = rank * (1.0 + 1e-9)
    assert 1.0 / values < below
    assert within_one_per_cent(2.0 * delta, transfer_bound(private, sample_rank=0.5, rank=below))


@pytest.mark.theorem("docs/theory/generalisation.md, Theorem 2", exact=True, sharp=True)
@pytest.mark.parametrize("steps", [1, 5, 10, 40])
@pytest.mark.parametrize("sharing", [0.0, 0.3, 2.0])
def test_the_noise_of_a_search(steps, sharing):
    """The squared length of a shift of correlated Gaussian counts, by the covariance, over all numbers of steps."""
    covariance = np.eye(steps) + sharing * np.ones((steps, steps))
    shifts = np.tri(steps)
    truth = float(np.max(np.sum(shifts * np.linalg.solve(covariance, shifts.T).T, axis=1)))
    assert within_one_per_cent(truth * (1.0 + sharing) * (1 - 1e-9), search_cost(steps, sharing))


@pytest.mark.theorem(
    "docs/theory/reorder-slice-compute.md, Theorem B", "Cohen et al. 2022, Lemma 2.5", exact=True, sharp=True
)
@pytest.mark.parametrize("order", [1.5, 2.0, 3.0])
def test_the_transcript_of_many_slices(order):
    """All transcripts of up to fourteen slices, from the definition of the maps, for randomised responses."""
    unit, depth = 0.05, 14
    keep = [math.exp(-i * unit) for i in range(3000)]
    fails = [max(0.0, keep[i] + keep[i + 1] - 1.0) for i in range(2999)]
    first = [(1.0 - keep[1]) * (keep[i] - fails[i]) for i in range(2998)]
    second = [(1.0 - keep[1]) * (keep[i + 1] - fails[i + 1] / keep[1]) for i in range(2998)]
    failed = (1.0 - keep[1]) * sum(fails)
    # outcomes of one ratio tell the same: there are three
    ratio = np.round(np.log(first) - np.log(second), 6)
    first, second = ([float(np.sum(np.array(m)[ratio == r])) for r in np.unique(ratio)] for m in (first, second))
    assert len(first) == 3

    def response(epsilon):
        likely = 1.0 / (1.0 + math.exp(-epsilon))
        return np.array([likely, 1.0 - likely])

    def then(law, other):
        return np.outer(law, other).ravel()

    laws = []
    for masses, fail, way in ((first, failed, 1), (second, failed / keep[1], -1)):
        done, left = [], np.ones(1)
        for _ in range(depth):
            done.append(then(left, then(np.array(masses), response(unit)[::way])))
            left = then(fail * left, response(2.0 * unit)[::way])
        laws.append(np.concatenate([*done, left]))
    truth = max(float(renyi_divergence(*pair, order)) for pair in (laws, laws[::-1]))
    price = SlicePrice(slice_epsilon=unit, insertion=pure_dp(epsilon=unit))
    assert within_one_per_cent(truth, float(price.renyi()(np.array([order]))[0]))


@pytest.mark.theorem("McSherry, Talwar 2007, Theorem 6", exact=True, sharp=True)
@pytest.mark.parametrize(("size", "rate"), [(2**8, Fraction(1)), (2**32, Fraction(1, 10))])
def test_how_far_an_exponential_mechanism_is_off(size, rate):
    """One place with the best score and all others just so far behind."""
    error = rank_error(size, rate, 0.01)

    def failure(behind):
        others = (size - 1) * math.exp(-float(rate) * behind)
        return others / (1.0 + others)

    assert failure(error) <= 0.01 < failure(0.99 * error)


def test_a_guarantee_for_added_rows_certifies_nothing():
    added = pure_dp(epsilon=0.01)
    ranks = {"failure_probability": 0.05}
    with pytest.raises(ArgumentError, match="replace_one"):
        certifies(added, sample_rank=0.375, rank=0.25, **ranks)
    with pytest.raises(ArgumentError, match="replace_one"):
        certifies_interval(added, sample=(0.4, 0.6), population=(0.25, 0.75), **ranks)
