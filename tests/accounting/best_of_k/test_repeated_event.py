"""Repeat-and-select events are the best of K runs."""

from __future__ import annotations

import math

import pytest
from dp_accounting import dp_event as de

from dpselect.accounting import best_of
from dpselect.accounting.best_of_k.repeated_event import repetitions_of
from dpselect.errors import ArgumentError
from dpselect.privacy import as_guarantee, compose, laplace
from dpselect.repetitions import Geometric, Logarithmic, Poisson, TruncatedNegativeBinomial

BASE = de.LaplaceDpEvent(2.0)


@pytest.mark.parametrize(
    ("shape", "law"),
    [
        (math.inf, Poisson(mean=5)),
        (0, Logarithmic.with_mean(mean=5)),
        (1, Geometric.with_mean(mean=5)),
        (0.5, TruncatedNegativeBinomial.with_mean(eta=0.5, mean=5)),
    ],
)
def test_it_is_best_of(shape, law):
    assert repetitions_of(5, shape) == law
    found = as_guarantee(de.RepeatAndSelectDpEvent(BASE, 5, shape))
    assert found.epsilon(0) == best_of(laplace(scale=2.0), law).epsilon(0)


@pytest.mark.full
def test_it_composes_and_one_run_is_one_run():
    once = de.RepeatAndSelectDpEvent(BASE, 5, 1)
    searched = best_of(laplace(scale=2.0), Geometric(gamma=0.2))
    twice = as_guarantee(de.SelfComposedDpEvent(once, 2))
    assert twice.epsilon(0) == compose(searched, searched).epsilon(0)
    assert as_guarantee(de.RepeatAndSelectDpEvent(BASE, 1, 1)).epsilon(0) == 0.5


@pytest.mark.parametrize(
    ("mean", "shape"), [(0.5, 1), (math.nan, 1), (5, -0.5), (5, math.nan), (math.inf, 1), ("5", 1)]
)
def test_other_distributions_are_refused(mean, shape):
    with pytest.raises(ArgumentError, match=r"mean|shape"):
        as_guarantee(de.RepeatAndSelectDpEvent(BASE, mean, shape))
