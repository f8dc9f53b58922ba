"""The odometer of filters against exact adversaries, and what a filter has left."""

import functools
import math
from fractions import Fraction
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from dpselect.errors import ArgumentError
from dpselect.ledger import InsufficientBudget, Ledger, filters
from dpselect.ledger.filters import RenyiAccounting
from dpselect.mechanisms.bounded_range_price import bounded_range, bounded_range_rho
from dpselect.numerics.search import last_true
from dpselect.privacy import approximate_dp, compose, gaussian, laplace, pure_dp, renyi_dp, zcdp

EPSILON, DELTA = 16, Fraction(1, 10**3)
"""Levels of the odometer are the integers: its steps are a sixteenth of epsilon."""
SCALE = 10**7


def reading(square, failure="0"):
    """What the odometer of a Gaussian filter says after this squared mu; `failure` is set aside of delta."""
    terms = {
        "filter": "gaussian",
        "epsilon": str(EPSILON),
        "delta": str(DELTA),
        "failure": failure,
        "limits": {"squared mu": "100", "failure": failure},
    }
    account = SimpleNamespace(terms=terms, totals=lambda: {"squared mu": square, "failure": Fraction(0)})
    return RenyiAccounting().reading(account).epsilon


def most(level):
    """The largest squared mu, in steps of one in 10^7, that reads as this level or a lower one; sought near a guess."""
    share = float(DELTA) * 6 / (math.pi * level) ** 2
    guess = brentq(lambda square: excess(square, level) - share, 1e-4, 10.0 * level)
    start = round(SCALE * guess)
    return last_true(lambda n: reading(Fraction(n, SCALE)) <= level, 1, 2 * start, start=start) / SCALE


def excess(square, epsilon):
    """The exact delta of the Gaussian mechanism at this epsilon, from its closed form."""
    mu = math.sqrt(square)
    return norm.sf(epsilon / mu - mu / 2) - math.exp(epsilon) * norm.sf(epsilon / mu + mu / 2)


@pytest.fixture(scope="module")
def squares():
    return [most(level) for level in range(1, 6)]


@pytest.mark.theorem("docs/theory/odometer.md, Theorem 1", exact=True, sharp=True)
def test_the_failures_of_all_levels_add_up_to_delta(squares):
    """The exact delta of level k, at the most that reads as k, is its share; a reading 1 % lower breaks delta.

    A level's share is at most 6 / (pi k)^2, whose sum over all k is one: so the levels above these fit into delta too.
    """
    failures = [excess(square, level) for level, square in enumerate(squares, 1)]
    shares = [6 / (math.pi * level) ** 2 for level in range(1, len(squares) + 1)]
    beyond = 1 - sum(shares)
    assert all(failure <= float(DELTA) * share for failure, share in zip(failures, shares, strict=True))
    assert 0.999 * (1 - beyond) <= sum(failures) / float(DELTA) <= 1 - beyond
    lower = [excess(square, 0.99 * level) for level, square in enumerate(squares, 1)]
    assert sum(lower) / float(DELTA) > 1 - beyond
    assert all(low > float(DELTA) * share for low, share in zip(lower, shares, strict=True))


def test_what_is_set_aside_for_failures_is_taken_off_delta_first(squares):
    """With half of delta set aside, the exact delta of a level is its share of the other half."""
    for level, square in enumerate(squares, 1):
        exact = Fraction(round(square * SCALE), SCALE)
        assert reading(exact) == level < reading(exact, failure=str(DELTA / 2))
        half = float(DELTA) / 2 * 6 / (math.pi * level) ** 2
        less = brentq(lambda s, level=level, half=half: excess(s, level) - half, 1e-4, square)
        assert reading(Fraction(less * (1 - 1e-6)), failure=str(DELTA / 2)) == level
        assert reading(Fraction(less * (1 + 1e-6)), failure=str(DELTA / 2)) > level


