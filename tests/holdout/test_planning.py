"""Rows, errors and questions of a holdout: each plan inverts the other."""

from __future__ import annotations

import pytest

from dpselect.errors import ArgumentError
from dpselect.holdout import HoldoutRequest
from dpselect.holdout.planning import fresh_error, most_fresh_answers, rows_needed


def test_planning_inverts():
    terms = {
        "metric": "accuracy",
        "questions": 100,
        "answers": 10,
        "failure_probability": 0.05,
        "mechanism": "counting",
    }
    request = HoldoutRequest(**terms)
    rows = rows_needed(request, 0.05)
    assert request.plan(rows=rows).plan.error <= 0.05 < request.plan(rows=rows - rows // 400).plan.error
    even = most_fresh_answers(rows, 0.05, 0.05)
    assert fresh_error(rows, even, 0.05) <= 0.05 < fresh_error(rows, even + 1, 0.05)
    with pytest.raises(ArgumentError, match="blocks have no error"):
        rows_needed(HoldoutRequest(**{**terms, "metric": "auc", "mechanism": "blocks"}, epsilon=1.0), 0.05)
