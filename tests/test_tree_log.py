"""TreeLog: the search tree, the embedding, its price, and exact audits of the shipped recursion on tiny domains."""

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
from dpselect.ordered.interior_points.search_tree import (
    bit_lengths,
    heavy_path,
    interior_scores,
    node_weights,
    path_labels,
    shared_prefixes,
)
from dpselect.ordered.interior_points.stable_choice import StableChoice, SupportChoice, laplace_tail_steps
from dpselect.ordered.interior_points.tree_log import (
    TreeLogParameters,
    draw_tree_log,
    level_bits,
    node_candidates,
    one_heavy_round,
)
from dpselect.ordered.interior_points.tree_log_price import (
    difference_tail,
    difference_tail_steps,
    printed_parameters,
    tree_log_price,
)
from dpselect.ordered.interior_points.tree_log_tuning import (
    cumulative_rows,
    tree_log_rows,
    tuned_cumulative,
    tuned_tree_log,
)
from dpselect.ordered.slices.price import swap_of
from dpselect.privacy import approximate_dp
from dpselect.randomness import keyed_source
from tests.enumerated_draws import claims, exact_law, worst_excess

UNIT, RATIO = math.log(2.0), Fraction(1, 2)
WIDE = tuple(Fraction(2) ** k for k in range(14))
"""Factors exp(epsilon) up to beyond the whole price of the small runs below."""


def array(values):
    return np.array(sorted(values), dtype=np.uint64)


def multisets(size, count):
    return itertools.combinations_with_replacement(range(size), count)


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


def embedding(points, bits):
    codes = array(points)
    leaf, gamma, _ = heavy_path(codes, bits)
    labels = path_labels(codes, leaf, bits)
    order = np.argsort(labels, kind="stable")[::-1]
    return gamma, leaf, [(int(labels[i]), int(codes[i])) for i in order]


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


def apart(first, second):
    """Elements only in the first, and only in the second, of two multisets."""
    a, b = Counter(first), Counter(second)
    return (a - b).total(), (b - a).total()


def embedded_parts(points, bits, taken):
    _, _, found = embedding(points, bits)
    return [x for _, x in found[:taken]], [label for label, _ in found[taken:]]


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


def cumulative_distance(first, second, size):
    return max(abs(sum(x <= y for x in first) - sum(x <= y for x in second)) for y in range(size))


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


# ---------------------------------------------------------------- exact audits

SMALL = TreeLogParameters(
    epsilon_threshold=3 * UNIT,
    epsilon_heavy=3 * UNIT,
    epsilon_border=2 * UNIT,
    rate_base=UNIT,
    choice=StableChoice(UNIT, 0.004),
    border=2,
    deepest=22,
    threshold=7,
    heavy_threshold=1,
    promise=4,
    base_bits=2,
)
"""One level over 16 codes: the bad events have small probabilities, exp(-epsilon) = 1/8 in both tests."""


def law_of(points, parameters, bits=4, **caps):
    codes = array(points)
    return exact_law(lambda draws: draw_tree_log(codes, bits, parameters, draws), RATIO, **{"laplace_cap": 5, **caps})


def random_data(rng, count):
    """Points that make deep paths, heavy siblings or ties."""
    leaf = rng.randrange(16)
    kind = rng.randrange(4)
    if kind == 0:
        return [rng.randrange(16) for _ in range(count)]
    if kind == 1:
        return [leaf ^ (1 << rng.randrange(4)) for _ in range(count)]
    if kind == 2:
        return [leaf if rng.random() < 0.7 else rng.randrange(16) for _ in range(count)]
    return [rng.choice((leaf, 15 - leaf)) for _ in range(count)]


def test_the_audited_price_says_something():
    price = tree_log_price(SMALL, bits=4)
    assert price.epsilon < math.log(WIDE[-1])
    assert price.delta < 0.05