@pytest.mark.theorem("docs/theory/odometer.md, Theorem 1", exact=True)
def test_no_analyst_beats_the_odometer_by_stopping_when_the_loss_is_high(squares):
    """Gaussian noise is spent up to the end of a level; where the loss is above its epsilon one stops, else continues.

    A Brownian motion with drift one against one without: the loss after squared mu s is X - s / 2. The density of those
    who continue is propagated on a grid, and the divergence at the reading is that of those who stop.
    """
    x, step = np.linspace(-8.0, 24.0, 1601, retstep=True)
    density, divergence, before = None, 0.0, 0.0
    for level, square in enumerate(squares, 1):
        spent = square - before
        if density is None:
            density = norm.pdf(x, spent, math.sqrt(spent))
        else:
            kernel = norm.pdf(step * np.arange(-800, 801), spent, math.sqrt(spent)) * step
            density = np.convolve(density, kernel, mode="same")
        assert reading(Fraction(round(square * SCALE), SCALE)) == level
        loss = x - square / 2
        stopped = loss > level
        divergence += step * float(density[stopped] @ -np.expm1(level - loss[stopped]))
        density, before = np.where(stopped, 0.0, density), square
    assert 0.6 * float(DELTA) < divergence < float(DELTA)


ORDER = 8.0
COINS = [(0.3, 0.2, False), (0.2, 0.3, False), (0.3, 0.2, True)]
"""Probabilities of 1 under P and P', and whether the charge is settled by the outcome."""


def renyi_reading(total):
    terms = {"filter": "renyi", "epsilon": str(EPSILON), "delta": "0.05", "failure": "0"}
    account = SimpleNamespace(terms=terms, totals=lambda: {f"order {ORDER}": Fraction(total), "failure": Fraction(0)})
    return float(RenyiAccounting().reading(account).epsilon)


def used_by_outcome(one, other):
    """What each outcome of a coin has used at `ORDER`: the other that much that the mean is 1."""
    moments = [p**ORDER * q ** (1 - ORDER) for p, q in ((1 - one, 1 - other), (one, other))]
    likely = int(moments[1] > moments[0])
    assert moments[1 - likely] < 1 < sum(moments)
    dear = math.log(moments[likely] / (1 - moments[1 - likely])) / (ORDER - 1)
    return [0.0 if outcome != likely else dear for outcome in (0, 1)]


def best_analyst(plays, share_said):
    """The divergence at the reading of an analyst who picks the next coin, or stops, by all outcomes so far.

    Backward over the numbers of outcomes of each coin; `share_said` of what outcomes have used is charged.
    """
    coins = []
    for one, other, plain in COINS:
        charges = used_by_outcome(one, other)
        if plain:
            whole = sum(p**ORDER * q ** (1 - ORDER) for p, q in ((1 - one, 1 - other), (one, other)))
            charges = [math.log(whole) / (ORDER - 1)] * 2
        losses = [math.log((1 - one) / (1 - other)), math.log(one / other)]
        coins.append(((1 - one, one), losses, [c * share_said for c in charges]))

    read, value = functools.cache(renyi_reading), {}
    sides = [(coin, outcome) for coin in range(len(coins)) for outcome in (0, 1)]
    for played in range(plays, -1, -1):
        for counts in compositions(played, len(sides)):
            loss = sum(n * coins[c][1][o] for n, (c, o) in zip(counts, sides, strict=True))
            total = sum(n * coins[c][2][o] for n, (c, o) in zip(counts, sides, strict=True))
            best = max(0.0, -math.expm1(read(round(total, 12)) - loss)) if loss > 0.0 else 0.0
            if played < plays:
                for coin, (chances, _, _) in enumerate(coins):
                    after = [value[bumped(counts, 2 * coin + outcome)] for outcome in (0, 1)]
                    best = max(best, chances[0] * after[0] + chances[1] * after[1])
            value[counts] = best
    return value[(0,) * len(sides)]


