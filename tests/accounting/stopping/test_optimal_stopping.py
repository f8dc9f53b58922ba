"""The optimal delta of stopping early: printed values, all prefix-free sets, Gaussian steps."""

from __future__ import annotations

import itertools
import math

import pytest

from dpselect.accounting import iterative
from dpselect.accounting.stopping.optimal_stopping import StoppingGame, approximate_steps_delta
from dpselect.privacy import approximate_dp, gaussian, laplace, pure_dp
from tests.accounting.stopping.iterative_cases import composed_epsilon, gaussian_steps, pure_steps, response

TENTHS = list(range(10, 101, 10))


# ---- published figures ----------------------------------------------------------------------------------------------


@pytest.mark.cases(8)
@pytest.mark.parametrize(
    ("epsilons", "deltas", "stops", "prices", "exact"),
    [
        ([0.5] * 2, [0.01] * 2, [1, 2], [0.3, 0.6], 0.1450943973),  # fact 15
        ([0.5] * 2, [0.0] * 2, [1, 2], [0.3, 0.6], 0.1277363506),  # fact 16
        ([0.5] * 2, [0.0] * 2, [1, 2], [0.1, 0.9], 0.2052123637),
        ([0.5] * 4, [0.001] * 4, [2, 4], [0.5, 1.5], 0.1553681839),
        ([0.2] * 6, [0.0] * 6, [3, 6], [0.3, 0.5], 0.0606719514),
        ([0.1] * 10, [1e-5] * 10, [5, 10], [0.4, 0.7], 0.0045770221),
        ([0.5, 0.25, 0.5, 0.25], [0.01, 0.0, 0.02, 0.01], [1, 3, 4], [0.2, 0.7, 0.9], 0.1808550205),  # fact 17
        ([0.13, 0.27, 0.31, 0.08], [0.001] * 4, [2, 4], [0.3, 0.6], 0.0320686127),
        ([0.1] * 30, [1e-6] * 30, [10, 20, 30], [1, 2, 3], 2.99995650e-5),  # fact 18
        ([0.1] * 10, [1e-3] * 10, [10], [0.8], 0.0102404842),
    ],
)
def test_theorem_15_has_known_values(epsilons, deltas, stops, prices, exact):
    found = approximate_steps_delta(epsilons=epsilons, deltas=deltas, stops=stops, prices=prices)
    assert found == pytest.approx(exact, rel=2e-9, abs=1e-10)
    steps = [approximate_dp(epsilon=e, delta=d) for e, d in zip(epsilons, deltas, strict=True)]
    assert iterative(steps, stops=stops, prices=prices).delta == pytest.approx(exact, rel=2e-9, abs=1e-10)


@pytest.mark.parametrize(("mesh", "bound"), [(0.1, 0.0605029698), (0.05, 0.0462947282), (0.01, 0.0320686127)])
def test_rounding_the_epsilons_up_is_a_bound_that_gets_sharp(mesh, bound):
    """Fact 17."""
    found = approximate_steps_delta(
        epsilons=[0.13, 0.27, 0.31, 0.08], deltas=[0.001] * 4, stops=[2, 4], prices=[0.3, 0.6], mesh=mesh
    )
    assert found == pytest.approx(bound, abs=1e-10)


PURE_STOPS = [
    ([25, 50, 75, 100], 2.019973, 4.585112, 8.151999e-6),
    (TENTHS, 0.999371, 4.774568, 4.590055e-6),
    (range(1, 101), 0.1, 5.192163, 8.029645e-7),
]


def summed_prices(stops):
    """Of steps of 0.1 at delta 1e-5, by optimal composition."""
    return [composed_epsilon(k, 0.1, 1e-5 / len(stops)) for k in stops]


