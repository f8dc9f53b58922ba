"""Trees without labels: codes of single rows, thresholds by rank, questions by what was told, packing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpselect.learners.encoding import TableEncoding
from dpselect.learners.random_trees import (
    CodedColumns,
    ColumnsTold,
    RandomTree,
    draw_tree,
    pack_trees,
    unpack_trees,
)
from dpselect.randomness import keyed_source


def encoded(cells, bounds=(-1, 1), indicators=()):
    return TableEncoding(bounds=bounds, indicators=indicators).encoded(np.array(cells, dtype=float))


def test_codes_are_bins_places_and_what_is_missing():
    known = CodedColumns(numbers=1, bins=4, groups=(2, 1))
    cells = [
        [-1, 1, 0, 0],
        [-0.5, 0, 1, 1],
        [-0.51, 0, 0, np.nan],
        [1, 1, 1, 0.4],
        [np.nan, 0, 0.5, np.inf],
        [9, 0, 0, 9],
    ]
    codes = known.codes(encoded(cells, indicators=[[1, 2], [3]]))
    assert codes.dtype == np.uint8
    assert codes.tolist() == [[0, 1, 0, 3, 4, 3], [0, 1, 2, 0, 1, 2], [1, 0, 1, 1, 0, 0]]
    assert known.sizes == (5, 3, 2)
    assert known.width == 5


@pytest.mark.parametrize("bins", [2, 7, 255])
def test_codes_stay_in_their_range_and_grow_with_the_number(bins):
    known = CodedColumns(numbers=1, bins=bins, groups=())
    numbers = np.linspace(-1, 1, 4001)
    (codes,) = known.codes(encoded(numbers[:, None]))
    assert codes[0] == 0
    assert codes[-1] == bins - 1
    assert np.all(np.diff(codes.astype(int)) >= 0)
    assert np.ptp(np.bincount(codes)) <= 2


@pytest.mark.parametrize("size", [255, 256, 65_535, 65_536])
def test_groups_of_any_size_have_codes_of_their_own(size):
    known = CodedColumns(numbers=0, bins=2, groups=(size,))
    cells = np.zeros((2, size))
    cells[0, -1] = 1.0
    assert known.codes(encoded(cells, indicators=[range(size)])).tolist() == [[size - 1, size]]


def test_a_row_has_its_codes_in_any_company_and_columns_in_any_order():
    random = np.random.default_rng(3)
    cells = random.normal(size=(40, 3))
    cells[random.random(cells.shape) < 0.2] = np.nan
    known = CodedColumns(numbers=3, bins=9, groups=())
    codes = known.codes(encoded(cells))
    assert np.array_equal(codes, np.hstack([known.codes(encoded(cells[[k]])) for k in range(40)]))
    assert np.array_equal(codes[[2, 0, 1]], known.codes(encoded(cells[:, [2, 0, 1]])))


def test_leaves_are_the_answers_as_binary_digits():
    sides = np.array([[0, 1, 1], [1, 0, 1], [0, 0, 1]], dtype=bool)
    tree = RandomTree(np.array([1, 0, 1]), sides)
    codes = np.array(list(itertools.product(range(3), range(3)))).T
    expected = [4 * sides[0][b] + 2 * sides[1][a] + sides[2][b] for a, b in codes.T.tolist()]
    assert tree.leaves(codes).tolist() == expected


def drawn(known, ranks, weights, count=2000, depth=2):
    random = keyed_source(9)
    return [draw_tree(known, ranks, np.array(weights, dtype=float), depth, random) for _ in range(count)]


def test_columns_are_drawn_by_their_weights():
    known = CodedColumns(numbers=2, bins=4, groups=(3,))
    found = np.concatenate([tree.columns for tree in drawn(known, [np.zeros(4)] * 2, [1, 0, 3])])
    counts = np.bincount(found, minlength=3) / len(found)
    assert counts[1] == 0
    assert counts[2] == pytest.approx(0.75, abs=0.03)  # four deviations


def test_thresholds_are_drawn_by_rank_and_never_put_all_numbers_on_one_side():
    known = CodedColumns(numbers=1, bins=4, groups=())
    for ranks, shares in (([0, 0, 0, 0], [1, 1, 2]), ([10, 10, 40, 40], [1, 0, 3]), ([0, 0, 0, 8], [0, 0, 4])):
        trees = drawn(known, [np.array(ranks, dtype=float)], [1.0])
        sides = np.concatenate([tree.sides for tree in trees])
        assert np.all(np.diff(sides[:, :4].astype(int), axis=1) >= 0)
        first = np.argmax(sides[:, :4], axis=1)
        assert np.bincount(first, minlength=4)[1:] / len(first) == pytest.approx(np.array(shares) / 4, abs=0.03)
        assert np.mean(sides[:, 4]) == pytest.approx(0.5, abs=0.03), "a missing number goes to either side"


def test_categories_go_to_either_side_alone_and_no_code_is_beyond_the_column():
    known = CodedColumns(numbers=0, bins=2, groups=(2, 9))
    trees = drawn(known, [], [1.0, 0.0])
    sides = np.concatenate([tree.sides for tree in trees])
    assert not np.any(sides[:, 3:])
    assert np.mean(sides[:, :3], axis=0) == pytest.approx(0.5, abs=0.03)
    assert np.cov(sides[:, :3].T)[np.triu_indices(3, 1)] == pytest.approx(0, abs=0.02)


def test_questions_that_told_more_are_asked_more_often():
    told = ColumnsTold(*np.zeros((2, 3)))
    assert told.weights().tolist() == pytest.approx([1 / 3] * 3)
    tree = RandomTree(np.array([0, 1]), np.zeros((2, 2), dtype=bool))
    # leaves 00, 01, 10, 11: the first column moves the values by 2, the second by nothing
    told.learn(tree, np.array([[0.0], [0.0], [2.0], [2.0]]), np.array([1.0, 3.0, 1.0, 3.0]))
    assert told.told.tolist() == [0.5 * 4 + 1.5 * 4, 0, 0]
    assert told.asked.tolist() == [1, 1, 0]
    weights = told.weights()
    assert weights.tolist() == pytest.approx([0.4 + 0.2 / 3, 0.2 / 3, 0.4 + 0.2 / 3]), "unasked ones are hoped for"


def test_packed_trees_are_doubles_that_any_file_keeps():
    known = CodedColumns(numbers=1, bins=255, groups=(300,))
    trees = drawn(known, [np.zeros(255)], [1, 1], count=5, depth=3)
    columns, sides = pack_trees(trees)
    assert columns.dtype == sides.dtype == np.float64
    assert np.all(sides == np.floor(sides))
    assert np.max(sides) < 2.0**48
    for tree, again in zip(trees, unpack_trees(columns, sides, known), strict=True):
        assert np.array_equal(tree.columns, again.columns)
        assert np.array_equal(tree.sides, again.sides)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -3.0, 0.5, 1e300])
def test_any_doubles_are_trees(value):
    known = CodedColumns(numbers=1, bins=4, groups=(2,))
    (tree,) = unpack_trees(np.full((1, 2), value), np.full((1, 2, 1), value), known)
    found = tree.leaves(np.zeros((2, 3), dtype=np.uint8))
    assert np.all((found >= 0) & (found < 4))
