"""The numbers of Feldman and Steinke (2017), "Generalization for Adaptively-chosen Estimators via Stable Median":
constants computed from its theorems and proofs by an independent calculation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtri

from dpselect.adaptive import explicit_grid, integer_grid
from dpselect.adaptive.generalisation import (
    concentrated_blocks,
    mean_generalisation,
    mean_generalisation_blocks,
    most_queries,
    paper_blocks,
    paper_composed_epsilon,
    paper_epsilon,
    projection_grid_size,
    single_block_escape,
    sparse_vector_blocks,
    transfer_blocks,
    verification_blocks,
)
from dpselect.adaptive.median_bounds import (
    advanced_composition,
    exact_exponential_failure,
    exponential_median_blocks,
    least_exponential_blocks,
    search_median_blocks,
)
from dpselect.adaptive.medians import ExponentialMedian
from dpselect.adaptive.spread import (
    cantelli_tail,
    error_from_mean_deviation,
    error_from_standard_deviation,
    gaussian_half_width,
    hoeffding_subsample,
    rank_from_mean_deviation,
    rank_from_standard_deviation,
)
from dpselect.adaptive.transfer import largest_mu, largest_rho
from dpselect.errors import ArgumentError
from dpselect.mechanisms.bounded_range_price import bounded_range
from dpselect.privacy import compose, gaussian, zcdp
from dpselect.randomness import keyed_source
from tests.adaptive.adaptive_laws import badness, exponential_law, worst_failure, worst_losses
from tests.adaptive.generalisation_cases import close

HUGE = 2**64


def test_the_law_of_the_worked_example() -> None:
    assert badness((2, 3, 3, 7, 9), 11).tolist() == [5, 5, 4, 2, 3, 3, 3, 3, 4, 4, 5]
    law = exponential_law((2, 3, 3, 7, 9), 11, 1.0)
    expected = {3: 0.1923391, 4: 0.1166595, 7: 0.1166595, 2: 0.07075759, 9: 0.07075759, 0: 0.04291665}
    for point, probability in expected.items():
        assert close(law[point], probability, 1e-6)
    assert close(law[4:7].sum(), 0.3499787, 1e-6)
    assert close(math.log(np.exp(-badness((2, 3, 3, 7, 9), 11) / 2.0).sum()), 0.6484954, 1e-6)


@pytest.mark.parametrize(("values", "runs"), [((5,), 3), ((3, 7), 3), ((2, 5, 8), 5), ((1, 3, 5, 7, 9), 7)])
def test_runs_of_equal_badness(values: tuple[int, ...], runs: int) -> None:
    """Up to m + 2 of them, not m + 1."""
    assert int(np.count_nonzero(np.diff(badness(values, 11)))) + 1 == runs


@pytest.mark.parametrize(("size", "blocks", "loss"), [(5, 4, 0.7722574), (5, 5, 0.8155247), (9, 3, 0.8361107)])
def test_the_worst_privacy_loss_and_the_exact_range(size: int, blocks: int, loss: float) -> None:
    found, spread = worst_losses(size, blocks, 1.0)
    assert close(found, loss, 1e-6)
    assert math.isclose(spread, 1.0, rel_tol=1e-12)  # the range is attained
    if size == 9:
        ratio = np.log(exponential_law((0, 0, 1), 9, 1.0) / exponential_law((0, 1, 8), 9, 1.0))
        assert close(float(np.abs(ratio).max()), loss, 1e-6)


@pytest.mark.parametrize(
    ("size", "blocks", "epsilon", "accuracy", "failure"),
    [
        (6, 8, 1.0, 0.5, 0.4238831),
        (6, 7, 1.0, 0.5, 0.3571438),
        (7, 6, 0.7, 0.34, 0.5967062),
        (8, 5, 2.0, 0.2, 0.7202919),
    ],
)
def test_the_exact_worst_failure(size: int, blocks: int, epsilon: float, accuracy: float, failure: float) -> None:
    exact = exact_exponential_failure(grid_size=size, blocks=blocks, epsilon=epsilon, accuracy=accuracy)
    assert close(exact, failure, 1e-6)
    assert math.isclose(worst_failure(size, blocks, epsilon, accuracy), exact, rel_tol=1e-12)
    if (size, blocks) == (6, 8):
        values = (0, 0, 0, 0, 1, 1, 5, 5)
        bad = badness(values, 6) >= 6
        assert close(float(exponential_law(values, 6, 1.0)[bad].sum()), failure, 1e-6)


@pytest.mark.theorem("Feldman, Steinke 2017, Theorem 3.1", exact=True)
def test_the_exact_worst_failure_is_that_of_enumeration() -> None:
    for size in (2, 3, 4, 6):
        for blocks in (1, 2, 3, 5, 6):
            for epsilon, accuracy in ((0.3, 0.2), (1.0, 0.5), (2.0, 0.9), (1.0, 1.0)):
                exact = exact_exponential_failure(grid_size=size, blocks=blocks, epsilon=epsilon, accuracy=accuracy)
                assert math.isclose(
                    exact, worst_failure(size, blocks, epsilon, accuracy), rel_tol=1e-9, abs_tol=1e-15
                ), (size, blocks, epsilon, accuracy)


def test_monotonicity_and_limits() -> None:
    failures = [exact_exponential_failure(grid_size=6, blocks=8, epsilon=e, accuracy=0.5) for e in (0.5, 1, 2)]
    assert failures == sorted(failures, reverse=True)
    sizes = [exact_exponential_failure(grid_size=n, blocks=8, epsilon=1, accuracy=0.5) for n in (5, 6, 60)]
    assert sizes == sorted(sizes)
    values = (0, 2, 2, 5)
    assert np.allclose(exponential_law(values, 6, 1.0), exponential_law((0, 3, 3, 5), 6, 1.0)[::-1])
    assert np.allclose(exponential_law(values, 6, 0.0), 1 / 6)
    assert exponential_law((0, 2, 2, 3, 5), 6, 200.0)[2] > 1 - 1e-12
    # any monotone relabelling: the same draws at the same places of another grid
    cubes = explicit_grid([float(v) ** 3 - 50.0 for v in range(6)])
    for key in range(40):
        place = ExponentialMedian(epsilon=1.0)(values, integer_grid(0, 5), random=keyed_source(key)).value
        moved = [v**3 - 50.0 for v in values]
        assert ExponentialMedian(epsilon=1.0)(moved, cubes, random=keyed_source(key)).value == place**3 - 50.0


def test_composition_and_median_bounds() -> None:
    assert close(advanced_composition([0.01] * 100, 1e-6), 0.5306522)
    common = {"failure_probability": 0.05, "epsilon": 0.1, "accuracy": 0.25}
    assert close(exponential_median_blocks(grid_size=1001, **common), 1584.7179)
    assert close(exponential_median_blocks(grid_size=HUGE, **common), 7577.1443)
    assert least_exponential_blocks(grid_size=1001, **common) == 1461
    smooth = 4 / 0.025 * math.log(999 * 0.95 / 0.1)
    assert close(smooth, 1465.287)
    assert abs(least_exponential_blocks(grid_size=1001, **common) - smooth) < 8  # one tooth of the rounding


@pytest.mark.parametrize(
    ("size", "two_sided", "one_sided"), [(1001, 19530.178, 6493.273), (HUGE, 56546.095, 19088.766)]
)
def test_binary_search_bounds(size: int, two_sided: float, one_sided: float) -> None:
    common = {"grid_size": size, "failure_probability": 0.05, "epsilon": 0.1, "delta": 1e-6, "accuracy": 0.25}
    assert close(search_median_blocks(**common, one_sided=False), two_sided)
    assert close(search_median_blocks(**common), one_sided)


def test_theorem_4_1() -> None:
    found = mean_generalisation_blocks(alpha=1 / 16, gamma=1 / 8, queries=10, failure_probability=0.05)
    assert close(found.epsilon, 0.05889152, 1e-6)
    assert close(found.blocks, 13022.376)
    assert found.delta == 1.953125e-4
    assert close(
        mean_generalisation_blocks(alpha=0.5, gamma=1, queries=1, failure_probability=0.05).epsilon, 0.34657359
    )
    back = mean_generalisation(
        epsilon=found.epsilon, delta=found.delta, blocks=found.blocks, queries=10, failure_probability=0.05
    )
    assert close(back.gamma, 1 / 8)
    # half of alpha for each of its two terms
    assert close(back.alpha, 1 / 16)


def test_theorem_4_2() -> None:
    assert close(transfer_blocks(queries=100, failure_probability=0.05), 21232.767)
    assert close(transfer_blocks(queries=1, failure_probability=0.05), 9443.531)
    assert close(transfer_blocks(queries=1, failure_probability=0.05, epsilon=0.0588915), 8017.735)
    with pytest.raises(ArgumentError):
        transfer_blocks(queries=1, failure_probability=0.05, epsilon=0.06)


@pytest.mark.parametrize(
    ("queries", "at_ten_per_cent", "at_five_per_cent"),
    [
        (10, 91327.915, 100353.687),
        (100, 271387.095, 295665.026),
        (1000, 994392.135, 1076584.260),
        (10000, 3575217.118, 3852266.444),
    ],
)
def test_theorem_4_3(queries: int, at_ten_per_cent: float, at_five_per_cent: float) -> None:
    def needed(beta: float) -> float:
        return paper_blocks(queries=queries, grid_size=1001, failure_probability=beta)

    assert close(needed(0.1), at_ten_per_cent, 1e-8)
    assert close(needed(0.05), at_five_per_cent, 1e-8)
    assert paper_composed_epsilon(queries=queries, grid_size=1001, failure_probability=0.1) < 0.05
    assert needed(0.1) >= transfer_blocks(queries=queries, failure_probability=0.05)


def test_theorem_4_3_parameters() -> None:
    common = {"grid_size": 1001, "failure_probability": 0.1}
    assert close(paper_composed_epsilon(queries=10, **common), 0.02797372)
    assert close(paper_composed_epsilon(queries=100, **common), 0.03539193)
    assert close(paper_epsilon(queries=100, **common), 8.5543683e-4)
    assert close(paper_epsilon(queries=10000, **common), 8.5543683e-5)
    for queries in (16, 100, 10000):
        expected = 1 / (3200 * math.log(256 / 0.05)) + math.sqrt(2) / 40
        assert close(paper_composed_epsilon(queries=queries, **common), expected, 1e-9)
    assert most_queries(295_666, lambda k: paper_blocks(queries=k, grid_size=1001, failure_probability=0.05)) == 100


def test_theorem_4_6_and_4_7() -> None:
    common = {"queries": 100, "grid_size": 1001, "failure_probability": 0.05}
    printed = concentrated_blocks(**common, as_printed=True)
    assert close(printed.blocks, 5150.094)
    assert close(printed.epsilon, 0.7242446)
    assert printed.epsilon > math.log(2)
    true = concentrated_blocks(**common)
    assert close(true.blocks, 7461.922)
    assert close(true.rank, 6.7006868e-9)
    assert close(true.epsilon, 0.5033207)
    assert close(true.escape, 0.02154205)
    assert true.escape <= 0.025
    one = single_block_escape(rank=true.rank, epsilon=true.epsilon, delta=true.rank)
    assert close(100 * true.blocks * one, true.escape, 1e-9)


def test_theorem_5_1() -> None:
    first, second = verification_blocks(rank=0.2, margin=0.1, queries=100, refusals=1, failure_probability=0.05)
    assert close(first, 328531.585)
    assert first <= 1728 * 0.2 / 0.01 * math.log(1600 / 0.05)
    assert close(1728 * 0.2 / 0.01 * math.log(1600 / 0.05), 358507.855)
    assert close(second, 7.27e5, 1e-3)
    _, textbook = verification_blocks(rank=0.2, margin=0.1, queries=1000, refusals=10, failure_probability=0.05)
    assert close(textbook, 3393042.1)
    epsilon = 0.5 * math.log1p(0.1 / 1.6)
    assert close(epsilon, 0.03031231)
    assert epsilon >= 0.1 / (18 * 0.2)
    assert close(0.1 * 0.05 / (16 * 2 * 12), 1.3020833e-5)
    same = sparse_vector_blocks(
        queries=2000, refusals=10, epsilon=epsilon, delta=1.3020833333e-5, accuracy=0.1 / 3, failure_probability=0.025
    )
    assert close(same, textbook)


def test_composed_exponential_medians() -> None:
    """Concentrated privacy is what the paper's accounting gives; the composed worst pair is below it here."""
    together = compose(*[bounded_range(epsilon=0.1)] * 100)
    concentrated = zcdp(rho=0.125)
    limit = gaussian(noise_multiplier=2.0)
    for epsilon, pair, rho, asymptote in (
        (0.5, 0.0772555, 0.1042851, 0.0524403),
        (1.0, 0.0155125, 0.0179855, 0.0068296),
    ):
        assert close(concentrated.delta(epsilon), rho, 1e-5)
        assert close(limit.delta(epsilon), asymptote, 1e-5)
        assert asymptote < together.delta(epsilon) <= pair * 1.001  # a mesh of losses, rounded up