@pytest.mark.cases(1)
@pytest.mark.theorem(
    "Hartmann et al. 2022, Lemma 11",
    exact=True,
    loose="it adds up the deltas of the stops, as if one run could fail at all of them",
)
@pytest.mark.parametrize(("stops", "first", "last", "exact"), PURE_STOPS)
def test_early_stopping_of_pure_steps(stops, first, last, exact):
    """The prices of Lemma 11, and what they leak at most."""
    prices = summed_prices(stops)
    assert (prices[0], prices[-1]) == (pytest.approx(first, abs=1e-6), pytest.approx(last, abs=1e-6))
    leaked = approximate_steps_delta(epsilons=[0.1] * 100, deltas=[0.0] * 100, stops=stops, prices=prices)
    assert leaked == pytest.approx(exact, rel=1e-6)


@pytest.mark.full
@pytest.mark.parametrize("stops", [stops for stops, *_ in PURE_STOPS[:2]])
def test_optimal_stopping_of_pure_steps_costs_less(stops):
    summed = iterative(pure_steps, stops=stops, delta=1e-5, bound="sum")
    better = iterative(pure_steps, stops=stops, delta=1e-5)
    # from loss distributions on a mesh: never below the exact composition, and close
    assert all(
        price * (1 - 1e-6) <= summed.price(k) <= price * 1.01
        for k, price in zip(stops, summed_prices(stops), strict=True)
    )
    assert all(better.price(k) < summed.price(k) for k in stops)
    prices = [better.price(k) for k in stops]
    assert approximate_steps_delta(epsilons=[0.1] * 100, deltas=[0.0] * 100, stops=stops, prices=prices) <= 1e-5


@pytest.mark.full
def test_the_enclosure_of_gaussian_steps():
    """The exact delta of Lemma 11's prices is 5.636e-6."""
    prices = [gaussian_steps(k).epsilon(1e-6) for k in TENTHS]
    game = StoppingGame([gaussian_steps(10)] * 10, target=1e-5)
    low, high = game.lower(prices), game.upper(prices)
    assert low <= 5.6365e-6
    assert 5.6355e-6 <= high < low * 1.01
    coarse = StoppingGame([gaussian_steps(10)] * 10, target=1e-5, points=512)
    assert coarse.lower(prices) < low < high < coarse.upper(prices)


@pytest.mark.full
@pytest.mark.parametrize("segment", [gaussian(noise_multiplier=3.0), laplace(scale=4.0), pure_dp(epsilon=0.3)])
def test_one_stopping_point_is_the_profile(segment):
    """Fact 27: a game without a choice is ordinary composition."""
    for price in (0.0, 0.05, 0.2):
        game = StoppingGame([segment], target=1e-3)
        exact = segment.delta(price)
        assert game.lower([price]) <= exact * (1 + 1e-9) <= game.upper([price]) * (1 + 2e-9)
        assert game.upper([price]) == pytest.approx(exact, rel=1e-3)


@pytest.mark.theorem("Hartmann et al. 2022, Theorem 15", exact=True, sharp=True)
@pytest.mark.parametrize("deltas", [[0.0, 0.0], [0.01, 0.02]])
def test_theorem_15_is_the_maximum_over_all_prefix_free_sets(deltas):
    """Equation (3) literally, on the randomised responses: all subsets for the first stop, then all for the second."""
    epsilons, prices = [0.5, 0.7], [0.3, 0.8]
    first, second = (response(e, d) for e, d in zip(epsilons, deltas, strict=True))
    worst = 0.0
    for chosen in itertools.product([False, True], repeat=4):
        total = sum(first[0][a] - math.exp(prices[0]) * first[1][a] for a in range(4) if chosen[a])
        for a, b in itertools.product(range(4), repeat=2):
            if not chosen[a]:  # no element of the first set is a prefix
                total += max(first[0][a] * second[0][b] - math.exp(prices[1]) * first[1][a] * second[1][b], 0.0)
        worst = max(worst, total)
    found = approximate_steps_delta(epsilons=epsilons, deltas=deltas, stops=[1, 2], prices=prices)
    assert found == pytest.approx(worst, rel=1e-12)
