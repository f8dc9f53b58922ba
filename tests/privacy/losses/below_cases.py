"""Random pairs of a few atoms in fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpselect.privacy.losses.discretise import DominatingPair


def random_pair(random, size):
    """A random pair of few atoms in fractions, P-less and P'-less ones among them."""
    masses = random.integers(0, 30, (2, size)) + np.array([[1], [1]]) * (random.random(size) < 0.8)
    masses[:, 0] += 1
    upper, lower = ([Fraction(int(m), int(row.sum())) for m in row] for row in masses)
    return upper, lower


def as_pair(upper, lower):
    kept = [(p, q) for p, q in zip(upper, lower, strict=True) if p or q]
    losses = [
        math.inf
        if not q
        else -math.inf
        if not p
        else math.log(p.numerator * q.denominator) - math.log(p.denominator * q.numerator)
        for p, q in kept
    ]
    order = np.argsort(losses)
    return DominatingPair(
        losses=np.array(losses)[order],
        upper=np.array([float(p) for p, _ in kept])[order],
        lower=np.array([float(q) for _, q in kept])[order],
    )
