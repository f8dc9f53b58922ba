"""Guarantees of different adjacencies never mix, and an unknown adjacency is refused with the known ones."""

from __future__ import annotations

import pytest

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.privacy import (
    Adjacency,
    compose,
    gaussian,
    pure_dp,
    worst_of,
)
from dpselect.privacy.adjacency import common_adjacency, parse_adjacency


def test_adjacencies_never_mix():
    one, other = gaussian(noise_multiplier=1), gaussian(noise_multiplier=1, adjacency="replace_one")
    assert other.adjacency is Adjacency.REPLACE_ONE
    assert other.describe(delta=0.1)["adjacency"] == "replace_one"
    for join in (compose, worst_of):
        with pytest.raises(AdjacencyError, match="adjacenc"):
            join(one, other)
        with pytest.raises(ArgumentError, match="at least one"):
            join()
        assert join(other) is other
        assert join(other, other).adjacency is Adjacency.REPLACE_ONE
    for wrong in ("swap", None, 3, ""):
        with pytest.raises(AdjacencyError, match="add_or_remove_one"):
            pure_dp(epsilon=1, adjacency=wrong)


def test_the_text_and_the_enumeration_are_one_and_all_must_share_it():
    assert parse_adjacency("replace_one") is parse_adjacency(Adjacency.REPLACE_ONE) is Adjacency.REPLACE_ONE
    assert common_adjacency(["replace_one", Adjacency.REPLACE_ONE]) is Adjacency.REPLACE_ONE
    for mixed in ([], ["replace_one", "add_or_remove_one"]):
        with pytest.raises(AdjacencyError, match="never compose"):
            common_adjacency(mixed)
    with pytest.raises(AdjacencyError, match="one of 'add_or_remove_one', 'replace_one', got 'Replace_one'"):
        common_adjacency(["Replace_one"])
