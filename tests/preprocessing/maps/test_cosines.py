"""Numbers as waves, by the printed formula."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpselect.preprocessing import (
    Cosines,
    DirectionAndCosines,
    RowDirection,
)
from tests.preprocessing.maps_cases import rows


def test_waves_are_those_of_the_formula():
    u, flags = np.array([-0.7, 0.2]), np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    found = Cosines(indicators=[[1, 2, 3]]).fit_transform(np.column_stack([u, flags]))
    norm = math.sqrt(1 + 1 / 4 + 1 / 9 + 1 / 16)
    trig = (np.sin, np.cos, np.sin, np.cos)
    waves = np.column_stack([f(math.pi * k * u / 2) / (k * norm) for k, f in zip(range(1, 5), trig, strict=True)])
    expected = 1.2 * np.hstack([waves, flags]) / math.sqrt(2 + 1)
    assert np.all(np.linalg.norm(expected, axis=1) < 1)
    assert found == pytest.approx(expected, abs=2.0**-15)


def test_joint_holds_both():
    table = rows(2)[:, :3]
    options = {"bounds": (-1, 1), "indicators": [[2]]}
    found = DirectionAndCosines(**options).fit_transform(table) * math.sqrt(2)
    parts = [RowDirection(**options).fit_transform(table), Cosines(**options).fit_transform(table)]
    assert found == pytest.approx(np.hstack(parts), abs=1e-3)
