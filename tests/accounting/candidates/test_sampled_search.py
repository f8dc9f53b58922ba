"""Facts about sparse vectors on candidates, the threshold-free selector and dummies."""

import math

import pytest

from dpselect.accounting.candidates.sampled_percentile import (
    SmoothedOdds,
    lemma_4_3,
    lemma_4_3_smoothing,
)
from dpselect.accounting.candidates.sampled_search import (
    sampled_sparse_vector,
    smoothed_count,
    smoothed_odds,
    threshold_search,
    threshold_search_margin,
    threshold_search_samples,
)
from dpselect.privacy import approximate_dp, gaussian, pure_dp
from dpselect.repetitions import Fixed, Geometric
from dpselect.selection.percentile_sparse_vector import laplace_log_odds
from dpselect.testing.exact import best_of_masses
from tests.accounting.candidates.threshold_published_cases import near
from tests.selection.selection_laws import (
    first_positive_law,
    split_response_pair,
)


def test_the_laplace_oracle():
    assert 1 / (1 + math.exp(-laplace_log_odds(2.0, scale=4.0))) == near(0.696734670)
    assert laplace_log_odds(-2.0, scale=4.0) == -laplace_log_odds(2.0, scale=4.0)
    assert laplace_log_odds(0.0, scale=4.0) == 0.0


def test_the_sparse_vector_is_tight_with_many_queries():
    """Sensitivity S: the last query up by S, the others down by S; levels by a coarse scan."""

    def worst(count):
        found = 0.0
        for down in (0.0, 4.0, 10.0, 20.0):
            for up in (-20.0, -8.0, 0.0, 10.0):
                laws = [
                    first_positive_law(
                        [([down + a], [1.0])] * (count - 1) + [([up - a], [1.0])], 0.0, epsilon=3.0, sensitivity=1.0
                    )
                    for a in (0.5, -0.5)
                ]
                found = max(found, abs(math.log(laws[0][-2] / laws[1][-2])))
        return found / 3.0

    assert 0.24 < worst(1) <= 0.25
    assert worst(5) == pytest.approx(0.9992, abs=2e-2)
    assert 0.99 < worst(20) <= 1.0 + 1e-9


@pytest.mark.full
def test_the_two_searches_have_their_own_constants():
    """S = 2 (epsilon_1 + slack) and log(8 T/delta) where odds are compared, half and log(4 R/delta) for counts."""
    base = pure_dp(epsilon=1.0)
    odds = smoothed_odds(base, samples=50, max_queries=100, delta=1e-6, slack=0.9)
    counts = smoothed_count(base, samples=50, thresholds=100, delta=1e-6, slack=0.9)
    assert (odds.sensitivity, counts.sensitivity) == near((3.8, 1.9))
    c = 2.0 * (math.exp(1.9) + 1.0 + math.exp(0.45)) / (0.9 * (math.exp(1.9) - 1.0))
    for failure, found, constant in ((1e-6 / 400, odds, 8e2), (1e-6 / 200, counts, 4e2)):
        theorem = lemma_4_3_smoothing(epsilon=1.0, slack=0.9, failure=failure)
        assert theorem == near(c * math.log(constant / 1e-6))
        assert found.smoothing < theorem, "exact failures need less"
    # the count's constant used for odds would double delta in the theorem
    assert 400 * lemma_4_3(epsilon=1.0, slack=0.9, smoothing=c * math.log(4e2 / 1e-6)) == near(2e-6)


@pytest.mark.full
def test_deltas_of_sampling():
    """The theorem's delta for any number of samples, and never more than it."""
    base = pure_dp(epsilon=0.5)
    for samples in (1, 30, 10_000):
        odds = smoothed_odds(base, samples=samples, max_queries=10, delta=1e-6, slack=0.25)
        assert sampled_sparse_vector(base, statistic=odds, epsilon=1.0, max_queries=10).guarantee.failure <= 1e-6
        counts = smoothed_count(base, samples=samples, thresholds=10, delta=1e-6, slack=0.25)
        assert threshold_search(base, statistic=counts, epsilon=1.0, thresholds=10).guarantee.failure <= 1e-6
    # a base with a failure mass: all draws that could be made count, or the exact tails of its own trade-off
    rough = approximate_dp(epsilon=0.5, delta=1e-9)
    odds = smoothed_odds(rough, samples=10_000, max_queries=10, delta=1e-6, slack=0.25)
    price = sampled_sparse_vector(rough, statistic=odds, epsilon=1.0, max_queries=10).guarantee
    assert price.failure <= 1e-6 + 10 * 10_000 * 1e-9
    # a Gaussian base, for which the paper has nothing
    by_hand = SmoothedOdds(samples=10_000, smoothing=300.0, sensitivity=1.0)
    price = sampled_sparse_vector(gaussian(noise_multiplier=10.0), statistic=by_hand, epsilon=1.0, max_queries=10)
    assert 0.0 < price.guarantee.failure < 1e-6
    assert "exact" in price.guarantee.theorem


# ---- cost of the threshold-free selector ---------------------------------------------------------------------


def test_cost_of_the_threshold_search():
    numbers = {"sensitivity": 0.2, "slack": 0.1, "epsilon": 1.0, "failure_probability": 0.1}
    assert threshold_search_margin(**numbers) == near(2.81310211)
    log_n = threshold_search_samples(smoothing=5174.83703, target=0.05, thresholds=10, **numbers)
    assert math.exp(log_n) == near(1.45691386e9)
    assert 5174.83703 / math.exp(log_n) == near(3.55191696e-6)
    # the clean form of what is promised: at least the claim up to a slack of 2 log 1.5
    assert 3 * math.exp(-0.45) - 1 == near(0.912884)


def test_the_number_of_runs_is_a_secret():
    """P(J > t) of the geometric count; releasing it with the winner costs J epsilon, which has no bound."""
    law = Geometric(gamma=0.1)
    assert [law.survival(t) for t in (3, 10, 30)] == near([0.729, 0.348678440, 0.0423911583])
    p, q = split_response_pair(1.0)
    for j in (1, 5, 20):
        joint = [best_of_masses(m, Fixed(count=j)) * law.pmf(j) for m in (p, q)]
        assert abs(math.log(joint[0][2] / joint[1][2])) == pytest.approx(j, abs=1e-2 * j)
