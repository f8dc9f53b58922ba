"""Exact audits without sampling: on finite candidates no selector leaks more than its price, and broken ones do.

The law of every release is computed by enumeration or quadrature (`tests/selection/selection_laws.py`) on random pairs
of neighbours and on the worst pairs of Liu, Talwar 2019. Tolerance 1e-9: rounding of sums of some thousand terms.
"""

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from dpselect.accounting import best_of
from dpselect.accounting.best_of_k.feasible_region import PureTradeOff
from dpselect.accounting.candidates.conditional import conditional_sampling
from dpselect.accounting.candidates.dummies import select_among_dummies
from dpselect.accounting.candidates.percentile_sparse_vector import log_odds_sensitivity, percentile_sparse_vector
from dpselect.accounting.candidates.sampled_percentile import SmoothedCount, SmoothedOdds, far_apart_probability
from dpselect.accounting.candidates.sampled_search import sampled_sparse_vector, threshold_search
from dpselect.accounting.candidates.threshold import threshold_stopping
from dpselect.accounting.candidates.without_threshold import without_threshold
from dpselect.errors import BoundUnavailableError
from dpselect.privacy import compose, gaussian, pure_dp, worst_of
from dpselect.repetitions import Fixed, Geometric, Tabulated, capped
from dpselect.testing.exact import FinitePair, best_of_masses, finite_guarantee
from tests.selection.selection_laws import (
    binomial_masses,
    dummies_law,
    first_above_law,
    first_positive_law,
    hockey_sticks,
    log_ratio,
    random_response_pair,
    sampled_search_law,
    split_response_pair,
    threshold_search_law,
)

TOLERANCE = 1e-9


def response(epsilon):
    low = 1.0 / (1.0 + math.exp(epsilon))
    return np.array([low, 1.0 - low]), np.array([1.0 - low, low])


# ---- A2: the best of a random number of runs ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "law",
    [Geometric(gamma=0.1), Geometric(gamma=0.1).at_most(5), capped(Geometric(gamma=0.1), 5)],
    ids=["free", "conditioned", "capped"],
)
def test_best_of_covers_every_truncation(law):
    random = np.random.default_rng(1)
    pairs = [random_response_pair(random, 4, 1.0) for _ in range(40)] + [split_response_pair(1.0)]
    price = best_of(pure_dp(epsilon=1.0), law, bound="pure").epsilon(0.0)
    found = []
    for p, q in pairs:
        pair = FinitePair(tuple(p), tuple(q)).best_of(law)
        found.append(log_ratio(pair.upper[1:], pair.lower[1:]))
    assert max(found) <= price + TOLERANCE
    assert max(found) >= price - 1e-4, "the split pair attains the price in the limit"


def test_a_capped_law_is_not_a_conditioned_one():
    """Broken: the code caps at 5, the price is that of the conditioned law (or the 3 epsilon of the unlimited one)."""
    p, q = split_response_pair(1.0)
    pair = FinitePair(tuple(p), tuple(q)).best_of(capped(Geometric(gamma=0.1), 5))
    leak = log_ratio(pair.upper[1:], pair.lower[1:])
    assert leak > 3.0 > best_of(pure_dp(epsilon=1.0), Geometric(gamma=0.1).at_most(5), bound="pure").epsilon(0.0)


# ---- A1: known threshold, and conditional sampling with a floor coin ---------------------------------------------


@pytest.mark.parametrize("limit", [None, 3])
def test_threshold_stopping_covers_exact_laws(limit):
    random = np.random.default_rng(2)
    stop = 0.1
    tries = Geometric(gamma=stop) if limit is None else Geometric(gamma=stop).at_most(limit)
    price = threshold_stopping(pure_dp(epsilon=1.0), stop_probability=stop, max_runs=limit).pure_epsilon
    found = 0.0
    for _ in range(60):
        p, q = random_response_pair(random, 4, 1.0)
        for cut in range(1, 4):
            passing = np.arange(4) < cut
            found = max(found, log_ratio(first_above_law(p, passing, tries), first_above_law(q, passing, tries)))
    p, q = response(1.0)
    found = max(found, log_ratio(*(first_above_law(m, [True, False], tries) for m in (p, q))))
    assert price - 1e-3 <= found <= price + TOLERANCE


