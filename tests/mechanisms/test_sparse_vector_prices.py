"""The price of a sparse vector's session by its positives, and by positives and negatives, against exact laws.

"Fact n" are worked examples for Hartmann, Bindschaedler, Bentkamp, West (2022), computed by hand or integration.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpselect.errors import ArgumentError, BudgetError
from dpselect.mechanisms import SparseVector
from dpselect.mechanisms.sparse_vector_prices import (
    answer_counts,
    number_of_positives,
    refined_sparse_vector_guarantee,
    sparse_vector_guarantee,
    unprotected_threshold_guarantee,
)
from dpselect.randomness import keyed_source
from tests.audits.broken_sparse_vectors import SparseVectorLaw, corrected

T, F = True, False
QUADRATURE = 1e-9
"""Gauss-Legendre error of the laws, relative."""


def refined(**changes):
    return refined_sparse_vector_guarantee(
        **{"epsilon_threshold": 1, "epsilon_queries": 1, "max_positives": 2, **changes}
    )


def monotonic_law(epsilon_threshold, epsilon_queries, c):
    return SparseVectorLaw(threshold_scale=1 / epsilon_threshold, query_scale=c / epsilon_queries, max_positives=c)


@pytest.mark.parametrize(
    ("pattern", "by_positives", "price"),
    [
        ([F], 1, 0.25),
        ([T], 1.5, 0.25),
        ([T, T], 2, 0.5),
        ([F, T], 1.5, 0.5),
        ([F] * 10, 1, 1.0),
        ([F] * 10 + [T], 1.5, 1.5),
        ([F] * 10 + [T, T], 2, 2.0),
    ],
)
def test_fact_13_the_refined_price_is_attained(pattern, by_positives, price):
    """Equal to the exact loss at the worst levels, 40 and -20, by quadrature."""
    assert refined().price(answer_counts(pattern)) == price
    lemma_8 = sparse_vector_guarantee(epsilon_threshold=1, epsilon_queries=1, max_positives=2)
    assert lemma_8.price(number_of_positives(pattern)) == by_positives
    losses = []
    for sign in (1.0, -1.0):
        ours = [sign * (-40.0 if a else 20.0) for a in pattern]
        theirs = [g + (-1.0 if a else 1.0) for g, a in zip(ours, pattern, strict=True)]
        losses.append(corrected(1, 1, 2).log_ratio(ours, theirs, pattern))
    loss = max(losses)
    assert loss == pytest.approx(price, abs=1e-6)
    assert loss <= price + QUADRATURE


@pytest.mark.full
@given(
    gaps=st.lists(st.floats(-20, 20), min_size=1, max_size=6),
    moves=st.lists(st.floats(-1, 1), min_size=6, max_size=6),
    pattern=st.lists(st.booleans(), min_size=6, max_size=6),
    cap=st.integers(1, 3),
    direction=st.sampled_from([None, 1, -1]),
)
@settings(max_examples=150)
def test_no_pattern_costs_more_than_its_counts(gaps, moves, pattern, cap, direction):
    answers = pattern[: len(gaps)]
    while number_of_positives(answers[:-1]) >= cap:
        answers = answers[:-1]
    ours = gaps[: len(answers)]
    if direction is not None:
        moves = [direction * abs(m) for m in moves]
    law = (corrected if direction is None else monotonic_law)(0.7, 1.1, cap)
    loss = law.log_ratio(ours, [g + m for g, m in zip(ours, moves, strict=False)], answers)
    parameters = {"epsilon_threshold": 0.7, "epsilon_queries": 1.1, "max_positives": cap}
    price = refined(**parameters, monotonic=direction is not None).price(answer_counts(answers))
    assert loss <= price + 1e-7
    assert price <= sparse_vector_guarantee(**parameters).price(number_of_positives(answers))


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize(("first", "second"), [(1.0, 1.0), (0.1, 2.0), (3.0, 0.5)])
def test_the_supremum_is_the_largest_price(monotonic, first, second):
    for cap, queries in itertools.product((1, 2, 5), (1, 2, 3, 8, 40)):
        g = refined(
            epsilon_threshold=first,
            epsilon_queries=second,
            max_positives=cap,
            max_queries=queries,
            monotonic=monotonic,
        )
        cells = ((p, n) for p in range(cap + 1) for n in range(queries - p + 1))
        assert g.worst_epsilon == max(g.price(cell) for cell in cells)
        for outside in ((cap + 1, 0), (0, queries + 1)):
            with pytest.raises(ArgumentError, match="cell"):
                g.price(outside)
    assert refined(epsilon_threshold=first, epsilon_queries=second, monotonic=monotonic).worst_epsilon == first + second


def test_fact_14_and_27_prices_by_positives():
    """Steps of epsilon_queries/c, from epsilon_threshold to the whole; without query budget, epsilon_threshold."""
    prices = sparse_vector_guarantee(epsilon_threshold=0.5, epsilon_queries=2.0, max_positives=8).epsilons
    assert [prices[c] for c in range(9)] == [0.5 + 0.25 * c for c in range(9)]
    tiny = sparse_vector_guarantee(epsilon_threshold=0.5, epsilon_queries=2.0**-200, max_positives=8).epsilons
    assert all(price == pytest.approx(0.5, abs=1e-15) for price in tiny.values())


def test_zoo_a_threshold_noise_shared_by_two_sessions():
    """Ten negatives, then ten positives of another session with the same noise: together above both prices.

    By positives alone the two would be covered: the noise moves once, in one direction. The refined prices let each
    session choose its own.
    """
    cap, each = 10, {"epsilon_threshold": 0.2, "epsilon_queries": 20.0, "max_positives": 10}
    pattern = [F] * 10 + [T] * 10
    together = SparseVectorLaw(threshold_scale=5.0, query_scale=1.0, max_positives=cap)
    ours = [20.0] * 10 + [-20.0] * 10
    loss = together.log_ratio(ours, [g + (-1.0 if a else 1.0) for g, a in zip(ours, pattern, strict=True)], pattern)
    sessions = [answer_counts(pattern[:10]), answer_counts(pattern[10:])]
    assert sum(refined(**each).price(cell) for cell in sessions) == pytest.approx(0.4)
    assert loss > 5.0
    apart = [
        together.log_ratio(
            ours[part],
            [g + (-1.0 if a else 1.0) for g, a in zip(ours[part], pattern[part], strict=True)],
            pattern[part],
        )
        for part in (slice(0, 10), slice(10, 20))
    ]
    assert sum(apart) <= 0.4 + QUADRATURE


def test_sessions_with_a_limit_on_queries():
    def session(**changes):
        return SparseVector(
            **{"epsilon_threshold": 1, "epsilon_queries": 1, "max_positives": 2, "max_queries": 3, **changes},
            random=keyed_source(1),
        )

    sv = session()
    assert not sv.above(-90.0, 0.0)
    for ask in (lambda: sv.above_many(np.full(3, -90.0), 0.0), lambda: sv.above_many(np.full(9, 90.0), 0.0)):
        with pytest.raises(BudgetError, match="3 queries"):
            ask()
    assert sv.above_many([-90.0, -90.0], 0.0).tolist() == [F, F]
    with pytest.raises(BudgetError, match="3 queries"):
        sv.above(0.0, 0.0)
    assert not sv.halted
    assert sv.refined_guarantee.worst_epsilon == 0.75
    assert session(max_queries=None, monotonic=True).refined_guarantee.worst_epsilon == 2.0
    with pytest.raises(ArgumentError, match="max_queries"):
        session(max_queries=0)


def test_an_epsilon_whose_share_is_no_number_is_named():
    with pytest.raises(ArgumentError, match="epsilon_queries"):
        refined(epsilon_queries=5e-324)


def test_no_epsilon_is_negative_and_one_positive_is_enough():
    for name in ("epsilon_threshold", "epsilon_queries"):
        for wrong in (-0.5, float("nan"), float("inf")):
            with pytest.raises(ArgumentError, match=name):
                sparse_vector_guarantee(
                    **{"epsilon_threshold": 1.0, "epsilon_queries": 2.0, "max_positives": 1, name: wrong}
                )
    one = sparse_vector_guarantee(epsilon_threshold=1.0, epsilon_queries=2.0, max_positives=1)
    assert one.epsilons == {0: 1.0, 1: 3.0}
    assert unprotected_threshold_guarantee(epsilon_queries=0.5, max_positives=1).epsilon(delta=1e-6) > 0.0
    with pytest.raises(ArgumentError, match="epsilon_queries"):
        unprotected_threshold_guarantee(epsilon_queries=0.0, max_positives=1)