def compositions(total, parts):
    """All ways to write a number as an ordered sum."""
    if parts == 1:
        return [(total,)]
    return [(first, *rest) for first in range(total + 1) for rest in compositions(total - first, parts - 1)]


def bumped(counts, place):
    return (*counts[:place], counts[place] + 1, *counts[place + 1 :])


@pytest.mark.theorem(
    "docs/theory/odometer.md, Theorem 2",
    exact=True,
    loose="a moment is turned into a delta, as in the filter itself; with half of the charges the promise is broken",
)
def test_no_analyst_beats_the_odometer_by_outcomes_that_give_back():
    """Coins and stops are picked by outcomes; half of what outcomes have used would be too little to charge."""
    assert 0.02 < best_analyst(9, 1.0) <= 0.05
    assert best_analyst(9, 0.5) > 0.05


@pytest.mark.parametrize("noise", [0.5, 4.0])
def test_what_gaussian_noise_is_charged(path, noise):
    """Its squared mu, half of it as rho, and that times the order as divergence: not less, and hardly more."""
    square = 1 / Fraction(noise) ** 2
    with Ledger.open(path) as ledger:
        for chosen in ("renyi", "zcdp", "gaussian"):
            budget = ledger.create_budget(chosen, epsilon=30, delta="1e-6", accounting="renyi", filter=chosen)
            budget.reserve(gaussian(noise_multiplier=noise), label="s")
            for unit, spent in budget.spent().units.items():
                if unit != "failure":
                    half = {"squared mu": square, "rho": square / 2}
                    due = half.get(unit) or Fraction(unit.removeprefix("order ")) * square / 2
                    assert due <= spent <= due * (1 + Fraction(1, 10**11))


@pytest.mark.parametrize("order", [1.5, 9.0, 40.0])
def test_the_limit_of_one_order_is_what_converts_to_epsilon(path, order):
    with Ledger.open(path) as ledger:
        budget = ledger.create_budget("b", epsilon=40, delta="1e-6", accounting="renyi", orders=[order])
        limit = float(budget.remaining().units[f"order {order}"])
    found = renyi_dp(orders=[order], epsilons=[limit]).epsilon(1e-6)
    assert 40 * (1 - 1e-9) <= found <= 40


@pytest.mark.parametrize(
    ("mechanism", "rho"),
    [
        (pure_dp(epsilon=3), 3 * math.tanh(1.5)),  # Kullback-Leibler divergences of the worst pair
        (laplace(scale=1), math.exp(-1)),
        (bounded_range(epsilon=1), bounded_range_rho(1)),
        (compose(zcdp(rho=0.1), zcdp(rho=0.25)), 0.35),
        (compose(zcdp(rho=0.1), laplace(scale=1)), 0.1 + math.exp(-1)),
        (compose(*[bounded_range(epsilon=0.1)] * 100), 100 * bounded_range_rho(0.1)),
    ],
)
def test_what_a_mechanism_is_charged_as_rho(path, mechanism, rho):
    with Ledger.open(path) as ledger:
        budget = ledger.create_budget("b", epsilon=30, delta="1e-6", accounting="renyi", filter="zcdp")
        budget.reserve(mechanism, label="s")
        assert rho * (1 - 1e-12) <= budget.spent().units["rho"] <= rho * 1.0001


