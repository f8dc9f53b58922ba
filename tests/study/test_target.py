"""The label: its classes or its bounds, and how its cells are read."""

import numpy as np
import pytest

from dpselect.errors import ContentError
from dpselect.study.target import Target
from dpselect.tables import Declared


def test_classes_are_read_as_positions_and_other_cells_as_minus_one():
    target = Target(("no", "yes"))
    assert target.task == "classification"
    assert target.read("y", np.array(["yes", "no", "maybe", ""], dtype=object)).tolist() == [1, 0, -1, -1]
    assert Target((0, 1), cells=Declared(kind="number")).read("y", np.array([1.0, 0.0, 2.0])).tolist() == [1, 0, -1]


def test_numbers_are_clipped_at_the_bounds_and_one_that_is_missing_is_refused():
    target = Target(bounds=(-2.0, 6.0))
    assert (target.task, target.width) == ("regression", 8.0)
    assert target.read("y", np.array([-3.0, 0.5, 7.0])).tolist() == [-2.0, 0.5, 6.0]
    with pytest.raises(ContentError, match="column 'y' has a label that is missing or no number"):
        target.read("y", np.array([1.0, np.nan]))


def test_shares_are_positions_between_the_bounds():
    target = Target(bounds=(-2.0, 6.0))
    assert target.shares(np.array([-9.0, -2.0, 0.0, 6.0, 9.0, np.nan])).tolist() == [0.0, 0.0, 0.25, 1.0, 1.0, 1.0]
    assert Target(bounds=(-1.7e308, 1.7e308)).shares(np.array([0.0])).tolist() == [0.5]
