"""A band that holds the distribution function of a column, from released quantiles and their rank errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

__all__ = ["distribution_band"]


def distribution_band(shares: Sequence[float], errors: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return bounds (low, high) on the distribution function F at the values of increasing quantiles.

    Let F(v) be the share of rows at most v. If each value is off by at most its error, then F is at least low[i] from
    value i on, and at most high[i] below value i. So between value i and the next one it is from low[i] to high[i + 1].

    Let a value at share q be off by at most e. Then at least q - e of the rows are at most the value, and at most q + e
    are below it. F increases, so the largest lower bound up to a value holds there. So does the least upper bound from
    it on.

    >>> low, high = distribution_band([0.25, 0.5, 0.75], [0.05, 0.125, 0.375])
    >>> [round(bound, 3) for bound in low], [round(bound, 3) for bound in high]
    ([0.2, 0.375, 0.375], [0.3, 0.625, 1.0])
    """
    pairs = list(zip(shares, errors, strict=True))
    low = [max(math.nextafter(share - error, -math.inf), 0.0) for share, error in pairs]
    high = [min(math.nextafter(share + error, math.inf), 1.0) for share, error in pairs]
    return list(accumulate(low, max)), list(accumulate(reversed(high), min))[::-1]
