"""Equality up to the digits that are printed."""

from __future__ import annotations

import math


def close(value: float, expected: float, digits: float = 5e-7) -> bool:
    """Equal up to the digits that the expected number is given to."""
    return math.isclose(value, expected, rel_tol=digits)
