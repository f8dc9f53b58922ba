"""Durations in seconds, as pandas reads them."""

import datetime
import random
from datetime import time

import pytest

from dpselect.tables import Declared


def test_durations_that_a_spreadsheet_shows_as_a_clock():
    assert Declared(kind="duration").read([time(1, 30), time(0, 0, 1, 500_000)]).tolist() == [5400.0, 1.5]


def test_durations_are_those_of_pandas():
    pd = pytest.importorskip("pandas")
    drawn = random.Random(3)
    texts = [
        f"{drawn.randrange(400)} days {drawn.randrange(24):02}:{k % 60:02}:{drawn.randrange(60):02}" for k in range(500)
    ]
    expected = pd.to_timedelta(pd.Series(texts)).dt.total_seconds()
    assert Declared(kind="duration").read(texts).tolist() == expected.tolist()
    spans = [datetime.timedelta(seconds=drawn.randrange(10**6)) for _ in range(50)]
    assert Declared(kind="duration").read(list(map(str, spans))).tolist() == [span.total_seconds() for span in spans]
