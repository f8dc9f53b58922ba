"""Statements on private selection beside finite mechanisms that come within 1 % of them.

Each test computes the exact law of a search, without sampling: `0.99 * bound < truth <= bound`. A statement that is one
per cent smaller would be false. The marks make the theorem index of the documentation.
"""

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpselect.accounting.best_of_k.feasible_region import PureTradeOff
from dpselect.accounting.best_of_k.random_stopping import theorem_3_2, theorem_3_3_failure, theorem_3_4, theorem_3_5
from dpselect.accounting.best_of_k.theorems import lemma_7, lemma_20, lemma_22
from dpselect.accounting.candidates.conditional import corollary_16, proposition_15
from dpselect.accounting.candidates.dummies import theorem_c_1
from dpselect.accounting.candidates.percentile_sparse_vector import halting_cutoffs, percentile_sparse_vector
from dpselect.accounting.candidates.sampled_percentile import SmoothedOdds
from dpselect.accounting.candidates.sampled_search import sampled_sparse_vector
from dpselect.accounting.candidates.threshold import liu_talwar_theorem_3_1
from dpselect.privacy import approximate_dp, pure_dp
from dpselect.repetitions import Geometric, Poisson, TruncatedNegativeBinomial
from dpselect.repetitions.negative_binomial_theorems import corollary_3, corollary_4, theorem_2
from dpselect.repetitions.poisson import corollary_21, theorem_6
from dpselect.testing.exact import FinitePair, hockey_stick, renyi_divergence
from tests.selection.selection_laws import (
    first_above_law,
    first_positive_law,
    hockey_sticks,
    log_ratio,
    sampled_search_law,
)

ORDER = 1e5
"""An order so large that the mass of an output hardly counts, only its loss."""
NEGATIVE_BINOMIALS = [TruncatedNegativeBinomial(eta=eta, gamma=1e-4) for eta in (-0.5, 0.5, 1.0)]


def split(epsilon=1.0, part=1e-11):
    """Randomised response with a tiny output split off its worse answer: the worst base of the best of K runs."""
    e = math.exp(epsilon)
    worse, better = e / (1.0 + e), 1.0 / (1.0 + e)
    return FinitePair((worse - e * part, e * part, 1.0 - worse), (better - part, part, 1.0 - better))


def divergence(pair, order=ORDER):
    """The Renyi divergence of the first direction."""
    return float(renyi_divergence(pair.upper, pair.lower, order))


def within_one_per_cent(truth, bound):
    return 0.99 * bound < truth <= bound * (1 + 1e-9)


@pytest.mark.theorem("Papernot, Steinke 2022, Corollary 3", exact=True, sharp=True)
@pytest.mark.parametrize("law", NEGATIVE_BINOMIALS, ids=str)
def test_the_pure_price_of_many_runs(law):
    assert within_one_per_cent(divergence(split().best_of(law), math.inf), corollary_3(law=law, epsilon=1.0))


@pytest.mark.theorem("Papernot, Steinke 2022, Theorem 2", exact=True, sharp=True)
@pytest.mark.parametrize("law", NEGATIVE_BINOMIALS, ids=str)
def test_two_orders_of_many_runs(law):
    base = split()
    known = {"epsilon": divergence(base), "hat_order": 1e6, "hat_epsilon": 1.0}
    assert within_one_per_cent(divergence(base.best_of(law)), float(theorem_2(law=law, order=ORDER, **known)))


@pytest.mark.theorem(
    "Papernot, Steinke 2022, Corollary 4",
    exact=True,
    loose="every mechanism of one rho at every order is covered at once, and none attains them all",
)
def test_runs_of_a_concentrated_base():
    law, orders = TruncatedNegativeBinomial(eta=0.5, gamma=0.01), np.array([1.5, 2.0, 8.0, 64.0])
    for epsilon, part in ((0.3, 1e-3), (1.0, 1e-9), (1.0, 0.2)):
        bound = corollary_4(law=law, order=orders, rho=epsilon**2 / 2.0)
        assert np.all(split(epsilon, part).best_of(law)(orders) <= bound)