@pytest.mark.cases(1)
@pytest.mark.theorem("Cohen et al. 2022, Theorem 3.8", exact=True, loose="the worst case of every step is added up")
@pytest.mark.parametrize(("kind", "pairs"), [("fixed sizes", 1), ("fixed sizes", 8), ("noisy sizes", 1)])
def test_exact_laws_of_tree_log(kind, pairs):
    """Random neighbours around the sizes where everything happens; base, heavy round and failed choice are reached."""
    parameters = SMALL if kind == "fixed sizes" else replace(SMALL, slice_epsilon=UNIT, border=1)
    # one extra row or none: the price holds for any sizes that are drawn without the data
    caps = {"laplace_cap": 5 if pairs > 1 else 3} if kind == "fixed sizes" else {"geometric_cap": 1, "laplace_cap": 2}
    price = tree_log_price(parameters, bits=4)
    claimed = claims(approximate_dp(epsilon=price.epsilon, delta=price.delta), WIDE)
    rng, seen = random.Random(5), set()
    for _ in range(pairs):
        points = random_data(rng, rng.choice((3, 12, 24, 30)))
        extra = rng.randrange(16)
        pair, places = [], set()
        for data in ([*points, extra], points):
            law, lost, visited = law_of(data, parameters, **caps)
            assert sum(law.values()) + lost == 1
            pair.append((law, lost))
            places |= visited
        seen |= places
        assert worst_excess(tuple(pair), claimed, WIDE) <= 0.0
    if pairs > 1:
        assert seen >= {"level 1", "base case", "one heavy round", "heavy node", "heavy leaf", "no stable choice"}


CUMULATIVE = TreeLogParameters(
    epsilon_threshold=3 * UNIT,
    epsilon_heavy=3 * UNIT,
    epsilon_border=2 * UNIT,
    rate_base=UNIT,
    choice=SupportChoice(4 * UNIT, 8 * UNIT, 0.01, 0.001, 32),
    border=2,
    deepest=32,
    threshold=9,
    heavy_threshold=1,
    promise=5,
    base_bits=2,
)


@pytest.mark.cases(1)
@pytest.mark.theorem("Cohen et al. 2022, Theorem B.1", exact=True, loose="the worst case of every step is added up")
@pytest.mark.parametrize("count", [6, 44, pytest.param(50, marks=pytest.mark.slow)])
def test_exact_laws_of_the_cumulative_algorithm(count):
    """Algorithm 8 where all points may move: random pairs at cumulative distance one, at the corrected price."""
    price = tree_log_price(CUMULATIVE, bits=4, distance=1)
    factors = tuple(Fraction(2) ** k for k in range(0, 40, 3))
    assert price.epsilon < math.log(factors[-1])
    assert price.delta < 0.07
    rng = random.Random(count)
    first, second = [], []
    while cumulative_distance(first, second, 16) != 1:
        first = sorted(random_data(rng, count))
        second = sorted(min(15, max(0, x + rng.choice((-1, 0, 0, 0, 1)))) for x in first)
    pair = [law_of(points, CUMULATIVE, laplace_cap=14 if count >= 44 else 4) for points in (first, second)]
    claimed = claims(approximate_dp(epsilon=price.epsilon, delta=price.delta), factors)
    assert worst_excess(tuple(part[:2] for part in pair), claimed, factors) <= 0.0
    if count >= 44:
        assert pair[0][2] >= {"level 1", "base case", "one heavy round", "heavy node"}


AMPLE = replace(SMALL, choice=StableChoice(UNIT, 1e-6), promise=7, threshold=13, deepest=40)
"""Wider margins: the price of two steps still says something."""


