"""Exact hockey-stick divergences of laws on few outputs, for tests."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["hockey_stick", "knots_of", "random_pair", "squared"]

Law = NDArray[np.float64]


def random_pair(random: np.random.Generator, outputs: int = 3) -> tuple[Law, Law]:
    """Two laws on so many outputs, some of them near each other."""
    p = random.dirichlet(np.full(outputs, 1.0))
    q = p * np.exp(random.normal(0.0, random.uniform(0.05, 1.0), outputs))
    return p, q / np.sum(q)


def hockey_stick(p: Law, q: Law, epsilon: float) -> float:
    """The sum of (p - exp(epsilon) q) where it is positive."""
    return math.fsum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(p.tolist(), q.tolist(), strict=True))


def knots_of(p: Law, q: Law) -> list[float]:
    """Where the divergences of both directions bend, and 0."""
    losses = np.abs(np.log(p) - np.log(q))
    return sorted({0.0, *losses.tolist()})


def squared(p: Law) -> Law:
    """The law of two independent outputs."""
    return np.outer(p, p).ravel()
