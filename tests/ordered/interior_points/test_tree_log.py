"""TreeLog: the search tree, the embedding, its price, and how often it succeeds."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.interior_points.interior_point import InteriorPoint
from dpselect.ordered.interior_points.rows import plan_method
from dpselect.ordered.interior_points.search_tree import (
    bit_lengths,
    heavy_path,
    interior_scores,
    node_weights,
    path_labels,
    shared_prefixes,
)
from dpselect.ordered.interior_points.stable_choice import StableChoice, SupportChoice, laplace_tail_steps
from dpselect.ordered.interior_points.tree_log import draw_tree_log, level_bits, node_candidates
from dpselect.ordered.interior_points.tree_log_price import (
    difference_tail,
    difference_tail_steps,
    iterated_logarithm,
    printed_parameters,
    printed_rows,
    tree_log_price,
)
from dpselect.ordered.interior_points.tree_log_tuning import (
    affordable_printed,
    cumulative_rows,
    tree_log_rows,
    tuned_cumulative,
    tuned_tree_log,
)
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source
from tests.ordered.interior_points.small_trees import (
    apart,
    array,
    cumulative_distance,
    embedded_parts,
    embedding,
    multisets,
    shapes,
)

# ---------------------------------------------------------------- the tree


def literal_embedding(points, bits):
    """Algorithm 4, node by node: (Gamma, leaf, [(label, x)] in reversed lexicographic order)."""
    low, high, label, gamma, labels = 0, 1 << bits, 1, 0, []
    inside = list(points)
    while high - low > 1:
        middle = (low + high) // 2
        left, right = [x for x in inside if x < middle], [x for x in inside if x >= middle]
        gamma = max(gamma, min(len(left), len(right)))
        if len(left) >= len(right):
            inside, other, high = left, right, middle
        else:
            inside, other, low = right, left, middle
        labels += [(label, x) for x in other]
        label += 1
    return gamma, low, sorted([*labels, *((bits, x) for x in inside)], reverse=True)


def test_the_embedding_is_the_literal_one():
    for bits, count in ((1, 4), (2, 5), (3, 5)):
        for size in range(count + 1):
            for points in multisets(1 << bits, size):
                assert embedding(points, bits) == literal_embedding(points, bits)


def test_two_embeddings():
    assert embedding([3, 3, 3, 5, 6, 6, 7, 7], 3) == (
        3, 6, [(3, 7), (3, 7), (3, 6), (3, 6), (2, 5), (1, 3), (1, 3), (1, 3)],
    )  # fmt: skip
    assert embedding([0, 0, 0, 0, 1, 2, 7], 3) == (1, 0, [(3, 1), *[(3, 0)] * 4, (2, 2), (1, 7)])


def test_big_integers_agree_with_arrays():
    rng = random.Random(1)
    for bits in (5, 33, 64):
        points = sorted(rng.getrandbits(bits) >> rng.randrange(bits) for _ in range(200))
        codes = array(points)
        assert heavy_path(points, bits) == heavy_path(codes, bits)
        leaf = heavy_path(points, bits)[0]
        assert path_labels(points, leaf, bits).tolist() == path_labels(codes, leaf, bits).tolist()
        assert shared_prefixes(points, bits).tolist() == shared_prefixes(codes, bits).tolist()
        for depth in (0, 1, bits // 2, bits):
            a, b = node_weights(points, bits, depth), node_weights(codes, bits, depth)
            assert (a[0], a[1].tolist()) == (b[0], b[1].tolist())
            assert dict(zip(*a, strict=True)) == Counter(x >> (bits - depth) for x in points)
        tried = [points[0], points[-1], points[7] + 1, (1 << bits) - 1]
        assert interior_scores(points, tried) == interior_scores(codes, tried)
        assert interior_scores(points, tried) == [
            min(sum(x <= z for x in points), sum(x >= z for x in points)) for z in tried
        ]
    edges = [0, 1, 2**32 - 1, 2**32, 2**53 + 1, 2**64 - 1]
    assert bit_lengths(np.array(edges, dtype=np.uint64)).tolist() == [x.bit_length() for x in edges]


@pytest.mark.theorem("Cohen et al. 2022, Lemma 3.5", exact=True, sharp=True)
def test_gamma_rises_by_at_most_one():
    for bits, most in ((2, 5), (3, 5)):
        for size in range(most):
            for points in multisets(1 << bits, size):
                before = heavy_path(array(points), bits)[1]
                for extra in range(1 << bits):
                    assert heavy_path(array([*points, extra]), bits)[1] - before in (0, 1)


@pytest.mark.full
@pytest.mark.theorem("Cohen et al. 2022, Lemma 3.4", exact=True)
def test_the_embedding_preserves_adjacency():
    """Lemma 3.4 with its exact requirement, a slice of twice the larger Gamma; over all small multisets."""
    for bits, most in ((2, 6), (3, 4)):
        for size in range(most):
            for points in multisets(1 << bits, size):
                for extra in range(1 << bits):
                    larger = [*points, extra]
                    gamma = max(heavy_path(array(points), bits)[1], heavy_path(array(larger), bits)[1])
                    for taken in range(2 * gamma, 2 * gamma + 3):
                        (s, rest), (t, more) = embedded_parts(points, bits, taken), embedded_parts(larger, bits, taken)
                        assert apart(s, t) in ((0, 0), (0, 1), (1, 1))
                        assert apart(rest, more) in ((0, 0), (0, 1))


@pytest.mark.theorem("Cohen et al. 2022, Lemma 3.4", sharp=True)
def test_a_slice_one_shorter_breaks_adjacency():
    s, _ = embedded_parts([0, 0, 2, 2], 2, 3)
    t, _ = embedded_parts([0, 0, 2, 2, 2], 2, 3)
    assert (sorted(s), sorted(t)) == ([0, 0, 2], [2, 2, 2])


def multiset(**counts):
    return [int(name[1:]) for name, count in counts.items() for _ in range(count)]


@pytest.mark.theorem("Cohen et al. 2022, Lemma 4.3", sharp=True)
def test_cumulative_distances():
    first = multiset(x3=4, x5=3, x6=2, x7=8, x14=2, x15=1)
    second = multiset(x3=4, x5=3, x6=3, x7=6, x8=2, x14=1, x15=1)
    assert len(first) == len(second) == 20
    assert cumulative_distance(first, second, 16) == 1
    assert heavy_path(array(first), 4)[1] == heavy_path(array(second), 4)[1] == 4
    (s, rest), (t, more) = embedded_parts(first, 4, 14), embedded_parts(second, 4, 14)
    assert cumulative_distance(s, t, 16) == 2  # not 1, as Theorem B.1's proof has it
    assert (rest, more) == ([2, 2, 2, 1, 1, 1], [2, 2, 1, 1, 1, 1])
    assert cumulative_distance(rest, more, 5) == 1
    jump = [heavy_path(array(d), 3)[1] for d in ([0, 0, 0, 0, 1, 2], [0, 0, 0, 1, 1, 1])]
    assert jump == [1, 3]
    assert cumulative_distance([0, 0, 0, 0, 1, 2], [0, 0, 0, 1, 1, 1], 8) == 1


@pytest.mark.full
@pytest.mark.theorem("Cohen et al. 2022, Lemma 4.3", exact=True)
def test_the_embedding_at_cumulative_distance():
    """Lemma 4.3 with the corrected distance of the slice, and the movements that the noise is scaled to."""
    data = [list(points) for points in multisets(8, 6)]
    rng = random.Random(2)
    pairs = 0
    while pairs < 1500:
        first = rng.choice(data)
        second = sorted(min(7, max(0, x + rng.choice((-1, 0, 0, 1)))) for x in first)
        d = cumulative_distance(first, second, 8)
        if not 0 < d <= 2:
            continue
        pairs += 1
        a, b = heavy_path(array(first), 3), heavy_path(array(second), 3)
        assert abs(a[1] - b[1]) <= 2 * d
        for z in range(8):
            assert abs(interior_scores(array(first), [z])[0] - interior_scores(array(second), [z])[0]) <= d
        for taken in range(2 * (max(a[1], b[1]) + 2 * d), 2 * (max(a[1], b[1]) + 2 * d) + 2):
            (s, rest), (t, more) = embedded_parts(first, 3, taken), embedded_parts(second, 3, taken)
            assert cumulative_distance(s, t, 8) <= 2 * d
            assert cumulative_distance(rest, more, 5) <= 2 * d
            for depth in range(4):
                u, v = (Counter(x >> (3 - depth) for x in part) for part in (s, t))
                assert max((abs(u[k] - v[k]) for k in {*u, *v}), default=0) <= 4 * d


@pytest.mark.parametrize(("distance", "level"), [(1, 1), (2, 1), (2, 3)])
def test_the_choice_is_scaled_to_what_a_node_may_move(distance, level):
    """The slice is at distance 2 d there, d doubled from level to level; a weight is a difference of two counts."""
    choice = SupportChoice(epsilon_test=1.0, epsilon_draw=1.0, delta_test=0.1, ratio=0.1, size=9, distance=distance)
    assert choice.movement(level) == 2 * (2 * distance * 2 ** (level - 1))


def test_singletons_and_replacements_are_cumulatively_adjacent():
    assert all(cumulative_distance([a], [b], 8) <= 1 for a in range(8) for b in range(8))
    assert cumulative_distance([2, 4, 6, 8], [1, 3, 5, 7], 9) == 1


def test_depth_of_the_recursion():
    p = printed_parameters(0.5, 1e-3)
    assert [p.levels(bits) for bits in (3, 4, 8, 9, 256, 257, 1024)] == [0, 1, 1, 2, 2, 3, 3]
    assert [level_bits(b) for b in (4, 5, 64, 65)] == [2, 3, 6, 7]


# ---------------------------------------------------------------- tails and price


@pytest.mark.parametrize("ratio", [Fraction(1, 2), Fraction(4, 5)])
def test_the_difference_of_two_noises(ratio):
    at_zero, reach = (1 - ratio) / (1 + ratio), 400
    masses = {k: float(at_zero * ratio ** abs(k)) for k in range(-reach, reach + 1)}
    for z in (0, 1, 2, 5, 11):
        tail = sum(masses[a] * sum(masses[b] for b in range(-reach, a - z + 1)) for a in range(z - reach, reach + 1))
        assert difference_tail(-math.log(ratio), z) == pytest.approx(tail, rel=1e-9)
        assert difference_tail(-math.log(ratio), z) >= tail * (1 - 1e-12)


def test_the_difference_at_small_epsilon_is_the_continuous_one():
    facts = {1: 0.2759095809, 5: 0.01179140725, 10: 1.361997893e-4, 15: 1.300084862e-6, 20: 1.133634492e-8}
    for u, tail in facts.items():
        assert difference_tail(1e-5, u * 1e5) == pytest.approx(tail, rel=2e-5)
        assert (2 + u) / 4 * math.exp(-u) == pytest.approx(tail, rel=1e-9)
    for mass, u in ((1e-3, 7.80428), (1e-6, 15.27869), (1e-9, 22.53716), (1e-12, 29.70108)):
        steps = difference_tail_steps(1e-4, mass)
        assert steps * 1e-4 == pytest.approx(u, abs=3e-4)
        assert difference_tail(1e-4, steps) <= mass < difference_tail(1e-4, steps - 1)


def test_tail_of_one_noise():
    for ratio, mass in itertools.product((0.5, 0.9), (0.2, 1e-3, 1e-9)):
        k = laplace_tail_steps(-math.log(ratio), mass)
        assert ratio**k / (1 + ratio) <= mass * (1 + 1e-12)
        assert k == 0 or ratio ** (k - 1) / (1 + ratio) > mass
    # the continuous thresholds 1 + log(1/(2 delta))/epsilon
    for epsilon, delta, continuous in ((1.0, 1e-6, 14.1223634), (0.1, 1e-6, 132.223634), (0.5, 1e-9, 41.0602373)):
        assert continuous - 1 < StableChoice(epsilon, delta).threshold <= continuous + 2


def test_sparse_vector_prices():
    """Laplace(1/e) twice: the last query fires at log-ratio 3e, and at 2e where queries move in one direction."""
    count, ratio = 20000, 0.5

    def quiet(k):
        """P(noise < k)."""
        return 1 - ratio**k / (1 + ratio) if k > 0 else ratio ** (1 - k) / (1 + ratio)

    def fires_last(others, last):
        return sum(
            (1 - ratio) / (1 + ratio) * ratio ** abs(n) * quiet(n - others) ** count * (1 - quiet(n - last))
            for n in range(-60, 61)
        )

    assert math.log(fires_last(0, 1) / fires_last(1, 0)) == pytest.approx(3 * math.log(2), abs=0.01)
    assert math.log(fires_last(0, 0) / fires_last(1, 0)) == pytest.approx(2 * math.log(2), abs=0.01)


def test_printed_constants():
    p = printed_parameters(0.99, 1e-3)
    assert p.border == 698
    price = tree_log_price(p, bits=64)
    # two levels: test 2, and twice (border 1, choice 2), base 1
    assert price.epsilon == pytest.approx(9 * 0.99)
    assert price.delta == pytest.approx(4e-3, rel=1e-9)
    bad = difference_tail(1e-6, 25 * math.log(1e6) / 1e-6)
    assert bad == pytest.approx(8.7e-149, rel=0.01)


def test_the_constants_of_the_proofs_on_a_real_domain():
    """Theorems 3.7 and 3.8 with 1/6, 3 epsilon and n = 10 log* t: 2.26e7 points for 2**64 at (1, 1e-6)."""
    queries = math.ceil(math.log(2e6) / math.log(6 / 5))
    epsilon = 1 / (3 * queries + 7)
    delta = 0.5e-6 / (7 * 5 + 8)
    t = 100 / epsilon * math.log(1 / delta)
    assert (queries, round(epsilon, 6)) == (80, 0.004049)
    assert t == pytest.approx(4.513e5, rel=1e-3)
    assert 10 * 5 * t == pytest.approx(2.26e7, rel=2e-3)
    # the same algorithm at its real depth and price, constants as printed
    p = printed_parameters(1 / 9 - 1e-9, 2.4e-7)
    price = tree_log_price(p, bits=64)
    assert price.epsilon <= 1.0
    assert price.delta <= 1e-6
    assert tree_log_rows(p, 64, 0.01) == pytest.approx(1.1e5, rel=0.01)


def test_tuned_parameters_keep_their_promises():
    for bits, epsilon, delta, levels in (
        (16, 1.0, 1e-6, 1),
        (64, 1.0, 1e-6, 1),
        (64, 0.1, 1e-9, 1),
        (64, 1.0, 1e-6, 2),
    ):
        p = tuned_tree_log(bits, epsilon, delta, 0.01, levels)
        price = tree_log_price(p, bits=bits)
        assert p.levels(bits) == levels
        assert price.epsilon <= epsilon * (1 + 1e-9)
        assert price.delta <= delta
    for bits, distance, levels in ((16, 2, 1), (64, 1, 1), (64, 2, 2)):
        p = tuned_cumulative(bits, 1.0, 1e-6, 0.01, distance, levels)
        price = tree_log_price(p, bits=bits, distance=distance)
        assert price.epsilon <= 1.0 + 1e-9
        assert price.delta <= 1e-6


def test_rows_beside_the_continuous_optimum():
    """Optima with continuous noise and slightly coarser masses: 735, 724, 713; at distance two 4560 and 4710."""
    for bits, continuous in ((16, 713), (32, 724), (64, 735), (256, 757), (1024, 777)):
        rows = tree_log_rows(tuned_tree_log(bits, 1.0, 1e-6, 0.01), bits, 0.01)
        assert 0.95 * continuous < rows < 1.02 * continuous
    for bits, continuous in ((16, 4560), (64, 4710)):
        rows = cumulative_rows(tuned_cumulative(bits, 1.0, 1e-6, 0.01, 2), bits, 0.01)
        assert 0.95 * continuous < rows < 1.02 * continuous


def test_prices_refuse_what_they_do_not_cover():
    p = tuned_tree_log(16, 1.0, 1e-6, 0.01)
    with pytest.raises(ArgumentError):
        tree_log_price(p, bits=16, distance=1)
    with pytest.raises(ArgumentError):
        tree_log_price(replace(p, gate=p.promise + 1), bits=16)
    c = tuned_cumulative(16, 1.0, 1e-6, 0.01, 1)
    with pytest.raises(ArgumentError):
        tree_log_price(c, bits=16)
    with pytest.raises(ArgumentError):
        tree_log_price(c, bits=16, distance=2)
    with pytest.raises(ArgumentError):
        tree_log_price(replace(c, slice_epsilon=0.1), bits=16, distance=1)


def test_the_printed_algorithm_is_priced_at_its_depth():
    for bits, levels in ((3, 0), (8, 1), (64, 2), (256, 2), (1024, 3)):
        p = affordable_printed(bits, 1.0, 1e-6)
        price = tree_log_price(p, bits=bits)
        assert p.levels(bits) == levels
        assert 0.999 < price.epsilon <= 1.0
        assert price.delta <= 1e-6
        assert (p.gate, p.promise, p.deepest) == (p.border // 10, math.ceil(p.border / 2), 2 * p.border)
        assert p.border == math.ceil(100 / p.epsilon_border * math.log(1 / p.choice.delta))
    for adjacency in Adjacency:
        printed = {"domain_size": 2**64, "epsilon": 1, "delta": 1e-6, "method": "tree_log_printed"}
        g = InteriorPoint(**printed, adjacency=adjacency).guarantee
        assert 0.99 < g.epsilon(1e-6) <= 1.0
    assert InteriorPoint(method="tree_log_printed", domain_size=2**64, epsilon=1, delta=1e-6).rows < 1.8e5
    assert plan_method("tree_log_printed", 2**64, 1.0, 0.0, 0.01, Adjacency.ADD_OR_REMOVE_ONE) is None
    # what ten times log* times t would be, at this t: ten times log* levels of which two are there
    p = affordable_printed(64, 1.0, 1e-6)
    assert tree_log_rows(p, 64, 0.01) < 10 * iterated_logarithm(2**64) * p.border


@pytest.mark.parametrize(
    ("bits", "epsilon", "delta", "rows"),
    [
        (16, 1.0, 1e-6, 1.79e7),
        (32, 1.0, 1e-6, 2.26e7),
        (64, 1.0, 1e-6, 2.26e7),
        (256, 1.0, 1e-6, 2.26e7),
        (1024, 1.0, 1e-6, 2.26e7),
        (65536, 1.0, 1e-6, 2.26e7),
        (64, 1.0, 1e-9, 4.54e7),
        (64, 0.1, 1e-6, 2.26e8),
    ],
)
def test_rows_of_the_theorem_with_its_constants(bits, epsilon, delta, rows):
    assert printed_rows(domain_size=2**bits, epsilon=epsilon, delta=delta) == pytest.approx(rows, rel=3e-3)


def test_iterated_logarithms():
    found = [iterated_logarithm(1 << bits) for bits in (0, 1, 2, 3, 4, 16, 20, 32, 64, 65536)]
    assert found == [0, 1, 2, 3, 3, 4, 5, 5, 5, 5]
    assert iterated_logarithm(3) == 2


# ---------------------------------------------------------------- the recursion at work


class Watched(SecretDraws):
    def __init__(self, key):
        super().__init__(keyed_source(key))
        self.places = []

    def visit(self, place):
        self.places.append(place)


def test_the_printed_algorithm_runs_two_levels_and_every_branch():
    """Algorithm 5 with its constants: t = 698, at about 8 t points all shapes succeed; both levels, both branches."""
    p, rng, places = printed_parameters(0.99, 1e-3), random.Random(3), Counter()
    assert p.levels(64) == 2
    for name, points in shapes(5984, 64, rng).items():
        draws = Watched(name)
        found = draw_tree_log(array(points), 64, p, draws)
        assert found is not None, name
        assert min(points) <= found <= max(points), name
        places.update(draws.places)
    assert places.keys() >= {"level 1", "level 2", "base case", "one heavy round", "heavy node"}


def test_tuned_two_levels_with_too_few_points():
    """The same recursion far below its size: it ends in every way, the failed choice among them, and never raises."""
    p, rng, places, results = tuned_tree_log(64, 4.0, 1e-3, 0.1, levels=2), random.Random(4), Counter(), []
    for count in (0, 1, 2, 40, 150, 300, 500):
        for name, points in shapes(count, 64, rng).items() if count > 2 else [("few", [7] * count)]:
            draws = Watched(f"{name} {count}")
            results.append(draw_tree_log(array(points), 64, p, draws))
            places.update(draws.places)
    assert places.keys() >= {"level 1", "level 2", "base case", "no stable choice", "one heavy round"}
    assert None in results
    assert all(r is None or 0 <= r < 2**64 for r in results)


@pytest.mark.parametrize(("bits", "levels"), [(64, 1), (64, 2), (300, 1)])
def test_success_at_the_calculated_size(bits, levels):
    """Every shape at the calculated size; 5 failures of 48 have probability 1e-4 at a rate of 1 %."""
    p, rng, failed = tuned_tree_log(bits, 2.0, 1e-6, 0.01, levels), random.Random(bits), 0
    rows = tree_log_rows(p, bits, 0.01)
    for trial in range(6):
        for name, points in shapes(rows + rows % 2, bits, rng).items():
            codes = array(points) if bits <= 64 else sorted(points)
            found = draw_tree_log(codes, bits, p, SecretDraws(keyed_source(f"{trial}{name}")))
            failed += found is None or not min(points) <= found <= max(points)
    assert failed < 5


def test_success_of_the_cumulative_algorithm():
    p, rng, failed = tuned_cumulative(64, 2.0, 1e-6, 0.01, 1), random.Random(6), 0
    rows = cumulative_rows(p, 64, 0.01)
    for trial in range(4):
        for name, points in shapes(rows + rows % 2, 64, rng).items():
            found = draw_tree_log(array(points), 64, p, SecretDraws(keyed_source(f"c{trial}{name}")))
            failed += found is None or not min(points) <= found <= max(points)
    assert failed < 4


def test_candidates_of_a_node():
    assert node_candidates(1, 3) == [8, 15, 11]
    assert node_candidates(5, 0) == [5, 5, 5]
    assert node_candidates(0, 64) == [0, 2**64 - 1, 2**63 - 1]
