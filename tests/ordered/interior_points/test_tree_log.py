"""TreeLog: the search tree, the embedding, its price, and how often it succeeds."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.interior_points.interior_point import InteriorPoint
from dpselect.ordered.interior_points.rows import plan_method
from dpselect.ordered.interior_points.stable_choice import SupportChoice
from dpselect.ordered.interior_points.tree_log import draw_tree_log, level_bits, node_candidates
from dpselect.ordered.interior_points.tree_log_price import (
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


@pytest.mark.theorem("Cohen et al. 2022, Lemma 3.4", sharp=True)
def test_a_slice_one_shorter_breaks_adjacency():
    s, _ = embedded_parts([0, 0, 2, 2], 2, 3)
    t, _ = embedded_parts([0, 0, 2, 2, 2], 2, 3)
    assert (sorted(s), sorted(t)) == ([0, 0, 2], [2, 2, 2])


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