def test_a_cap_without_a_coin_is_caught():
    """Fact 9: 50 tries, no coin: "none" has log-ratio exactly 50 epsilon on randomised response."""
    p, q = response(1.0)
    laws = [first_above_law(m, [True, False], Fixed(count=50)) for m in (p, q)]
    assert abs(math.log(laws[0][1] / laws[1][1])) == pytest.approx(50.0)
    assert log_ratio(*laws) > threshold_stopping(pure_dp(epsilon=1.0), stop_probability=0.001).pure_epsilon


@pytest.mark.full
def test_conditional_sampling_covers_exact_laws():
    floor, random = 0.1, np.random.default_rng(3)
    masses = floor * (1.0 - floor) ** np.arange(600)
    rounds = Tabulated(probabilities=(masses / masses.sum()).tolist())
    for base_epsilon in (0.3, 1.0):
        price = conditional_sampling(pure_dp(epsilon=base_epsilon), floor=floor)
        promised = {delta: price.epsilon(delta) for delta in (1e-3, 0.05)}
        found = 0.0
        for p, q in [
            *(random_response_pair(random, 3, base_epsilon) for _ in range(40)),
            split_response_pair(base_epsilon),
        ]:
            laws = [first_above_law(m, [False, True, True], rounds) for m in (p, q)]
            found = max(found, log_ratio(*laws))
            for delta, epsilon in promised.items():
                assert hockey_sticks(*laws, epsilon) <= delta + TOLERANCE
        assert price.pure_epsilon - 1e-3 <= found <= price.pure_epsilon + TOLERANCE


# ---- A3: sparse vector with a percentile oracle -------------------------------------------------------------------


def percentile_law(probabilities, target, *, epsilon, sensitivity):
    queries = [([math.log(p / (1 - p))], [1.0]) for p in probabilities]
    return first_positive_law(queries, math.log(target / (1 - target)), epsilon=epsilon, sensitivity=sensitivity)


def audit_percentile(sensitivity, epsilon=1.0, base_epsilon=0.5, count=10):
    """The last query moves up and the earlier ones down, all at the worst point of randomised response."""
    low = 1.0 / (1.0 + math.exp(base_epsilon))
    worst = 0.0
    for target in (0.5, 0.75, 0.9, 0.97):
        laws = [
            percentile_law([a] * (count - 1) + [1.0 - a], target, epsilon=epsilon, sensitivity=sensitivity)
            for a in (1.0 - low, low)
        ]
        worst = max(worst, log_ratio(*laws))
    return worst


def test_percentile_sparse_vector_is_private_and_tight():
    sensitivity = log_odds_sensitivity(pure_dp(epsilon=0.5))
    price = percentile_sparse_vector(pure_dp(epsilon=0.5), epsilon=1.0)
    assert 0.9 < audit_percentile(sensitivity) <= price.guarantee.epsilon(0.0) + TOLERANCE
    # for "nothing found" half of it
    low = 1.0 / (1.0 + math.exp(0.5))
    laws = [percentile_law([a] * 40, 0.9, epsilon=1.0, sensitivity=sensitivity) for a in (low, 1.0 - low)]
    assert abs(math.log(laws[0][-1] / laws[1][-1])) <= price.by_output.observed(None).epsilon(0.0) + TOLERANCE


def test_half_the_sensitivity_is_caught():
    """Broken: epsilon_1 where log-odds move by 2 epsilon_1 (the one-sided search's constant, without its slack)."""
    assert audit_percentile(0.5) > 1.3