def test_direct_transfer_limits() -> None:
    at = {"sample_rank": 0.375, "rank": 0.25, "failure_probability": 0.05}
    assert close(largest_mu(**at), 0.1611243)
    assert close(largest_rho(**at), 0.009874358)  # the supremum over all real orders; 0.009874267 on a coarser search
    divergence = 0.01875 * math.log(1.5) + 0.98125 * math.log(0.98125 / 0.9875)
    assert close(divergence, 0.001372291)
    assert largest_rho(**at) > divergence
    other = {"sample_rank": 0.3675, "rank": 0.25, "failure_probability": 0.05, "accuracy_failure": 0.00074}
    assert close(largest_mu(**other), 0.1467975)


def test_constants_of_the_spread_are_attained() -> None:
    values, masses = np.array([-1.0, 1 / 3]), np.array([0.25, 0.75])
    deviation = math.sqrt(float(np.sum(masses * values**2)))
    assert close(1 / deviation, error_from_standard_deviation(0.25))
    assert close(error_from_standard_deviation(0.25), 1.7320508)
    assert close(1 / float(np.sum(masses * np.abs(values))), error_from_mean_deviation(0.25))  # the mean is 0
    assert error_from_mean_deviation(0.25) == 2.0
    assert close(gaussian_half_width(0.25), 0.67448975)
    assert close(gaussian_half_width(0.25) / math.sqrt(2 / math.pi), 0.84534754)
    assert close(math.sqrt(2 / math.pi), 0.79788456)


