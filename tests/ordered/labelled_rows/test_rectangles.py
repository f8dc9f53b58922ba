"""Private rectangles: the exact law of a small one, what it costs and needs."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.mechanisms import NoisyCount
from dpselect.ordered.domains import WholeNumbers
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.labelled_rows import rectangles
from dpselect.ordered.labelled_rows.rectangle_plan import RectanglePlan
from dpselect.ordered.labelled_rows.rectangles import Rectangle, RectangleLearner, learn_rectangle
from dpselect.ordered.slices.price import SlicePrice, plain_slicing_guarantee
from dpselect.privacy import Adjacency, pure_dp
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import keyed_source

ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE


# --- privacy, exactly: the slices that the code cuts, with the law of each interior point in rational numbers


def plan_of(rate, slice_epsilon, size):
    """Only what the sides are drawn with."""
    nothing = pure_dp(epsilon=0.0)
    return RectanglePlan(1, 2, 0.05, rate, slice_epsilon, size, 0, 1.0, 0, nothing)


class Slices:
    """Runs the code with scripted slice sizes and keeps the sorted values that each interior point is drawn from."""

    def __init__(self, monkeypatch, size, axes, noisy):
        self.values, self.extra, self.size, self.axes = [], [], size, axes
        self.plan = plan_of(0.1, 0.1 if noisy else None, 1)

        def draw(_, values, domain_size, rate):
            assert rate == epsilon_used(self.plan.rate)
            assert domain_size == size
            self.values.append(tuple(values))
            return 0

        monkeypatch.setattr(SecretDraws, "interior", draw)
        monkeypatch.setattr(SecretDraws, "geometric", lambda _self, _epsilon: self.extra.pop(0))

    def cut(self, rows, extra):
        self.values, self.extra = [], list(extra)
        domains = (WholeNumbers(0, self.size - 1),) * self.axes
        table = np.array(rows, dtype=np.uint64).reshape(-1, self.axes)
        rectangles._sides(list(table.T), domains, self.plan, ADD, keyed_source(1))
        return tuple(self.values)


def point_law(values, size, base):
    weights = [base ** min(sum(x <= z for x in values), sum(x >= z for x in values)) for z in range(size)]
    return [weight / sum(weights) for weight in weights]


def product_law(slices, size, base):
    laws = [point_law(values, size, base) for values in slices]
    return {
        sides: math.prod((law[side] for law, side in zip(laws, sides, strict=True)), start=Fraction(1))
        for sides in itertools.product(range(size), repeat=len(slices))
    }


def neighbours(rows, points, adjacency):
    for point in points:
        if adjacency is ADD:
            yield tuple(sorted((*rows, point)))
        else:
            for place in range(len(rows)):
                yield tuple(sorted((*rows[:place], point, *rows[place + 1 :])))


def pairs(points, most, adjacency):
    for n in range(most + 1):
        for rows in itertools.combinations_with_replacement(points, n):
            for other in neighbours(rows, points, adjacency):
                yield rows, other


@pytest.mark.cases(1)
@pytest.mark.theorem(
    "Cohen et al. 2022, Corollary 1.9",
    exact=True,
    loose="every slice is charged a replaced row at its worst, and no data set is the worst for all slices",
)
@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
@pytest.mark.parametrize(("axes", "size", "most"), [(1, 3, 4), (2, 2, 3)])
def test_plain_slices_in_rational_arithmetic(monkeypatch, adjacency, axes, size, most):
    slices, base = Slices(monkeypatch, size, axes, noisy=False), Fraction(40)
    points = list(itertools.product(range(size), repeat=axes))
    worst = Fraction(0)
    for rows, other in pairs(points, most, adjacency):
        laws = [product_law(slices.cut(data, []), size, base) for data in (rows, other)]
        worst = max([worst, *(max(laws[0][s] / laws[1][s], laws[1][s] / laws[0][s]) for s in laws[0])])
    # 2d slices, each charged a replaced value: twice the rate
    assert worst <= base ** (2 * 2 * axes)
    # "every row is in one slice only, so the rate is the price": removing a row moves the borders of later slices
    assert worst > base


@pytest.mark.cases(1)
@pytest.mark.theorem("Cohen et al. 2022, Corollary 1.9", exact=True)
@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
def test_noisy_slices_in_rational_arithmetic(monkeypatch, adjacency):
    """rate = log 3, slice noise P(G = k) = 2**-(k+1): all probabilities are rational, and so are the hockey sticks."""
    size, base, most = 2, Fraction(3), 3
    slices = Slices(monkeypatch, size, 1, noisy=True)
    rate, noise = math.log(3), math.log(2)
    swap = pure_dp(epsilon=2 * rate, adjacency=REPLACE)
    price = SlicePrice(slice_epsilon=noise, insertion=pure_dp(epsilon=rate), swap=swap, slices=2)
    claimed = price.guarantee(adjacency=adjacency)
    sizes = range(most + 2)
    chance = [Fraction(1, 2 ** (k + 1)) for k in sizes[:-1]] + [Fraction(1, 2 ** (most + 1))]  # the last: all the rest
    laws = {}

    def law(rows):
        if rows not in laws:
            mixture = dict.fromkeys(itertools.product(range(size), repeat=2), Fraction(0))
            for extra in itertools.product(sizes, repeat=2):
                part = product_law(slices.cut(rows, extra), size, base)
                for sides, mass in part.items():
                    mixture[sides] += chance[extra[0]] * chance[extra[1]] * mass
            assert sum(mixture.values()) == 1
            laws[rows] = mixture
        return laws[rows]

    factors = [Fraction(1), Fraction(3, 2), Fraction(3), Fraction(6), Fraction(20)]
    worst = [Fraction(0)] * len(factors)
    for rows, other in pairs([(0,), (1,)], most, adjacency):
        for one, two in ((law(rows), law(other)), (law(other), law(rows))):
            for k, factor in enumerate(factors):
                worst[k] = max(worst[k], sum(max(one[s] - factor * two[s], Fraction(0)) for s in one))
    assert worst[0] > Fraction(1, 4)
    for factor, found in zip(factors, worst, strict=True):
        assert found <= Fraction(claimed.delta(math.log(factor)))


def test_the_sides_come_from_the_slices_in_turn(monkeypatch):
    slices = Slices(monkeypatch, 10, 2, noisy=True)
    rows = [(x, 9 - x) for x in range(10)]
    assert slices.cut(rows, [1, 0, 2, 0]) == ((0, 1), (9,), (1, 2, 3), (7,))
    # short lists are taken whole, silently
    assert slices.cut(rows[:2], [5, 0, 0, 7]) == ((0, 1), (), (), ())


# --- the price and the rows


def test_prices_of_the_tables_in_the_derivation():
    """(1, 1e-6), a computation of pure rate e, swap 2e: the largest rates, plain and with noise e/2."""
    for slices, plain, noisy in ((2, 0.25, 0.2), (4, 0.125, 0.1001), (8, 0.0625, 0.066), (20, None, 0.0653)):
        swap = pure_dp(epsilon=2 * noisy, adjacency=REPLACE)
        parts = {"insertion": pure_dp(epsilon=noisy), "swap": swap, "slices": slices}
        price = SlicePrice(slice_epsilon=noisy / 2, **parts).guarantee()
        assert price.epsilon(delta=1e-6) <= 1.0 + 1e-3
        if plain is not None:
            swap = pure_dp(epsilon=2 * plain, adjacency=REPLACE)
            assert plain_slicing_guarantee(swap=swap, slices=slices, adjacency=ADD).epsilon(delta=1e-6) <= 1.0 + 1e-9


@pytest.mark.cases(1)
@pytest.mark.parametrize(("axes", "table"), [(2, 1748), (3, 3984), (4, 7023)])
def test_fewer_rows_are_consumed_than_by_pure_prices(axes, table):
    # the derivation's totals for a domain of 2**32, (1, 1e-6), failure 0.05 charge the exponential mechanism as any
    # pure one; its bounded range is cheaper, even with a sixteenth of epsilon for the count
    plan = RectangleLearner(dimensions=axes, domain_size=2**32, epsilon=1.0, delta=1e-6).plan
    assert plan.consumed < table
    assert 0.99 < plan.guarantee.epsilon(delta=1e-6) <= 1.0
    assert (plan.slice_epsilon is not None) == (axes >= 4)
    size = 2 / plan.rate * math.log(2 * 2 * axes * 2**32 / 0.05)
    assert size <= plan.slice_size <= size + 2


@pytest.mark.full
def test_the_smaller_way_of_slicing_is_taken():
    options = {"dimensions": 4, "domain_size": 2**32, "epsilon": 1.0, "delta": 1e-6}
    plans = {way: RectangleLearner(slicing=way, **options).plan for way in ("auto", "plain", "noisy")}
    assert plans["auto"].consumed == min(plans["plain"].consumed, plans["noisy"].consumed)
    assert plans["plain"].slice_epsilon is None
    assert all(plan.guarantee.epsilon(delta=1e-6) <= 1.0 for plan in plans.values())
    replaced = RectangleLearner(adjacency=REPLACE, **options).plan
    assert replaced.guarantee.adjacency is REPLACE
    assert replaced.guarantee.epsilon(delta=1e-6) <= 1.0
    # plain slices cost the same for a replaced row: one replaced value a slice either way
    assert RectangleLearner(slicing="plain", adjacency=REPLACE, **options).plan.rate == plans["plain"].rate
    pure = RectangleLearner(dimensions=4, domain_size=2**32, epsilon=1.0).plan
    assert pure.guarantee.pure_epsilon <= 1.0
    assert pure.rate == pytest.approx((1 - 1 / 16) / 16, rel=0.01)
    # eight slices at twice the rate, and the count
    assert pure.guarantee.pure_epsilon == pytest.approx(8 * 2 * pure.rate + pure.count_epsilon)
    for plan in plans.values():
        slices = rectangle_plan_price(plan)
        assert slices.epsilon(delta=1e-6) < plan.guarantee.epsilon(delta=1e-6)


def rectangle_plan_price(plan):
    """The slices of a plan, without its count."""
    if plan.slice_epsilon is None:
        return plain_slicing_guarantee(swap=plan.swap, slices=2 * plan.dimensions, adjacency=ADD)
    parts = {"insertion": plan.insertion, "swap": plan.swap, "slices": 2 * plan.dimensions}
    return SlicePrice(slice_epsilon=plan.slice_epsilon, **parts).guarantee()


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("epsilon", "delta", "slicing"),
    [
        (200.0, 0.0, "plain"),
        (1e-4, 1e-6, "noisy"),
        (1.0, 0.01, "noisy"),
        (1.0, 1e-300, "noisy"),
        (11.0, 1e-6, "auto"),
        (1e-4, 0.01, "plain"),
    ],
)
def test_extreme_budgets(epsilon, delta, slicing):
    plan = RectangleLearner(dimensions=1, domain_size=100, epsilon=epsilon, delta=delta, slicing=slicing).plan
    assert plan.guarantee.epsilon(delta=delta) <= epsilon
    # never less than basic composition allows
    assert plan.rate >= epsilon * (15 / 16) / 4 * (1 - 1e-6)


def test_rows_grow_as_they_should():
    plan = RectangleLearner(dimensions=2, domain_size=2**16, epsilon=1.0).plan
    sizes = [plan.rows(error=error) for error in (0.3, 0.2, 0.1)]
    assert sizes == sorted(sizes)
    assert all(plan.consumed / n <= error for n, error in zip(sizes, (0.3, 0.2, 0.1), strict=True))
    with pytest.raises(ArgumentError, match="error"):
        plan.rows(error=0.0)


@pytest.mark.statistical
@pytest.mark.parametrize(("axes", "share", "adjacency"), [(1, 0.5, ADD), (2, 0.5, REPLACE), (2, 0.15, ADD)])
def test_the_error_is_as_small_as_claimed(axes, share, adjacency):
    """30 trials that may fail with probability 0.05 each: more than 10 failures have probability 4e-7 if the claim
    holds, and at most 10 have probability 0.05 if a trial fails with probability one half."""
    size, asked, epsilon, failures = 2**16, 0.2, 2.0, 0
    options = {"epsilon": epsilon, "adjacency": adjacency}
    plan = RectangleLearner(dimensions=axes, domain_size=size, **options).plan
    rows = plan.rows(error=asked)
    side = share ** (1 / axes)
    low, high = int(size * 0.4 * (1 - side)), int(size * (0.4 + 0.6 * side))
    data, source = np.random.default_rng(61), keyed_source(61)
    for _ in range(30):
        X = data.integers(0, size, (rows, axes))
        y = np.all((low <= X) & (high >= X), axis=1)
        rule = learn_rectangle(X, y, lower=0, upper=size - 1, random=source, **options).value
        truth = ((high - low + 1) / size) ** axes
        if rule.empty:
            wrong = truth
        else:
            inside = math.prod(
                max(min(high, b) - max(low, a) + 1, 0) / size for a, b in zip(rule.first, rule.last, strict=True)
            )
            whole = math.prod((b - a + 1) / size for a, b in zip(rule.first, rule.last, strict=True))
            wrong = truth + whole - 2 * inside
        failures += wrong > asked
    assert failures <= 10


@pytest.mark.full
@pytest.mark.statistical
def test_enough_rows_give_no_false_positives_and_few_false_negatives():
    """Every run with noisy slices: a false positive has probability at most 0.05/2 in theory, far less here."""
    data, source = np.random.default_rng(62), keyed_source(62)
    X = data.integers(0, 1000, (30_000, 4))
    y = np.all((X >= 100) & (X < 950), axis=1)
    options = {"lower": 0, "upper": 999, "epsilon": 4.0, "delta": 1e-6, "slicing": "noisy"}
    plan = RectangleLearner(dimensions=4, domain_size=1000, epsilon=4.0, delta=1e-6, slicing="noisy").plan
    for _ in range(3):
        release = learn_rectangle(X, y, random=source, **options)
        found = release.value.predict(X)
        assert not np.any(found & ~y)
        assert np.sum(y & ~found) < plan.consumed
        assert release.guarantee.epsilon(delta=1e-6) <= 4.0
        assert release.replayable


# --- what goes in and what comes out


def test_too_few_rows_give_the_empty_rectangle_by_a_private_decision():
    X, options = np.full((50, 2), 5), {"lower": 0, "upper": 9, "epsilon": 1.0}
    release = learn_rectangle(X, np.ones(50), random=keyed_source(63), **options)
    assert release.value.empty
    assert release.value.bounds is None
    assert not release.value.predict(X).any()
    plan = RectangleLearner(dimensions=2, domain_size=10, epsilon=1.0).plan
    assert release.guarantee.pure_epsilon >= NoisyCount(epsilon=plan.count_epsilon).guarantee.pure_epsilon
    # around the limit both happen: the decision is noisy
    rows = np.full((plan.least_count, 2), 5)
    source = keyed_source(64)
    found = {learn_rectangle(rows, np.ones(len(rows)), random=source, **options).value.empty for _ in range(40)}
    assert found == {True, False}


def test_rectangles_predict():
    domains = (WholeNumbers(0, 9), WholeNumbers(-5, 5))
    rule = Rectangle(domains, (2, 0), (4, 10))
    assert rule.bounds == [(2, 4), (-5, 5)]
    assert rule.predict([[3, 0], [5, 0], [2, -100], [4, 100], [1, 0]]).tolist() == [True, False, True, True, False]
    assert rule.predict(np.empty((0, 2), dtype=int)).tolist() == []
    assert Rectangle(domains, (5, 0), (4, 10)).empty
    with pytest.raises(ArgumentError, match="X"):
        rule.predict([[1, 2, 3]])
    with pytest.raises(TypeError, match="integers"):
        rule.predict([[1.5, 2.0]])


def test_tables_of_all_kinds():
    data = np.random.default_rng(65)
    X = data.uniform(-1, 1, (4000, 2))
    y = (np.abs(X[:, 0]) < 0.8) & (X[:, 1] > -0.5)
    options = {"epsilon": 20.0, "random": keyed_source(65)}
    holes = X.copy()
    holes[::7, 1] = np.nan
    for table in (X, holes, X.astype(np.float32)):
        rule = learn_rectangle(table, y, lower=-1, upper=[1.0, 2.0], granularity=(None, 0.25), **options).value
        assert np.mean(rule.predict(X) != y) < 0.1
        assert rule.bounds[1][0] % 0.25 == 0
    assert not rule.predict(holes)[::7].any()
    days = np.datetime64("2024-01-01") + data.integers(0, 1000, (3000, 1))
    rule = learn_rectangle(days, np.ones(3000), lower="2020-01-01", upper="2030-01-01", **options).value
    assert rule.bounds[0][0] < np.datetime64("2024-06-01") < rule.bounds[0][1]
    wide = np.array([[2**80 + int(k)] for k in data.integers(0, 1000, 2000)], dtype=object)
    rule = learn_rectangle(wide, np.ones(2000), lower=0, upper=2**90, **options).value
    assert rule.predict(np.array([[2**80 + 500], [2**89]], dtype=object)).tolist() == [True, False]
    odd = learn_rectangle(X, data.integers(0, 3, 4000), lower=-1, upper=1, **options)
    assert odd.value.predict(X).dtype == bool


@pytest.mark.parametrize(
    ("wrong", "error", "name"),
    [
        ({"epsilon": 0.0}, ArgumentError, "epsilon"),
        ({"delta": 0.02}, ArgumentError, "delta"),
        ({"delta": 1e-6, "epsilon": 11.0, "slicing": "noisy"}, ArgumentError, "epsilon"),
        ({"delta": -0.1}, ArgumentError, "delta"),
        ({"slicing": "noisy"}, ArgumentError, "delta"),
        ({"slicing": "fine"}, ArgumentError, "slicing"),
        ({"lower": [0.0, 0.0, 0.0]}, ArgumentError, "lower"),
        ({"lower": 2.0}, ArgumentError, "lower"),
        ({"granularity": -1.0}, ArgumentError, "granularity"),
        ({"failure_probability": 1.0}, ArgumentError, "failure_probability"),
        ({"adjacency": "one"}, AdjacencyError, "adjacency"),
        ({"X": [1.0, 2.0]}, ArgumentError, "X"),
        ({"X": np.empty((3, 0))}, ArgumentError, "X"),
        ({"X": [["a", "b"]]}, TypeError, "X"),
        ({"y": [1, 0]}, ArgumentError, "y"),
        ({"y": ["in"]}, TypeError, "y"),
        ({"random": 5}, TypeError, "random"),
    ],
)
def test_bad_arguments(wrong, error, name):
    arguments = {"X": [[0.5, 0.5]], "y": [1], "lower": 0.0, "upper": 1.0, "epsilon": 1.0} | wrong
    with pytest.raises(error, match=name):
        learn_rectangle(arguments.pop("X"), arguments.pop("y"), **arguments)
