"""Scores of one output: fitted on some draws, they read each other output by itself."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.audit.outputs import as_outputs
from dpselect.audit.scores import fitted_scores
from dpselect.randomness import keyed_source


@pytest.mark.full
def test_scores_do_not_depend_on_the_place_of_an_output():
    """A product of matrices may: rows at the end of an array are summed in another order."""
    source = keyed_source("places")
    rows = np.round(source.normal((2, 800, 7)), 1)
    for score in fitted_scores(*(as_outputs(side) for side in rows), low_bits=True):
        one = as_outputs(rows[0, :1])
        for size in range(1, 20):
            assert set(score(as_outputs(np.repeat(rows[0, :1], size, axis=0)))) == set(score(one))
