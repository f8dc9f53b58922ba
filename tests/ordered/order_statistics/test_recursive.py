"""Several quantiles: exact audits of the recursive cuts, ties broken at random, stated errors."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpselect.errors import ArgumentError, BoundUnavailableError
from dpselect.ordered import Quantiles, quantiles
from dpselect.ordered.domains import Grid, WholeNumbers
from dpselect.ordered.order_statistics.intervals import SortedColumn, window_of
from dpselect.ordered.order_statistics.recursive import cutting_tree, equal_share, recursive_codes
from dpselect.ordered.order_statistics.scattered import ScatteredColumn, fine_bits
from dpselect.ordered.order_statistics.tree import TreeAnswer, _below, node_counts, tree_levels
from dpselect.ordered.sources.columns import ChunkedColumn, CountedColumn
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source

ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE
THREE = tuple(Fraction(k, 4) for k in (1, 2, 3))


def score(rows, z, target):
    return min(sum(x <= z for x in rows) - target, target - sum(x < z for x in rows))


def recursive_law(rows, plan, size, weight):
    """{codes: probability} by enumeration; weight(rate * score) stands for exp."""
    outcomes = {(): Fraction(1)}
    for cut, rate in zip(plan.cuts, plan.rates, strict=True):
        longer = {}
        for drawn, chance in outcomes.items():
            place = {c.index: z for c, z in zip(plan.cuts, drawn, strict=False)}
            low = place.get(cut.low, -1)
            last = place.get(cut.high, size - 1)
            origin = min(low + 1, last)
            part = [x for x in rows if low < x and (x <= last or cut.high is None)]
            weights = [weight(rate * score(part, z, cut.share * len(part))) for z in range(origin, last + 1)]
            for step, w in enumerate(weights):
                longer[(*drawn, origin + step)] = chance * w / sum(weights)
        outcomes = longer
    return outcomes


@pytest.mark.cases(4)
@pytest.mark.parametrize("qs", [THREE, (Fraction(1, 10), Fraction(1, 2)), (Fraction(0), Fraction(1, 3), Fraction(1))])
@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
def test_the_law_of_recursive_cuts_is_within_epsilon_in_rational_arithmetic(qs, adjacency):
    size, base = 3, 2
    plan = Quantiles(epsilon=1.0, qs=qs, method="recursive", adjacency=adjacency)
    units = math.lcm(*((rate * cut.share * Fraction(1)).denominator * rate.denominator for cut, rate in zip(plan.cuts, plan.rates, strict=True)))  # fmt: skip # noqa: E501

    def weight(exponent):
        whole = exponent * units
        assert whole.denominator == 1
        return Fraction(base) ** int(whole)

    multisets = [r for n in range(4) for r in itertools.combinations_with_replacement(range(size), n)]
    laws = {rows: recursive_law(rows, plan, size, weight) for rows in multisets}
    worst = Fraction(0)
    for rows in multisets:
        for x in range(size):
            if adjacency is ADD:
                others = [tuple(sorted((*rows, x)))]
            else:
                others = [tuple(sorted((*rows[:i], x, *rows[i + 1 :]))) for i in range(len(rows))]
            for other in others:
                if other in laws:
                    worst = max(worst, *(laws[rows][z] / laws[other][z] for z in laws[rows]))
                    worst = max(worst, *(laws[other][z] / laws[rows][z] for z in laws[rows]))
    assert worst <= base**units  # exp(epsilon)
    assert worst > 1


@pytest.mark.full
@pytest.mark.statistical
def test_cuts_follow_the_enumerated_law():
    rows, size, draws = np.array([0, 1, 1, 3, 3, 3, 4]), 5, 2500
    plan = Quantiles(epsilon=3.0, qs=THREE, method="recursive")
    law = recursive_law(rows.tolist(), plan, size, lambda exponent: math.exp(exponent))
    order = [cut.index for cut in plan.cuts]
    random = keyed_source(3)
    seen = {}
    for _ in range(draws):
        column = SortedColumn(rows, WholeNumbers(0, 4))
        codes = recursive_codes(column, plan.cuts, size=size, rates=plan.rates, random=random)
        key = tuple(codes[i] for i in order)
        seen[key] = seen.get(key, 0) + 1
    assert set(seen) <= set(law)
    large = [key for key, p in law.items() if p * draws > 5]
    statistic = sum((seen.get(k, 0) - draws * law[k]) ** 2 / (draws * law[k]) for k in large)
    # the 1 - 1e-6 quantile of chi-squared is below its mean plus 4.76 sqrt(2 mean) + 16; swapping two rates adds > 500
    assert statistic < len(large) + 4.76 * math.sqrt(2 * len(large)) + 16


@pytest.mark.parametrize("count", [1, 2, 3, 7, 99])
def test_cutting_trees_are_balanced_and_know_their_ends(count):
    qs = [Fraction(k + 1, count + 1) for k in range(count)]
    cuts = cutting_tree(qs)
    assert sorted(cut.index for cut in cuts) == list(range(count))
    assert max(cut.level for cut in cuts) == math.ceil(math.log2(count + 1)) - 1
    for place, cut in enumerate(cuts):
        start = qs[cut.low] if cut.low is not None else Fraction(0)
        stop = qs[cut.high] if cut.high is not None else Fraction(1)
        assert start + cut.share * (stop - start) == qs[cut.index]
        assert {cut.low, cut.high} - {None} <= {earlier.index for earlier in cuts[:place]}


@settings(max_examples=50, deadline=None)
@given(
    rows=st.lists(st.integers(0, 15), min_size=1, max_size=40),
    asked=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 6)), min_size=1, max_size=6),
    whole=st.booleans(),
)
def test_fine_places_stay_and_never_leave_their_value(rows, asked, whole):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpselect.ordered.order_statistics.scattered._WHOLE", 100 if whole else 0)
        fine_places_stay(rows, asked)


def fine_places_stay(rows, asked):
    bits = 3
    coarse = CountedColumn(window_of(np.sort(np.array(rows, dtype=np.uint64)), 0, 0))
    fine = ScatteredColumn(coarse, bits, keyed_source(1))
    seen = []
    for first, span in asked:
        window = fine.window(min(first, len(rows)), min(first + span, len(rows)))
        seen.append(window)
    everything = fine.window(1, len(rows))
    assert sorted(np.repeat(everything.codes >> np.uint64(bits), everything.counts).tolist()) == sorted(rows)
    places = np.repeat(everything.codes, everything.counts)
    for window in seen:
        assert window.before == np.sum(places < window.codes[0])
        assert window.after == np.sum(places > window.codes[-1])
        kept = np.repeat(window.codes, window.counts)
        assert np.array_equal(kept, places[window.before : len(places) - window.after])


def test_shares_add_up_to_at_most_epsilon():
    for parts in range(1, 50):
        for epsilon in (1.0, 0.1, math.pi):
            assert Fraction(equal_share(epsilon, parts)) * parts <= Fraction(epsilon)
            assert Quantiles(epsilon=epsilon, qs=[0.5], method="independent").guarantee.pure_epsilon <= epsilon
    many = [k / 100 for k in range(1, 100)]
    for method in ("recursive", "independent"):
        for adjacency in (ADD, REPLACE):
            assert Quantiles(epsilon=0.7, qs=many, method=method, adjacency=adjacency).guarantee.epsilon(0) <= 0.7


@pytest.mark.cases(1)
@pytest.mark.statistical
@pytest.mark.parametrize("method", ["recursive", "independent", "joint", "slice", "tree"])
@pytest.mark.parametrize("shape", ["uniform", "atoms"])
def test_stated_errors_hold(method, shape):
    random = keyed_source(9)
    rows = {"uniform": np.arange(6000) % 997, "atoms": np.repeat([5, 300, 301, 900], [3000, 100, 2400, 500])}[shape]
    qs, failures = [0.1, 0.35, 0.5, 0.8, 0.95], 0
    for _ in range(60):
        delta = 1e-6 if method == "slice" else None
        released = quantiles(rows, qs=qs, lower=0, upper=1000, epsilon=2.0, method=method, delta=delta, random=random)
        assert released.value == sorted(released.value)
        for q, value, error in zip(qs, released.value, released.rank_errors(0.05), strict=True):
            short = q * len(rows) - np.sum(rows <= value)
            over = np.sum(rows < value) - q * len(rows)
            if max(short, over) > error:
                failures += 1
                break
    assert failures <= 11  # at a true rate of 0.05 more than 11 of 60 have probability 1e-5


@pytest.mark.statistical
def test_a_heavy_atom_is_cut_where_it_must_be():
    # six tenths of the rows are 0: the 0.7-quantile is a quarter into the others; without breaking ties the recursive
    # scheme would aim at their half
    rows = np.concatenate([np.zeros(6000), np.linspace(1.0, 2.0, 4000)])
    released = quantiles(
        rows, qs=[0.4, 0.5, 0.7], lower=0.0, upper=4.0, granularity=2.0**-12, epsilon=4.0, random=keyed_source(2)
    )
    assert released.value[:2] == [0.0, 0.0]
    assert abs(released.value[2] - 1.25) < 0.02


@pytest.mark.parametrize("total", [0, 1, 50_000])
def test_chunks_give_the_same_ranks_as_an_array(total):
    rows = np.random.default_rng(1).normal(size=total)
    domain = Grid(-(2**20), 2**20, Fraction(1, 2**16))
    chunked = ChunkedColumn(lambda: iter(np.array_split(rows, 7)), domain)
    spans = [(100, 120), (total // 2, total // 2 + 40), (total - 5, total)]
    chunked.prefetch(spans)
    ordered = SortedColumn(np.sort(rows), domain)
    for first, last in spans:
        mine, theirs = chunked.window(first, last), ordered.window(first, last)
        assert (mine.before, mine.after) == (theirs.before, theirs.after)
        assert np.array_equal(mine.codes, theirs.codes)
        assert np.array_equal(mine.counts, theirs.counts)


def test_chunks_count_a_heavy_atom_where_they_collect_none_of_it():
    rows = np.random.default_rng(2).permutation(np.append(np.zeros(40_000), np.linspace(-1.0, 1.0, 9_000)))
    domain = Grid(-(2**20), 2**20, Fraction(1, 2**16))
    passes = []
    chunked = ChunkedColumn(lambda: passes.append(1) or iter(np.array_split(rows, 7)), domain)
    ordered = SortedColumn(np.sort(rows), domain)
    for number, (first, last) in enumerate(((20_000, 20_040), (4000, 4100), (44_000, 45_000)), start=1):
        mine, theirs = chunked.window(first, last), ordered.window(first, last)
        assert (mine.before, mine.after) == (theirs.before, theirs.after)
        assert (mine.codes.tolist(), mine.counts.tolist()) == (theirs.codes.tolist(), theirs.counts.tolist())
        assert len(passes) == 1 + number  # a survey, and one for each: a wrong count would be read again, wider


def test_a_single_quantile_and_wrong_arguments():
    assert Quantiles(epsilon=1.0, qs=[0.5, 0.5]).chosen == "independent"
    with pytest.raises(ArgumentError, match="qs"):
        quantiles([1.0], qs=[], lower=0, upper=1, epsilon=1.0)
    with pytest.raises(BoundUnavailableError, match="recursive"):
        quantiles([1.0], qs=[0.5], lower=0, upper=1, epsilon=1.0, method="best")
    with pytest.raises(ArgumentError, match=r"2\*\*64"):
        quantiles(np.array([1, 2]), qs=[0.5, 0.6], lower=0, upper=2**70, epsilon=1.0)
    assert fine_bits(1 << 64) == 0
    assert quantiles([], qs=[0.2, 0.8], lower=0.0, upper=1.0, epsilon=1.0).value[0] <= 1.0


@pytest.mark.parametrize("size", [1, 5, 16, 17, 121, 300])
def test_one_row_moves_tree_counts_by_one_a_level(size):
    counts = np.random.default_rng(1).integers(0, 4, size)
    nodes = node_counts(counts)
    assert len(nodes) == tree_levels(size)
    for code in (0, size // 2, size - 1):
        more = counts.copy()
        more[code] += 1
        moved = sum(np.abs(a - b).sum() for a, b in zip(nodes, node_counts(more), strict=True))
        assert moved == tree_levels(size)


@pytest.mark.parametrize(("adjacency", "factor"), [(ADD, 1), (REPLACE, 2)])
def test_tree_noise_is_calibrated_and_without_noise_it_is_exact(monkeypatch, adjacency, factor):
    scales = []

    def none(scale, size, random):
        scales.append(scale)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr("dpselect.ordered.order_statistics.tree.discrete_laplace_array", none)
    rows = np.sort(np.random.default_rng(2).integers(0, 121, 997))
    qs = [Fraction(k, 40) for k in range(1, 40)]
    released = quantiles(rows, qs=qs, lower=0, upper=120, epsilon=0.75, adjacency=adjacency)
    assert released.plan.chosen == "tree"
    assert scales == [2 * factor / Fraction(3, 4)] * 2
    assert released.value == [int(rows[math.ceil(q * 997) - 1]) for q in qs]
    assert released.guarantee.epsilon(delta=0) == 0.75
    assert released.noisy_rows == 997
    with pytest.raises(BoundUnavailableError, match="tree"):
        released.plan.rank_errors(121)
    with pytest.raises(ArgumentError, match="tree"):
        quantiles(rows, qs=qs, lower=0, upper=12_000, epsilon=0.75, method="tree")


@pytest.mark.parametrize("size", [1, 5, 16, 17, 255, 256, 300, 4096])
def test_stated_errors_of_trees_have_the_noise_of_every_node_of_a_running_count(size, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "dpselect.ordered.order_statistics.tree.sum_of_noise", lambda *given: asked.append(given) or 3.0
    )
    TreeAnswer([0], 9, [0.5], Fraction(7, 2)).rank_errors([Fraction(1, 2)], size, 0.05)
    ((count, scale, failure),) = asked
    ones = [np.ones(len(level), dtype=np.int64) for level in node_counts(np.zeros(size, dtype=np.int64))]
    nodes = max(_below(ones, code) for code in range(size + 1))
    assert count >= nodes
    assert (scale, failure) == (3.5, 0.05 / size)


def test_trees_of_any_content_give_increasing_answers():
    for rows in ([], [3] * 5, list(range(100))):
        released = quantiles(rows, qs=[0, 0.3, 0.6, 1], lower=0, upper=99, granularity=1, epsilon=0.1, method="tree")
        assert released.value == sorted(released.value)


@pytest.mark.parametrize("method", ["joint", "recursive", "independent", "tree"])
def test_values_come_in_the_order_that_was_asked_for_with_repeats(method):
    options = {"lower": 0, "upper": 1000, "granularity": 1, "epsilon": 50.0, "random": keyed_source(4)}
    found = quantiles(list(range(1000)), qs=[0.9, 0.1, 0.1, 0.5], method=method, **options)
    assert found.qs == (0.9, 0.1, 0.1, 0.5)
    assert found.value == pytest.approx([900, 100, 100, 500], abs=25)
    assert found.value[1] == found.value[2]
    assert len(found.rank_errors()) == 4


def test_repeats_are_paid_for_once():
    once = Quantiles(qs=[0.1, 0.9], epsilon=1.0, method="recursive")
    assert Quantiles(qs=[0.9, 0.1, 0.1], epsilon=1.0, method="recursive").rates == once.rates


def test_evenly_spaced_quantiles_are_taken():
    found = Quantiles(qs=np.linspace(0, 1, 301)[1:-1], epsilon=1.0, method="recursive")
    assert len(found.qs) == 299
    assert found.qs[0] == Fraction(1, 300)
    tiny = Quantiles(qs=[1.2345678901234567e-19], epsilon=1.0).qs[0]
    assert tiny.denominator < 2**60


FOUR = [0.1, 0.25, 0.5, 0.75]


@pytest.mark.parametrize("qs", [FOUR, [0.25, 0.5, 0.75], [k / 10 for k in range(1, 10)]])
@pytest.mark.parametrize("size", [1, 101, 1 << 49, 1 << 70])
def test_the_least_bound_is_the_least_that_a_method_proves(qs, size):
    """Four quantiles by the joint method are proved to be within 406 ranks, and independent ones within 277."""
    plan = Quantiles(epsilon=1.0, qs=qs, domain_size=size)
    method, error = plan.proved_best(size)
    assert max(Quantiles(epsilon=1.0, qs=qs, method=method).rank_errors(size)) == error
    for other in ("joint", "recursive", "independent") if size <= 1 << 64 else ("independent",):
        assert error <= max(Quantiles(epsilon=1.0, qs=qs, method=other).rank_errors(size))
    assert Quantiles(epsilon=1.0, qs=qs, domain_size=size, method="least_bound").chosen == method


def test_the_least_bound_is_found_for_the_columns_own_domain_and_weights():
    found = quantiles(range(100), qs=FOUR, lower=0, upper=100, granularity=1, epsilon=1.0, method="least_bound")
    assert found.plan.chosen == found.plan.proved_best(101)[0]
    assert max(found.rank_errors()) < 66
    weighted = quantiles(
        [1, 2], qs=FOUR, weights=[1.0, 0.5], lower=0, upper=100, granularity=1, epsilon=1.0, method="least_bound"
    )
    assert weighted.plan.chosen in ("independent", "recursive")
    assert Quantiles(epsilon=1.0, qs=FOUR, method="least_bound").chosen == "independent"