@pytest.mark.parametrize(("chosen", "unit"), [("renyi", None), ("zcdp", "rho"), ("gaussian", "squared mu")])
def test_what_a_filter_has_left_falls_with_every_reservation(path, chosen, unit):
    """By exactly the charge in its units, and in epsilon by what the odometer has risen; until the next is refused."""
    step = gaussian(noise_multiplier=4.0)
    with Ledger.open(path) as ledger:
        budget = ledger.create_budget("b", epsilon=2, delta="1e-6", accounting="renyi", filter=chosen)
        whole = budget.remaining()
        assert (whole.epsilon, whole.delta) == (budget.epsilon, budget.delta)
        left, admitted = whole, 0
        while True:
            try:
                charge = budget.reserve(step, label="s")
            except InsufficientBudget:
                break
            admitted += 1
            before, left = left, budget.remaining()
            assert set(left.units) == set(whole.units)
            for name in set(whole.units) - {"failure"}:
                assert left.units[name] < before.units[name]
                assert float(before.units[name] - left.units[name]) == pytest.approx(charge.charged[name], rel=1e-9)
                assert left.units[name] + budget.spent().units[name] == whole.units[name]
            assert left.epsilon == max(budget.epsilon - budget.spent().epsilon, Fraction(0)) < budget.epsilon
            assert left.delta == 0
        again = budget.remaining()
        assert (again.epsilon, again.units) == (left.epsilon, left.units)  # a refusal takes nothing
        assert admitted >= 2
        counted = [name for name in whole.units if name != "failure"] if unit is None else [unit]
        each = {name: (whole.units[name] - left.units[name]) / admitted for name in counted}
        assert all(left.units[name] < each[name] for name in counted)


def test_a_filter_has_left_what_the_one_above_has(path):
    step = gaussian(noise_multiplier=4.0)
    with Ledger.open(path) as ledger:
        ledger.create_budget("all", epsilon=2, delta="1e-6", accounting="renyi", filter="zcdp")
        first, second = (
            ledger.create_budget(name, epsilon=2, delta="1e-6", accounting="renyi", filter="zcdp", parent="all")
            for name in "ab"
        )
        whole = second.remaining().units["rho"]
        first.reserve(step, label="s")
        left = second.remaining().units["rho"]
        assert left == first.remaining().units["rho"] < whole
        assert float(whole - left) == pytest.approx(1 / 32, rel=1e-9)
        for _ in range(math.floor(left * 32)):
            second.reserve(step, label="s")
        with pytest.raises(InsufficientBudget):
            second.reserve(step, label="s")
        assert 0 <= second.remaining().units["rho"] < Fraction(1, 32)


# ---- the last digits: against exact arithmetic, at inputs where rounding to the nearest is wrong ------------------

NOISES = [0.1 * k for k in range(3, 60, 4)]
ORDERS = [1.0 + 0.37 * k for k in range(1, 12)]


def converted(order, delta):
    """What epsilon is above the divergence at one order (Canonne, Kamath, Steinke 2020, Proposition 12)."""
    order, delta = mpmath.mpf(order), mpmath.mpf(delta)
    return mpmath.log1p(-1 / order) - (mpmath.log(delta) + mpmath.log(order)) / (order - 1)


def test_the_last_digit_of_a_charge_is_up():
    charges = [filters._Gaussian.charge(gaussian(noise_multiplier=noise), []) for noise in NOISES]
    for noise, charge in zip(NOISES, charges, strict=True):
        due = 1 / Fraction(noise) ** 2
        assert due <= charge["squared mu"] <= due * (1 + Fraction(1, 10**14))
    assert any(Fraction(1 / noise) ** 2 < 1 / Fraction(noise) ** 2 for noise in NOISES), "the nearest is too little"


def test_the_last_digit_of_noise_is_down(monkeypatch):
    """The odometer reads squared mu as noise: that of a little more."""
    seen = []
    monkeypatch.setattr(
        filters, "gaussian", lambda **asked: seen.append(asked["noise_multiplier"]) or pure_dp(epsilon=1)
    )
    for square in NOISES:
        filters._gaussian_epsilon(square, 1e-6)
    assert all(
        1 - Fraction(1, 10**14) <= Fraction(n) ** 2 * Fraction(s) <= 1 for n, s in zip(seen, NOISES, strict=True)
    )
    assert any(Fraction(1 / math.sqrt(square)) ** 2 * Fraction(square) > 1 for square in NOISES), (
        "the nearest is too much"
    )


