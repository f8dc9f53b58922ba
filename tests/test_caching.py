"""Values that keep what they compute: copies by fields, keys of public values, functions that keep their answers."""

import copy
import pickle
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import pytest

import dpselect.caching
from dpselect.caching import CopiedByFields, cache_key, counted, kept_while_alive, memoized
from dpselect.privacy import gaussian


@dataclass(frozen=True)
class Square(CopiedByFields):
    side: float

    @cached_property
    def area(self):
        return self.side**2


def test_a_copy_carries_the_fields_alone():
    square = Square(3.0)
    assert square.area == 9.0
    for copied in (copy.copy(square), copy.deepcopy(square), pickle.loads(pickle.dumps(square))):
        assert vars(copied) == {"side": 3.0}
        assert (copied, copied.area) == (square, 9.0)


def test_keys_tell_public_values_apart():
    values = (1, 1.0, True, "1", Fraction(1, 3), np.arange(3), (1, 2), [1, 2], gaussian(noise_multiplier=1.0))
    keys = [cache_key(value) for value in values]
    assert None not in keys
    assert len(set(keys)) == len(values)
    assert cache_key(gaussian(noise_multiplier=1.0)) == keys[-1] != cache_key(gaussian(noise_multiplier=1.01))
    assert cache_key((2.0, 0.1)) == cache_key((2.0, 0.1))


@pytest.mark.parametrize(
    "value", [Square(1.0), test_a_copy_carries_the_fields_alone, lambda: 1, Square, (1.0, [Square])]
)
def test_code_of_others_has_no_key(value):
    assert cache_key(value) is None


def test_equal_values_are_counted_together_and_code_of_others_by_identity():
    same, other = Square(1.0), Square(1.0)
    values = [((2.0, 0.1), 1), (same, 2), ((2.0, 0.1), 3), (other, 1), (same, 4), ((2.0, 0.2), 1)]
    assert counted(values) == (((2.0, 0.1), 4), (same, 6), (other, 1), ((2.0, 0.2), 1))


def test_the_oldest_answers_are_forgotten(monkeypatch):
    monkeypatch.setattr(dpselect.caching, "_MOST_KEPT", 2)
    asked = []
    double = memoized(lambda value: asked.append(value) or 2 * value)
    assert [double(value) for value in (1, 2, 1, 3, 2, 1)] == [2, 4, 2, 6, 4, 2]
    assert asked == [1, 2, 3, 1]


def test_what_code_of_others_is_part_of_is_asked_anew():
    asked = []
    counted = memoized(lambda value: asked.append(value) or 2.0)

    class Own:
        pass

    for value in (1.0, 1.0, Own(), Own()):
        assert counted(value) == 2.0
    assert len(asked) == 3
    counted.cache_clear()
    counted(1.0)
    assert len(asked) == 4


def test_an_answer_is_kept_as_long_as_its_object_lives():
    asked = []
    side = kept_while_alive(lambda square: asked.append(square.side) or [square.side])
    square = Square(3.0)
    assert side(square) is side(square)
    assert side(Square(3.0)) == [3.0]
    assert asked == [3.0, 3.0]
    for _ in range(100):  # objects that are gone leave their place to others
        assert side(Square(4.0)) == [4.0]
    assert len(asked) == 102
    text = kept_while_alive(lambda value: asked.append(value) or value)
    assert (text("a"), text("a")) == ("a", "a")
    assert asked[-2:] == ["a", "a"]  # no weak reference to it
