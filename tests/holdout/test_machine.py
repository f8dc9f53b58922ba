"""The state machine of a holdout: its exposure never goes back."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from dpselect.errors import BudgetError
from dpselect.holdout.machine import Entry, Exposure, State


@given(
    st.lists(st.sampled_from([None, True, False, "lost"]), max_size=12),
    st.integers(1, 6),
    st.integers(1, 6),
    st.booleans(),
)
def test_the_exposure_never_goes_back(kinds, questions, answers, all_answer):
    entries, before = [], Exposure()
    for place, kind in enumerate(kinds):
        if kind == "lost":
            entries.append(Entry(None, exposure=Exposure(before.asked + 1, before.answered + 1)))
        else:
            entries.append(Entry(str(place), kind, 0.5))
        entries[-1] = Entry.parse(entries[-1].fields())
        state = State(questions, answers, all_answer).after(entries)
        assert state.exposure.asked == before.asked + 1
        assert before.answered <= state.exposure.answered <= before.answered + 1
        assert (state.exposure.answered == before.answered) == (kind is True and not all_answer)
        before = state.exposure
        if state.questions_left == 0:
            with pytest.raises(BudgetError):
                state.check()
        else:
            state.check()
            assert state.exposure.asked < questions
            assert state.exposure.answered < answers
