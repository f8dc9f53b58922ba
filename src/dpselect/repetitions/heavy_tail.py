"""Drawing from the far tail of a law with decreasing probabilities, without walking there."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

from dpselect.randomness import RandomSource

__all__ = ["draw_decreasing_tail"]

_BITS = 320
_PRECISION = 1024


def draw_decreasing_tail(*, start: int, log_weight: Callable[[Any, int], Any], random: RandomSource) -> int:
    """One draw of k >= start with probability proportional to exp(log_weight(context, k)), decreasing in k.

    Rejection: a block [start 2**j, start 2**(j + 1)) by its length times its largest weight, a uniform k in it, and
    acceptance by k's own weight, all with 320 bits worked out at 1024 bits of precision. The weights must in the end
    fall off exponentially; blocks below 2**-320 of the first are left out. Total variation error below 2**-250.
    """
    import mpmath  # for sampling alone

    context = mpmath.MPContext()
    context.prec = _PRECISION
    origin = log_weight(context, start)

    def fixed(log_value: Any) -> int:
        return int(context.floor(context.ldexp(context.exp(log_value), _BITS)))

    tops: list[Any] = []
    envelopes: list[int] = []
    while not envelopes or envelopes[-1] > 0:
        tops.append(log_weight(context, start << len(tops)))
        envelopes.append(fixed(tops[-1] - origin) << (len(tops) - 1))
    cumulated = list(accumulate(envelopes))
    while True:
        drawn = random.below(cumulated[-1])
        block = next(j for j, reached in enumerate(cumulated) if drawn < reached)
        length = start << block
        k = length + random.below(length)
        if random.bits(_BITS) < fixed(log_weight(context, k) - tops[block]):
            return k
