"""Which rows train and which score: one row more or less changes one part by that row, exactly."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dpselect.integrations.sklearn.split as split
from dpselect.integrations.sklearn.split import contents, rows_to_parts
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source

HUGE = 2**53
FOLDS = {"fraction": None, "folds": 3}
HELD_OUT = {"fraction": 0.5, "folds": None}


def cell_of(value):
    """A cell as anyone who reads rows could tell it apart: by its type and its bits."""
    return (type(value).__name__, value.hex() if isinstance(value, float) else value)


def parts(X, y, how, salt):
    """What each part holds, as collections without an order."""
    numbers = np.unique(y, return_inverse=True)[1]
    dealt = rows_to_parts(X, numbers, adjacency=Adjacency.ADD_OR_REMOVE_ONE, salt=salt, y=y, **how)
    cells = X.to_numpy() if hasattr(X, "iloc") else np.asarray(X)
    rows = [(*map(cell_of, row), cell_of(label)) for row, label in zip(cells.tolist(), y.tolist(), strict=True)]
    return [Counter(rows[place] for place in side) for pair in dealt for side in pair], rows


def without(table, place):
    kept = [k for k in range(len(table)) if k != place]
    return table.iloc[kept].reset_index(drop=True) if hasattr(table, "iloc") else table[kept]


def moved(X, y, how, salts=range(6)):
    """Whether a removed row changes any part by anything but itself."""
    for salt, place in itertools.product(map(str, salts), range(len(y))):
        before, rows = parts(X, y, how, salt)
        after, _ = parts(without(X, place), without(y, place), how, salt)
        for part, smaller in zip(before, after, strict=True):
            left = part - smaller
            if smaller - part or left not in (Counter(), Counter([rows[place]])):
                return True
    return False


def tables():
    pandas = pytest.importorskip("pandas")
    copies = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [1.0, 2.0], [3.0, 4.0], [1.0, 5.0]])
    labels = np.array([0, 1, 0, 1, 1, 0])
    last, two = np.array([0, 0, 0, 0, 0, 1]), np.array([0, 0, 0, 0, 1, 1])
    yield "doubles", copies, labels
    yield "text labels", copies, np.array(["no", "yes"], dtype=object)[labels]
    yield "signs and gaps", np.array([[0.0], [-0.0], [math.nan], [0.0], [math.nan], [-0.0]]), last
    yield "alike as doubles", np.array([[HUGE], [HUGE + 1], [HUGE], [HUGE + 1], [HUGE + 1], [HUGE]]), two
    yield "a frame", pandas.DataFrame({"a": [HUGE, HUGE + 1, HUGE, 1, 1, 1], "b": [0.5] * 6}), last
    yield "text", np.array([["a"], ["b"], ["a"], ["a"], ["b"], ["a"]], dtype=object), labels


TABLES = list(tables())


@pytest.mark.parametrize("how", [HELD_OUT, FOLDS], ids=["held out", "folds"])
@pytest.mark.parametrize("table", TABLES, ids=[name for name, _, _ in TABLES])
def test_a_row_more_changes_one_part_by_that_row(table, how):
    _, X, y = table
    assert not moved(X, y, how)


@pytest.mark.parametrize("broken", ["by place", "as doubles"])
def test_zoo_other_numbers_move_other_rows(broken, monkeypatch):
    """Broken: rows are numbered by where they stand, or those that are equal only once they are doubles."""
    real = {
        "by place": lambda X, y: [b""] * len(X),
        "as doubles": lambda X, y: [row.tobytes() for row in X.astype(np.float64)],
    }
    monkeypatch.setattr(split, "_same", real[broken])
    names = {name: (X, y) for name, X, y in TABLES}
    assert moved(*names["alike as doubles"], HELD_OUT, salts=range(12))


def test_equal_rows_are_dealt_like_others():
    """One content, 2,000 times: within 6 standard errors of the fraction (false alarm 2e-9)."""
    X, y = np.ones((2000, 2)), np.zeros(2000, dtype=int)
    options = {"adjacency": Adjacency.ADD_OR_REMOVE_ONE, "salt": "s", "fraction": 0.3, "folds": None}
    held_out = len(rows_to_parts(X, y, y=y, **options)[0][1]) / 2000
    assert abs(held_out - 0.3) < 6 * math.sqrt(0.21 / 2000)
    together = len(rows_to_parts(X, y, **options)[0][1])
    assert together in (0, 2000), "where no one says what the labels are, they share a part"


def test_rows_with_names_and_untyped_cells_share_a_part():
    pandas = pytest.importorskip("pandas")
    y = np.zeros(40, dtype=int)
    frame = pandas.DataFrame({"a": np.ones(40)}, index=[f"person {k}" for k in range(40)])
    for X in (frame, np.full((40, 1), "a", dtype=object), [[1.0]] * 40, frame.assign(b="text")):
        options = {"adjacency": Adjacency.ADD_OR_REMOVE_ONE, "salt": "s", "fraction": 0.5, "folds": None}
        assert len(rows_to_parts(X, y, y=y, **options)[0][1]) in (0, 40)


ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE


# splits


def parts_of(X, labels, adjacency, **options):
    return rows_to_parts(
        X, np.asarray(labels), adjacency=adjacency, salt="s", **{"fraction": None, "folds": None, **options}
    )


@pytest.mark.parametrize("options", [{"fraction": 0.3}, {"folds": 4}])
def test_removing_a_row_moves_no_other(options):
    """Under add/remove each remaining row keeps its part; with folds every row is held out once."""
    X, y = keyed_source(1).uniform((60, 2)), np.arange(60) % 3
    whole = parts_of(X, y, ADD, **options)
    for training, held_out in whole:
        assert sorted([*training, *held_out]) == list(range(60))
    assert 0 < sum(len(held_out) for _, held_out in whole) <= 60
    if "folds" in options:
        assert sum(len(held_out) for _, held_out in whole) == 60
    for gone in range(0, 60, 7):
        kept = np.delete(np.arange(60), gone)
        for before, after in zip(whole, parts_of(X[kept], y[kept], ADD, **options), strict=True):
            assert [set(kept[rows].tolist()) for rows in after] == [set(rows.tolist()) - {gone} for rows in before]


@pytest.mark.parametrize("options", [{"fraction": 0.3}, {"folds": 4}])
def test_replacing_a_row_moves_none(options):
    X, y = keyed_source(1).uniform((60, 2)), np.arange(60) % 3
    other = X.copy()
    other[5] = 9.0
    for before, after in zip(parts_of(X, y, REPLACE, **options), parts_of(other, y, REPLACE, **options), strict=True):
        assert all(np.array_equal(one, two) for one, two in zip(before, after, strict=True))


def test_a_split_by_permutation_would_be_caught():
    """The defect that the test above is there for: shuffling positions moves other rows when one is removed."""
    moved = 0
    for gone in range(0, 60, 7):
        whole, less = keyed_source(1).permutation(60)[:12], keyed_source(1).permutation(59)[:12]
        kept = np.delete(np.arange(60), gone)
        moved += set(kept[less].tolist()) != set(whole.tolist()) - {gone}
    assert moved > 0


cells = st.one_of(st.integers(-5, 5), st.booleans(), st.floats(allow_nan=False, width=32), st.text(max_size=3))


@pytest.mark.full
@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(cells, cells), min_size=2, max_size=8), gone=st.integers(0, 7))
def test_the_part_of_a_row_depends_on_its_own_cells_only(rows, gone):
    """Mixed cells, whose common type changes with the rows that are there."""
    gone %= len(rows)
    table = np.empty((len(rows), 2), dtype=object)
    table[:] = rows
    labels = np.zeros(len(rows), dtype=np.int64)
    ((_, held_out),) = parts_of(table, labels, ADD, fraction=0.5)
    kept = np.delete(np.arange(len(rows)), gone)
    try:
        left = table[kept].astype(np.float64)  # as NumPy would have read it
    except ValueError:
        left = table[kept]
    ((_, after),) = parts_of(left, labels[kept], ADD, fraction=0.5)
    assert set(kept[after].tolist()) == set(held_out.tolist()) - {gone}


def test_none_beside_numbers_and_beside_text_is_in_one_part():
    """pandas turns None into NaN in a column of numbers, and keeps it where one row has text."""
    numbers = np.array([[float(k), np.nan] for k in range(50)])
    mixed = np.array([[float(k), None] for k in range(50)] + [[50.0, "text"]], dtype=object)
    options = {"adjacency": Adjacency.ADD_OR_REMOVE_ONE, "salt": "s", "fraction": 0.5, "folds": None}
    alone = rows_to_parts(numbers, np.zeros(50), **options)[0][1]
    beside = rows_to_parts(mixed, np.zeros(51), **options)[0][1]
    assert beside[beside < 50].tolist() == alone.tolist()


def test_no_cell_makes_the_content_of_a_row_fail():
    class Raises:
        def __str__(self):
            raise RuntimeError

    for cell in ("\ud800", 10**5000, Raises()):
        table = np.array([[cell, 1.0], ["a", 2.0]], dtype=object)
        assert len(set(contents(table, np.array([0, 1])))) == 2
