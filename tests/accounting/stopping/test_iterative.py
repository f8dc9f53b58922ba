"""Stopping points: published figures, exact audits of adaptive games, and wrong ways of charging that must be caught.

"Fact n" are worked examples for Hartmann, Bindschaedler, Bentkamp, West (2022), Lemma 11 and Theorem 15; their numbers
come from enumeration and from other programs, not from this library.
"""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpselect.accounting import calibrate, iterative
from dpselect.accounting.stopping.iterative import StoppingPoint
from dpselect.accounting.stopping.optimal_stopping import StoppingGame, approximate_steps_delta
from dpselect.errors import AdjacencyError, ArgumentError, BudgetError
from dpselect.ledger import InteractionOpenError, Ledger
from dpselect.privacy import approximate_dp, dp_sgd, gaussian, laplace, pure_dp, zcdp
from dpselect.privacy.output.optimal_composition import composition_delta
from dpselect.privacy.output.oracle import output_delta
from tests.accounting.stopping.iterative_cases import composed_epsilon, gaussian_steps, pure_steps, response

ROUNDING = 1e-12  # sums of a few hundred products of masses, in double precision
TENTHS = list(range(10, 101, 10))


@pytest.mark.parametrize(
    ("epsilon", "delta", "stops", "prices", "summed"),
    [
        (0.5, 0.01, [1, 2], [0.3, 0.6], 0.2667988041),
        (0.5, 0.0, [1, 2], [0.3, 0.6], 0.2405690848),
        (0.5, 0.001, [2, 4], [0.5, 1.5], 0.2169725881),
        (0.2, 0.0, [3, 6], [0.3, 0.5], 0.0921711928),
        (0.1, 1e-5, [5, 10], [0.4, 0.7], 0.0057256120),
        (0.1, 1e-6, [10, 20, 30], [1, 2, 3], 5.99993300e-5),
    ],
)
def test_lemma_11_adds_up(epsilon, delta, stops, prices, summed):
    """Facts 15, 16, 18. The sums of the library come from loss distributions on a mesh of 1e-4, hence above."""
    steps = [approximate_dp(epsilon=epsilon, delta=delta)] * stops[-1]
    found = iterative(steps, stops=stops, prices=prices, bound="sum").delta
    assert summed * (1 - 1e-9) <= found <= summed * (1 + 1e-5) + 1e-11
    exact = sum(
        composition_delta(count=k, epsilon=epsilon, delta=delta, total_epsilon=price)
        for k, price in zip(stops, prices, strict=True)
    )
    assert exact == pytest.approx(summed, rel=1e-8)


@pytest.mark.full
def test_early_stopping_of_gaussian_steps():
    """0.001-zCDP steps, stops 10, ..., 100, delta 1e-5; the optimum by another program's optimal stopping."""
    shown = (10, 20, 30, 50, 80, 100)
    concentrated = [0.753384, 1.071304, 1.317580, 1.712258, 2.182609, 2.450788]
    formula = [0.001 * k + 2 * math.sqrt(0.001 * k * math.log(10 / 1e-5)) for k in shown]
    np.testing.assert_allclose(formula, concentrated, atol=1e-6)
    summed = iterative(gaussian_steps, stops=TENTHS, delta=1e-5, bound="sum")
    np.testing.assert_allclose(
        [summed.price(k) for k in shown], [0.575055, 0.834118, 1.037604, 1.367571, 1.765648, 1.994527], atol=1e-6
    )
    optimal = iterative(gaussian_steps, stops=TENTHS, delta=1e-5)
    known = np.array([0.555532, 0.806929, 1.004590, 1.325395, 1.712786, 1.935673])
    found = np.array([optimal.price(k) for k in shown])
    # an upper bound: the lattice and the search for the factor cost some 1e-5
    assert np.all((known - 1e-6 <= found) & (found <= known + 5e-5))
    assert gaussian_steps(100).epsilon(1e-5) == pytest.approx(1.760057, abs=1e-6)


