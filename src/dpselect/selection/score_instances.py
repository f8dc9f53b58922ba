"""Selection from scores as selection among private candidates (Liu, Talwar 2019, Theorem 5.2).

One run draws a candidate's index, adds noise to its score and returns both. `select_best` does the rest. Plain scores
of equal sensitivity are better served by `dpselect.mechanisms` (`exponential_mechanism`, `permute_and_flip`,
`GeneralisedExponentialMechanism`, `LargeMarginMechanism`, the smooth-sensitivity instance): this form costs up to three
times as much. It is for mixtures with candidates of another kind, which compete by the same noisy score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from dpselect.errors import ArgumentError, number
from dpselect.mechanisms import discrete_laplace
from dpselect.mechanisms.grid import grid_at_most, round_to_grid
from dpselect.mechanisms.scores import read_parts
from dpselect.numerics.logs import ROUND_UP
from dpselect.privacy import Adjacency, Guarantee, approximate_dp, pure_dp
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource
from dpselect.selection.candidates import PrivateCandidate

__all__ = ["noisy_score_candidate", "score_error", "truncated_laplace_delta"]

_STEPS = 2**20
"""Grid steps in the sensitivity of one score: rounding costs a millionth of the noise."""


def noisy_score_candidate(
    scores: ArrayLike,
    *,
    sensitivities: SupportsFloat | Sequence[SupportsFloat],
    epsilon: SupportsFloat,
    penalty: SupportsFloat = 0.0,
    truncation: SupportsFloat | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
) -> PrivateCandidate:
    """Return a candidate that draws an index uniformly and scores it by its entry plus exact discrete Laplace noise.

    Entry i gets noise of scale sensitivities[i] / epsilon. The output of a run is the index.

    Source: Liu, Talwar 2019, Theorem 5.2.

    Args:
        scores: one number for each index, private. An entry that is not a finite number counts as 0.
        sensitivities: the most that each entry moves between neighbours, from 2**-300 to 2**300. They are bounds that
            do not depend on the data (you must ensure this). One number is for all entries.
        epsilon: the epsilon of one run, from 2**-30 to 2**30.
        penalty: p, at least 0, takes p sensitivities[i] / epsilon off the noisy score. With p = log(4 count / beta**2)
            this is the generalised exponential mechanism. Its winner is, with probability 1 - beta, no worse than
            `score_error` allows.
        truncation: T, from 1 to 2**10, redraws noise beyond T scales. This is the margin mechanism, with
            `truncated_laplace_delta`. None leaves the guarantee pure.
        adjacency: which data sets are neighbours.

    Returns:
        A `PrivateCandidate`, with its guarantee.

    Raises:
        ArgumentError: if an argument does not fit, or the truncation gives no delta below 1.
        TypeError: if an argument is of another type.

    >>> from dpselect.randomness import keyed_source
    >>> from dpselect.repetitions import Geometric
    >>> from dpselect.selection import select_best
    >>> one = noisy_score_candidate([3.0, 90.0, 4.0], sensitivities=1.0, epsilon=1.0)
    >>> law = Geometric(gamma=0.01)
    >>> select_best(one, repetitions=law, guarantee=one.guarantee, random=keyed_source(1)).value
    1
    """
    values = np.concatenate(list(read_parts(scores, "scores")()))
    if not values.size:
        raise ArgumentError("scores must not be empty")
    given = sensitivities if isinstance(sensitivities, Sequence | np.ndarray) else [sensitivities] * values.size
    bounds = [number("sensitivities", bound, at_least=2.0**-300, at_most=2.0**300, rounding="up") for bound in given]
    if len(bounds) != values.size:
        raise ArgumentError("sensitivities must be one number, or as many as scores")
    price = number("epsilon", epsilon, at_least=2.0**-30, at_most=2.0**30, rounding="up")
    offset = number("penalty", penalty, at_least=0.0)
    cut = None if truncation is None else number("truncation", truncation, at_least=1.0, at_most=2.0**10)

    # floor(x + 1/2) of two numbers at most d apart differ by at most d + 1 whole steps, _STEPS <= d < 2 _STEPS
    grids = [grid_at_most(bound / _STEPS) for bound in bounds]
    scales = [(Fraction(d) / Fraction(g) + 1) / epsilon_used(price) for d, g in zip(bounds, grids, strict=True)]
    steps = [int(round_to_grid(v, g) / g) for v, g in zip(values, grids, strict=True)]

    def run(random: RandomSource) -> tuple[float, int]:
        index = random.below(len(steps))
        noise = discrete_laplace(scales[index], random)
        while cut is not None and abs(noise) > cut * scales[index]:
            noise = discrete_laplace(scales[index], random)
        return (steps[index] + noise) * grids[index] - offset * bounds[index] / price, index

    return PrivateCandidate(run, _guarantee(price, cut, adjacency))


def _guarantee(epsilon: float, cut: float | None, adjacency: Adjacency | str) -> Guarantee:
    terms = {"mechanism": "noisy-score", "epsilon": epsilon, "truncation": cut}
    if cut is None:
        base = pure_dp(epsilon=epsilon, adjacency=adjacency)
    else:
        # whole steps: at most d + 1 of the highest ones have no counterpart, and one step is 2**-20 of epsilon
        delta = truncated_laplace_delta(epsilon=epsilon, truncation=cut - epsilon / _STEPS) * (1.0 + epsilon / _STEPS)
        if delta >= 1.0:
            raise ArgumentError(f"truncation must be above epsilon for a delta below 1, got {cut!r}")
        base = approximate_dp(epsilon=epsilon, delta=delta, adjacency=adjacency)
    return replace(base, terms=terms, lower_profile=None)


def truncated_laplace_delta(*, epsilon: SupportsFloat, truncation: SupportsFloat) -> float:
    """The delta at `epsilon` of Laplace noise with scale sensitivity/epsilon, conditioned on at most T scales.

    (exp(epsilon) - 1) exp(-T) / (2 (1 - exp(-T))), which is exact for epsilon <= T, and at most 1. Rounded up. Liu and
    Talwar cut at T = log(1/delta) and claim delta for epsilon < 1 and delta < 1/4, which fails near that corner: at (1,
    1/4) it is 0.286. T = log(1 + (exp(epsilon) - 1) / (2 delta)) gives delta always.

    >>> round(truncated_laplace_delta(epsilon=1.0, truncation=math.log(4)), 6)
    0.28638
    """
    loss = number("epsilon", epsilon, above=0.0, rounding="up")
    cut = number("truncation", truncation, above=0.0)
    if loss > cut:
        return 1.0
    return min(1.0, math.expm1(loss) / (2.0 * math.expm1(cut)) * ROUND_UP)


def score_error(*, count: int, sensitivity: SupportsFloat, epsilon: SupportsFloat, failure: SupportsFloat) -> float:
    """The largest distance of the winner's score below the best, except with probability `failure`: 3 s log(4 K /
    beta**2) / e.

    For noisy scores of K candidates at epsilon/3 each, the best of a geometric number of runs with stop probability
    `failure / (4 count)`, in total epsilon. `sensitivity` is that of the best candidate, when the penalty is
    log(4 K / beta**2). The exponential mechanism's own error is 2 s log(K / beta) / e, so it is the better choice
    wherever it applies. Source: Liu, Talwar 2019, Theorem 5.2, with the constants computed.

    >>> round(score_error(count=10, sensitivity=1, epsilon=1, failure=0.05), 4)
    29.041
    """
    if count < 1:
        raise ArgumentError(f"count must be at least 1, got {count!r}")
    beta = number("failure", failure, above=0.0, below=1.0)
    width = number("sensitivity", sensitivity, above=0.0, rounding="up")
    return 3.0 * width * math.log(4.0 * count / beta**2) / number("epsilon", epsilon, above=0.0, rounding="up")
