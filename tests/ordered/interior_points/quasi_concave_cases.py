"""Small instances of quasi-concave optimisation."""

from __future__ import annotations

import itertools

from dpselect.ordered.interior_points import quasi_concave_hull


def depth(points, z):
    return min(sum(p <= z for p in points), sum(p >= z for p in points))


def cumulative_distance(one, other, places):
    return max(abs(sum(x <= z for x in one) - sum(x <= z for x in other)) for z in range(places))


def is_quasi_concave(scores):
    return scores == quasi_concave_hull(scores).tolist()


def neighbouring_scores(places, most):
    every = [list(s) for s in itertools.product(range(most + 1), repeat=places) if is_quasi_concave(list(s))]
    return [(a, b) for a in every for b in every if max(abs(x - y) for x, y in zip(a, b, strict=True)) <= 1]
