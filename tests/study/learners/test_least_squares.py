"""Least squares as a study names it: for labels that are numbers alone."""

import pytest

from dpselect.errors import StudyError
from dpselect.learners.least_squares import LeastSquares
from dpselect.study.learners import LEARNERS


def test_it_is_for_numbers_alone():
    kind = LEARNERS["least-squares"]
    assert kind.tasks == ("regression",)
    assert kind.for_task("regression") is LeastSquares
    assert (kind.noise_name, kind.inverse, kind.priced) == ("noise_multiplier", False, frozenset())
    with pytest.raises(StudyError, match="knows no classification; there are boosted-trees, dp-sgd, "):
        kind.for_task("classification")