@pytest.mark.full
def test_exact_laws_when_a_point_is_replaced():
    """Two steps of the price of one added point, (2 epsilon, (1 + exp(epsilon)) delta)."""
    swapped = swap_of(approximate_dp(epsilon=(p := tree_log_price(AMPLE, bits=4)).epsilon, delta=p.delta))
    factors = tuple(Fraction(2) ** k for k in range(0, 28, 3))
    assert swapped.failure < 0.3
    assert swapped.pure_epsilon < math.log(factors[-1])
    rng, seen = random.Random(10), set()
    for count in (50, 56):
        points = sorted(random_data(rng, count))
        pair = [law_of(data, AMPLE, laplace_cap=12) for data in (points, [rng.randrange(16), *points[1:]])]
        seen |= pair[0][2]
        assert worst_excess(tuple(part[:2] for part in pair), claims(swapped, factors), factors) <= 0.0
    assert "level 1" in seen


@pytest.mark.cases(1)
@pytest.mark.parametrize("bits", [2, 3])
def test_exact_laws_of_the_heavy_round(bits):
    """All small multisets that keep the promise, with every point that can be added: 2 epsilon and the tail."""
    p = replace(SMALL, heavy_threshold=1, promise=2)
    laws = {}
    for size in (4, 5, 6) if bits == 2 else (4, 5):
        for points in multisets(1 << bits, size):
            if points[0] == 0 and heavy_path(array(points), bits)[1] >= p.promise:
                laws[points] = exact_law(
                    lambda draws, points=points: one_heavy_round(array(points), bits, p, draws), RATIO, laplace_cap=4
                )[:2]
    claimed = claims(approximate_dp(epsilon=6 * UNIT, delta=difference_tail(3 * UNIT, p.promise - p.heavy_threshold)))
    checked, worst = 0, -math.inf
    for points in laws:
        for extra in range(1 << bits):
            larger = tuple(sorted((*points, extra)))
            if larger in laws:
                checked += 1
                worst = max(worst, worst_excess((laws[larger], laws[points]), claimed))
    assert checked > 20
    assert worst <= 0.0


def test_without_its_promise_the_heavy_round_is_not_private():
    """Two tied children: one point turns the path, and nothing above it covers that."""
    p = replace(SMALL, heavy_threshold=6, promise=9)
    pair = tuple(
        exact_law(lambda draws, data=data: one_heavy_round(array(data), 4, p, draws), RATIO, laplace_cap=5)[:2]
        for data in ([0, 0, 15, 15, 15], [0, 0, 15, 15])
    )
    claimed = claims(approximate_dp(epsilon=6 * UNIT, delta=difference_tail(3 * UNIT, p.promise - p.heavy_threshold)))
    assert worst_excess(pair, claimed) > 0.5


def small_claim():
    price = tree_log_price(SMALL, bits=4)
    return claims(approximate_dp(epsilon=price.epsilon, delta=price.delta), WIDE)


class PathNode:
    """Takes the heaviest node without noise: among the deepest points that is the path's."""

    def choose(self, weights, *, level, draws):
        return int(np.argmax(weights)) if len(weights) else None


@pytest.mark.full
def test_the_path_in_place_of_a_private_node_is_caught():
    """The remnant "v = the q-th vertex of the path": between two even nodes one point decides where it leads."""
    data = [0] * 5 + [2] * 6, [0] * 5 + [2] * 5
    for choice, caught in ((SMALL.choice, False), (PathNode(), True)):
        pair = tuple(law_of(points, replace(SMALL, border=0, choice=choice), laplace_cap=8)[:2] for points in data)
        excess = worst_excess(pair, small_claim(), WIDE)
        assert excess > 0.05 if caught else excess <= 0.0


