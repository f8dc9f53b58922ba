"""The cost of TreeLog, from public parameters (Cohen et al. 2022, Section 3, Appendices A and B).

Claim. Let every level have neighbouring data: adjacent by adding a point (`distance` None), or of equal size and at
cumulative distance d_i = d 2^(i-1) at level i. Write L for the number of levels, and D for the most that Gamma and a
smaller child's weight move (1, or 2 d_L). Write T, T_o, g, m for threshold, heavy threshold, promise, deepest. The
output is (epsilon, delta)-private with

    epsilon = test + sum over levels of (border + choice) + max(base, heavy)        (heavy ends a level early)
    delta = the choices' + u(m/2 - D' - T) + L u(T - g - D + 1) + v(g - D + 1 - T_o)

with u, v the tails P(N - N' >= z) of the difference of two noises of parameter epsilon_threshold, epsilon_heavy, and D'
= 1, or 4 d_L. If a point is added, test is 2 epsilon_threshold and heavy is 2 epsilon_heavy, as all queries move in one
direction (3 of each otherwise). The border is epsilon_border, since its score moves by one under a swap. The choice is
on deepest points that differ by a swap, with 2 epsilon and 2 delta. The base is rate_base. At cumulative distance, test
is 6 d_L epsilon_threshold, heavy is 6 d_i epsilon_heavy, border is d_i epsilon_border, base is 2 rate_base 2 d_L.

Why. Given the sizes of what is taken aside, which do not depend on data, nothing random happens on the way down. A
Gamma is too large for the embedding from m/2 on, or at cumulative distance from m/2 - 2 d_i on. Up to the first level
where either Gamma is too large, all levels have neighbouring data (Lemmas 3.4 and 4.3). The deepest points differ by a
swap, or are at cumulative distance 2 d_i, not d_i as printed. On that level not stopping has probability at most u(m/2
- D' - T). Stopping where a Gamma is below the promise has at most u(T - g - D + 1). Under the promise both runs of
`one_heavy_round` meet, before their paths part, a node whose smaller child weighs at least g - D + 1. Passing it has
probability at most v(g - D + 1 - T_o). The reason is that two paths part at a node with nearly equal children, and all
Gammas below it are at most about half of its own. Replace these events by a special output. A composition of private
steps remains, and the replacement costs its probability once. A gate adds the probability that the one node which
passes it on one side only is taken, v(T_o - gate - 1).

Source: Cohen et al. 2022, Lemmas 3.4 and 4.3 (for neighbouring data on every level).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpselect.errors import ArgumentError
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import first_true
from dpselect.ordered.interior_points.stable_choice import StableChoice, SupportChoice
from dpselect.ordered.interior_points.tree_log import TreeLogParameters

__all__ = [
    "TreeLogPrice",
    "difference_tail",
    "difference_tail_steps",
    "iterated_logarithm",
    "printed_parameters",
    "printed_rows",
    "tree_log_price",
]


def difference_tail(epsilon: float, steps: float) -> float:
    """P(N - N' >= z) for independent N, N' with P(x) proportional to exp(-epsilon |x|), z >= 0 (interpolated between).

    With r = exp(-epsilon) the difference is k with probability ((1-r)/(1+r))^2 r^|k| (|k| + (1+r^2)/(1-r^2)). For small
    epsilon this is (2 + u) exp(-u) / 4 at u = epsilon z, the continuous one. Below z = 0 it is one, for safety.

    >>> round(difference_tail(math.log(2), 0), 12) == round((1 + 5 / 27) / 2, 12)
    True
    """
    if steps < 0:
        return 1.0
    r, s = math.exp(-epsilon), -math.expm1(-epsilon)
    centre = (1.0 + r * r) / -math.expm1(-2.0 * epsilon)
    scale = (s / (1.0 + r)) ** 2 * ((steps + centre) / s + r / (s * s))
    return min(1.0, scale * math.exp(-epsilon * steps) * ROUND_UP)


def difference_tail_steps(epsilon: float, mass: float) -> int:
    """The least whole z >= 0 with `difference_tail` at most `mass`."""
    return first_true(lambda steps: difference_tail(epsilon, steps) <= mass, 0, None, start=0)


@dataclass(frozen=True)
class TreeLogPrice:
    """(epsilon, delta), rounded up."""

    epsilon: float
    delta: float


def tree_log_price(parameters: TreeLogParameters, *, bits: int, distance: int | None = None) -> TreeLogPrice:
    """The price of a run over 2**bits codes: for adding or removing a point, or at a cumulative distance (see above).

    Raises `ArgumentError` where the choice of node does not fit the adjacency.
    Source: Cohen et al. 2022, Theorem 3.8; Cohen et al. 2022, Theorem B.1 (both with the constants above).
    """
    p, levels = parameters, parameters.levels(bits)
    choice = p.choice
    spread = [1] * (levels + 1) if distance is None else [distance << i for i in range(levels + 1)]
    if distance is None:
        if not isinstance(choice, StableChoice):
            raise ArgumentError("choice must be a stable choice where one point is added")
        node, node_delta, single, away, test = 2.0 * choice.epsilon, 2.0 * choice.delta, 1, 1, 2.0
        base = p.rate_base
    else:
        if not isinstance(choice, SupportChoice) or choice.distance != distance or choice.size < p.deepest:
            raise ArgumentError("choice must be a choice from the support, for this distance and size")
        if p.slice_epsilon is not None:
            raise ArgumentError("slice_epsilon must be None at cumulative distances")
        node, node_delta, base = choice.epsilon, choice.delta, 2.0 * p.rate_base * spread[levels]
        last = spread[max(levels - 1, 0)]
        single, away, test = 2 * last, 4 * last, 6.0 * last
    each = [d * p.epsilon_border + node for d in spread[:levels]]
    heavy = 0.0 if not levels else sum(each[:-1]) + test * p.epsilon_heavy
    epsilon = test * p.epsilon_threshold + max(sum(each) + base, heavy)
    if not levels:
        return TreeLogPrice(base * ROUND_UP, 0.0)
    promise = p.promise - single + 1
    events = [
        difference_tail(p.epsilon_threshold, p.deepest / 2.0 - away - p.threshold),
        levels * difference_tail(p.epsilon_threshold, p.threshold - p.promise - single + 1),
        difference_tail(p.epsilon_heavy, promise - p.heavy_threshold),
    ]
    if p.gate is not None:
        if distance is not None or promise <= p.gate:
            raise ArgumentError("gate must be None at cumulative distances, and below the promise")
        events.append(difference_tail(p.epsilon_heavy, p.heavy_threshold - p.gate - 1))
    return TreeLogPrice(epsilon * ROUND_UP, min(1.0, (levels * node_delta + math.fsum(events)) * ROUND_UP))


def printed_parameters(epsilon: float, delta: float) -> TreeLogParameters:
    """Algorithm 5 with the constants of the paper: t = 100 log(1/delta)/epsilon, every component at `epsilon`.

    The sizes get geometric noise, which the paper's analysis needs and `tree_log_price` does not. With L levels the
    whole costs (3 + 3L) epsilon, by the price of a swap for each slice, regardless of the noise.
    """
    t = math.ceil(100.0 / epsilon * math.log(1.0 / delta))
    return TreeLogParameters(
        epsilon_threshold=epsilon,
        epsilon_heavy=epsilon,
        epsilon_border=epsilon,
        rate_base=epsilon,
        choice=StableChoice(epsilon, delta),
        border=t,
        deepest=2 * t,
        threshold=math.ceil(3 * t / 4),
        heavy_threshold=math.ceil(t / 4),
        promise=math.ceil(t / 2),
        gate=t // 10,
        slice_epsilon=epsilon,
    )


def iterated_logarithm(size: int) -> int:
    """log* to base 2: how often the logarithm is taken until at most one is left.

    >>> [iterated_logarithm(1 << bits) for bits in (0, 1, 2, 4, 16, 20, 64, 65536)]
    [0, 1, 2, 3, 4, 5, 5, 5]
    """
    left: float = size
    count = 0
    while left > 1:
        left, count = math.log2(left), count + 1
    return count


def printed_rows(*, domain_size: int, epsilon: float, delta: float) -> int:
    """The points that Theorems 3.7 and 3.8 ask for with the constants of their proofs, regardless of the real price.

    Half of delta is for Theorem 2.1's count of queries, each synchronised with probability 1/6 and 3 epsilon'. The
    other half is for log* levels of six slices and the mechanisms: epsilon' = epsilon/(3w + 7), and 10 log* t points.
    This is for comparison: nothing runs with these.

    >>> round(printed_rows(domain_size=2**64, epsilon=1.0, delta=1e-6) / 1e7, 2)
    2.26
    """
    levels = iterated_logarithm(domain_size)
    queries = math.ceil(math.log(2.0 / delta) / math.log(6.0 / 5.0))
    part, part_delta = epsilon / (3 * queries + 7), delta / 2.0 / (7 * levels + 8)
    return math.ceil(10 * levels * 100.0 / part * math.log(1.0 / part_delta))
