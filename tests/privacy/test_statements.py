"""Statements on privacy itself, its composition and conversion, beside laws that come within 1 % of them.

Each test computes exact divergences of finite laws: `0.99 * bound < truth <= bound`. A statement that is 1 %
smaller would be false. The marks make the theorem index of the documentation.
"""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from dpselect.accounting import gated
from dpselect.accounting.stopping.gate import logistic_error_shift
from dpselect.adaptive.generalisation import single_block_escape
from dpselect.adaptive.median_bounds import advanced_composition
from dpselect.ledger.filters import _Concentrated
from dpselect.mechanisms.noisy_counts import NoisyCount
from dpselect.mechanisms.sparse_vector_prices import sparse_vector_guarantee
from dpselect.privacy import compose, laplace, pure_dp
from dpselect.privacy.output.calculus import first_answer, from_dp, from_subsets
from dpselect.privacy.output.guarantee import OutputGuarantee
from dpselect.privacy.output.optimal_composition import composition_delta
from dpselect.privacy.output.oracle import output_delta
from dpselect.privacy.renyi import log_delta_at_orders
from dpselect.privacy.sampled_gaussian import SampledGaussianRenyi
from dpselect.testing.exact import finite_guarantee, hockey_stick, renyi_divergence
from tests.audits.broken_sparse_vectors import SparseVectorLaw

EXACT = 1e-12


def response(epsilon, delta=0.0):
    """Randomised response that gives itself away with probability delta: outputs 0 to 3, on both data sets."""
    likely = 1.0 / (1.0 + math.exp(-epsilon))
    law = np.array([delta, (1.0 - delta) * likely, (1.0 - delta) * (1.0 - likely), 0.0])
    return law, law[::-1]


def needed_delta(upper, lower, cells, epsilons):
    """The smallest delta that these prices of classes of outputs need, over both directions."""
    return max(
        output_delta(list(p), list(q), cells=cells, epsilons=epsilons) for p, q in ((upper, lower), (lower, upper))
    )


def within_one_per_cent(truth, bound):
    return 0.99 * bound < truth <= bound * (1 + EXACT)


@pytest.mark.theorem("Hartmann et al. 2022, Lemma 3", "Hartmann et al. 2022, Lemma 4", exact=True, sharp=True)
def test_every_partition_has_the_price_of_the_whole_and_back():
    """Randomised response: with an epsilon 1 % smaller, or a delta, the prices do not hold."""
    upper, lower = response(0.7, 0.03)
    guarantee = from_dp(epsilon=0.7, delta=0.03, cell=lambda y: "abab"[y], cells="ab")
    assert within_one_per_cent(needed_delta(upper, lower, "abab", guarantee.epsilons), guarantee.delta)
    worst = guarantee.worst()
    assert within_one_per_cent(float(hockey_stick(upper, lower, worst.epsilon(0.03))), worst.delta(0.7))
    for smaller in ({"a": 0.693, "b": 0.693}, dict.fromkeys("ab", 0.99 * worst.epsilon(0.03))):
        assert needed_delta(upper, lower, "abab", smaller) > guarantee.delta * (1 + EXACT)


@pytest.mark.theorem("Hartmann et al. 2022, Lemma 6", exact=True, sharp=True)
def test_deltas_of_classes_of_outputs_add_up():
    """Two classes, each of which gives the data set away with its own probability."""
    upper, lower = np.array([0.03, 0.02, 0.95, 0.0]), np.array([0.0, 0.0, 0.95, 0.05])
    prices = {"a": 0.1, "b": 0.2, "c": 0.0}
    needed = {
        c: output_delta(
            *(np.where(np.array(list("abcc")) == c, m, 0.0).tolist() for m in (upper, lower)),
            cells="abcc",
            epsilons=prices,
        )
        for c in "abc"
    }
    whole = from_subsets({c: (prices[c], needed[c]) for c in "abc"}, cell="abcc".__getitem__)
    assert needed == pytest.approx({"a": 0.03, "b": 0.02, "c": 0.0})
    truth = output_delta(upper.tolist(), lower.tolist(), cells="abcc", epsilons=prices)
    assert within_one_per_cent(truth, whole.delta)