def test_the_last_digit_of_a_level_and_of_its_share_is_down(monkeypatch):
    """An epsilon in doubles fits a level where it is not above it; and its delta is not above the level's share."""
    shares = set()
    for level in range(1, 40):
        exact = Fraction(level, 48)
        if Fraction(float(exact)) <= exact:
            continue

        def epsilon(_spent, share, above=float(exact)):
            shares.add(share)
            return above

        monkeypatch.setitem(filters._FILTERS, "gaussian", SimpleNamespace(epsilon=epsilon))
        terms = {"filter": "gaussian", "epsilon": "1/3", "delta": "1/1000", "failure": "0"}
        account = SimpleNamespace(terms=terms, totals=lambda: {"squared mu": Fraction(1), "failure": Fraction(0)})
        assert RenyiAccounting().reading(account).epsilon == Fraction(level + 1, 48)
    assert shares
    with mpmath.workdps(50):
        whole = 6 / mpmath.pi**2 / 1000
        for share in shares:
            level = mpmath.nint(mpmath.sqrt(whole / share))
            assert whole / level**2 * (1 - mpmath.mpf("1e-11")) <= share <= whole / level**2


@pytest.mark.parametrize("epsilon", [7.7, 19.3])
def test_the_last_digit_of_a_limit_is_down_and_of_a_reading_up(epsilon):
    """A divergence at its limit converts to epsilon or less; divergences are read as their epsilon or more."""
    limits = filters._Renyi.limits(epsilon, 1e-6, ORDERS)
    assert limits
    with mpmath.workdps(50):
        for unit, limit in limits.items():
            order = float(unit.removeprefix("order "))
            whole = mpmath.mpf(limit.numerator) / limit.denominator + converted(order, mpmath.mpf(1e-6) / len(ORDERS))
            assert epsilon * (1 - mpmath.mpf("1e-10")) <= whole <= epsilon
            spent = {unit: limit * 2}
            exact = mpmath.mpf(limit.numerator) * 2 / limit.denominator + converted(order, 1e-6)
            assert exact <= filters._Renyi.epsilon(spent, 1e-6) <= exact * (1 + mpmath.mpf("1e-11"))


def test_failure_masses_need_a_share_of_delta(path):
    leaky = approximate_dp(epsilon=0.1, delta=1e-8)
    with Ledger.open(path) as ledger:
        strict = ledger.create_budget("a", epsilon=2, delta="1e-6", accounting="renyi")
        with pytest.raises(InsufficientBudget):
            strict.reserve(leaky, label="s")
        lenient = ledger.create_budget("b", epsilon=2, delta="1e-6", accounting="renyi", failure="2e-8")
        lenient.reserve(leaky, label="s")
        lenient.reserve(leaky, label="s")
        with pytest.raises(InsufficientBudget):
            lenient.reserve(leaky, label="s")


def test_what_a_filter_cannot_count(path):
    with Ledger.open(path) as ledger:
        gauss = ledger.create_budget("g", epsilon=2, delta="1e-6", accounting="renyi", filter="gaussian")
        rho = ledger.create_budget("z", epsilon=2, delta="1e-6", accounting="renyi", filter="zcdp")
        one = renyi_dp(orders=[2.0], epsilons=[0.1])
        for budget in (gauss, rho):
            with pytest.raises(ArgumentError):
                budget.reserve(one, label="s")
        fixed = ledger.create_budget("r", epsilon=2, delta="1e-6", accounting="renyi", orders=[9.0, 30.0])
        with pytest.raises(ArgumentError):
            fixed.reserve(one, label="s")  # nothing is known at these orders
        early = renyi_dp(orders=[9.0], epsilons=[0.1])
        fixed.reserve(early, label="s")
        assert fixed.remaining().units["order 30.0"] < 0 < fixed.remaining().units["order 9.0"]