def test_labels_kept_among_the_deepest_points_are_caught():
    """Chosen by (label, node) the slices of neighbours are far apart: a turned path renames all labels."""
    first, second = [0, 0, 0, 8, 8, 8, 8], [0, 0, 0, 8, 8, 8]
    taken = 7
    with_labels = [embedding(d, 4)[2][:taken] for d in (first, second)]
    assert apart([x for _, x in with_labels[0]], [x for _, x in with_labels[1]]) == (1, 0)
    assert min(apart(*with_labels)) >= 6
    # by node alone every count moves by one at most; by label all of them do, and the choice gives it away
    choice = StableChoice(3 * UNIT, 1e-2)
    laws = []
    for found in with_labels:
        weights = Counter(found)
        keys = sorted({*with_labels[0], *with_labels[1]})
        law, lost, _ = exact_law(
            lambda draws, weights=weights, keys=keys: (
                (place := choice.choose(np.array([weights[k] for k in keys if weights[k]]), level=1, draws=draws))
                is None
                or [k for k in keys if weights[k]][place]
            ),
            RATIO,
        )
        laws.append((law, lost))
    claimed = claims(approximate_dp(epsilon=6 * UNIT, delta=2e-2), WIDE)
    assert worst_excess(tuple(laws), claimed, WIDE) > 0.3


@pytest.mark.full
def test_a_slice_too_small_for_gamma_is_caught():
    """The embedding without the test of Gamma: a turned path changes the deepest points altogether."""
    data = [0] * 10 + [8] * 11, [0] * 10 + [8] * 10
    broken = replace(SMALL, border=0, threshold=100, deepest=2, choice=StableChoice(3 * UNIT, 0.2))
    for parameters, caught in ((SMALL, False), (broken, True)):
        pair = tuple(law_of(points, parameters, laplace_cap=8)[:2] for points in data)
        excess = worst_excess(pair, small_claim(), WIDE)
        assert excess > 0.1 if caught else excess <= 0.0


def test_threshold_noise_drawn_again_is_caught():
    """At cumulative distance every sibling may move by 2d: one noise costs 6 d epsilon, fresh ones ever more."""
    ratio, limit, noises = 0.5, 6, range(-60, 61)
    mass = {n: (1 - ratio) / (1 + ratio) * ratio ** abs(n) for n in noises}

    def quiet(k):
        return 1 - ratio**k / (1 + ratio) if k > 0 else ratio ** (1 - k) / (1 + ratio)

    def never_fires(weights, redraw):
        if redraw:
            return math.prod(sum(mass[n] * quiet(limit + n - w) for n in noises) for w in weights)
        return sum(mass[n] * math.prod(quiet(limit + n - w) for w in weights) for n in noises)

    # moved boundaries: what one node gains its neighbour on the path loses
    first, second = [6, 0] * 16, [4, 2] * 16
    losses = [math.log(never_fires(second, redraw) / never_fires(first, redraw)) for redraw in (False, True)]
    assert losses[0] <= 6 * math.log(2) < losses[1]


# ---------------------------------------------------------------- choices


def all_weights(keys, most):
    return itertools.product(range(most + 1), repeat=keys)


def choice_law(weights, choice, **caps):
    occupied = [i for i, w in enumerate(weights) if w]
    law, lost, _ = exact_law(
        lambda draws: choice.choose(np.array([weights[i] for i in occupied], dtype=np.int64), level=1, draws=draws),
        Fraction(1, 2),
        **caps,
    )
    return {None if o is None else occupied[o]: mass for o, mass in law.items()}, lost


@pytest.mark.full
@pytest.mark.parametrize("delta", [0.2, 0.05])
def test_exact_laws_of_the_stable_choice(delta):
    epsilon = math.log(2)
    choice = StableChoice(epsilon, delta)
    laws = {w: choice_law(w, choice, laplace_cap=20) for w in all_weights(3, 4)}
    added = claims(approximate_dp(epsilon=epsilon, delta=delta * (1 + 1e-9)))
    swapped = claims(approximate_dp(epsilon=2 * epsilon, delta=2 * delta * (1 + 1e-9)))
    for w in laws:
        for i in range(3):
            larger = tuple(v + (j == i) for j, v in enumerate(w))
            if larger in laws:
                assert worst_excess((laws[larger], laws[w]), added) <= 1e-9
            for k in range(3):
                other = tuple(v + (j == i) - (j == k) for j, v in enumerate(w))
                if i != k and other in laws:
                    assert worst_excess((laws[other], laws[w]), swapped) <= 1e-9


