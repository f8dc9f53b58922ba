"""Discrete losses from hockey-stick curves on a mesh: connecting the dots (Doroshenko et al. 2022).

Between mesh points w apart the curve is raised to its chord in exp(epsilon), which is the curve of a discrete law. With
h the curve of one direction and r that of the other one, both at e >= 0, its loss L under the first distribution has

    P(L >= e) = h(e-w) + (h(e-w) - h(e)) / (exp(w) - 1)        for e > 0,
    P(L <= -e) = exp(-(e-w)) (r(e-w) - r(e)) / (exp(w) - 1)    for e > 0,

and the rest of its mass at loss 0. The first form keeps its digits above loss 0 and the second below it, where the
library's single curve over both signs leaves a noise of 1e-16 / w in the tails.

Upper bounds on h and r give upper bounds on both sides, as the hockey-stick divergence of the law at a mesh point
e >= 0 is a sum of the P(L >= e') with positive weights, and r does the same below zero. So errors of the curves are
added to the first form and taken off the second, and tails that do not fall are raised to later ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.numerics.search import Array
from dpselect.privacy.losses.composition import Losses

__all__ = ["MOST_POINTS", "Curve", "connect_the_dots", "hull_points", "lower_hull", "on_mesh"]


Curve = tuple[Array, Array]
"""A hockey-stick curve at 0, w, 2w, ..., and a bound on its absolute error."""

MOST_POINTS = 1 << 21
"""Longest mesh of one side; what lies past it counts as infinite loss above, and as the least loss below."""

_FARTHEST = 600.0
_FLOOR = 1e-40
_TRIED = 256
_ROUNDING = 1e-14
_UNIT = 2.0**-53


def connect_the_dots(width: float, here: Curve, other: Curve) -> Losses:
    """The discrete losses of a direction from its curve and that of the other direction, on meshes of this width."""
    growth = math.expm1(width)
    high, low = here[0] * (1.0 + _ROUNDING) + here[1], here[0] - here[1]
    tails = high[:-1] + (high[:-1] - low[1:]) / growth
    tails = np.minimum(np.maximum.accumulate(tails[::-1])[::-1] * (1.0 + _ROUNDING), 1.0)
    infinite = min(float(high[-1]), float(tails[-1]))
    high, low = other[0] + other[1], other[0] - other[1]
    scale = np.exp(-np.arange(high.size - 1) * width) / growth * (1.0 - _ROUNDING)
    heads = np.maximum.accumulate(np.maximum((low[:-1] - high[1:]) * scale, 0.0)[::-1])
    heads = np.minimum(heads, 1.0 - tails[0])
    middle = 1.0 - float(tails[0]) - float(heads[-1]) + 4.0 * _UNIT  # not less than the rounding took off
    above = np.append(tails[:-1] - tails[1:], tails[-1] - infinite)
    masses = np.concatenate((np.diff(heads, prepend=0.0), [middle], above))
    return Losses(width, -heads.size, masses, infinite)


def on_mesh(curve: Callable[[Array], Array], width: float) -> Curve:
    """An upper bound on a hockey-stick curve at 0, width, 2 width, ..., as far as it falls.

    True curves are convex in exp(epsilon), so the lower convex hull of a bound is one too.
    """
    # in one call: some curves build a table for many points, which the mesh then reads
    tried = np.geomspace(min(2.0 * width, _FARTHEST), _FARTHEST, _TRIED)
    deltas = np.asarray(curve(tried))
    top = float(tried[np.argmax(deltas <= max(_FLOOR, float(deltas[-1]) * (1.0 + 1e-9)))])
    points = min(math.ceil(top / width), MOST_POINTS) + 1
    epsilons = np.asarray(np.arange(points) * width, dtype=np.float64)
    # a product of two floating-point numbers may be above the point that it stands for
    values = np.clip(curve(epsilons * (1.0 - 4.0 * _UNIT)), 0.0, 1.0)
    values = lower_hull(epsilons, np.minimum.accumulate(np.asarray(values, dtype=np.float64)))
    return values, np.zeros(values.size)


def lower_hull(epsilons: Array, values: Array) -> Array:
    """The largest function below `values` that is convex in exp(epsilon). Values convex up to rounding stay."""
    falls = (values[:-1] - values[1:]) / -np.expm1(epsilons[:-1] - epsilons[1:])
    tails = values[:-1] + falls * np.exp(epsilons[0] - epsilons[1])
    if np.all(np.maximum.accumulate(tails[::-1])[::-1] <= tails * (1.0 + 1e-9)):
        return values
    knots = hull_points(epsilons, values)
    right = np.minimum(np.searchsorted(knots, np.arange(values.size), side="right"), knots.size - 1)
    left, end = knots[right - 1], knots[right]
    # both weights by themselves: one less the other would lose the small values at the end of a long chord
    last = np.expm1(epsilons - epsilons[left]) / np.expm1(epsilons[end] - epsilons[left])
    first = np.expm1(np.minimum(epsilons - epsilons[end], 0.0)) / np.expm1(epsilons[left] - epsilons[end])
    chord = values[left] * first + values[end] * np.minimum(last, 1.0)
    return np.asarray(np.minimum(values, chord * (1.0 + 16.0 * _UNIT)))


def hull_points(epsilons: Array, values: Array) -> NDArray[np.intp]:
    """The indices of the points on the lower convex hull, in exp(epsilon), of points on or above a privacy profile.

    `epsilons` ascend. True profiles are convex in exp(epsilon): the chord between any two upper bounds is an upper
    bound, and so is the hull.
    """
    knots = np.arange(epsilons.size)
    # a point on or above the chord of its neighbours is left out, together with all others like it
    for _ in range(30):
        e, v = epsilons[knots], values[knots]
        # the fall to the point against that of the chord to the next, both from the one before
        above = np.flatnonzero(v[1:-1] - v[:-2] >= (v[2:] - v[:-2]) * _share(e[:-2], e[1:-1], e[2:])) + 1
        if not above.size:
            break
        knots = np.delete(knots, above)
    kept: list[int] = []
    e, v = epsilons.tolist(), values.tolist()
    for i in knots.tolist():
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if v[b] - v[a] < (v[i] - v[a]) * _share(e[a], e[b], e[i], math):
                break
            kept.pop()
        kept.append(i)
    return np.array(kept)


def _share(first: Any, point: Any, last: Any, functions: Any = np) -> Any:
    """How far the point is from the first to the last in exp(epsilon), in [0, 1]. Epsilons may be far apart."""
    return functions.exp(point - last) * functions.expm1(first - point) / functions.expm1(first - last)