def test_one_query_costs_a_quarter():
    sensitivity = log_odds_sensitivity(pure_dp(epsilon=0.5))
    low = 1.0 / (1.0 + math.exp(0.5))
    price = percentile_sparse_vector(pure_dp(epsilon=0.5), epsilon=1.0, max_queries=1).guarantee.epsilon(0.0)
    found = 0.0
    for target in (0.01, 0.5, 0.9, 0.999, 1 - 1e-9):
        laws = [percentile_law([a], target, epsilon=1.0, sensitivity=sensitivity) for a in (low, 1.0 - low)]
        found = max(found, log_ratio(*laws))
    assert 0.24 < found <= price + TOLERANCE
    assert price == 0.25


# ---- A4 and A5: by sampling ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SmoothedOdds, SmoothedCount])
def test_far_apart_probability_is_an_upper_bound(kind):
    """Against the exact probability under independent counts, over pairs at the edge of what the base allows."""
    n, epsilon = 60, 0.5
    for smoothing in (1.0, 4.0, 12.0):
        statistic = kind(samples=n, smoothing=smoothing, sensitivity=1.2 if kind is SmoothedOdds else 0.8)
        bound = far_apart_probability(statistic, PureTradeOff(epsilon))
        values = np.array([statistic.statistic(k) for k in range(n + 1)])
        far = values[None, :] - values[:, None] > statistic.sensitivity
        worst = 0.0
        for p in np.concatenate((np.geomspace(1e-4, 0.5, 60), [1.0 / (1.0 + math.exp(epsilon))])):
            q = min(math.exp(epsilon) * p, 1.0 - math.exp(-epsilon) * (1.0 - p))
            worst = max(worst, float(binomial_masses(n, p) @ far @ binomial_masses(n, q)))
        assert worst <= bound * (1 + 1e-9)
        assert bound < 1.0 or smoothing < 4.0


@pytest.mark.full
def test_every_query_and_every_threshold_can_err():
    """The delta grows with their number; a threshold search counts both orders, since one batch has to serve all."""
    base, n = pure_dp(epsilon=0.5), 60
    odds = SmoothedOdds(samples=n, smoothing=1.0, sensitivity=1.6)
    single = far_apart_probability(odds, PureTradeOff(0.5), coupled=True)
    failure = sampled_sparse_vector(base, statistic=odds, epsilon=1.0, max_queries=12).guarantee.failure
    assert 0.0 < single < failure == pytest.approx(12 * single)
    counts = SmoothedCount(samples=n, smoothing=12.0, sensitivity=0.8)
    failure = threshold_search(base, statistic=counts, epsilon=1.0, thresholds=5).guarantee.failure
    assert failure == pytest.approx(10 * far_apart_probability(counts, PureTradeOff(0.5)))


@pytest.mark.full
@pytest.mark.parametrize("base", [pure_dp(epsilon=0.5), gaussian(noise_multiplier=3.0)], ids=["pure", "gaussian"])
@pytest.mark.parametrize("samples", [3, 25])
def test_sampled_sparse_vector_covers_exact_laws(base, samples):
    """Streams of four queries whose passing probabilities move as far as the base lets them, in all directions."""
    statistic = SmoothedOdds(samples=samples, smoothing=6.0, sensitivity=1.8)
    price = sampled_sparse_vector(base, statistic=statistic, epsilon=1.0, max_queries=4).guarantee
    random = np.random.default_rng(4)
    assert price.failure < 1.0
    for _ in range(25):
        first, second = [], []
        for _ in range(4):
            p = float(random.uniform(0.05, 0.6))
            q = far_probability(base, p)
            if random.random() < 0.5:
                p, q = q, p
            first.append(p)
            second.append(q)
        laws = [sampled_search_law(m, statistic, 0.6, epsilon=1.0) for m in (first, second)]
        for delta in {price.failure, price.failure / 2 + 0.01, 0.2}:
            if delta < 1.0:
                assert hockey_sticks(*laws, price.epsilon(delta)) <= delta + TOLERANCE


def far_probability(base, p):
    """The largest probability that the base allows a neighbour."""
    if base.gaussian_mu is not None:
        return float(ndtr(ndtri(p) + base.gaussian_mu))
    return min(math.exp(0.5) * p, 1.0 - math.exp(-0.5) * (1.0 - p))


