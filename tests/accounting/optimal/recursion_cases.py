"""Random pairs of few atoms, random numbers of runs, and the best of all orders."""

from __future__ import annotations

import itertools

import numpy as np

from dpselect.privacy.losses.discretise import DominatingPair
from dpselect.repetitions import (
    BetaBinomial,
    Binomial,
    Fixed,
    Geometric,
    Harmonic,
    Logarithmic,
    Poisson,
    Repetitions,
    Tabulated,
    TruncatedNegativeBinomial,
    Uniform,
    capped,
)


def random_law(random: np.random.Generator) -> Repetitions:
    gamma = float(10.0 ** random.uniform(-4.0, -0.1))
    limit = int(random.integers(2, 40))
    two = np.zeros(limit + 4)
    two[int(random.integers(0, 4))], two[-1] = 0.9, 0.1
    return [
        lambda: Logarithmic(gamma=gamma),
        lambda: Geometric(gamma=gamma),
        lambda: TruncatedNegativeBinomial(eta=float(random.uniform(-0.9, -0.1)), gamma=gamma),
        lambda: TruncatedNegativeBinomial(eta=float(random.uniform(0.1, 6.0)), gamma=gamma),
        lambda: Poisson(mean=float(10.0 ** random.uniform(-0.5, 2.0))),
        lambda: Fixed(count=limit),
        lambda: Uniform(limit=limit),
        lambda: Harmonic(limit=limit),
        lambda: Binomial(trials=limit, probability=float(random.uniform(0.05, 0.95))),
        lambda: BetaBinomial(trials=limit, shape=0.5),
        lambda: capped(Geometric(gamma=max(gamma, 0.02)), limit),
        lambda: Tabulated(probabilities=two.tolist()),
    ][int(random.integers(12))]()


def random_pair(random: np.random.Generator, most: int) -> DominatingPair:
    """Between 2 and `most` atoms, with masses of zero on either side and tied ratios among them."""
    n = int(random.integers(2, most + 1))
    p = random.dirichlet(np.full(n, random.choice([0.3, 1.0, 3.0])))
    near = p * np.exp(random.choice([0.05, 0.3, 1.0]) * random.normal(size=n))
    q = near if random.random() < 0.5 else random.dirichlet(np.full(n, random.choice([0.3, 1.0, 3.0])))
    if random.random() < 0.3:
        p[random.integers(n)] = 0.0
    if random.random() < 0.3:
        q[random.integers(n)] = 0.0
    if random.random() < 0.2 and n > 2 and p[1] > 0.0:
        q[0] = p[0] * q[1] / p[1]
    kept = (p > 0.0) | (q > 0.0)
    p, q = p[kept] / p.sum(), q[kept] / q.sum()
    with np.errstate(divide="ignore"):
        losses = np.log(p) - np.log(q)
    order = np.argsort(losses, kind="stable")
    return DominatingPair(losses=losses[order], upper=p[order], lower=q[order])


def split(pair: DominatingPair, parts: int) -> DominatingPair:
    return DominatingPair(
        losses=np.repeat(pair.losses, parts),
        upper=np.repeat(pair.upper / parts, parts),
        lower=np.repeat(pair.lower / parts, parts),
    )


def brute_force(pair: DominatingPair, law: Repetitions, epsilon: float) -> float:
    """The largest hockey-stick divergence over all orders of the atoms, from the definition."""
    orders = np.array(list(itertools.permutations(range(pair.upper.size))))
    start = np.zeros((len(orders), 1))
    laws = [
        np.diff(law.pgf(np.clip(np.concatenate((start, np.cumsum(mass[orders], axis=1)), axis=1), 0.0, 1.0)), axis=1)
        for mass in (pair.upper, pair.lower)
    ]
    return float(np.max(np.sum(np.maximum(laws[0] - np.exp(epsilon) * laws[1], 0.0), axis=1)))
