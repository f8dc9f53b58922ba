"""How many rows a holdout needs, and what new rows for every question would give."""

from __future__ import annotations

import math

from dpselect.errors import ArgumentError
from dpselect.holdout.terms import HoldoutRequest
from dpselect.numerics.search import first_true, last_true

__all__ = ["fresh_error", "most_fresh_answers", "rows_needed"]

_MOST_ROWS = 1 << 26


def fresh_error(rows: int, questions: int, failure_probability: float) -> float:
    """The error of scores on an equal part of the rows for each question (Hoeffding 1963), or 1 if there is no part.

    >>> round(fresh_error(10_000, 100, 0.05), 4)
    0.2036
    """
    each = rows // questions
    return min(1.0, math.sqrt(math.log(2.0 * questions / failure_probability) / (2.0 * each))) if each else 1.0


def most_fresh_answers(rows: int, error: float, failure_probability: float) -> int:
    """For how many questions new rows are at least as exact as `error`.

    >>> most_fresh_answers(10_000, 0.0716, 0.05)
    15
    """
    return last_true(lambda k: fresh_error(rows, k, failure_probability) <= error, 1, rows) or 0


def rows_needed(request: HoldoutRequest, error: float) -> int:
    """The fewest rows, nearly, for which this error is certified. Raises `ArgumentError` when none are.

    >>> request = HoldoutRequest(metric="accuracy", questions=1000, answers=10, failure_probability=0.05)
    >>> rows_needed(request, 0.05) < 30_000
    True
    """

    def enough(rows: int) -> bool:
        try:
            found = request.plan(rows=rows).plan.error
        except ArgumentError:
            return False
        if found is None:
            raise ArgumentError("blocks have no error to plan for; give rows")
        return found <= error

    found = first_true(enough, 1, _MOST_ROWS, start=64, step=64, relative=1e-3)
    if found is None:
        request.plan(rows=_MOST_ROWS)  # anything that is wrong with the terms
        raise ArgumentError(f"no number of rows up to {_MOST_ROWS} certifies this error")
    return found
