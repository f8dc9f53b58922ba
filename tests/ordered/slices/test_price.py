"""What Reorder-Slice-Compute costs: synchronisation with exact rates, and the price in every way.

Golden numbers are facts about the synchronisation maps and the holder's transcript of Cohen et al. (2022), computed
independently of this code from their definitions.
"""

from __future__ import annotations

import itertools
import math
import pickle
from dataclasses import replace

import pytest
from scipy.stats import binom

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.mechanisms import bounded_range
from dpselect.ordered.slices.price import (
    SlicePrice,
    failed_slice,
    plain_slicing_guarantee,
    swap_of,
)
from dpselect.ordered.slices.synchronisation import synchronisation
from dpselect.privacy import approximate_dp, compose, gaussian, laplace, pure_dp
from dpselect.privacy.renyi import LinearRenyi, epsilon_from_renyi
from tests.ordered.slices.price_cases import equal

"""Terms after which the geometric laws below are summed up to 1e-13."""


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


def test_maps_that_turn_cost_a_swap_of_two_rows_in_each_slice():
    """Two rows in one slice: the Gaussian mechanism moves twice as far, which two mechanisms together do not cost.

    A map that answers to one row with a row more and to another with a row less makes slices of two rows disjoint.
    """
    swap = gaussian(noise_multiplier=4.0, adjacency="replace_one")
    for slices in (1, 4):
        found = plain_slicing_guarantee(swap=swap, slices=slices, maps_grow=False, adjacency="replace_one")
        exact = gaussian(noise_multiplier=2.0 / math.sqrt(slices)).epsilon(1e-6)
        assert exact * (1 - 1e-9) <= found.epsilon(1e-6) <= exact * (1 + 1e-6)


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


REMOVED, CHEAP = pure_dp(epsilon=1.0), pure_dp(epsilon=0.001, adjacency="replace_one")


@pytest.mark.theorem("docs/theory/reorder-slice-compute.md, Theorem C", exact=True, sharp=True)
@pytest.mark.parametrize("slices", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.5, 0.9])
def test_a_slice_that_takes_all_rows_lacks_one_beside_its_neighbour(epsilon, slices):
    """Five rows against six and a slice of a million: a counting computation with two-sided geometric noise.

    The outputs are the number of rows with noise of P(x) ~ exp(-|x|): its divergence at epsilon is 1 - exp(epsilon - 1)
    over 1 + 1/e. A swap changes nothing, so one that costs almost nothing may be declared.
    """
    truth = (1.0 - math.exp(epsilon - 1.0)) / (1.0 + math.exp(-1.0))
    price = SlicePrice(slice_epsilon=0.05, insertion=REMOVED, swap=CHEAP, slices=slices)
    for way in ("smallest", "renyi", "losses", "plain"):
        assert price.guarantee(way).delta(epsilon) >= truth * (1.0 - 1e-9)
    assert price.plain().delta(epsilon) <= (truth * (1.0 + 1e-6) if slices == 1 else 1.0)
    unmended = replace(price, swap=None)
    object.__setattr__(unmended, "swap", CHEAP)
    assert unmended.plain().delta(epsilon) < 0.99 * truth


def test_a_swap_that_dominates_stays_as_it_is():
    for insertion, swap in (
        (pure_dp(epsilon=1), pure_dp(epsilon=1, adjacency="replace_one")),
        (gaussian(noise_multiplier=2), gaussian(noise_multiplier=1, adjacency="replace_one")),
        (bounded_range(epsilon=0.5), bounded_range(epsilon=1, adjacency="replace_one")),
        (laplace(scale=2), laplace(scale=1, adjacency="replace_one")),
        (gaussian(noise_multiplier=2), swap_of(gaussian(noise_multiplier=2))),
    ):
        assert failed_slice(insertion, swap) is swap
        if insertion.gaussian_mu is None:
            several = [compose(one, one, one) for one in (insertion, swap)]
            assert failed_slice(*several) is several[1]
    curved = replace(pure_dp(epsilon=2, adjacency="replace_one"), renyi_curve=LinearRenyi(0.01))
    assert failed_slice(pure_dp(epsilon=1), curved) is not curved
    cheaper = bounded_range(epsilon=0.4, adjacency="replace_one")
    assert failed_slice(bounded_range(epsilon=0.5), cheaper).epsilon(delta=0) == 0.5