def test_spread_inverses_and_other_quantiles() -> None:
    for rank in (0.4, 0.25, 0.01, 1e-6):
        assert math.isclose(rank_from_standard_deviation(error_from_standard_deviation(rank)), rank, rel_tol=1e-9)
        assert math.isclose(rank_from_mean_deviation(error_from_mean_deviation(rank)), rank, rel_tol=1e-9)
        assert math.isclose(cantelli_tail(math.sqrt((1 - rank) / rank)), rank, rel_tol=1e-9)
    assert math.isclose(error_from_standard_deviation(0.8, 0.9), 3.0)
    assert error_from_standard_deviation(0.0) == math.inf
    assert hoeffding_subsample(rank=1e-6, error=0.1) == math.ceil(2 * math.log(1e6) / 0.01)


def test_lemma_a_1() -> None:
    """|EX - EY| <= (exp(epsilon) - 1) E|X - mu| + 2 delta Delta."""
    points, x, y = np.array([0, 0.5, 1]), np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.3, 0.3])
    assert np.all(np.maximum(x / y, y / x) <= 1.5 + 1e-12)
    assert math.isclose(abs(points @ (x - y)), 0.1)
    assert math.isclose(0.5 * (np.abs(points - 0.5) @ x), 0.175)
    assert abs(points @ (x - y)) <= 0.175


def test_choosing_from_the_data_over_fits_by_at_most_the_privacy() -> None:
    """Uniform on four values, three blocks: the exponential mechanism's favourite value is over-represented."""
    total = 0.0
    for sample in np.ndindex(4, 4, 4):
        counts = np.bincount(sample, minlength=4)
        weights = np.exp(counts / 2.0)
        total += float(counts @ weights / weights.sum()) / 3.0 / 64.0
    assert close(total, 0.3500693, 1e-6)
    assert 0.25 < total < math.e / 4
    assert close(math.e / 4, 0.6795705, 1e-6)


def test_projection_grid() -> None:
    assert projection_grid_size(0.01) == 1001
    assert projection_grid_size(0.01, half_range=3) == 601
    assert projection_grid_size(3) == 3


def test_the_condition_of_the_gaussian_is_the_difference_of_two_quantiles() -> None:
    assert math.isclose(
        largest_mu(sample_rank=0.4, rank=0.1, failure_probability=0.1, accuracy_failure=0.01),
        float(ndtri(0.036) - ndtri(0.01)),
    )
