"""What Reorder-Slice-Compute costs: synchronisation with exact rates, and the price in every way.

Golden numbers are facts about the synchronisation maps and the holder's transcript of Cohen et al. (2022), computed
independently of this code from their definitions.
"""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.ordered.slices.price import (
    SlicePrice,
    plain_slicing_guarantee,
    swap_of,
)
from dpselect.ordered.slices.price_comparison import noise_pays_from, slice_prices
from dpselect.ordered.slices.price_loss import SlicePairProfile
from dpselect.ordered.slices.synchronisation import failure_weights, synchronisation
from dpselect.privacy import approximate_dp, compose, gaussian, pure_dp
from dpselect.privacy.renyi import epsilon_from_renyi

# ---------------------------------------------------------------- synchronisation

LONG = 300
"""Terms after which the geometric laws below are summed up to 1e-13."""


@pytest.mark.parametrize(
    ("epsilon", "gamma", "lower", "upper"),
    [
        (0.01, 69, 0.305326989584, 0.308395576845),
        (0.05, 14, 0.299489510978, 0.314844666559),
        (0.1, 7, 0.292785076379, 0.323577551661),
        (0.25, 3, 0.274957138373, 0.353051954171),
        (0.5, 1, 0.238651218541, 0.393469340287),
        (1.0, 1, 0.232544157935, 0.632120558829),
    ],
)
def test_rates_of_failure(epsilon, gamma, lower, upper):
    sync = synchronisation(epsilon)
    assert len(failure_weights(epsilon)) == gamma == math.ceil(math.log1p(math.exp(-epsilon)) / epsilon)
    assert sync.fail_lower == pytest.approx(lower, abs=1e-12)
    assert sync.fail_upper == pytest.approx(upper, abs=1e-12)
    for fail, masses in ((sync.fail_lower, sync.lower), (sync.fail_upper, sync.upper)):
        assert fail + sum(masses) == pytest.approx(1.0, abs=1e-13)


def test_rates_in_the_limits():
    assert synchronisation(1e-5).fail_lower == pytest.approx(1.0 - math.log(2.0), abs=1e-5)
    golden = math.log((1.0 + math.sqrt(5.0)) / 2.0)
    for epsilon in (golden + 1e-9, 0.7, 1.0, 2.0):
        assert synchronisation(epsilon).success_least == pytest.approx(math.exp(-epsilon), rel=1e-12)
    # the rate that the price uses is largest at 1 on (0, 1], where it leaves exp(-1) for success
    assert max(synchronisation(e).fail_upper for e in np.linspace(0.005, 1.0, 200)) == pytest.approx(1 - 1 / math.e)


def test_weights_of_failure():
    assert failure_weights(0.25) == pytest.approx([0.778800783071, 0.385331442784, 0.078897212454], abs=1e-12)
    for epsilon in (0.01, 0.1, 0.3, 1.0):
        weights = failure_weights(epsilon)
        assert all(a >= b for a, b in itertools.pairwise(weights))
        assert all(t <= math.exp(-(i + 1) * epsilon) + 1e-15 for i, t in enumerate(weights))


@pytest.mark.parametrize(
    ("epsilon", "ratios"),
    [(0.25, (-0.25, 0.11064653, 0.25)), (0.5, (None, -0.43275213, 0.5)), (1.0, (None, 0.54132485, 1.0))],
)
def test_log_ratios_of_success(epsilon, ratios):
    sync = synchronisation(epsilon)
    for lower, upper, ratio in zip(sync.lower, sync.upper, ratios, strict=True):
        if ratio is None:
            assert lower == upper == 0.0
        else:
            assert math.log(lower / upper) == pytest.approx(ratio, abs=1e-8)