class Game:
    """A random adaptive mechanism: each step's law depends on all outputs before; `outputs` of each step."""

    def __init__(self, seed, epsilons, deltas, outputs=3):
        self.depth, self.outputs = len(epsilons), outputs
        self.steps = {}
        random = np.random.default_rng(seed)
        for k in range(self.depth):
            for prefix in itertools.product(range(outputs), repeat=k):
                # a random channel from the worst pair; sharp ones leak nearly all of it
                channel = random.dirichlet(np.full(outputs, random.choice([0.05, 0.5])), size=4)
                self.steps[prefix] = tuple(law @ channel for law in response(epsilons[k], deltas[k]))

    def law(self, prefix, b):
        return math.prod(self.steps[prefix[:k]][b][prefix[k]] for k in range(len(prefix)))

    def worst_rule(self, prices, order):
        """The outputs at which the worst rule stops, by working back from the leaves; and its delta."""

        def value(prefix):
            upper, lower = self.law(prefix, order), self.law(prefix, 1 - order)
            k = len(prefix)
            stopped = max(upper - math.exp(prices[k]) * lower, 0.0) if k in prices else -1.0
            if k == self.depth:
                return stopped, [prefix]
            parts = [value((*prefix, o)) for o in range(self.outputs)]
            onwards = sum(v for v, _ in parts)
            if stopped > onwards:
                return stopped, [prefix]
            return onwards, [leaf for _, found in parts for leaf in found]

        return value(())


def test_the_worst_rule_of_the_audit_is_the_worst_of_all_rules():
    """All 2^3 rules of a small game, through the oracle of Definition 2."""
    game, prices = Game(3, [0.5, 0.5], [0.01, 0.01]), {1: 0.2, 2: 0.5}
    for order in (0, 1):
        worst = 0.0
        for rule in itertools.product([True, False], repeat=3):
            leaves = [p for first in range(3) for p in ([(first,)] if rule[first] else [(first, o) for o in range(3)])]
            upper, lower = ([game.law(p, b) for p in leaves] for b in (order, 1 - order))
            worst = max(worst, output_delta(upper, lower, cells=[len(p) for p in leaves], epsilons=prices))
        assert game.worst_rule(prices, order)[0] == pytest.approx(worst, abs=ROUNDING)


steps_of = st.lists(
    st.tuples(st.sampled_from([0.1, 0.3, 0.5, 1.0]), st.sampled_from([0.0, 0.001, 0.05])), min_size=2, max_size=4
)


@pytest.mark.full
@pytest.mark.theorem("Hartmann et al. 2022, Theorem 15", exact=True)
@given(steps=steps_of, seed=st.integers(0, 10**6), delta=st.sampled_from([0.1, 0.2, 0.3]), skip=st.booleans())
@settings(max_examples=40)
def test_no_adaptive_game_leaks_more_than_its_prices(steps, seed, delta, skip):
    """For both orders and the worst rule: Definition 2 holds at the prices, and after settling so does the budget.

    The budget is used up after the stop by the worst mechanism that still fits (Theorem 7).
    """
    stops = list(range(2 if skip else 1, len(steps) + 1))
    run = iterative([approximate_dp(epsilon=e, delta=d) for e, d in steps], stops=stops, delta=max(delta, 0.3))
    prices = {k: run.price(k) for k in stops}
    game = Game(seed, *map(list, zip(*steps, strict=True)))
    for order in (0, 1):
        leaked, leaves = game.worst_rule(prices, order)
        assert leaked <= run.delta + ROUNDING
        assert view_delta(game, leaves, order, prices, dict.fromkeys(prices, run.delta), 1.5, 0.35) <= 0.35 + ROUNDING


def view_delta(game, leaves, order, prices, charged, epsilon, delta):
    """The exact delta at `epsilon` of a run, then the worst mechanism for what is left of (epsilon, delta)."""
    total = 0.0
    for leaf in leaves:
        k = len(leaf)
        if prices[k] > epsilon or charged[k] > delta:
            continue  # the reservation would not have fitted
        after = response(epsilon - prices[k], delta - charged[k])
        upper, lower = game.law(leaf, order) * after[0], game.law(leaf, 1 - order) * after[1]
        total += float(np.maximum(upper - math.exp(epsilon) * lower, 0.0).sum())
    return total


# ---- wrong ways of charging, each caught ----------------------------------------------------------------------------


class Identity(Game):
    """Randomised responses as they are: the worst game."""

    def __init__(self, epsilons, deltas):
        self.depth, self.outputs = len(epsilons), 4
        self.steps = {
            prefix: response(epsilons[k], deltas[k])
            for k in range(self.depth)
            for prefix in itertools.product(range(4), repeat=k)
        }