def test_the_one_sided_sensitivity_is_caught_in_the_two_sided_search():
    """Broken: S = epsilon_1 + slack in the search on odds, at a number of samples where counting hardly errs."""
    base_epsilon, epsilon = 1.0, 1.0
    statistic = SmoothedOdds(samples=150, smoothing=0.5, sensitivity=1.1)
    low = 1.0 / (1.0 + math.exp(base_epsilon))
    laws = [sampled_search_law([a] * 6 + [1.0 - a], statistic, 0.75, epsilon=epsilon) for a in (1.0 - low, low)]
    assert log_ratio(*laws) > 1.3 * epsilon
    honest = SmoothedOdds(samples=150, smoothing=0.5, sensitivity=2.2)
    laws = [sampled_search_law([a] * 6 + [1.0 - a], honest, 0.75, epsilon=epsilon) for a in (1.0 - low, low)]
    assert log_ratio(*laws) <= epsilon
    # and the price of the broken one says so: nothing is promised
    with pytest.raises(BoundUnavailableError, match="failure"):
        sampled_sparse_vector(pure_dp(epsilon=base_epsilon), statistic=statistic, epsilon=epsilon, max_queries=7)


@pytest.mark.cases(1)
@pytest.mark.theorem(
    "Liu, Talwar 2019, Theorem 4.6",
    exact=True,
    loose="the counts of one batch grow together; the largest loss found is three quarters of epsilon",
)
@pytest.mark.parametrize("seed", [5, 6, 7, 8, 9, 10])
def test_threshold_search_covers_exact_laws(seed):
    """Four score levels, one batch for three thresholds, a random pair and both priced deltas."""
    base = pure_dp(epsilon=0.7)
    statistic = SmoothedCount(samples=8, smoothing=4.0, sensitivity=0.9)
    price = threshold_search(base, statistic=statistic, epsilon=1.0, thresholds=3).guarantee
    assert price.failure < 1.0
    pair = random_response_pair(np.random.default_rng(seed), 4, 0.7, concentration=0.4)
    laws = [threshold_search_law(masses, statistic, 0.5, epsilon=1.0) for masses in pair]
    assert hockey_sticks(*laws, price.epsilon(price.failure)) <= price.failure + TOLERANCE
    assert log_ratio(*laws) <= 1.0 + TOLERANCE, "so much smoothing keeps every statistic within reach"


def test_a_threshold_search_with_too_little_noise_is_caught():
    """Broken: the noise of sensitivity 0.05 for counts that move by epsilon_1 = 0.7."""
    statistic = SmoothedCount(samples=30, smoothing=1.0, sensitivity=0.05)
    low = 1.0 / (1.0 + math.exp(0.7))
    laws = [threshold_search_law([a, 1.0 - a], statistic, 0.7, epsilon=1.0) for a in (low, 1.0 - low)]
    assert hockey_sticks(*laws, 1.0) > 0.3


# ---- A6: threshold-free ---------------------------------------------------------------------------------------------


def two_step_law(masses, statistic, target, tries, *, epsilon):
    """Each output, then none: the threshold found by the search, then the first run that reaches it."""
    search = threshold_search_law(masses, statistic, target, epsilon=epsilon)
    law = np.zeros(len(masses) + 1)
    for place in range(len(masses) - 1):
        passing = np.arange(len(masses)) <= place
        later = first_above_law(masses, passing, tries)
        law[: place + 1] += search[place] * later[:-1]
        law[-1] += search[place] * later[-1]
    law[-1] += search[-1]
    return law


