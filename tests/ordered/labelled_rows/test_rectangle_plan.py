"""Slices for rectangles: exact distributions, sides, prices, and the choice between both ways of slicing."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.ordered.domains import WholeNumbers
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.labelled_rows import rectangles
from dpselect.ordered.labelled_rows.rectangle_plan import RectanglePlan
from dpselect.ordered.labelled_rows.rectangles import RectangleLearner
from dpselect.ordered.slices.price import SlicePrice, plain_slicing_guarantee
from dpselect.privacy import Adjacency, pure_dp
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import keyed_source

ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE


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
