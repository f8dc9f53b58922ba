"""How many points each interior-point method needs, and with which parameters: public numbers only.

Every answer is a claim. With at least so many points (codes of the domain, ties allowed), the method returns an
interior point with probability at least 1 - failure, regardless of the points. The derivations are with the functions.
A search finds the shares of epsilon. Its result is priced and checked again, so the search can only lose tightness.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from scipy.special import log_ndtr, ndtri_exp

from dpselect.errors import ArgumentError
from dpselect.numerics.search import first_true, root_between
from dpselect.ordered.interior_points.dyadic import DyadicParameters
from dpselect.ordered.interior_points.search_tree import code_bits
from dpselect.ordered.interior_points.stable_choice import StableChoice, laplace_tail_steps
from dpselect.ordered.interior_points.tree_log import TreeLogParameters
from dpselect.ordered.interior_points.tree_log_price import difference_tail
from dpselect.ordered.interior_points.tree_log_tuning import (
    affordable_printed,
    cumulative_rows,
    rows_of_exponential,
    search_shares,
    tree_log_rows,
    tuned_cumulative,
    tuned_tree_log,
)
from dpselect.privacy import Adjacency, gaussian

__all__ = [
    "METHODS",
    "InteriorPointPlan",
    "Method",
    "binary_search_noise",
    "plan_method",
    "step_budget",
]

Method = Literal["exponential", "dyadic", "tree_log", "cumulative", "binary_search", "tree_log_printed"]
METHODS: tuple[Method, ...] = ("exponential", "dyadic", "binary_search", "tree_log", "cumulative", "tree_log_printed")
"""In the order of preference among equal numbers of points."""

Parameters = float | DyadicParameters | TreeLogParameters


@dataclass(frozen=True)
class InteriorPointPlan:
    """A method with its parameters and the number of points it needs.

    `parameters`: the rate of the exponential mechanism, the noise multiplier of the binary search, else a record.
    """

    method: Method
    rows: int
    parameters: Parameters


def step_budget(epsilon: float, delta: float, adjacency: Adjacency) -> tuple[float, float]:
    """(epsilon, delta) for adding or removing one point, rounded down.

    Replacing a point is two such steps: (2e, (1 + exp(e)) d) from (e, d) (group privacy).
    """
    if adjacency is Adjacency.ADD_OR_REMOVE_ONE:
        return epsilon * (1.0 - 1e-11), delta * (1.0 - 1e-11)
    half = epsilon / 2.0 * (1.0 - 1e-11)
    return half, delta / (1.0 + math.exp(half)) * (1.0 - 1e-11)


@lru_cache(maxsize=512)
def plan_method(
    method: Method, size: int, epsilon: float, delta: float, failure: float, adjacency: Adjacency
) -> InteriorPointPlan | None:
    """The parameters of a method and what it needs, or None without a delta it needs or for the wrong adjacency."""
    bits = code_bits(size)
    step, step_delta = step_budget(epsilon, delta, adjacency)
    if method == "exponential":
        return InteriorPointPlan(method, rows_of_exponential(step, size, failure), step)
    if step_delta < 1e-200 or failure <= 4.0 * delta:
        return None
    if method == "dyadic":
        return _dyadic(bits, step, step_delta, failure)
    if method == "binary_search":
        return _binary_search(bits, epsilon, delta, failure, adjacency)
    if method == "tree_log":
        tuned = tuned_tree_log(bits, step, step_delta, failure)
        return InteriorPointPlan(method, tree_log_rows(tuned, bits, failure), tuned)
    if method == "tree_log_printed":
        tuned = affordable_printed(bits, step, step_delta)
        return InteriorPointPlan(method, tree_log_rows(tuned, bits, failure), tuned)
    if adjacency is not Adjacency.REPLACE_ONE:
        return None
    tuned = tuned_cumulative(bits, epsilon * (1.0 - 1e-11), delta * (1.0 - 1e-11), failure, 1)
    return InteriorPointPlan(method, cumulative_rows(tuned, bits, failure), tuned)


def _dyadic(bits: int, epsilon: float, delta: float, failure: float) -> InteriorPointPlan:
    def at(shares: tuple[float, ...]) -> tuple[int, DyadicParameters]:
        depth, node, point = (epsilon * share for share in shares)
        parameters = DyadicParameters(
            epsilon_depth=depth, choice=StableChoice(node, delta * (1.0 - 1e-12)), epsilon_point=point
        )
        return _dyadic_rows(parameters, bits, failure), parameters

    rows, parameters = search_shares(at, 3)
    return InteriorPointPlan("dyadic", rows, parameters)


def _dyadic_rows(parameters: DyadicParameters, bits: int, failure: float) -> int:
    """The least n for which these add up to at most `failure`.

    A depth with psi >= s, s = n/2 - alpha, is drawn with probability 1 - bits exp(-epsilon_depth alpha). Then some node
    has weight >= s, and every child of any node weighs at most n - s. The noisy weight of the heaviest is below the
    threshold with probability P(N >= s - threshold + 1). A node of weight at most w is chosen in its place with
    probability at most the largest (n/x) P(N - N' >= s - x) over x <= w. Let v be chosen, of weight above w = s/2. If
    s/2 points are on one side of v, the end on that side scores at least min(s/2, w). Otherwise more than s/2 points
    are on either side of the middle, as its right child weighs at most n - s. The best of three scores at least s/2,
    others 0 if not interior.
    """
    alpha_mass = failure / 3.0
    alpha = math.ceil(math.log(bits / alpha_mass) / parameters.epsilon_depth)
    threshold, node = parameters.choice.threshold, parameters.choice.epsilon
    noise = laplace_tail_steps(node, alpha_mass)

    def fails(count: int) -> float:
        s = count / 2.0 - alpha
        if s < 2.0 or s - threshold + 1.0 < noise:
            return 1.0
        missed = math.exp(-node * (math.floor(s) - threshold + 1.0)) / (1.0 + math.exp(-node))
        half = s / 2.0
        # log of (n/x) P(N - N' >= s - x) is convex in x up to s/2, so the ends of the range are worst
        swapped = max(count / x * difference_tail(node, s - x) for x in (1.0, half))
        best = math.ceil(half)
        wrong = 2.0 * math.exp(-parameters.epsilon_point * best)
        return alpha_mass + missed + min(1.0, swapped) + wrong / (1.0 + wrong)

    start = max(2 * (alpha + threshold + noise - 1), 1)
    found = first_true(lambda count: fails(count) <= failure, start, 1 << 60, start=start)
    if found is None:
        raise ArgumentError("epsilon and delta are too small for this method")
    return found


@lru_cache(maxsize=128)
def binary_search_noise(epsilon: float, delta: float, adjacency: Adjacency) -> float:
    """The noise multiplier at which one Gaussian mechanism is (epsilon, delta)-private, rounded up.

    For the difference of two numbers of points: it moves by one, or by two when a point is replaced.
    """
    epsilon *= 1.0 - 1e-10  # so that the guarantee, which is inverted by a search, stays within the budget

    def private(noise: float) -> bool:
        return gaussian(noise_multiplier=noise).delta(epsilon) <= delta

    noise = root_between(private, safe=math.inf, unsafe=0.0, start=1.0, relative=1e-9)
    return noise * (1.0 if adjacency is Adjacency.ADD_OR_REMOVE_ONE else 2.0)


def _binary_search(bits: int, epsilon: float, delta: float, failure: float, adjacency: Adjacency) -> InteriorPointPlan:
    """An answer can only do harm where all n points are on one side: `bits` times P(noise >= n) at most."""
    noise = binary_search_noise(epsilon, delta, adjacency)
    each = math.log(failure / bits)
    reach = -float(ndtri_exp(each))
    rows = math.ceil(noise * math.sqrt(bits) * reach * (1.0 + 1e-12))
    assert float(log_ndtr(-rows / (noise * math.sqrt(bits)))) <= each + 1e-9
    return InteriorPointPlan("binary_search", rows, noise)
