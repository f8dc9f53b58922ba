"""The exact output law of the shipped code: every random decision is enumerated, in rational arithmetic.

A program takes an `EnumeratedDraws` in place of `SecretDraws` and is run once for each sequence of outcomes. All
epsilons must be whole multiples of one unit, of which exp(-unit) is rational. Two-sided noise with infinitely many
outcomes is cut off; the mass that is lost is returned, exactly.
"""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from functools import cache

import numpy as np


class EnumeratedDraws:
    def __init__(self, ratio, prefix, *, geometric_cap=12, laplace_cap=10):
        self.ratio, self.prefix, self.taken = Fraction(ratio), list(prefix), []
        self.unit = -math.log(self.ratio)
        self.geometric_cap, self.laplace_cap = geometric_cap, laplace_cap
        self.weight = Fraction(1)
        self.visited = []

    def power(self, epsilon):
        """exp(-epsilon), for a multiple of the unit."""
        steps = float(epsilon) / self.unit
        assert abs(steps - round(steps)) < 1e-6, "epsilons must be multiples of the unit"
        return self.ratio ** round(steps)

    def pick(self, outcomes):
        """One of (value, probability), by the prefix first and the first outcome after it."""
        place = len(self.taken)
        outcomes = [(value, mass) for value, mass in outcomes if mass]
        choice = self.prefix[place] if place < len(self.prefix) else 0
        self.taken.append((choice, len(outcomes)))
        value, mass = outcomes[choice]
        self.weight *= mass
        return value

    def coin(self, probability):
        return self.pick([(True, Fraction(probability)), (False, 1 - Fraction(probability))])

    def response(self, bit, epsilon):
        """Randomised response."""
        keep = 1 / (1 + self.power(epsilon))
        return bool(bit) == self.coin(keep)

    def geometric(self, epsilon):
        r, cap = self.power(epsilon), self.geometric_cap
        return self.pick([(k, (1 - r) * r**k) for k in range(cap)] + [(cap, r**cap)])

    def laplace(self, epsilon):
        r, cap = self.power(epsilon), self.laplace_cap
        at_zero = (1 - r) / (1 + r)
        lost = 2 * r ** (cap + 1) / (1 + r)
        drawn = self.pick([(k, at_zero * r ** abs(k)) for k in range(-cap, cap + 1)] + [(None, lost)])
        if drawn is None:
            raise Lost
        return drawn

    def reaches(self, value, limit, epsilon):
        return self.coin(noise_tail(self.power(epsilon), int(limit) - int(value)))

    def heaviest(self, weights, epsilon, threshold):
        drawn = self.pick(heaviest_law(tuple(int(w) for w in weights), self.power(epsilon), int(threshold)))
        if drawn == "lost":
            raise Lost
        return drawn

    def index(self, scores, rate):
        inverse = 1 / self.power(rate)
        weights = [inverse ** int(score) for score in scores]
        total = sum(weights)
        return self.pick([(i, w / total) for i, w in enumerate(weights)])

    def interior(self, codes, size, rate):
        points = np.array([int(code) for code in codes], dtype=np.int64)
        scores = [min(int(np.sum(points <= z)), int(np.sum(points >= z))) for z in range(size)]
        return self.index(scores, rate)

    def visit(self, place):
        self.visited.append(place)


@cache
def noise_tail(r, k):
    """P(noise >= k) for integer noise with P(x) proportional to r^|x|."""
    return r**k / (1 + r) if k > 0 else 1 - r ** (1 - k) / (1 + r)


@cache
def heaviest_law(weights, r, threshold):
    """The law of the place of the largest noisy weight, the first of equal ones, or None."""
    at_zero, top = (1 - r) / (1 + r), max([threshold, *weights]) + 40
    masses = []
    for i, w in enumerate(weights):
        total = Fraction(0)
        for v in range(threshold, top + 1):
            others = Fraction(1)
            for j, u in enumerate(weights):
                if j != i:
                    others *= 1 - noise_tail(r, v - u + (0 if j < i else 1))
            total += at_zero * r ** abs(v - w) * others
        masses.append(total)
    none = Fraction(1)
    for w in weights:
        none *= 1 - noise_tail(r, threshold - w)
    return [*enumerate(masses), (None, none), ("lost", 1 - none - sum(masses))]


class Lost(Exception):
    """Noise beyond the cut-off."""


def exact_law(program, ratio, **caps):
    """({output: probability}, lost mass, {places visited}) of program(draws)."""
    law, lost, prefix, visited = defaultdict(Fraction), Fraction(0), [], set()
    while True:
        draws = EnumeratedDraws(ratio, prefix, **caps)
        try:
            output = program(draws)
            law[output] += draws.weight
        except Lost:
            lost += draws.weight
        visited.update(draws.visited)
        taken = draws.taken
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        if not taken:
            return dict(law), lost, visited
        prefix = [choice for choice, _ in taken[:-1]] + [taken[-1][0] + 1]


def divergence(first, second, factor):
    """The hockey-stick divergence sum of (P - factor P')_+ over the outputs, exactly."""
    factor = Fraction(factor)
    return sum((max(mass - factor * second.get(o, Fraction(0)), Fraction(0)) for o, mass in first.items()), Fraction(0))


FACTORS = tuple(Fraction(k, 4) for k in (4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 128, 256))
"""exp(epsilon) at which divergences are compared to claims: rational, so that both sides of the laws are exact."""


def claims(guarantee, factors=FACTORS):
    """delta at each factor; computed once for many pairs."""
    return guarantee.delta(np.array([math.log(factor) for factor in factors]))


def worst_excess(laws, claimed, factors=FACTORS):
    """The most by which the exact divergence of two (law, lost) pairs exceeds what is claimed, less what was lost."""
    worst = -math.inf
    for factor, delta in zip(factors, claimed, strict=True):
        for (p, _), (q, lost) in (laws, laws[::-1]):
            # the lost mass of Q may lie anywhere
            worst = max(worst, float(divergence(p, q, factor) - factor * lost) - delta)
    return worst
