"""Exact distributions of a quantile of weighted rows."""

from __future__ import annotations

from fractions import Fraction

SIZE, BASE = 3, Fraction(2)


def score(rows, z, target):
    at_most = sum(u for x, u in rows if x <= z)
    below = sum(u for x, u in rows if x < z)
    return min(at_most - target, target - below)


def law(rows, rate, target, power):
    weights = [BASE ** int(power * rate * score(rows, z, target)) for z in range(SIZE)]
    assert all((power * rate * score(rows, z, target)).denominator == 1 for z in range(SIZE))
    return [w / sum(weights) for w in weights]