@pytest.mark.theorem(
    "Papernot, Steinke 2022, Theorem 6",
    "Papernot, Steinke 2022, Lemma 7",
    "Papernot, Steinke 2022, Lemma 22",
    exact=True,
    sharp=True,
)
def test_a_poisson_number_of_runs():
    """Drawn again until it is at most 30 by Lemma 22."""
    base, law = split(), Poisson(mean=10)
    epsilon, hat_epsilon = divergence(base), math.log(ORDER / (ORDER - 1.0))
    hat_delta = float(hockey_stick(base.lower, base.upper, hat_epsilon))

    def bound(order):
        return theorem_6(law=law, order=order, epsilon=epsilon, hat_delta=hat_delta)

    truth = divergence(base.best_of(law))
    assert within_one_per_cent(truth, float(bound(ORDER)))
    assert within_one_per_cent(truth, lemma_7(law=law, order=ORDER, epsilon=epsilon, trade_off=PureTradeOff(1.0)))
    again = float(lemma_22(law=law, limit=30, order=np.array([ORDER]), bound=bound)[0])
    assert within_one_per_cent(divergence(base.best_of(law.at_most(30))), again)


@pytest.mark.theorem(
    "Papernot, Steinke 2022, Corollary 21",
    exact=True,
    loose="the base's delta at one epsilon stands for its trade-off curve, and its epsilon for a Renyi divergence",
)
@pytest.mark.parametrize(("epsilon", "mean"), [(0.05, 1.0), (0.5, 10.0), (2.0, 100.0)])
def test_runs_that_may_fail(epsilon, mean):
    law = Poisson(mean=mean)
    order, bound, failure = corollary_21(law=law, epsilon=epsilon, failure=1e-3)
    given_none, outside = lemma_20(law=law, failure=1e-3)
    assert failure == pytest.approx(outside)
    for part in np.geomspace(1e-9, 0.1, 10):
        assert divergence(split(epsilon, part).best_of(given_none), order) <= bound


@pytest.mark.theorem(
    "Papernot, Steinke 2022, Corollary 16", "Papernot, Steinke 2022, Proposition 15", exact=True, sharp=True
)
def test_a_run_that_was_accepted():
    """Accepted: the tiny part, and of the rest an output as unlikely under the neighbour as the base lets it be."""
    p, q = np.array([1e-6, 1e-3, 0.999 - 1e-6]), np.array([0.0, 0.0, 0.0])
    q[:2] = p[0] * math.exp(-1.0), p[1] * math.e
    q[2] = 1.0 - q[0] - q[1]
    accepted = [m[:2] / m[:2].sum() for m in (p, q)]
    known = {"order": ORDER, "divergence": FinitePair(tuple(p), tuple(q)), "pure_epsilon": 1.0}
    acceptance = float(min(p[:2].sum(), q[:2].sum()))
    truth = float(renyi_divergence(*accepted, ORDER))
    assert within_one_per_cent(log_ratio(*accepted), corollary_16(inequality=1, acceptance=acceptance, **known))
    bound = proposition_15(p_inverse=0.0, q_inverse=0.0, acceptance=acceptance, **known)
    assert within_one_per_cent(truth, bound)
    assert bound == corollary_16(inequality=2, acceptance=acceptance, **known)


@pytest.mark.theorem("Liu, Talwar 2019, Theorem 3.1", exact=True, sharp=True)
def test_the_first_above_a_threshold():
    """The release "none" on randomised response, at a stop probability of 1e-4."""
    tries, low = Geometric(gamma=1e-4), 1.0 / (1.0 + math.e)
    laws = [first_above_law([p, 1.0 - p], [True, False], tries) for p in (low, 1.0 - low)]
    total = liu_talwar_theorem_3_1(pure_dp(epsilon=1.0), stop_probability=1e-4)
    assert within_one_per_cent(log_ratio(*laws), total.pure_epsilon)


@pytest.mark.theorem("Liu, Talwar 2019, Theorem 3.2", "Liu, Talwar 2019, Theorem 3.5", exact=True, sharp=True)
def test_a_geometric_number_of_runs():
    """Without a limit, and with the one at which the price is larger by three times 0.001."""
    base = pure_dp(epsilon=1.0)
    truth = divergence(split().best_of(Geometric(gamma=1e-3)), math.inf)
    assert within_one_per_cent(truth, theorem_3_2(base).pure_epsilon)
    law, total = theorem_3_5(base, stop_probability=1e-3, slack=1e-3)
    assert within_one_per_cent(divergence(split().best_of(law), math.inf), total.pure_epsilon)


@pytest.mark.theorem("Liu, Talwar 2019, Theorem 3.3", exact=True, sharp=True)
@pytest.mark.parametrize(("gamma", "p"), [(0.1, 0.5), (0.01, 0.1), (1e-6, 1e-4)])
def test_no_run_lands_in_the_event(gamma, p):
    bound = theorem_3_3_failure(stop_probability=gamma, probability=p)
    assert within_one_per_cent(float(Geometric(gamma=gamma).pgf(1.0 - p)), bound)


