"""Parameters of TreeLog that need few points, and how many they need (public numbers only)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from dpselect.ordered.interior_points.stable_choice import StableChoice, SupportChoice, laplace_tail_steps
from dpselect.ordered.interior_points.tree_log import TreeLogParameters, level_bits
from dpselect.ordered.interior_points.tree_log_price import difference_tail_steps, printed_parameters, tree_log_price

__all__ = [
    "affordable_printed",
    "cumulative_rows",
    "rows_of_exponential",
    "search_shares",
    "tree_log_rows",
    "tuned_cumulative",
    "tuned_tree_log",
]

Result = TypeVar("Result")


def rows_of_exponential(rate: float, size: int, failure: float) -> int:
    """The least n at which weights exp(rate score) on `size` points fail with probability at most `failure`.

    Some point has score ceil(n/2) at least, and at most size - 1 points have score 0.
    """
    if size == 1:
        return 1
    needed = (math.log(size - 1) + math.log1p(-failure) - math.log(failure)) / rate
    half = max(1, math.ceil(needed - 1e-9))
    return 2 * half - 1


def search_shares(at: Callable[[tuple[float, ...]], tuple[int, Result]], parts: int) -> tuple[int, Result]:
    """Shares of one, found by moving them about: the fewest rows met, and what came with them."""
    logs, step = [0.0] * parts, 1.0

    def evaluate(values: list[float]) -> tuple[int, Result]:
        weights = [math.exp(v) for v in values]
        total = sum(weights) * (1.0 + 1e-12)
        return at(tuple(w / total for w in weights))

    best = evaluate(logs)
    while step > 0.02:
        improved = False
        for i in range(parts):
            for sign in (1.0, -1.0):
                tried = [*logs[:i], logs[i] + sign * step, *logs[i + 1 :]]
                found = evaluate(tried)
                if found[0] < best[0]:
                    best, logs, improved = found, tried, True
        if not improved:
            step /= 2.0  # searches: a pattern search over several shares
    return best


def _base_bits(bits: int, levels: int) -> int:
    for _ in range(levels):
        bits = level_bits(bits)
    return bits


def tuned_tree_log(bits: int, epsilon: float, delta: float, failure: float, levels: int = 1) -> TreeLogParameters:
    """For (epsilon, delta), adding or removing a point, fixed sizes and `levels` levels, with few points.

    Half of delta is for the choices, a sixth each for the three bad events of the price.
    """
    base_bits, mass, event = _base_bits(bits, levels), failure / (2 * levels + 3), delta / 6.0

    def at(shares: tuple[float, ...]) -> tuple[int, TreeLogParameters]:
        # the test 2 a, each level e + 2 c, and the larger of the base and twice the heavy round
        a, e, c = epsilon * shares[0] / 2.0, epsilon * shares[1] / levels, epsilon * shares[2] / (2.0 * levels)
        base = epsilon * shares[3]
        heavy = (base + e + 2.0 * c) / 2.0
        heavy_threshold = max(1, difference_tail_steps(heavy, mass / bits))
        promise = heavy_threshold + difference_tail_steps(heavy, event)
        threshold = promise + difference_tail_steps(a, event / levels)
        choice = StableChoice(c, delta / (4.0 * levels))
        p = TreeLogParameters(
            epsilon_threshold=a,
            epsilon_heavy=heavy,
            epsilon_border=e,
            rate_base=base,
            choice=choice,
            border=math.ceil(2.0 / e * math.log(2.0 / mass)),
            deepest=max(
                2 * (threshold + difference_tail_steps(a, event) + 1),
                choice.threshold + laplace_tail_steps(c, mass),
            ),
            threshold=threshold,
            heavy_threshold=heavy_threshold,
            promise=promise,
            base_bits=base_bits,
        )
        return tree_log_rows(p, bits, failure), p

    return search_shares(at, 4)[1]


def tree_log_rows(parameters: TreeLogParameters, bits: int, failure: float) -> int:
    """Points that suffice: what each level takes aside, and enough for the base.

    With L levels, `failure`/(2L + 3) is for each of these: the choice and the border's draw of each level, the base,
    the heavy round and all bad events. In the heavy round a node with an empty child fires at one of the depths.
    Geometric sizes add their tails.
    """
    p, levels = parameters, parameters.levels(bits)
    mass = failure / (2 * levels + 3)
    extra = 0
    if p.slice_epsilon is not None and levels:
        extra = 3 * math.ceil(math.log(3.0 * levels / mass) / p.slice_epsilon)
        mass *= (2 * levels + 3) / (2 * levels + 4)
    size = 1 << _base_bits(bits, levels)
    return rows_of_exponential(p.rate_base, size, mass) + levels * (2 * p.border + p.deepest + extra)


def affordable_printed(bits: int, epsilon: float, delta: float) -> TreeLogParameters:
    """Algorithm 5 as printed, with the largest equal parts that (epsilon, delta) pays for (adding or removing a point).

    Its price at its real depth, not that of Theorem 3.8 of Cohen et al. 2022, which is hundreds of times larger.
    """
    levels = printed_parameters(1.0, 0.1).levels(bits)
    part, part_delta = epsilon / (3 * levels + 3 if levels else 1), delta / (2 * max(levels, 1))
    while True:
        part, part_delta = part * (1.0 - 1e-9), part_delta * (1.0 - 1e-6)
        price = tree_log_price(p := printed_parameters(part, part_delta), bits=bits)
        if price.epsilon <= epsilon and price.delta <= delta:
            return p


def tuned_cumulative(
    bits: int, epsilon: float, delta: float, failure: float, distance: int, levels: int = 1
) -> TreeLogParameters:
    """For (epsilon, delta) at this cumulative distance (1 when one point is replaced), fixed sizes, few points."""
    base_bits, mass, event = _base_bits(bits, levels), failure / (2 * levels + 3), delta / 6.0
    last, total = distance << (levels - 1), distance * ((1 << levels) - 1)

    def at(shares: tuple[float, ...]) -> tuple[int, TreeLogParameters]:
        a, e = epsilon * shares[0] / (6.0 * last), epsilon * shares[1] / total
        test, draw = epsilon * shares[2] / levels, epsilon * shares[3] / levels * (1.0 - 1e-6)
        base = epsilon * shares[4] / (4.0 * last)
        # a quarter of delta to either part of each choice; the ratio's logarithm is taken out of `draw`
        ratio = min(delta / (4.0 * levels) * math.exp(-draw / 2.0), epsilon * shares[3] / levels * 1e-6)
        # a run that stops at the last level has that level's border and choice, and the base, left over
        left_over = last * e + epsilon * (shares[2] + shares[3]) / levels + epsilon * shares[4]
        heavy = left_over * (1.0 - 1e-9) / (6.0 * last)
        heavy_threshold = max(1, difference_tail_steps(heavy, mass / bits))
        promise = heavy_threshold + 2 * last - 1 + difference_tail_steps(heavy, event)
        threshold = promise + 2 * last - 1 + difference_tail_steps(a, event / levels)
        deepest = 2 * (threshold + difference_tail_steps(a, event) + 4 * last)
        for _ in range(4):  # the choice's threshold grows with the logarithm of the size
            choice = SupportChoice(test, draw, delta / (4.0 * levels), ratio, deepest, distance)
            a_node = choice.movement(levels)
            deepest = max(deepest, choice.threshold(levels) + laplace_tail_steps(test / a_node, mass))
        p = TreeLogParameters(
            epsilon_threshold=a,
            epsilon_heavy=heavy,
            epsilon_border=e,
            rate_base=base,
            choice=SupportChoice(test, draw, delta / (4.0 * levels), ratio, deepest, distance),
            border=math.ceil(2.0 / e * math.log(2.0 / mass)),
            deepest=deepest,
            threshold=threshold,
            heavy_threshold=heavy_threshold,
            promise=promise,
            base_bits=base_bits,
        )
        return cumulative_rows(p, bits, failure), p

    return search_shares(at, 5)[1]


def cumulative_rows(parameters: TreeLogParameters, bits: int, failure: float) -> int:
    """As `tree_log_rows`. The number is very large if the choice cannot reach its threshold."""
    levels = parameters.levels(bits)
    choice = parameters.choice
    assert isinstance(choice, SupportChoice)
    mass = failure / (2 * levels + 3)
    short = 0
    if levels:
        reach = laplace_tail_steps(choice.epsilon_test / choice.movement(levels), mass)
        short = max(0, choice.threshold(levels) + reach - parameters.deepest)
    return tree_log_rows(parameters, bits, failure) + 1000 * short