@pytest.mark.theorem("Cohen et al. 2022, Lemma 2.4", exact=True, sharp=True)
@pytest.mark.parametrize("ratio", [Fraction(1, 2), Fraction(3, 4), Fraction(9, 10)])
def test_the_maps_in_rationals(ratio):
    """The definitions of R0 and R1 summed term by term, against the three aggregated outcomes."""
    weights = [max(Fraction(0), ratio**i + ratio ** (i + 1) - 1) for i in range(LONG)]
    lower_fail = sum((1 - ratio) * t for t in weights)
    lower = [(1 - ratio) * ratio**i - (1 - ratio) * t for i, t in enumerate(weights)]
    upper = [(1 - ratio) * ratio**i - (1 - ratio) * weights[i] / ratio for i in range(1, LONG)]  # index i - 1
    sync = synchronisation(-math.log(ratio))
    assert sync.fail_lower == pytest.approx(float(lower_fail), rel=1e-12)
    gamma = sum(t > 0 for t in weights)
    groups = ((0, gamma - 1), (gamma - 1, gamma), (gamma, LONG - 1))
    for (first, last), low, high in zip(groups, sync.lower, sync.upper, strict=True):
        assert low == pytest.approx(float(sum(lower[first:last])), rel=1e-9, abs=1e-15)
        assert high == pytest.approx(float(sum(upper[first:last])), rel=1e-9, abs=1e-15)
    # Lemma 2.4: nothing is more than epsilon apart
    for low, high in zip(lower, upper, strict=False):
        assert ratio * low <= high <= low / ratio


# ---------------------------------------------------------------- price


def equal(epsilon, **more):
    return SlicePrice(slice_epsilon=epsilon, insertion=pure_dp(epsilon=epsilon), **more)


@pytest.mark.parametrize(
    ("epsilon", "orders", "values"),
    [
        (
            0.02,
            [1.5, 2, 4, 8, 16],
            [0.001281303910, 0.001721976795, 0.003559789419, 0.007668684818, 0.018706946122],
        ),
        (0.05, [1.5, 2, 4, 8], [0.008156388313, 0.011108419700, 0.024462391495, 0.065207928091]),
        (0.1, [2, 3], [0.047301587195, 0.079594864191]),
    ],
)
def test_renyi_curve(epsilon, orders, values):
    assert equal(epsilon).renyi()(np.array(orders, dtype=float)) == pytest.approx(values, abs=2e-11)


@pytest.mark.parametrize(
    ("epsilon", "critical"), [(0.02, 30.271972), (0.05, 12.411705), (0.1, 6.461046), (0.25, 2.905069), (0.5, 1.781144)]
)
def test_renyi_curve_ends_at_its_critical_order(epsilon, critical):
    below, above = equal(epsilon).renyi()(np.array([critical - 2e-5, critical + 2e-5]))
    assert np.isfinite(below)
    assert np.isinf(above)


@pytest.mark.parametrize(
    ("epsilon", "paper", "basic", "renyi", "losses"),
    [
        (0.01, 2.28, 0.35, 0.1956, 0.15151),
        (0.02, 4.56, 0.70, 0.4205, 0.33093),
        (0.05, 11.4, 1.75, 1.1678, 0.92781),
        (0.10, 22.8, 3.80, 2.5787, 2.0615),
        (0.25, 57.0, 10.25, 7.954, 6.389),
    ],
)
def test_the_three_prices_in_order(epsilon, paper, basic, renyi, losses):
    price = equal(epsilon)
    total = SlicePrice(slice_epsilon=epsilon, insertion=pure_dp(epsilon=epsilon)).guarantee()
    by_renyi = epsilon_from_renyi(price.renyi(), 1e-6)
    table = price.table()
    by_table = min(e for e, d in zip(table.epsilons, table.deltas, strict=True) if d <= 1e-6)
    assert price.paper(1e-6) == pytest.approx(paper, rel=1e-9)
    assert by_table == pytest.approx(basic, rel=1e-9)
    assert by_renyi == pytest.approx(renyi, rel=2e-3)
    assert by_renyi <= renyi + 1e-3
    assert total.epsilon(1e-6) == pytest.approx(losses, abs=2e-3 * losses)
    assert total.epsilon(1e-6) <= by_renyi <= by_table <= price.paper(1e-6)


