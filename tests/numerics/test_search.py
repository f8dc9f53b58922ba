"""Searches return the safe endpoint, no matter what they are asked; suprema are in what is returned."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from dpselect.numerics.cells import supremum_over_cells
from dpselect.numerics.search import crossing, first_true, last_true, root_between, root_on_grids

DOUBLES = st.floats(allow_nan=False)
WHOLE = st.one_of(st.integers(-50, 50), st.integers(-(1 << 200), 1 << 200))


def counted(holds: Callable) -> tuple[Callable, list]:
    asked: list = []

    def ask(x):
        asked.append(x)
        return holds(x)

    return ask, asked


# Integers.


@given(low=WHOLE, length=st.integers(0, 1 << 100), place=WHOLE, start=st.none() | WHOLE)
@example(low=3, length=0, place=3, start=3)
def test_the_first_and_the_last_true_number_are_exact_and_quick(low, length, place, start):
    high = low + length
    ask, asked = counted(lambda k: k >= place)
    found = first_true(ask, low, high, start=start)
    assert found == (max(place, low) if place <= high else None)
    assert all(low <= k <= high for k in asked)
    assert len(asked) == len(set(asked))
    assert len(asked) <= 2 * (length + 1).bit_length() + 2
    assert last_true(lambda k: k <= place, low, high, start=start) == (min(place, high) if place >= low else None)


@given(place=st.integers(0, 1 << 300))
def test_without_a_limit_the_answer_is_found_from_the_start_in_logarithmic_time(place):
    ask, asked = counted(lambda k: k >= place)
    assert first_true(ask, 0, None, start=0) == place
    assert len(asked) <= 2 * place.bit_length() + 2


@given(place=st.integers(1, 1 << 80), relative=st.floats(1e-6, 0.5), start=st.none() | st.integers(1, 1 << 80))
def test_a_tolerance_makes_the_first_true_number_larger_never_smaller(place, relative, start):
    found = first_true(lambda k: k >= place, 1, 1 << 80, start=start, relative=relative)
    assert found is not None
    assert place <= found
    assert found - place < max(1, relative * found)


@given(salt=st.integers(0, 1 << 40), low=st.integers(-40, 40), length=st.integers(0, 80), start=st.integers(-50, 130))
def test_whatever_the_predicate_the_number_was_seen_to_hold(salt, low, length, start):
    def jagged(k: int) -> bool:
        return bool((salt >> (k % 41)) & 1)

    high = low + length
    for where in (None, start):
        ask, asked = counted(jagged)
        found = first_true(ask, low, high, start=where)
        assert found is None or (low <= found <= high and found in asked and jagged(found))
        ask, asked = counted(jagged)
        last = last_true(ask, low, high, start=where)
        assert last is None or (low <= last <= high and last in asked and jagged(last))


# Doubles.


@given(one=DOUBLES, other=DOUBLES, root=DOUBLES, start=st.none() | DOUBLES)
@example(one=0.0, other=math.inf, root=5e-324, start=1.0)
@example(one=-math.inf, other=math.inf, root=0.0, start=None)
@example(one=0.0, other=1.0, root=0.0, start=None)
@example(one=-0.0, other=5e-324, root=0.0, start=None)
@example(one=1.7e308, other=-1.7e308, root=1.6e308, start=None)
def test_a_root_is_found_to_the_last_double_on_the_safe_side(one, other, root, start):
    low, high = min(one, other), max(one, other)
    for safe, unsafe, holds in (
        (high, low, lambda x: x >= root),
        (low, high, lambda x: x <= root),
        (high, low, lambda x: x > root),
        (low, high, lambda x: x < root),
    ):
        ask, asked = counted(holds)
        found = root_between(ask, safe=safe, unsafe=unsafe, start=start)
        assert found == safe or (holds(found) and found in asked)
        assert all(low < x < high for x in asked)
        assert len(asked) <= 100
        # the next double on the unsafe side is the end, or does not hold
        beyond = math.nextafter(found, unsafe)
        assert beyond == unsafe or found == unsafe or not holds(beyond)


@given(
    root=st.floats(1e-300, 1e300),
    safe_above=st.booleans(),
    relative=st.floats(1e-12, 0.5),
    start=st.none() | st.floats(1e-300, 1e300),
)
def test_a_tolerance_is_kept_on_the_safe_side(root, safe_above, relative, start):
    holds = (lambda x: x >= root) if safe_above else (lambda x: x <= root)
    safe, unsafe = (math.inf, 0.0) if safe_above else (0.0, math.inf)
    ask, asked = counted(holds)
    found = root_between(ask, safe=safe, unsafe=unsafe, start=start, relative=relative)
    assert holds(found)
    assert abs(found - root) <= relative * root * (1 + 1e-15)
    assert len(asked) <= 30 + 2 * math.log2(1 / relative)
    ask, asked = counted(lambda xs: np.array([holds(x) for x in xs.tolist()]))
    near = root_on_grids(ask, safe=safe, unsafe=unsafe, start=start or 1.0, relative=relative)
    assert holds(near)
    assert abs(near - root) <= relative * root * (1 + 1e-15)
    assert len(asked) <= 6 + math.log2(1 / relative) / 5 + max(
        (math.log(root) - math.log(start or 1.0)) / math.log(4.0), 0.0
    )


@given(root=st.floats(0.0, 1.0), absolute=st.floats(1e-12, 0.5))
def test_an_absolute_tolerance_asks_as_often_as_plain_halving(root, absolute):
    ask, asked = counted(lambda x: x >= root)
    found = root_between(ask, safe=1.0, unsafe=0.0, absolute=absolute)
    assert 0.0 <= found - root <= absolute or found == 1.0
    assert len(asked) <= math.log2(1 / absolute) + 3


@given(steps=st.lists(st.booleans(), min_size=1, max_size=40), salt=st.integers(0, 1 << 32), up=st.booleans())
def test_whatever_the_predicate_the_root_was_seen_to_hold(steps, salt, up):
    def jagged(x: float) -> bool:
        return steps[int(abs(math.log(x)) * 7.0 + salt % 5) % len(steps)]

    safe, unsafe = (1e9, 1e-9) if up else (1e-9, 1e9)
    found = root_between(jagged, safe=safe, unsafe=unsafe)
    assert found == safe or jagged(found)
    near = root_on_grids(lambda xs: np.array([jagged(x) for x in xs]), safe=safe, unsafe=unsafe)
    assert near == safe or jagged(near)


def test_on_grids_a_point_that_held_by_chance_beyond_one_that_did_not_is_not_taken():
    """A predicate whose rounding flickers: of a grid the answer is the end of the run of points from the safe side."""
    asked: list[np.ndarray] = []

    def flickers(xs):
        asked.append(xs)
        return (xs >= 2.0) | (np.arange(xs.size) % 3 == 2)

    found = root_on_grids(flickers, safe=1e6, unsafe=0.0)
    assert found >= 2.0 * (1 - 1e-9)
    assert root_on_grids(lambda xs: xs <= 2.0, safe=0.0, unsafe=1e6) == pytest.approx(2.0, rel=1e-10)


def test_an_end_is_the_answer_where_nothing_was_seen_to_hold():
    assert root_between(lambda x: False, safe=3.0, unsafe=1.0) == 3.0
    assert root_between(lambda x: False, safe=0.0, unsafe=math.inf, start=1.0) == 0.0
    assert root_between(lambda x: True, safe=0.0, unsafe=1.0) == math.nextafter(1.0, 0.0)
    assert root_on_grids(lambda xs: xs < 0.0, safe=1e5, unsafe=0.0) == 1e5
    assert root_between(lambda x: False, safe=2.0, unsafe=2.0) == 2.0


# Suprema.


def lipschitz(function, slope):
    """Bounds over intervals for a function whose slope is at most that."""

    def measure(cells, settled):
        left, right = cells
        return function(left) + slope * (right - left) + 1e-9, function(left)

    return measure


EDGES = np.linspace(0.0, 1.0, 9)
CELLS = np.array([EDGES[:-1], EDGES[1:]])


@given(
    waves=st.lists(st.tuples(st.floats(-2.0, 2.0), st.floats(0.0, 30.0), st.floats(0.0, 6.0)), min_size=1, max_size=4),
    relative=st.sampled_from([0.1, 1e-3]),
)
def test_the_supremum_lies_between_what_is_attained_and_the_bound(waves, relative):
    def function(x):
        return 3.0 + sum(a * np.sin(w * x + s) for a, w, s in waves)

    slope = sum(abs(a) * w for a, w, _ in waves)
    low, high = supremum_over_cells(lipschitz(function, slope), CELLS, relative=relative, absolute=1e-3)
    largest = float(np.max(function(np.linspace(0.0, 1.0, 4001))))
    assert low <= largest + 1e-6 * (1.0 + slope**2)
    assert high >= largest
    assert high <= low + relative * abs(low) + 1e-3


def test_the_same_cells_are_measured_in_every_run_and_no_more_than_allowed():
    def counting(limit):
        seen: list[int] = []
        inner = lipschitz(lambda x: -np.abs(x - 1 / 3), 1.0)

        def measure(cells, settled):
            seen.append(cells.shape[1])
            return inner(cells, settled)

        return supremum_over_cells(measure, CELLS, relative=0.0, absolute=1e-12, limit=limit), seen

    assert counting(500) == counting(500)
    for limit in (1, 9, 10, 100):
        found, seen = counting(limit)
        assert sum(seen) <= max(limit, 8)
        assert found.attained <= 0.0 <= found.bound
    assert counting(100)[0].bound <= counting(10)[0].bound


def test_nan_infinity_and_what_is_enough():
    def measure(cells, settled):
        left, right = cells
        return np.where(right - left > 0.1, np.nan, right), np.where(left < 0.5, np.nan, left)

    low, high = supremum_over_cells(measure, CELLS, relative=1e-6)
    assert 1.0 - 1e-5 < low < 1.0 == high
    hopeless = supremum_over_cells(lambda c, s: (c[1] * np.inf, c[0]), CELLS, limit=50)
    assert hopeless.bound == math.inf
    # nothing above `enough`: it is not sharpened, and the bound says so
    assert supremum_over_cells(lipschitz(lambda x: x, 9.0), CELLS, enough=20.0) == (0.875, 20.0)
    asked: list[float] = []

    def seen(cells, settled):
        asked.append(settled)
        return lipschitz(lambda x: x, 1.0)(cells, settled)

    assert supremum_over_cells(seen, CELLS, stop=0.8, enough=0.1).attained == 0.875
    assert asked == [0.1]


def test_cells_of_any_shape_are_split_as_the_caller_says():
    """The largest x y (1 - x - y) on a square, boxes cut into four."""

    def measure(cells, settled):
        x_0, x_1, y_0, y_1 = cells
        return x_1 * y_1 * np.maximum(1.0 - x_0 - y_0, 0.0), x_0 * y_0 * (1.0 - x_0 - y_0)

    def quarters(cells):
        x_0, x_1, y_0, y_1 = cells
        x, y = (x_0 + x_1) / 2.0, (y_0 + y_1) / 2.0
        parts = [(x_0, x, y_0, y), (x, x_1, y_0, y), (x_0, x, y, y_1), (x, x_1, y, y_1)]
        return np.concatenate([np.array(part) for part in parts], axis=1)

    low, high = supremum_over_cells(measure, np.array([[0.0], [1.0], [0.0], [1.0]]), split=quarters, relative=1e-3)
    assert low <= 1 / 27 <= high <= low * (1.0 + 1e-3)


@given(st.floats(0.01, 5.0), st.floats(0.2, 4.0), st.floats(0.0, 1.0), st.floats(0.01, 10.0))
def test_a_rough_root_is_beside_the_change_of_sign_and_asks_little(root, slope, below, above):
    asked = []

    def excess(x):
        asked.append(x)
        return math.exp(-slope * x) - math.exp(-slope * root)

    found = crossing(excess, root * below, root + above, relative=1e-6)
    assert abs(found - root) <= 2e-6 * root
    assert all(root * below <= x <= root + above for x in asked)
    assert len(asked) <= 62


def test_a_rough_root_of_a_jump_and_at_an_end():
    assert crossing(lambda x: math.copysign(1.0, x - 0.3), 0.0, 1.0, relative=1e-6) == pytest.approx(0.3, rel=2e-6)
    assert crossing(lambda x: x, 0.0, 1.0, relative=1e-6) == 0.0
    assert crossing(lambda x: x - 1.0, 0.0, 1.0, relative=1e-6) == 1.0
