"""The lower convex hull, in exp(epsilon), of points on or above a privacy profile.

True profiles are convex in exp(epsilon): the chord between any two upper bounds is an upper bound, and so is the hull.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics import Array

__all__ = ["hull_points"]


_PASSES = 30


def hull_points(epsilons: Array, values: Array) -> NDArray[np.intp]:
    """The indices of the points on the hull; `epsilons` ascend."""
    knots = np.arange(epsilons.size)
    # a point on or above the chord of its neighbours is left out, together with all others like it
    for _ in range(_PASSES):
        e, v = epsilons[knots], values[knots]
        # slope to the point against slope to the next, both from the one before, with its exp(epsilon) divided out
        here = (v[1:-1] - v[:-2]) / np.expm1(e[1:-1] - e[:-2])
        ahead = (v[2:] - v[:-2]) / np.expm1(e[2:] - e[:-2])
        above = np.flatnonzero(here >= ahead) + 1
        if not above.size:
            break
        knots = np.delete(knots, above)
    kept: list[int] = []
    e, v = epsilons.tolist(), values.tolist()
    for i in knots.tolist():
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (v[b] - v[a]) / math.expm1(e[b] - e[a]) < (v[i] - v[a]) / math.expm1(e[i] - e[a]):
                break
            kept.pop()
        kept.append(i)
    return np.array(kept)
