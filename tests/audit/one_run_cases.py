"""The mechanism that attains the bound on one run."""

from __future__ import annotations

import math


def extremal(v, r, m, factor, delta):
    """The masses of W of the mechanism that attains the bound, for e^epsilon = factor; rational."""
    q = factor / (1 + factor)
    b = [math.comb(r, w) * q**w * (1 - q) ** (r - w) for w in range(r + 1)]
    beta, slack = sum(b[v:]), m * delta / (v * b[v])
    rest = 1 - slack * beta
    assert rest >= 0
    return [rest * x if w < v else (rest + slack) * x for w, x in enumerate(b)], beta + slack * beta * (1 - beta)