@pytest.mark.cases(1)
@pytest.mark.theorem("Liu, Talwar 2019, Theorem 4.7", exact=True, loose="its first step is Theorem 4.6")
@pytest.mark.parametrize("pairs", [0, 10])
def test_selection_without_a_threshold_covers_exact_laws(pairs):
    """One worst pair, and random ones beside it."""
    base, tries = pure_dp(epsilon=0.7), Geometric(gamma=0.05)
    # six counts, smoothed, are never further apart than log(12/6) < 0.9: the failure is zero and hides nothing
    statistic = SmoothedCount(samples=6, smoothing=6.0, sensitivity=0.9)
    total = without_threshold(base, statistic=statistic, epsilon_search=0.5, thresholds=3, stop_probability=0.05)
    random, worst = np.random.default_rng(6), 0.0
    low = 1.0 / (1.0 + math.exp(0.7))
    tested = [random_response_pair(random, 4, 0.7, concentration=0.4) for _ in range(pairs)]
    tested.append((np.array([low, 0.0, 0.0, 1 - low]), np.array([1 - low, 0.0, 0.0, low])))
    for pair in tested:
        laws = [two_step_law(masses, statistic, 0.5, tries, epsilon=0.5) for masses in pair]
        assert hockey_sticks(*laws, total.pure_epsilon) <= TOLERANCE
        worst = max(worst, log_ratio(*laws))
    assert total.failure == 0.0
    assert not pairs or worst > 0.7 + 0.3, "the audit sees the second step: charging the search alone would be caught"


# ---- A7: dummies ----------------------------------------------------------------------------------------------------


@pytest.mark.cases(5)
@pytest.mark.theorem("Liu, Talwar 2019, Theorem C.1", exact=True)
@pytest.mark.parametrize("runs", [1, 5, 25])
@pytest.mark.parametrize("levels", [(1.0, 1.0, 0.0), (1.0, 0.4, 0.05)], ids=["threshold", "soft"])
def test_dummies_cover_exact_laws(runs, levels):
    gamma, base_epsilon = 0.24, 1.0
    sharpness = math.inf if levels[1] == 1.0 else 3.0
    price = select_among_dummies(pure_dp(epsilon=base_epsilon), runs=runs, gamma=gamma, sharpness=sharpness)
    random, worst = np.random.default_rng(7), 0.0
    pairs = [random_response_pair(random, 3, base_epsilon) for _ in range(12)]
    low = 1.0 / (1.0 + math.exp(base_epsilon))
    pairs += [(np.array([low, 0.0, 1 - low]), np.array([1 - low, 0.0, low])), split_passing(base_epsilon)]
    for p, q in pairs:
        laws = [dummies_law(m, levels, runs, 1.0 + 1.0 / gamma) for m in (p, q)]
        worst = max(worst, log_ratio(laws[0][laws[0] > 0], laws[1][laws[0] > 0]))
    assert worst <= price.pure_epsilon + TOLERANCE
    if sharpness == math.inf:
        assert worst >= price.pure_epsilon - 2e-3, "exact for a threshold"


@pytest.mark.full
@pytest.mark.parametrize("epsilon", [1e-3, 0.05, 1.0, 8.0])
@pytest.mark.parametrize("sharpness", [math.inf, 2.0])
def test_dummies_cost_at_most_twice_the_base(epsilon, sharpness):
    """The printed theorem adds log(1 + 3 gamma/(1 - gamma)), 0.67 here, and the exact laws do not need it."""
    gamma, runs = 0.24, 20
    price = select_among_dummies(pure_dp(epsilon=epsilon), runs=runs, gamma=gamma, sharpness=sharpness).pure_epsilon
    assert price <= 2.0 * epsilon * (1 + 1e-9)
    levels = (1.0, 1.0, 0.0) if sharpness == math.inf else (1.0, 0.3, 0.0)
    random, worst = np.random.default_rng(8), 0.0
    pairs = [random_response_pair(random, 3, epsilon) for _ in range(10)] + [split_passing(epsilon)]
    for p, q in pairs:
        laws = [dummies_law(m, levels, runs, 1.0 + 1.0 / gamma) for m in (p, q)]
        worst = max(worst, log_ratio(laws[0][laws[0] > 0], laws[1][laws[0] > 0]))
    assert 1.05 * epsilon < worst <= price * (1 + TOLERANCE) + 1e-12