@pytest.mark.theorem(
    "Liu, Talwar 2019, Theorem 3.4",
    exact=True,
    loose="a delta of order sqrt(delta_1)/gamma is charged for what costs delta_1/gamma",
)
def test_a_geometric_number_of_runs_that_may_fail():
    delta, odds = 1e-6, math.e / (1.0 + math.e)
    p = np.array([delta, (1.0 - delta) * odds, (1.0 - delta) * (1.0 - odds), 0.0])
    law, total = theorem_3_4(approximate_dp(epsilon=1.0, delta=delta), stop_probability=0.05, cut_off=1e-3)
    pair = FinitePair(tuple(p), tuple(p[::-1])).best_of(law)
    leak = hockey_sticks(np.array(pair.upper), np.array(pair.lower), total.pure_epsilon)
    assert 0.0 < leak <= total.failure


@pytest.mark.theorem("Liu, Talwar 2019, Theorem 4.1", exact=True, sharp=True)
def test_a_sparse_vector_over_percentiles():
    """The last query's odds move up and the others' down, at a target that hardly any of them reaches."""
    count, base_epsilon = 40, 0.5
    price = percentile_sparse_vector(pure_dp(epsilon=base_epsilon), epsilon=1.0)
    sensitivity = price.guarantee.terms["sensitivity"]
    laws = [
        first_positive_law(
            [([a], [1.0])] * (count - 1) + [([-a], [1.0])], -6.0 * sensitivity, epsilon=1.0, sensitivity=sensitivity
        )
        for a in (base_epsilon, -base_epsilon)
    ]
    assert within_one_per_cent(log_ratio(*laws), price.guarantee.pure_epsilon)


@pytest.mark.theorem(
    "Liu, Talwar 2019, Corollary 4.2", exact=True, loose="tails of two Laplace noises in a union bound"
)
@pytest.mark.parametrize(("queries", "beta"), [(1, 0.1), (9, 0.1), (9, 0.01)])
def test_percentiles_that_a_sparse_vector_tells_apart(queries, beta):
    cut = halting_cutoffs(epsilon_run=0.5, epsilon=1.0, target=0.5, queries=queries, failure_probability=beta)

    def law(probability, count, turned=1.0):
        odds = turned * (math.log(probability) - math.log1p(-probability))
        return first_positive_law([([odds], [1.0])] * count, 0.0, epsilon=1.0, sensitivity=1.0)

    assert law(cut.sure, 1)[-1] <= beta
    assert 1.0 - law(cut.low, queries)[-1] <= beta
    assert float(np.sum(law(cut.low, queries, turned=-1.0)[1:])) <= beta, "it goes past one at `high`, or several"


@pytest.mark.theorem("Liu, Talwar 2019, Theorem 4.4", exact=True, sharp=True)
def test_a_sparse_vector_by_sampling():
    """One draw a query, of a base that may turn it round: the odds move by all that they can, so that nothing fails."""
    statistic = SmoothedOdds(samples=1, smoothing=0.5, sensitivity=2.0 * math.log(3.0) * (1.0 + 1e-9))
    total = sampled_sparse_vector(pure_dp(epsilon=25.0), statistic=statistic, epsilon=12.0, max_queries=300).guarantee
    laws = [sampled_search_law([a] * 299 + [1.0 - a], statistic, 1e-9, epsilon=12.0) for a in (1e-10, 1.0 - 1e-10)]
    assert total.failure == 0.0
    assert within_one_per_cent(log_ratio(*laws), total.pure_epsilon)


@pytest.mark.theorem("Liu, Talwar 2019, Theorem C.1", exact=True, sharp=True)
def test_a_winner_among_many_runs_and_few_dummies():
    """A tiny output among all that pass, e times more likely where only 1/(1 + e) of the runs pass, of 500,000."""
    runs, gamma, low = 500_000, 1e-3, 1.0 / (1.0 + math.e)

    def density(mass, passing):
        counts = np.arange(runs)
        return mass * float(np.sum(binom.pmf(counts, runs - 1, passing) / (2.0 + 1.0 / gamma + counts)))

    truth = math.log(density(math.e, low) / density(1.0, 1.0 - low))
    assert within_one_per_cent(truth, theorem_c_1(pure_dp(epsilon=1.0), gamma=gamma).epsilon(0.0))
