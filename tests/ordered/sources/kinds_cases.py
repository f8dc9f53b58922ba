"""A median and quantiles of days."""

from __future__ import annotations

import numpy as np

from dpselect.ordered import median, quantiles
from dpselect.randomness import keyed_source

BOUNDS = {"lower": "2024-01-01", "upper": "2024-12-31", "granularity": np.timedelta64(1, "D"), "epsilon": 4.0}
MIDDLE = np.datetime64("2024-05-30")


def near_the_middle(values):
    found = median(values, random=keyed_source(1), **BOUNDS).value
    assert abs(found - MIDDLE) < np.timedelta64(4, "D")
    several = quantiles(values, qs=[0.25, 0.5, 0.75], random=keyed_source(2), **BOUNDS).value
    assert several == sorted(several)
    assert abs(several[1] - MIDDLE) < np.timedelta64(6, "D")
