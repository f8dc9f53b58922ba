"""Exact scores of a quantile, and the exact distribution of permute-and-flip."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction


def score(rows, z, target):
    return min(sum(x <= z for x in rows) - target, target - sum(x < z for x in rows))


def flipped_law(probabilities):
    """Uniform among the candidates whose coins land heads: in rational arithmetic."""
    law = [Fraction(0)] * len(probabilities)
    for coins in itertools.product((0, 1), repeat=len(probabilities)):
        chance = math.prod(p if c else 1 - p for p, c in zip(probabilities, coins, strict=True))
        for place, coin in enumerate(coins):
            law[place] += chance * coin / max(sum(coins), 1)
    return law
