"""Bounds on the best of K runs, registered by name."""

from __future__ import annotations

import pytest

from dpselect.accounting import best_of
from dpselect.accounting.best_of_k.search_bound import BOUNDS, default_bounds, search_bound
from dpselect.errors import ArgumentError
from dpselect.privacy import pure_dp
from dpselect.repetitions import Fixed


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    list(BOUNDS)  # its own files are loaded
    monkeypatch.setattr(BOUNDS, "_things", dict(BOUNDS._things))
    monkeypatch.setattr(BOUNDS, "_facts", dict(BOUNDS._facts))


def test_the_defaults_are_those_that_are_marked():
    assert set(default_bounds()) == {"optimal", "renyi", "pure"}
    search_bound("test-marked", by_default=True)(lambda base, law: None)
    search_bound("test-other")(lambda base, law: None)
    assert set(default_bounds()) == {"optimal", "renyi", "pure", "test-marked"}


def test_a_registered_bound_is_used_by_its_name_and_returned_unchanged():
    def twice(base, law):
        return pure_dp(epsilon=2 * base.pure_epsilon)

    assert search_bound("test-twice")(twice) is twice
    assert best_of(pure_dp(epsilon=0.5), Fixed(count=9), bound="test-twice").epsilon(0.0) == 1.0
    with pytest.raises(ArgumentError, match="test-twice"):
        search_bound("test-twice")(lambda base, law: None)