def test_a_delta_for_each_stop_is_caught():
    """Charging only the delta of the stop that occurred (facts 16 and 6): the budget's delta is exceeded."""
    game, prices = Identity([0.5] * 4, [0.001] * 4), {2: 0.5, 4: 1.5}
    own = {k: composition_delta(count=k, epsilon=0.5, delta=0.001, total_epsilon=price) for k, price in prices.items()}
    assert max(own.values()) == pytest.approx(0.1541461554, abs=1e-9)
    leaked, leaves = game.worst_rule(prices, 0)
    assert leaked == pytest.approx(0.1553681839, abs=1e-9)
    assert leaked > max(own.values())
    budget = max(own.values())
    assert view_delta(game, leaves, 0, prices, own, 1.5, budget) > budget * 1.005
    sound = dict.fromkeys(prices, leaked)
    assert view_delta(game, leaves, 0, prices, sound, 1.5, leaked) <= leaked + ROUNDING


@pytest.mark.full
def test_advanced_composition_of_the_steps_taken_is_caught():
    """Each stop at the epsilon that its number of steps has at the whole delta: a run that waits for a bad moment."""
    game = Identity([0.5] * 5, [0.0] * 5)
    prices = {k: composed_epsilon(k, 0.5, 0.15) for k in range(1, 6)}
    assert game.worst_rule(prices, 0)[0] > 0.15 * 1.3
    many = [pure_steps(k).epsilon(1e-5) for k in range(1, 101)]
    assert approximate_steps_delta(epsilons=[0.1] * 100, deltas=[0] * 100, stops=range(1, 101), prices=many) > 4e-5
    normal = [gaussian_steps(k).epsilon(1e-5) for k in TENTHS]
    assert StoppingGame([gaussian_steps(10)] * 10, target=1e-5).lower(normal) > 4e-5


def test_advanced_composition_of_realised_costs_is_caught():
    """Fact 9: a hundred cheap outputs of an asymmetric response; the formula sees 0.53, the truth is 0.21 above it."""
    cheap, dear = 0.01, 1.0
    lower = (1 - math.exp(-dear)) / (math.exp(cheap) - math.exp(-dear))
    upper = math.exp(cheap) * lower
    claimed = math.sqrt(2 * math.log(1e6) * 100 * cheap**2) + 100 * cheap * math.tanh(cheap / 2)
    assert claimed == pytest.approx(0.530652, abs=1e-6)
    assert upper**100 - math.exp(claimed) * lower**100 == pytest.approx(0.210277, abs=1e-6)


# ---- laws, options, errors ------------------------------------------------------------------------------------------


def test_pure_steps_at_delta_zero_pay_for_what_ran():
    run = iterative([pure_dp(epsilon=0.5), laplace(scale=4.0), pure_dp(epsilon=0.25)], stops=[1, 2, 3], delta=0)
    assert dict(run.epsilons) == {1: 0.5, 2: 0.75, 3: 1.0}
    assert run.delta == 0.0
    assert iterative([pure_dp(epsilon=0.5)] * 2, stops=[1, 2], prices=[0.5, 1.0]).delta == 0.0


@pytest.mark.full
def test_a_stop_costs_and_delta_pays():
    prices = [
        iterative(gaussian_steps, stops=stops, delta=delta).worst_epsilon
        for stops, delta in (([100], 1e-5), ([50, 100], 1e-5), (TENTHS, 1e-5), (TENTHS, 1e-7))
    ]
    assert prices == sorted(prices)
    assert prices[0] == gaussian_steps(100).epsilon(1e-5)


@pytest.mark.full
def test_shares_and_a_given_worst_case():
    even = iterative(gaussian_steps, stops=[50, 100], delta=1e-5)
    late = iterative(gaussian_steps, stops=[50, 100], delta=1e-5, shares=[1, 9])
    assert late.price(50) > even.price(50)
    assert late.price(100) < even.price(100)
    pinned = iterative(gaussian_steps, stops=[50, 100], delta=1e-5, worst_epsilon=1.8)
    assert pinned.worst_epsilon == 1.8
    assert pinned.price(50) < 1.8
    game = StoppingGame([gaussian_steps(50)] * 2, target=1e-5)
    assert game.upper([pinned.price(50), 1.8]) <= 1e-5
    with pytest.raises(BudgetError, match="worst_epsilon"):
        iterative(gaussian_steps, stops=[50, 100], delta=1e-5, worst_epsilon=1.7)


def test_prices_and_delta_agree():
    run = iterative(gaussian_steps, stops=[25, 100], delta=1e-6)
    back = iterative(gaussian_steps, stops=[25, 100], prices=[run.price(25), run.price(100)])
    assert back.delta <= 1e-6 * (1 + 1e-6)
    assert back.delta > 0.99e-6


