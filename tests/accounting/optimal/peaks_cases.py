"""Random pairs with near masses, and random numbers of runs."""

from __future__ import annotations

import numpy as np

from dpselect.privacy.losses.discretise import DominatingPair
from dpselect.repetitions import (
    Fixed,
    Geometric,
    Logarithmic,
    Poisson,
    Repetitions,
    Uniform,
)


def near_pair(random: np.random.Generator, size: int, scale: float) -> DominatingPair:
    p = random.dirichlet(np.full(size, 2.0))
    q = p * np.exp(scale * random.normal(size=size))
    q /= q.sum()
    losses = np.log(p) - np.log(q)
    order = np.argsort(losses, kind="stable")
    return DominatingPair(losses=losses[order], upper=p[order], lower=q[order])


def some_law(random: np.random.Generator) -> Repetitions:
    return [
        Geometric(gamma=float(10.0 ** random.uniform(-4, -0.1))),
        Logarithmic(gamma=float(10.0 ** random.uniform(-4, -0.1))),
        Poisson(mean=float(10.0 ** random.uniform(0, 2))),
        Fixed(count=int(random.integers(2, 30))),
        Uniform(limit=int(random.integers(2, 30))),
    ][int(random.integers(5))]
