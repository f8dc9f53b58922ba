"""The registry of readers: by the package that defines a class, without importing that package."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.privacy import Adjacency, as_guarantee, pure_dp
from dpselect.privacy.foreign_kinds import (
    READERS,
    foreign_guarantee,
    foreign_reader,
    is_plain_number,
    own_adjacency,
    taken,
)

PACKAGES = ["autodp", "builtins", "dp_accounting", "jax_privacy", "opacus", "opendp", "prv_accountant"]


def test_there_is_one_reader_for_each_package():
    assert list(READERS) == PACKAGES
    assert "OpenDP" in taken()
    assert "autodp" in taken()


@pytest.mark.full
def test_no_reader_loads_a_package_that_is_not_needed():
    code = """
import sys
from dpselect.privacy import as_guarantee
as_guarantee((1.0, 1e-6)).epsilon(1e-6)
try:
    as_guarantee(object())
except ValueError:
    pass
heavy = {"autodp", "dp_accounting", "jax_privacy", "opacus", "opendp", "prv_accountant", "torch", "sklearn"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_reader_from_outside_is_found_by_the_class():
    made = type("Theirs", (SimpleNamespace,), {"__module__": "test_of_readers.inner"})
    heir = type("Heir", (made,), {"__module__": "elsewhere"})

    def read(thing, adjacency):
        return pure_dp(epsilon=thing.cost, adjacency=own_adjacency("it", None, adjacency)) if thing.cost else None

    foreign_reader("test_of_readers", takes="a thing of this test")(read)
    try:
        assert as_guarantee(made(cost=0.5)).epsilon(0) == 0.5
        assert as_guarantee(heir(cost=0.25), adjacency="replace_one").adjacency is Adjacency.REPLACE_ONE
        assert foreign_guarantee(made(cost=0), None) is None
    finally:
        del READERS._things["test_of_readers"]


def test_an_adjacency_that_contradicts_is_refused():
    assert own_adjacency("it", None, None) is Adjacency.ADD_OR_REMOVE_ONE
    assert own_adjacency("it", Adjacency.REPLACE_ONE, None) is Adjacency.REPLACE_ONE
    with pytest.raises(AdjacencyError, match="it is for 'replace_one'"):
        own_adjacency("it", Adjacency.REPLACE_ONE, Adjacency.ADD_OR_REMOVE_ONE)
    with pytest.raises(AdjacencyError, match="must be one of"):
        as_guarantee((1.0, 1e-6), adjacency="neighbours")


def test_numbers_are_numbers():
    assert all(is_plain_number(n) for n in (1, 1.0, Fraction(1, 3), Decimal("0.1"), np.float64(1), np.int64(3)))
    assert not any(is_plain_number(n) for n in (True, "1", None, 1j, np.bool_(True)))


def test_what_is_unknown_is_told_what_is_taken():
    with pytest.raises(ArgumentError, match=r"thing must be a Guarantee, got object\. Also taken: a Mech"):
        as_guarantee(object())