@pytest.mark.theorem("Hartmann et al. 2022, Lemma 10", "Hartmann et al. 2022, Lemma 20", exact=True, sharp=True)
def test_stages_until_one_answers():
    """Every stage answers with mass 0.01 what no stage answers on the neighbour; else it says nothing, for nothing."""
    stage = OutputGuarantee(cell=bool, epsilons={True: 0.5, False: 0.0}, delta=0.01)
    whole = first_answer([stage] * 3, none=False)
    truth = 1.0 - 0.99**3
    law = [*(0.99**k * 0.01 for k in range(3)), 0.99**3, 0.0]
    other = [0.0, 0.0, 0.0, 0.99**3, truth]
    assert within_one_per_cent(output_delta(law, other, cells=[1, 2, 3, 0, 1], epsilons=whole.epsilons), whole.delta)
    pure = OutputGuarantee(cell=bool, epsilons={True: 0.5, False: 0.3})
    prices = first_answer([pure] * 2, none=False).epsilons
    none, some = np.array([0.5, 0.5 * math.exp(-0.3)]), np.array([0.5, 1.0 - 0.5 * math.exp(-0.3)])
    assert within_one_per_cent(2.0 * math.log(none[0] / none[1]), prices[0])
    assert some[0] / some[1] < 1.0
    # "nothing", then an answer that is half as long again as likely: 0.3 + 0.5
    answer = np.array([0.1, 0.1 * math.exp(-0.5)])
    assert within_one_per_cent(math.log(none[0] * answer[0] / (none[1] * answer[1])), prices[2])


@pytest.mark.theorem("Hartmann et al. 2022, Theorem 17", exact=True, sharp=True)
@pytest.mark.parametrize(("trained", "spent"), [(1.0, 0.2), (0.1, 0.7)])
def test_a_gate_with_laplace_noise(trained, spent):
    """A score far from the limit moves by one: the noise that crosses it is exponential. Or the model itself tells."""
    prices = gated(pure_dp(epsilon=trained), test_epsilon=spent, test_shift=1.0, train_shift=1.0).epsilons

    def tail(distance):  # P(noise > distance) of Laplace noise of scale 1 / spent
        return 0.5 * math.exp(-spent * distance)

    moved = math.log(tail(40.0) / tail(41.0))
    odds = math.log((1.0 - tail(200.0)) / (1.0 - tail(201.0)))  # a model that is always released
    assert within_one_per_cent(moved, prices["none"])
    assert within_one_per_cent(max(moved, trained + odds), prices["released"])


@pytest.mark.theorem(
    "Hartmann et al. 2022, Lemma 21",
    exact=True,
    loose="more than four times the largest shift, which is 2 tanh(margin/4)",
)
@pytest.mark.parametrize("margin", [1e-3, 0.1, 0.5])
def test_the_shift_of_the_logistic_error(margin):
    u = np.linspace(-5.0, 5.0, 10_001)
    truth = float(np.max(np.abs(np.tanh((u + margin) / 2.0) - np.tanh(u / 2.0))))
    assert truth <= logistic_error_shift(margin, bound="paper")
    assert within_one_per_cent(truth, logistic_error_shift(margin))


@pytest.mark.theorem("Canonne, Kamath, Steinke 2020, Proposition 12", exact=True, sharp=True)
@pytest.mark.parametrize("order", [1.5, 2.0, 8.0])
def test_conversion_from_renyi_divergence(order):
    """The losses of the worst law are one large value, which the conversion's proof names, and almost none."""
    epsilon, share = 12.0, 0.3
    loss = epsilon + math.log(order / (order - 1.0))
    upper, lower = [share, 1.0 - share], [share * math.exp(-loss), 1.0 - share * math.exp(-loss)]
    divergence = float(renyi_divergence(upper, lower, order))

    bound = float(np.exp(log_delta_at_orders(np.array(order), np.array(divergence), np.array(epsilon))))
    assert within_one_per_cent(float(hockey_stick(upper, lower, epsilon)), bound)


@pytest.mark.theorem("Canonne, Kamath, Steinke 2020, Theorem 4", exact=True, sharp=True)
@pytest.mark.parametrize("multiplier", [0.8, 3.0])
@pytest.mark.parametrize("order", [2.0, 5.0])
def test_discrete_gaussian_noise(multiplier, order):
    """On integers up to 25 deviations, which holds all that a double can see."""
    count = np.arange(-round(25 * multiplier), round(25 * multiplier) + 2)
    masses = [np.exp(-0.5 * ((count - centre) / multiplier) ** 2) for centre in (0, 1)]
    divergence = float(renyi_divergence(*(m / m.sum() for m in masses), order))
    assert within_one_per_cent(divergence, NoisyCount(noise_multiplier=multiplier).guarantee.renyi(order))


@pytest.mark.theorem("Bun, Steinke 2016, Proposition 1.4", exact=True, sharp=True)
@pytest.mark.parametrize("order", [1.5, 2.0, 8.0])
def test_concentrated_privacy_of_a_pure_mechanism(order):
    """Randomised response at a small epsilon; the ledger's filter charges half of its square, in any order."""
    epsilon = 0.01
    upper, lower = response(epsilon)
    rho = float(_Concentrated.charge(pure_dp(epsilon=epsilon), [])["rho"])
    assert within_one_per_cent(float(renyi_divergence(upper[1:3], lower[1:3], order)), rho * order)


