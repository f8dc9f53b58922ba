"""Numbers behind a plan of blocks: the loss of normal noise, splitting, and the expected shortfall."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.integrate import quad

from dpselect.adaptive.block_plan import exponential_loss, log_bad_odds
from dpselect.adaptive.blocks import normal_loss, splitting_blocks
from tests.adaptive.adaptive_laws import badness, data_sets, exponential_law


def test_the_normal_loss_is_the_integral() -> None:
    for x in (0.0, 0.5, 2.0, 6.0, 11.0):
        exact = float(quad(lambda z, x=x: (z - x) * math.exp(-z * z / 2), x, x + 12, epsabs=0)[0])
        assert math.isclose(float(normal_loss(x)), exact / math.sqrt(2 * math.pi), rel_tol=1e-8)


def test_splitting() -> None:
    assert [splitting_blocks(10**i, 0.05) for i in range(6)] == [13, 27, 43, 57, 73, 89]


def test_the_expected_shortfall_of_the_exponential_median() -> None:
    """The bound covers the worst data of all and is within a factor 3 of it where shares are fine enough."""
    ratios = []
    for size, blocks, epsilon, c in itertools.product((2, 3, 6), (4, 7), (0.5, 1.0, 2.5), (0.15, 0.25, 0.4)):
        bound = float(exponential_loss(log_bad_odds(size, 0.5 - c, epsilon * blocks / 2))) / (epsilon * blocks / 2)
        worst = 0.0
        for values in data_sets(size, blocks):
            short = np.maximum(c - (1.0 - badness(values, size) / blocks), 0.0)
            worst = max(worst, float(exponential_law(values, size, epsilon) @ short))
        assert worst <= bound
        ratios.append(worst / bound)
    assert max(ratios) > 1 / 3