@pytest.mark.full
def test_the_enumerated_choice_is_the_shipped_one():
    """The closed form used in these audits against noise drawn key by key, exactly up to what is cut off."""
    epsilon, threshold, weights = math.log(2), 4, np.array([3, 4, 4])

    def by_key(draws):
        noisy = [int(w) + draws.laplace(epsilon) for w in weights]
        best = int(np.argmax(noisy))
        return best if noisy[best] >= threshold else None

    drawn, lost, _ = exact_law(by_key, Fraction(1, 2), laplace_cap=9)
    closed, _, _ = exact_law(lambda d: d.heaviest(weights, epsilon, threshold), Fraction(1, 2), laplace_cap=20)
    for output, mass in drawn.items():
        assert mass <= closed[output] <= mass + lost + Fraction(1, 2**30)


def test_a_single_point_is_seen_with_probability_delta_at_most():
    choice = StableChoice(math.log(2), 1 / 12)
    law, lost = choice_law((1,), choice)
    assert law[0] <= Fraction(1, 12) == law[0] + lost


def test_a_lower_threshold_is_caught():
    class Lower(StableChoice):
        @property
        def threshold(self):
            return super().threshold - 2

    laws = [choice_law(w, Lower(math.log(2), 0.02)) for w in ((1, 0), (0, 0))]
    assert worst_excess(tuple(laws), claims(approximate_dp(epsilon=math.log(2), delta=0.02))) > 0.02


def test_exact_laws_of_the_choice_from_the_support():
    """Weights that all move by up to four at once; audited at the price of one level and distance one."""
    unit = math.log(2)
    choice = SupportChoice(epsilon_test=4 * unit, epsilon_draw=8 * unit, delta_test=0.05, ratio=0.05, size=6)
    claimed = claims(approximate_dp(epsilon=choice.epsilon, delta=choice.delta))
    laws = {w: choice_law(w, choice) for w in itertools.product((0, 1, 3, 4, 6, 9, 12), repeat=2)}
    for first, second in itertools.combinations(laws, 2):
        if max(abs(a - b) for a, b in zip(first, second, strict=True)) <= 4:
            assert worst_excess((laws[first], laws[second]), claimed) <= 1e-9


def test_the_stable_choice_is_not_for_cumulative_distances():
    """Independent noises when all weights move at once: caught."""
    choice = StableChoice(math.log(2), 0.01)
    pair = tuple(choice_law(w, choice, laplace_cap=20) for w in ((12, 8, 8), (8, 12, 12)))
    assert worst_excess(pair, claims(approximate_dp(epsilon=math.log(2), delta=0.01))) > 0.1


# ---------------------------------------------------------------- the recursion at work


class Watched(SecretDraws):
    def __init__(self, key):
        super().__init__(keyed_source(key))
        self.places = []

    def visit(self, place):
        self.places.append(place)


def shapes(count, bits, rng):
    top, leaf = 1 << bits, rng.getrandbits(bits)
    start = rng.randrange(top - count)
    return {
        "uniform": [rng.getrandbits(bits) for _ in range(count)],
        "constant": [leaf] * count,
        "run": [start + i for i in range(count)],
        "ends": [0, top - 1] * (count // 2),
        "powers": [(1 << rng.randrange(bits)) - rng.randrange(2) for _ in range(count)],
        "straddle": [top // 2 - 1, top // 2] * (count // 2),
        "path": [leaf ^ (1 << rng.randrange(bits)) for _ in range(count)],
        "steep": [leaf ^ (1 << max(0, bits - 1 - int(rng.expovariate(0.7)))) for _ in range(count)],
    }


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
    """Every shape at the calculated size; 5 failures of 48 have probability 1e-4 at a rate of 1 per cent."""
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
