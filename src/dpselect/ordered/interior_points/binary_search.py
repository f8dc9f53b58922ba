"""An interior point by noisy binary search: log2(domain size) comparisons with Gaussian noise.

The question at a middle is whether more points lie at or below it than above; the difference of the two numbers moves
by one when a point is added. An answer matters only where all points lie on one side.
"""

from __future__ import annotations

from dpselect.ordered.domains import Codes
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.interior_points.search_tree import count_below

__all__ = ["draw_binary_search"]


def draw_binary_search(codes: Codes, bits: int, noise_multiplier: float, draws: SecretDraws) -> int:
    """A code in 0 .. 2**bits - 1; `codes` ascending.

    `bits` answers, each with noise of standard deviation `noise_multiplier` sqrt(bits), are one Gaussian mechanism
    with `noise_multiplier` at sensitivity one, for adding or removing a point.
    """
    start, total = 0, len(codes)
    for level in range(bits - 1, -1, -1):
        middle = start + (1 << level)
        below = count_below(codes, middle)
        if not draws.majority(2 * below - total, noise_multiplier * float(bits) ** 0.5 * (1.0 + 1e-15)):
            start = middle
    return start