@pytest.mark.parametrize(("delta", "sixth", "half"), [(1e-5, 64, 10), (1e-6, 76, 12), (1e-9, 114, 18)])
def test_number_of_failures(delta, sixth, half):
    assert equal(0.1).paper(delta) == pytest.approx(3 * 0.1 * sixth)
    w = 1
    while equal(1e-5).more_failures_than(w - 1) > delta:
        w += 1
    assert w == half


@pytest.mark.parametrize(
    ("delta", "row"),
    [
        (1e-6, {1: (76, 31, 12), 2: (93, 37, 15), 5: (131, 54, 23), 10: (185, 77, 33), 100: (901, 391, 189)}),
        (1e-9, {1: (114, 46, 18), 2: (132, 53, 21), 5: (175, 71, 29), 10: (234, 96, 41), 100: (995, 428, 203)}),
    ],
)
def test_several_applications(delta, row):
    """Theorem 2.3: queries are dominated by a sum of k geometric counts."""
    for k, (sixth, one, small) in row.items():
        assert equal(0.1, applications=k).paper(delta) == pytest.approx(0.3 * sixth)
        for epsilon, expected in ((1.0, one), (1e-5, small)):
            price, failures = equal(epsilon, applications=k), 0
            while price.more_failures_than(failures) > delta:
                failures += 1
            assert failures + k == expected


def test_the_tail_of_the_count_is_the_binomial_one():
    for k, failures in itertools.product((1, 3, 10), (0, 4, 20)):
        price = equal(0.3, applications=k)
        expected = binom.cdf(k - 1, failures + k, price.sync.success_least)
        assert price.more_failures_than(failures) == pytest.approx(expected, rel=1e-9)


def test_a_printed_tail_bound_is_not_used():
    """Lemma 2.8 prints exp(-n/2) where exp(-n p/2) is meant: at p = 1/6, n = 60 the exact value is far above it."""
    exact = (5 / 6) ** 59
    assert exact == pytest.approx(2.12964e-5, rel=1e-5)
    assert exact > math.exp(-30)
    assert equal(0.5).paper(exact * 0.99) > 3 * 0.5 * 59  # and 59 queries are not enough for a smaller delta


@pytest.mark.parametrize(
    ("slices", "eta"), [(1, 0.4), (2, 0.2), (4, 0.1001), (6, 0.0698), (8, 0.0660), (12, 0.0653), (2048, 0.0653)]
)
def test_largest_computation_for_a_total(slices, eta):
    """The noise's own price at (1, 1e-6), slice noise of half the computation's epsilon."""

    def noisy(epsilon):
        return SlicePrice(slice_epsilon=epsilon / 2, insertion=pure_dp(epsilon=epsilon), slices=slices).numeric()

    assert noisy(eta - 1e-4).epsilon(1e-6) <= 1.0 + 1e-4
    assert noisy(eta + 2e-4).epsilon(1e-6) > 1.0


@pytest.mark.parametrize(
    ("delta", "noise", "eta"),
    [
        (1e-5, 1, 0.0660),
        (1e-5, 2, 0.0802),
        (1e-5, 4, 0.0890),
        (1e-6, 1, 0.0534),
        (1e-9, 1, 0.0338),
        (1e-9, 2, 0.0414),
        (1e-9, 4, 0.0465),
    ],
)
def test_smaller_slice_noise_buys_privacy(delta, noise, eta):
    """Any number of slices, epsilon one in all, slice noise of 1/noise times the computation's epsilon."""

    def total(epsilon):
        return SlicePrice(slice_epsilon=epsilon / noise, insertion=pure_dp(epsilon=epsilon)).numeric().epsilon(delta)

    assert total(eta - 1e-4) <= 1.0
    assert total(eta + 2e-4) > 1.0


