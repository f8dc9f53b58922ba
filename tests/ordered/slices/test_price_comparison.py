"""Prices of slices compared: each one is valid, and the smallest is charged."""

from __future__ import annotations

import math
import re

import pytest

from dpselect.ordered.slices.price import (
    SlicePrice,
)
from dpselect.ordered.slices.price_comparison import noise_pays_from, slice_prices
from dpselect.privacy import approximate_dp, compose, pure_dp
from tests.root import ROOT


def test_prices_beside_each_other():
    """The paper's price holds with its largest epsilon; every other way is charged no more than itself."""
    prices = slice_prices(SlicePrice(slice_epsilon=0.025, insertion=pure_dp(epsilon=0.05), slices=16), delta=1e-6)
    assert prices.paper == pytest.approx(3 * 0.05 * 76)
    assert prices.charged <= min(prices.paper, prices.basic, prices.renyi, prices.losses, prices.plain)
    assert prices.losses < prices.renyi < prices.basic < prices.plain < prices.paper
    leaks = approximate_dp(epsilon=0.05, delta=1e-6)
    failing = slice_prices(SlicePrice(slice_epsilon=0.05, insertion=leaks), delta=1e-6)
    assert failing.basic == failing.renyi == failing.paper == failing.plain == math.inf


def test_noise_pays_from_eight_slices():
    assert noise_pays_from(SlicePrice(slice_epsilon=0.033, insertion=pure_dp(epsilon=0.066)), delta=1e-6) == 8
    dear = SlicePrice(slice_epsilon=1.0, insertion=pure_dp(epsilon=0.001))
    assert noise_pays_from(dear, delta=1e-6, most=16) is None


@pytest.mark.full
def test_every_way_is_a_guarantee_that_composes():
    parts = {"slice_epsilon": 0.05, "insertion": pure_dp(epsilon=0.05), "slices": 16}
    prices = slice_prices(SlicePrice(**parts), delta=1e-6)
    totals = []
    for way in ("paper", "basic", "renyi", "losses", "plain", "smallest"):
        one = SlicePrice(**parts).guarantee(way=way)
        named = prices.charged if way == "smallest" else getattr(prices, way)
        # a chord between the table's points may be a little smaller than its next point
        assert 0.97 * named <= one.epsilon(1e-6) <= named * (1 + 1e-9)
        assert one.epsilon(1e-6) < compose(one, one).epsilon(1e-6) < 2.01 * one.epsilon(1e-6)
        totals.append(one.epsilon(1e-6))
    assert totals[-1] == min(totals)
    assert totals[0] == max(totals)


@pytest.mark.full
def test_several_applications_beside_each_other():
    parts = {"slice_epsilon": 0.05, "insertion": pure_dp(epsilon=0.05), "slices": 64}
    one, three = (slice_prices(SlicePrice(applications=runs, **parts), delta=1e-6) for runs in (1, 3))
    for way in ("paper", "basic", "renyi", "losses", "plain"):
        assert getattr(one, way) < getattr(three, way) < 3 * getattr(one, way) + 1e-9
    assert three.charged <= min(three.paper, three.basic, three.renyi, three.losses, three.plain)


def test_from_how_many_slices_it_pays_by_the_guarantees_themselves():
    parts = {"slice_epsilon": 0.025, "insertion": pure_dp(epsilon=0.05)}
    least = noise_pays_from(SlicePrice(**parts), delta=1e-6)
    for count, pays in ((least - 1, False), (least, True)):
        noisy = SlicePrice(**parts, slices=count).guarantee(way="losses").epsilon(1e-6)
        plain = SlicePrice(**parts, slices=count).guarantee(way="plain").epsilon(1e-6)
        assert (noisy < plain) is pays


def test_the_table_of_the_page():
    """docs/how-to/interior-point.md: computations of epsilon 0.05, slice noise 0.025, delta 1e-6."""
    page = (ROOT / "docs" / "how-to" / "interior-point.md").read_text()
    number = r"([\d.]+) \| "
    rows = re.findall(r"^\| (\d+) \| " + number * 5 + r"([\d.]+) \|$", page, flags=re.M)
    assert [int(row[0]) for row in rows] == [1, 4, 8, 16, 64, 1024]
    for row in rows[:5]:
        price = SlicePrice(slice_epsilon=0.025, insertion=pure_dp(epsilon=0.05), slices=int(row[0]))
        found = slice_prices(price, delta=1e-6)
        shown = (found.paper, found.basic, found.renyi, found.losses, found.plain, found.charged)
        assert [float(cell) for cell in row[1:]] == pytest.approx(shown, abs=6e-4)