@pytest.mark.theorem("Mironov 2017, Proposition 1", exact=True, sharp=True)
def test_renyi_divergences_add_up():
    """Two randomised responses that run independently: the divergence of both outputs together is the sum."""
    (one, other), (two, second) = ((m[1:3] for m in response(epsilon)) for epsilon in (0.5, 1.0))
    whole = compose(finite_guarantee(one, other), finite_guarantee(two, second))
    for order in (1.5, 2.0, 16.0):
        truth = float(renyi_divergence(np.outer(one, two).ravel(), np.outer(other, second).ravel(), order))
        assert within_one_per_cent(truth, whole.renyi(order))


@pytest.mark.theorem("Mironov 2017, Proposition 6", "Balle, Barthe, Gaboardi 2018, Theorem 3", exact=True, sharp=True)
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_the_laplace_mechanism(epsilon):
    """Both divergences by quadrature over the densities of noise around 0 and around 1."""
    mechanism = laplace(scale=1.0 / epsilon)

    def integral(term):
        return sum(
            quad(lambda x: term(x), *piece, epsabs=1e-14)[0]
            for piece in ((-60.0 / epsilon, 0), (0, 1), (1, 60.0 / epsilon))
        )

    def density(x, centre):
        return 0.5 * epsilon * math.exp(-epsilon * abs(x - centre))

    for order in (1.5, 4.0):
        moment = integral(lambda x, a=order: density(x, 0) ** a * density(x, 1) ** (1.0 - a))
        assert within_one_per_cent(math.log(moment) / (order - 1.0) * (1.0 - 1e-9), mechanism.renyi(order))
    for at in (0.0, 0.3 * epsilon, 0.9 * epsilon):
        excess = integral(lambda x, e=at: max(density(x, 0) - math.exp(e) * density(x, 1), 0.0))
        assert within_one_per_cent(excess * (1.0 - 1e-6), mechanism.delta(at))


@pytest.mark.theorem("Mironov, Talwar, Zhang 2019, Theorem 5", exact=True, sharp=True)
@pytest.mark.parametrize(("rate", "order"), [(0.01, 2.0), (0.3, 8.0), (0.999, 2.0), (0.999, 8.0)])
def test_a_row_that_is_missing_from_a_sample(rate, order):
    """By quadrature: the divergence of the unsampled law from the sampled one is smaller, and equal at rate 1."""
    multiplier = 2.0
    bound = float(SampledGaussianRenyi(multiplier, rate, 1)(np.array([order]))[0])

    def term(x):
        ratio = 1.0 - rate + rate * math.exp(x / multiplier - 0.5 / multiplier**2)
        return math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) * ratio ** (1.0 - order)

    truth = math.log(quad(term, -12.0, 12.0, epsabs=1e-13, points=[-4.0, 0.0, 4.0])[0]) / (order - 1.0)
    assert 0.0 < truth <= bound
    assert rate < 0.9 or within_one_per_cent(truth, bound)


@pytest.mark.theorem("Lyu, Su, Li 2017, Theorem 5", exact=True, sharp=True)
def test_a_sparse_vector_of_queries_that_move_one_way():
    """Twenty negatives, which move up by one, then two positives, which stay: all move the same way or not at all."""
    law = SparseVectorLaw(threshold_scale=2.0, query_scale=2.0, max_positives=2)
    pattern = [False] * 20 + [True] * 2
    price = sparse_vector_guarantee(epsilon_threshold=0.5, epsilon_queries=1.0, max_positives=2).price(2)
    ours, theirs = ([gap] * 20 + [-100.0] * 2 for gap in (50.0, 51.0))
    assert within_one_per_cent(law.log_ratio(ours, theirs, pattern), price)


@pytest.mark.theorem(
    "Feldman, Steinke 2017, Theorem 2.4", exact=True, loose="a tail bound for the sum of the losses, taken at its mean"
)
@pytest.mark.parametrize(("count", "epsilon", "slack"), [(100, 0.01, 1e-6), (100, 0.05, 1e-3)])
def test_advanced_composition(count, epsilon, slack):
    """Randomised responses, which compose worse than anything else."""
    bound = advanced_composition([epsilon] * count, slack)
    assert 0.0 < composition_delta(count=count, epsilon=epsilon, total_epsilon=bound) <= slack


@pytest.mark.theorem("Feldman, Steinke 2017, Theorem 4.6", exact=True, sharp=True)
def test_a_block_that_escapes_its_own_question():
    """The block holds one of 10,000 values; a question about a pair of values is e times likelier if it holds one.

    The question's function is -1 and 1 on its two values and 0 elsewhere, so that they are outside of its quantiles.
    """
    values, epsilon = 10_000, 1.0
    questions = values // 2
    own = math.exp(epsilon) / (math.exp(epsilon) + questions - 1)  # the likelihood of the other questions is even
    assert math.log(own / ((1.0 - own) / (questions - 1))) <= epsilon * (1 + EXACT)
    assert within_one_per_cent(own, single_block_escape(rank=1.0 / values, epsilon=epsilon))