def split_passing(epsilon, part=1e-7):
    """Little passes under the first law, all of it more likely under the second, but for one small output."""
    low = 1.0 / (1.0 + math.exp(epsilon))
    p = np.array([part, low - part, 1.0 - low])
    q = np.array([part * math.exp(-epsilon), (low - part) * math.exp(epsilon), 0.0])
    q[2] = 1.0 - q.sum()
    return p, q


def test_dummies_of_a_gaussian_and_of_a_failing_base():
    """A finite base with an infinite loss: the profile covers the exact law at several epsilons."""
    p, q = np.array([0.3, 0.2, 0.48, 0.02]), np.array([0.45, 0.1, 0.45, 0.0])
    base = finite_guarantee(p, q)
    for levels, sharpness in (((1.0, 1.0, 0.0, 1.0), math.inf), ((1.0, 0.5, 0.1, 0.3), 2.0)):
        price = select_among_dummies(base, runs=12, gamma=0.2, sharpness=sharpness)
        laws = [dummies_law(m, levels, 12, 6.0) for m in (p, q)]
        for epsilon in (0.1, 0.5, 1.0, 2.0):
            assert hockey_sticks(*laws, epsilon) <= price.delta(epsilon) + TOLERANCE
    # little passes, so that the runs add up
    p, q = np.array([0.01, 0.99]), np.array([5e-4, 0.9995])
    price = select_among_dummies(finite_guarantee(p, q), runs=40, gamma=0.2)
    laws = [dummies_law(m, (1.0, 0.0), 40, 6.0) for m in (p, q)]
    leak = hockey_sticks(*laws, 1.5)
    assert 4.0 * hockey_sticks(p, q, 1.5) < leak <= price.delta(1.5) + TOLERANCE


def test_no_dummies_are_caught():
    """Broken: the winner is drawn uniformly among the passing runs of a fixed number, without dummies."""
    p, q = split_passing(1.0)
    laws = [dummies_law(m, (1.0, 1.0, 0.0), 25, 1e-9) for m in (p, q)]
    assert log_ratio(*laws) > select_among_dummies(pure_dp(epsilon=1.0), runs=25, gamma=0.24).pure_epsilon + 0.1


# ---- A10: two data sets ---------------------------------------------------------------------------------------------


def tuned_law(train, correct, law):
    """Best of K over (noisy score, model): score 0 or 1, and 1 with probability `correct[model]`."""
    train, correct = np.asarray(train), np.asarray(correct)
    return best_of_masses(np.concatenate((train * (1.0 - correct), train * correct)), law)[1:]


@pytest.mark.theorem("Liu, Talwar 2019, Lemma 5.1", exact=True, sharp=True)
def test_two_data_sets_are_priced_apart_and_together():
    """Three models and a noisy bit each; epsilon 1 in either data set, the worst cases of the two searches at once."""
    law = Geometric(gamma=0.01)
    p, q = split_response_pair(1.0)
    train = [p[[1, 2, 0]], q[[1, 2, 0]]]
    low = 1.0 / (1.0 + math.e)
    correct = [[1.0 - low, low, 1e-9], [low, 1.0 - low, 1e-9]]
    one, both = (best_of(g, law, bound="pure") for g in (pure_dp(epsilon=1.0), compose(*[pure_dp(epsilon=1.0)] * 2)))

    def leak(i, j, k, m):
        return log_ratio(tuned_law(train[i], correct[j], law), tuned_law(train[k], correct[m], law))

    apart = [leak(0, 0, 1, 0), leak(0, 1, 1, 1), leak(0, 0, 0, 1), leak(1, 0, 1, 1)]
    assert 0.99 * one.epsilon(0.0) < max(apart) <= one.epsilon(0.0) + TOLERANCE
    together = max(leak(0, 0, 1, 1), leak(0, 1, 1, 0))
    assert together <= both.epsilon(0.0) + TOLERANCE
    assert together > worst_of(one, one).epsilon(0.0) + 1.0, "a person in both sets, priced as if in one, is caught"
