"""Searches with a few outputs, whose laws are computed exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpselect.privacy import from_profile
from dpselect.repetitions import Binomial, Fixed, Geometric, Harmonic, Uniform

LAWS = [Harmonic(limit=4), Uniform(limit=4), Fixed(count=3), Binomial(trials=4, probability=0.6)]
LAWS += [Geometric(gamma=0.3).at_most(4), Fixed(count=1)]
EPSILONS = np.array([0.0, 0.05, 0.2, 0.5, 1.0, 1.6, 2.5, 4.0])


def law_of_best(law, prior, outputs, rank, policy):
    """P(best has rank r) for each rank, and P(none), by going through every history.

    `outputs[i, o]` is the chance of output o of candidate i, `rank[i, o]` its place in the order. `policy[k]` has a row
    of densities for each history of k runs, histories numbered as digits of (candidate, output) pairs.
    """
    candidate = np.repeat(np.arange(len(prior)), outputs.shape[1])
    chance, places = outputs.ravel(), rank.ravel()
    mass, best = np.ones(1), np.full(1, -1)
    total = np.zeros(places.size)
    for k in range(1, law.limit + 1):
        step = (prior * policy[k - 1])[:, candidate] * chance
        mass = (mass[:, None] * step).ravel()
        best = np.maximum(best[:, None], places).ravel()
        total += float(law.pmf(k)) * np.bincount(best, mass, places.size)
    assert total.sum() + law.zero_probability == pytest.approx(1.0, abs=1e-8)
    return np.append(total, law.zero_probability)


class Instance:
    """Random candidates whose log ratios are at most `epsilon`, most of them exactly that."""

    def __init__(self, generator, *, epsilon, candidates=2, outputs=2):
        self.prior = generator.dirichlet(np.ones(candidates))
        sign = generator.choice([-1.0, 1.0], size=(candidates, outputs))
        sign[:, 0], sign[:, 1] = -1.0, 1.0
        laws = []
        for row in sign:
            up, down = row > 0, row < 0
            one, two = np.zeros(outputs), np.zeros(outputs)
            share = generator.dirichlet(np.ones(up.sum())), generator.dirichlet(np.ones(down.sum()))
            likely = math.exp(epsilon) / (1 + math.exp(epsilon))
            one[up], one[down] = likely * share[0], (1 - likely) * share[1]
            two[up], two[down] = (1 - likely) * share[0], likely * share[1]
            laws.append((one, two))
        self.one, self.two = (np.array([pair[i] for pair in laws]) for i in (0, 1))
        self.rank = generator.permutation(candidates * outputs).reshape(candidates, outputs)
        self.epsilon = epsilon

    def searches(self, law, policy):
        return (law_of_best(law, self.prior, data, self.rank, policy) for data in (self.one, self.two))

    @property
    def guarantee(self):
        """The exact profile of one run with a candidate from the prior: a mixture whose index is seen."""
        one, two = ((self.prior[:, None] * data).ravel() for data in (self.one, self.two))
        grid = np.linspace(0.0, self.epsilon, 40)
        deltas = [
            max(np.maximum(a - math.exp(e) * b, 0).sum() for a, b in ((one, two), (two, one))) * (e < self.epsilon)
            for e in grid
        ]
        return from_profile(list(grid), list(deltas))
