"""Statements on adaptive analysis and on slices beside exact laws that come within 1 % of them.

As in `tests/privacy/test_statements.py`; the marks make the theorem index of the documentation.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.adaptive.median_bounds import exact_exponential_failure, exponential_median_blocks
from dpselect.adaptive.transfer import (
    certifies,
    certifies_interval,
    gaussian_mu_of_range,
    largest_mu,
    largest_rho,
    range_of_gaussian_mu,
    transfer_bound,
)
from dpselect.errors import ArgumentError
from dpselect.mechanisms.bounded_range_price import bounded_range
from dpselect.ordered.order_statistics.one import rank_error
from dpselect.ordered.slices.price import SlicePrice
from dpselect.privacy import approximate_dp, compose, gaussian, pure_dp, zcdp
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


def test_transfer_bound_inverts_the_conditions() -> None:
    at = {"sample_rank": 0.375, "rank": 0.25, "accuracy_failure": 0.0005}
    mu = largest_mu(**at, failure_probability=0.05)
    rho = largest_rho(**at, failure_probability=0.05)
    for guarantee in (
        gaussian(noise_multiplier=1 / mu * (1 + 1e-4), adjacency="replace_one"),
        zcdp(rho=rho * (1 - 1e-4), adjacency="replace_one"),
    ):
        assert certifies(guarantee, **at, failure_probability=0.05)
        assert math.isclose(transfer_bound(guarantee, **at), 0.05, rel_tol=3e-3)
    pure = pure_dp(epsilon=0.3, adjacency="replace_one")
    closed = 0.375 * 0.0005 / (0.375 - math.exp(0.3) * 0.25)
    assert math.isclose(transfer_bound(pure, **at), closed, rel_tol=1e-3)
    approximate = approximate_dp(epsilon=0.3, delta=1e-4, adjacency="replace_one")
    assert math.isclose(
        transfer_bound(approximate, **at), (1e-4 + 0.375 * 0.0005) / (0.375 - math.exp(0.3) * 0.25), rel_tol=1e-3
    )
    assert transfer_bound(pure_dp(epsilon=1.0, adjacency="replace_one"), **at) == 1.0
    with pytest.raises(ArgumentError, match="replace_one"):
        transfer_bound(pure_dp(epsilon=0.1), **at)


def test_any_profile_transfers() -> None:
    """A composition that has a profile only: the bound is between that of its Gaussian limit and that of its rho."""
    together = compose(*[bounded_range(epsilon=0.02, adjacency="replace_one")] * 100)
    at = {"sample_rank": 0.37, "rank": 0.25, "accuracy_failure": 0.0005}
    found = transfer_bound(together, **at)
    assert found <= transfer_bound(zcdp(rho=100 * 0.02**2 / 8, adjacency="replace_one"), **at) * (1 + 1e-6)
    assert found >= transfer_bound(gaussian(noise_multiplier=10.0, adjacency="replace_one"), **at)


def test_the_interval_version_agrees_with_the_median() -> None:
    guarantee = gaussian(noise_multiplier=1 / 0.14, adjacency="replace_one")
    symmetric = certifies_interval(
        guarantee, sample=(0.3675, 0.6325), population=(0.25, 0.75), failure_probability=0.05, accuracy_failure=0.0005
    )
    assert symmetric
    assert certifies(guarantee, sample_rank=0.3675, rank=0.25, failure_probability=0.05, accuracy_failure=0.0005)
    wide = gaussian(noise_multiplier=1 / 0.16, adjacency="replace_one")
    assert not certifies_interval(
        wide, sample=(0.3675, 0.6325), population=(0.25, 0.75), failure_probability=0.05, accuracy_failure=0.0005
    )
    # the 90 % quantile, with a narrow upper side
    assert certifies_interval(
        guarantee, sample=(0.88, 0.92), population=(0.6, 0.97), failure_probability=0.05, accuracy_failure=0.0005
    )
    with pytest.raises(ArgumentError, match="ranks"):
        certifies_interval(guarantee, sample=(0.2, 0.6), population=(0.25, 0.75), failure_probability=0.05)


@pytest.mark.theorem("docs/theory/generalisation.md, Theorem 3", exact=True, sharp=True)
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0])
def test_a_bounded_range_lies_within_its_gaussian(epsilon: float) -> None:
    """The profile of the range is below that of the Gaussian everywhere, and touches it."""
    mu = gaussian_mu_of_range(epsilon)
    assert math.isclose(range_of_gaussian_mu(mu), epsilon, rel_tol=1e-6)
    epsilons = np.linspace(0, epsilon, 200)
    normal = gaussian(noise_multiplier=1 / mu).delta(epsilons)
    ours = bounded_range(epsilon=epsilon).delta(epsilons)
    assert np.all(ours <= normal * (1 + 1e-9))
    assert normal[0] <= ours[0] * (1 + 1e-6)
    smaller = gaussian(noise_multiplier=1 / (mu * 0.999)).delta(epsilons)
    assert np.any(ours > smaller)
