"""Requests for a column: which kinds declare dates."""

from __future__ import annotations

import pytest

from dpselect.ordered.sources.request import ColumnRequest
from dpselect.tables import Declared


@pytest.mark.parametrize(
    ("kind", "dates"), [("date", True), ("timestamp", True), ("duration", False), ("number", False), (None, False)]
)
def test_dates_are_declared_by_their_kind(kind, dates):
    assert ColumnRequest(column="x", declared=None if kind is None else Declared(kind=kind)).dates is dates