@pytest.mark.full
def test_sampled_steps_and_a_check():
    """Both directions of DP-SGD, and a private look at every stop but the last."""

    def work(count):
        return dp_sgd(noise_multiplier=4.0, sampling_rate=0.1, steps=count)

    summed = iterative(work, stops=[50, 100], delta=1e-5, bound="sum")
    plain = iterative(work, stops=[50, 100], delta=1e-5)
    looked = iterative(work, stops=[50, 100], delta=1e-5, check=zcdp(rho=0.001))
    for stop in (50, 100):
        assert work(stop).epsilon(1e-5) < plain.price(stop) < summed.price(stop)
        assert plain.price(stop) < looked.price(stop)
    by_hand = iterative([work(50), zcdp(rho=0.001), work(50)], stops=[2, 3], delta=1e-5)
    assert by_hand.price(2) == pytest.approx(looked.price(50), rel=1e-3)


def test_pure_checks_are_steps_too():
    run = iterative(lambda n: pure_steps(n, 0.25), stops=[2, 3, 4], delta=0, check=pure_dp(epsilon=0.125))
    assert dict(run.epsilons) == {2: 0.625, 3: 1.0, 4: 1.25}


def test_calibration_of_the_noise_to_a_worst_case():
    def at(noise):
        return iterative(
            lambda n: gaussian(noise_multiplier=noise / math.sqrt(n)), stops=[10, 40], delta=1e-5, bound="sum"
        ).worst()

    noise = calibrate(at, epsilon=1.0, delta=1e-5, relative=1e-3)
    assert 0.99 < at(noise).epsilon(1e-5) <= 1.0


def test_an_interrupted_run_pays_for_the_next_stopping_point(tmp_path):
    run = iterative([pure_dp(epsilon=0.25)] * 4, stops=[2, 4], delta=0)
    assert [StoppingPoint((2, 4))(k) for k in range(5)] == [2, 2, 2, 4, 4]
    budget = Ledger.open(tmp_path / "budget.db").create_budget("rows", epsilon=2, delta=0)
    with budget.reserve(run, label="four steps") as charge:
        with pytest.raises(InteractionOpenError):
            budget.reserve(pure_dp(epsilon=0.1), label="another mechanism in between")
        charge.settle(1)
    assert budget.spent().epsilon == run.price(2) == 0.5
    with pytest.raises(ArgumentError):
        StoppingPoint((2, 4))(5)


def test_it_can_be_pickled():
    run = pickle.loads(pickle.dumps(iterative([pure_dp(epsilon=0.1)] * 2, stops=[1, 2], delta=0)))
    assert run.observed(1).price == 0.1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"stops": [], "delta": 1e-5}, "stops"),
        ({"stops": [2, 2], "delta": 1e-5}, "stops"),
        ({"stops": [0, 4], "delta": 1e-5}, "stops"),
        ({"stops": [2, 5], "delta": 1e-5}, "steps"),
        ({"stops": [2, 3], "delta": 1e-5}, "steps"),
        ({"stops": [2, 4]}, "delta and prices"),
        ({"stops": [2, 4], "delta": 1e-5, "prices": [1, 2]}, "delta and prices"),
        ({"stops": [2, 4], "prices": [1.0]}, "prices"),
        ({"stops": [2, 4], "prices": [1.0, 2.0], "shares": [1, 1]}, "shares"),
        ({"stops": [2, 4], "prices": [-1.0, 2.0]}, "prices"),
        ({"stops": [2, 4], "delta": 1e-5, "shares": [1]}, "shares"),
        ({"stops": [2, 4], "delta": 1e-5, "shares": [1, 0]}, "shares"),
        ({"stops": [2, 4], "delta": 1e-5, "bound": "naive"}, "bound"),
        ({"stops": [2, 4], "delta": 0.0}, "delta"),
        ({"stops": [2, 4], "delta": float("nan")}, "delta"),
    ],
)
def test_wrong_arguments_are_named(arguments, named):
    with pytest.raises(ArgumentError, match=named):
        iterative([gaussian(noise_multiplier=2.0)] * 4, **arguments)


def test_adjacencies_do_not_mix():
    with pytest.raises(AdjacencyError):
        iterative(
            [pure_dp(epsilon=0.1)] * 2, stops=[1, 2], delta=0, check=pure_dp(epsilon=0.1, adjacency="replace_one")
        )
