"""Readings of structured outputs: which features become columns, and that each output is read by itself."""

from __future__ import annotations

import numpy as np

from dpselect.audit.callables import collected
from dpselect.audit.outputs import as_outputs, joined
from dpselect.audit.readings import dissected, fitted_reading
from dpselect.randomness import keyed_source
from tests.audit.test_dissection import ANYTHING


def test_a_reading_reads_each_output_by_itself():
    """No matter what stands beside it."""
    source = keyed_source("beside")
    rows = [ANYTHING[int(place)] for place in source.words(400) % len(ANYTHING)]
    sides = [dissected(as_outputs(collected(rows[start::2]))) for start in range(2)]
    reading = fitted_reading(*sides)
    assert reading.columns
    together = reading(joined([as_outputs(collected(rows[start : start + 40])) for start in range(0, 400, 40)]))
    for place in range(0, 400, 7):
        alone = reading(as_outputs(collected([rows[place]])))
        np.testing.assert_array_equal(together.columns[place], alone.columns[0])