@pytest.mark.parametrize(("slices", "eta"), [(1, 0.5), (8, 0.0625), (16, 0.0325), (32, 0.0219), (128, 0.0106)])
def test_plain_slices(slices, eta):
    def plain(epsilon):
        swap = pure_dp(epsilon=2 * epsilon, adjacency="replace_one")
        return plain_slicing_guarantee(swap=swap, slices=slices, adjacency="add_or_remove_one").epsilon(1e-6)

    assert plain(eta - 1e-4) <= 1.0
    assert plain(eta + 1e-4) > 1.0


@pytest.mark.full
def test_the_smallest_is_taken():
    """One slice: the noise costs its own epsilon on top of the swap, so the swap alone is the price, and pure."""
    one = SlicePrice(slice_epsilon=0.1, insertion=pure_dp(epsilon=0.1), slices=1).guarantee()
    assert one.epsilon(0) == pytest.approx(0.2)
    many = SlicePrice(slice_epsilon=0.1, insertion=pure_dp(epsilon=0.1), slices=400).guarantee()
    assert many.epsilon(0) == pytest.approx(80.0)
    assert many.epsilon(1e-6) == pytest.approx(2.0615, abs=2e-3)


@pytest.mark.theorem("docs/theory/reorder-slice-compute.md, Theorem C", exact=True, sharp=True)
@pytest.mark.parametrize("slices", [1, 2, 4])
def test_losses_of_a_short_run_by_enumeration(slices):
    """All transcripts of the holder in rationals, from the maps' definition, against the numeric pair."""
    ratio = Fraction(3, 4)
    weights = [max(Fraction(0), ratio**i + ratio ** (i + 1) - 1) for i in range(LONG)]
    fails = [((1 - ratio) * t, (1 - ratio) * t / ratio) for t in weights if t]
    p0 = [(1 - ratio) * (ratio**i - weights[i]) for i in range(12)]
    p1 = [(1 - ratio) * (ratio ** (i + 1) - weights[i + 1] / ratio) for i in range(12)]
    synced = [*zip(p0, p1, strict=True), (ratio**12, ratio**13)]  # from gamma on the ratio is one, so aggregate
    assert sum(a for a, _ in fails + synced) == sum(b for _, b in fails + synced) == 1

    def response(power):
        keep = 1 / (1 + ratio**power)
        return [(keep, 1 - keep), (1 - keep, keep)]

    def transcripts(left):
        if not left:
            return [(Fraction(1), Fraction(1))]
        later = transcripts(left - 1)
        fail = (sum(a for a, _ in fails), sum(b for _, b in fails))  # all failing outcomes have one ratio
        found = [(fail[0] * a * c, fail[1] * b * d) for a, b in response(2) for c, d in later]
        return found + [(a * c, b * d) for a, b in synced for c, d in response(1)]

    unit = -math.log(ratio)
    profile = SlicePairProfile(unit, pure_dp(epsilon=unit), pure_dp(epsilon=2 * unit, adjacency="replace_one"), slices)
    laws = transcripts(slices)
    for factor in (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(4), Fraction(1, 2)):
        forward = float(sum(max(b - factor * a, 0) for a, b in laws))
        backward = float(sum(max(a - factor * b, 0) for a, b in laws))
        epsilon = np.array([math.log(factor)])
        assert forward - 1e-15 <= profile.remove(epsilon)[0] <= forward + 1e-9
        assert backward - 1e-15 <= profile.add(epsilon)[0] <= backward + 1e-9


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


def test_group_privacy_for_a_swap():
    for epsilon, factor in ((0.1, 2.105171), (1.0, 3.718282)):
        swap = swap_of(approximate_dp(epsilon=epsilon, delta=1e-6))
        assert swap.failure == pytest.approx(factor * 1e-6, rel=1e-6)
        assert swap.pure_epsilon == 2 * epsilon


