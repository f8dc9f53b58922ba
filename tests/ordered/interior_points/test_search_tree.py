"""The search tree: scores, labels, the embedding, and the binary search as one Gaussian mechanism."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from dpselect.ordered.interior_points import search_tree
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.interior_points.search_tree import (
    bit_lengths,
    draw_binary_search,
    heavy_path,
    interior_scores,
    node_weights,
    path_labels,
    shared_prefixes,
)
from dpselect.randomness import keyed_source
from tests.ordered.interior_points.small_trees import (
    apart,
    array,
    cumulative_distance,
    embedded_parts,
    multisets,
)


def test_scores_under_insertion():
    """min(#{x <= z}, #{x >= z}) rises by 0 or 1 at every z, and is at least half at its best."""
    for count in range(6):
        for points in multisets(4, count):
            before = interior_scores(array(points), range(4))
            assert 2 * max(before) >= count
            for extra in range(4):
                after = interior_scores(array([*points, extra]), range(4))
                assert {b - a for a, b in zip(before, after, strict=True)} <= {0, 1}


def test_the_binary_search_is_one_gaussian_mechanism():
    """All answers together have noise_multiplier at sensitivity one: the deviation of each, and how far each moves."""
    seen = []

    class Watched(SecretDraws):
        def majority(self, difference, deviation):
            seen.append((difference, deviation))
            return len(seen) % 3 > 0

    runs = []
    for points in ([1, 4, 4, 9], [1, 4, 4, 9, 12]):
        seen.clear()
        draw_binary_search(array(points), 4, 5.0, Watched(keyed_source(1)))
        runs.append(list(seen))
    assert len(runs[0]) == 4
    assert all(deviation >= 10.0 for _, deviation in runs[0])
    assert all(abs(a - b) == 1 for (a, _), (b, _) in zip(*runs, strict=True))


@pytest.mark.parametrize("bits", [1, 5, 64, 70])
def test_the_binary_search_and_the_path_look_at_one_place_a_bit(bits):
    class Counted(list):
        looks = 0

        def __getitem__(self, place):
            Counted.looks += 1
            return super().__getitem__(place)

    points = Counted(sorted(random.Random(1).getrandbits(bits) for _ in range(64)))
    heavy_path(points, bits)
    assert Counted.looks <= 8 * bits


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


def test_the_split_of_a_node_is_the_last_leaf_under_its_left_child():
    assert search_tree.heavy_path(array([0, 0, 1, 4, 6]), 3) == (0, 2, [(2, 3), (0, 1), (1, 0)])


def test_the_binary_search_without_noise_finds_an_interior_point():
    """More points at or below a middle turn it left, so the end has half of the points on each side."""

    class Noiseless(SecretDraws):
        def majority(self, difference, deviation):
            return difference > 0

    for points in ([3], [0, 0, 9], [1, 4, 4, 9], [15] * 3, [0, 15], [2, 3, 5, 7, 11, 13]):
        found = draw_binary_search(array(points), 4, 1.0, Noiseless(keyed_source(1)))
        assert 2 * min(sum(x <= found for x in points), sum(x >= found for x in points)) >= len(points) - 1
    assert draw_binary_search(array([1, 4, 4, 9]), 4, 1.0, Noiseless(keyed_source(1))) == 4
