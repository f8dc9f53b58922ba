"""Searches return the safe endpoint regardless of the predicate, and the minimiser a value that was taken."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from dpselect.numerics.search import crossing, first_true, last_true, minimise, root_between, root_on_grids

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


def test_minimise_returns_a_value_that_the_function_took():
    seen: dict[float, float] = {}

    def bumpy(x):
        values = (x - 0.3) ** 2 + 0.01 * np.sin(500.0 * x)
        seen.update(zip(x.tolist(), values.tolist(), strict=True))
        return values

    x, value = minimise(bumpy, -1.0, 2.0)
    assert seen[x] == value
    assert value == min(seen.values())


def test_minimise_finds_a_smooth_minimum_and_passes_over_nan_and_infinity():
    def partly(x):
        with np.errstate(invalid="ignore"):
            return np.where(x > 1.5, np.inf, np.where(x < 0.1, np.nan, (x - 1.0) ** 2 + 3.0))

    x, value = minimise(partly, 0.0, 2.0)
    assert value == pytest.approx(3.0, abs=1e-12)
    assert x == pytest.approx(1.0, abs=1e-6)
    assert minimise(lambda x: np.full_like(x, np.inf), 0.0, 1.0)[1] == np.inf