def test_failures_of_the_computations_do_not_grow_with_the_slices():
    base = approximate_dp(epsilon=0.05, delta=1e-9)
    f = synchronisation(0.05).fail_upper
    for slices in (None, 1000):
        price = SlicePrice(slice_epsilon=0.05, insertion=base, slices=slices)
        assert price.leak == pytest.approx((1 + math.exp(0.05)) * 1e-9 / (1 - f), rel=1e-6)
    total = SlicePrice(slice_epsilon=0.05, insertion=base).guarantee()
    pure = SlicePrice(slice_epsilon=0.05, insertion=pure_dp(epsilon=0.05)).guarantee()
    assert pure.delta(1.0) < total.delta(1.0) < pure.delta(1.0) + 4e-9
    assert total.epsilon(1e-10) == math.inf


@pytest.mark.full
def test_computations_with_curves_only():
    g = gaussian(noise_multiplier=20.0)
    s = gaussian(noise_multiplier=20.0, adjacency="replace_one")
    known = SlicePrice(slice_epsilon=0.03, insertion=g, swap=s).guarantee()
    assert 0.05 < known.epsilon(1e-6) < 1.2
    # without a finite epsilon there is no table, and numbers and curve agree
    price = SlicePrice(slice_epsilon=0.03, insertion=g, swap=s)
    assert price.table() is None
    assert price.numeric().epsilon(1e-6) <= epsilon_from_renyi(price.renyi(), 1e-6)
    assert SlicePrice(slice_epsilon=0.03, insertion=g).guarantee().epsilon(1e-6) > known.epsilon(1e-6)


@pytest.mark.full
def test_guarantees_compose_and_travel():
    one = SlicePrice(slice_epsilon=0.05, insertion=pure_dp(epsilon=0.05), slices=64).guarantee()
    again = pickle.loads(pickle.dumps(one))
    assert again.epsilon(1e-6) == one.epsilon(1e-6)
    both = compose(one, one)
    twice = SlicePrice(slice_epsilon=0.05, insertion=pure_dp(epsilon=0.05), slices=64, applications=2).guarantee()
    assert one.epsilon(1e-6) < twice.epsilon(1e-6) < 2 * one.epsilon(1e-6)
    assert both.epsilon(1e-6) == pytest.approx(twice.epsilon(1e-6), rel=0.01)
    assert "Cohen" in one.describe(delta=1e-6)["theorem"]


def test_other_maps_cost_more_and_replacing_is_two_steps_or_a_swap_a_slice():
    parts = {"slice_epsilon": 0.05, "insertion": pure_dp(epsilon=0.05)}
    grows = SlicePrice(**parts).guarantee()
    turns = SlicePrice(**parts, maps_grow=False).guarantee()
    assert grows.epsilon(1e-6) < turns.epsilon(1e-6) <= SlicePrice(**parts).table().epsilons[11] + 1e-9
    replaced = SlicePrice(**parts, slices=4).guarantee(adjacency="replace_one")
    assert replaced.epsilon(0) == pytest.approx(0.4)
    assert SlicePrice(**parts, slices=4, maps_grow=False).guarantee(adjacency="replace_one").epsilon(
        0
    ) == pytest.approx(0.8)
    far = SlicePrice(**parts).guarantee(adjacency="replace_one")
    assert far.epsilon(1e-6) == pytest.approx(2 * grows.epsilon(1e-6 / (1 + math.exp(far.epsilon(1e-6) / 2))), rel=1e-6)


@pytest.mark.parametrize(
    "wrong",
    [
        {"slice_epsilon": 0.0, "insertion": pure_dp(epsilon=1)},
        {"slice_epsilon": 3.0, "insertion": pure_dp(epsilon=1)},
        {"slice_epsilon": 1.0, "insertion": pure_dp(epsilon=1), "slices": 0},
        {"slice_epsilon": 1.0, "insertion": pure_dp(epsilon=1, adjacency="replace_one")},
        {"slice_epsilon": 1.0, "insertion": pure_dp(epsilon=1), "swap": pure_dp(epsilon=1)},
    ],
)
def test_wrong_parameters(wrong):
    with pytest.raises((ArgumentError, AdjacencyError)):
        SlicePrice(**wrong).guarantee()
