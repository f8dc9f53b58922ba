"""Values to the six digits that are printed."""

import pytest

SIX = {"rel": 2e-6}


def near(value, **tolerance):
    return pytest.approx(value, **(tolerance or SIX))
