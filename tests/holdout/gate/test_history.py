"""The fold over the entries of a gate, and the counter that never shows more than is left."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings, strategies as st

from dpselect.holdout.gate.error_budget import ErrorBudget
from dpselect.holdout.gate.history import GateState, fold_gate

STAKES = st.lists(st.tuples(st.floats(0.01, 1.0), st.booleans()), max_size=12)


@settings(max_examples=50, deadline=None)
@given(STAKES)
def test_the_counter_never_says_more_than_is_left(steps):
    """Before an answer it says the less of what both answers leave."""
    state = GateState(ErrorBudget(Fraction(0.05), consultations=20), Fraction(0.02))
    for share, accepted in steps:
        if not state.budget.left:
            break
        open_ask = state.charged(state.budget.stake(state.budget.left * Fraction(share)), None)
        after = open_ask.answered({"answer": accepted, "incumbent": ""})
        for told in (open_ask, after):
            _, left, bounds = told.exposure()
            assert ErrorBudget.left_from(left) <= min(after.budget.left, told.budget.left)
            assert ErrorBudget.left_from(bounds) <= after.bounds
            lost = state.lost(told.exposure())
            assert lost.budget.left <= after.budget.left
        assert after.budget.left <= state.budget.left
        assert after.bounds <= state.bounds
        state = after


def test_a_fold_is_what_was_done():
    start = GateState(ErrorBudget(Fraction(1, 16), consultations=4), Fraction(0))
    entries = [
        {"charge": ["1/64", "a"]},
        {"answer": 1, "incumbent": "A"},
        {"charge": ["1/128", "b"]},
        {"charge": ["1/256", "b"]},
        {"answer": 0, "incumbent": "A"},
    ]
    state = fold_gate(start, entries)
    assert state.budget.left == Fraction(1, 256)
    assert [ask.accepted for ask in state.asks] == [True, None, False]
    assert (state.accepts, state.incumbent, state.recorded("b"), state.recorded("c")) == (1, "A", False, None)
    assert fold_gate(state, [{"retired": 1}]).budget.left == 0
