"""The base class of mechanisms: parsed fields, one run that is paid for, and a value without a price."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import pytest

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.mechanisms.mechanism import Mechanism, real, released_value, whole
from dpselect.privacy import Adjacency, Guarantee, Release, pure_dp
from dpselect.privacy.release import Receipt
from dpselect.randomness import keyed_source


@dataclass(frozen=True, kw_only=True)
class Shift(Mechanism):
    """Adds its steps and a drawn bit to each row."""

    epsilon: float = field(default=1.0, metadata=real(above=0.0, at_most=2.0))
    steps: int = field(default=1, metadata=whole(at_least=1))
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE

    @property
    def guarantee(self) -> Guarantee:
        return pure_dp(epsilon=self.epsilon, adjacency=self.adjacency)

    def bind(self, *data):
        return self, tuple(sorted(rows) for rows in data)

    def prepared(self, rows, *, floor=0):
        if floor < 0:
            raise ArgumentError("floor must be at least 0")
        return lambda random: [max(row + self.steps + random.bits(1), floor) for row in rows]


class Spends:
    def __init__(self):
        self.seen = []

    def reserve(self, guarantee, *, label, identifier):
        self.seen.append((label, guarantee.epsilon(delta=0)))
        return Receipt(account="test", identifier=identifier, charged={})

    def settle(self, identifier, *, cell=None):
        self.seen.append("settled")
        return Receipt(account="test", identifier=identifier, charged={"epsilon": 1.0})


def test_fields_are_parsed_as_their_metadata_say():
    one = Shift(epsilon=Fraction(1, 2), steps=3.0, adjacency="replace_one")
    assert (one.epsilon, one.steps, one.adjacency) == (0.5, 3, Adjacency.REPLACE_ONE)
    assert (type(one.epsilon), type(one.steps)) == (float, int)
    for wrong in ({"epsilon": 0.0}, {"epsilon": 2.01}, {"steps": 0}, {"steps": 1.5}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            Shift(**wrong)
    with pytest.raises(AdjacencyError):
        Shift(adjacency="swap")


def test_a_call_is_reserved_run_and_settled_under_its_label():
    spender = Spends()
    release = Shift(steps=2)([5, 1], spender=spender, random=keyed_source(1), floor=4)
    assert release.value[0] == 4
    assert release.value[1] in (7, 8)  # the rows as `bind` gave them, in order
    assert spender.seen == [("Shift", 1.0), "settled"]
    assert release.replayable
    Shift()([1], spender=spender, label="mine")
    assert spender.seen[2:] == [("mine", 1.0), "settled"]


def test_wrong_arguments_are_refused_before_anything_is_charged():
    spender = Spends()
    with pytest.raises(ArgumentError, match="floor"):
        Shift()([1], spender=spender, floor=-1)
    assert spender.seen == []


def test_a_draw_is_the_value_of_the_call_with_the_same_source():
    drawn = Shift().draw([3, 1], random=keyed_source(7))
    assert drawn == Shift()([3, 1], random=keyed_source(7)).value
    assert isinstance(Shift()([1]), Release)
    assert not Shift()([1]).replayable


def test_a_mechanism_that_binds_by_the_former_name_still_does():
    with pytest.warns(DeprecationWarning, match="Former.settled is called bind now"):

        class Former(Shift):
            def settled(self, *data):
                return Shift(steps=7), data

    assert Former().draw([0], random=keyed_source(1))[0] in (7, 8)


def test_a_released_value_is_priced_only_for_a_spender():
    class Unpriced(Shift):
        @property
        def guarantee(self):
            raise AssertionError("priced")

    assert released_value(Unpriced(), [0], spender=None, label="x", random=keyed_source(2))[0] in (1, 2)
    spender = Spends()
    released_value(Shift(), [0], spender=spender, label="x", random=keyed_source(2))
    assert spender.seen == [("x", 1.0), "settled"]
