"""The published theorems on the best of a geometric number of runs. `best_of` is tighter than each of them.

One run satisfies a base guarantee, its score included. After every run a coin stops the search with probability
gamma = `stop_probability`, and the best output alone is released (Liu, Talwar 2019, Section 3.2).
"""

from __future__ import annotations

import math
from typing import SupportsFloat

from dpselect.errors import BoundUnavailableError, number
from dpselect.numerics.logs import ROUND_UP
from dpselect.privacy import Guarantee, approximate_dp, pure_dp
from dpselect.privacy.promises import promise
from dpselect.repetitions import Geometric, Repetitions, capped

__all__ = [
    "theorem_3_2",
    "theorem_3_3_failure",
    "theorem_3_3_stop_probability",
    "theorem_3_4",
    "theorem_3_5",
]


def _pure(base: Guarantee, theorem: str) -> Guarantee:
    base = promise("base", base)
    if base.failure > 0.0 or not math.isfinite(base.pure_epsilon):
        raise BoundUnavailableError(f"{theorem} needs a base with pure privacy; `best_of` prices every base")
    return base


def theorem_3_2(base: Guarantee) -> Guarantee:
    """3 epsilon_1 for every stop probability and no limit on the runs. The base must be pure.

    Source: Liu, Talwar 2019, Theorem 3.2. Exact is epsilon_1 + 2 log((exp(epsilon_1) + gamma) / (1 + gamma
    exp(epsilon_1))), what `best_of(base, Geometric(gamma=gamma), bound="pure")` gives.

    >>> from dpselect.privacy import pure_dp
    >>> theorem_3_2(pure_dp(epsilon=1.0)).epsilon(delta=0)
    3.0
    """
    base = _pure(base, "Theorem 3.2")
    return pure_dp(epsilon=3.0 * base.pure_epsilon, adjacency=base.adjacency)


def theorem_3_3_failure(*, stop_probability: SupportsFloat, probability: SupportsFloat) -> float:
    """gamma (1-p) / (p + gamma - gamma p): that no run lands in an event of this probability, at most gamma / p.

    The release is at least the upper p-quantile of one run's score except with this probability.
    Source: Liu, Talwar 2019, Theorem 3.3 (the sum in its proof, in closed form).

    >>> round(theorem_3_3_failure(stop_probability=0.1, probability=0.5), 10)
    0.0909090909
    """
    gamma = number("stop_probability", stop_probability, above=0.0, at_most=1.0)
    p = number("probability", probability, above=0.0, at_most=1.0)
    return gamma * (1.0 - p) / (p + gamma - gamma * p)


def theorem_3_3_stop_probability(*, probability: SupportsFloat, failure: SupportsFloat) -> float:
    """The largest gamma at which `theorem_3_3_failure` is at most `failure`, both in (0, 1).

    One good candidate among K is met with probability 1/K in a draw, and its median with 1/(2K).

    >>> round(1 / theorem_3_3_stop_probability(probability=1 / 20, failure=0.05), 6)
    361.0
    """
    p = number("probability", probability, above=0.0, below=1.0)
    beta = number("failure", failure, above=0.0, below=1.0)
    return min(beta * p / ((1.0 - p) * (1.0 - beta)), 1.0)


def theorem_3_4(
    base: Guarantee, *, stop_probability: SupportsFloat, cut_off: SupportsFloat
) -> tuple[Repetitions, Guarantee]:
    """min(K, T) runs, T = ceil(log(1/cut_off) / gamma), of an (epsilon_1, delta_1)-private base, as printed.

    (3 epsilon_1 + 3 sqrt(2 delta_1), sqrt(2 delta_1) T + cut_off)-privacy. The lemmas of the printed proof have gaps,
    but the statement is true for cut_off <= 0.49. K <= T has the same probability on all data sets. Given it, the
    search is that of a conditioned geometric law, at most (3 epsilon_1, delta_1 / gamma), and delta_1 / gamma is
    below sqrt(2 delta_1) T. `best_of` is much smaller. Returns the law of the number of runs and the guarantee.
    Raises `BoundUnavailableError` when the base has no epsilon outside a failure mass, or the delta reaches 1.
    Source: Liu, Talwar 2019, Theorem 3.4.
    """
    base = promise("base", base)
    gamma = number("stop_probability", stop_probability, at_least=1e-100, below=1.0)
    rest = number("cut_off", cut_off, above=0.0, at_most=0.49)
    if not math.isfinite(base.pure_epsilon):
        raise BoundUnavailableError("Theorem 3.4 needs an (epsilon, delta)-private base; `best_of` prices every base")
    limit = math.ceil(-math.log(rest) / gamma)
    root = math.sqrt(2.0 * base.failure) * ROUND_UP
    delta = root * limit + rest
    if delta >= 1.0:
        raise BoundUnavailableError("Theorem 3.4 is vacuous here: its delta reaches 1; `best_of` prices every base")
    law = capped(Geometric(gamma=gamma), limit)
    total = approximate_dp(epsilon=3.0 * (base.pure_epsilon + root), delta=delta, adjacency=base.adjacency)
    return law, total


def theorem_3_5(
    base: Guarantee, *, stop_probability: SupportsFloat, slack: SupportsFloat
) -> tuple[Repetitions, Guarantee]:
    """min(K, T) runs of a pure base at 3 epsilon_1 + 3 slack, T = ceil((log X + log log X) / gamma).

    X = 2 (1+gamma)^2 / (slack gamma^2), slack in (0, 1/2), without a delta. A smaller T can cost more than 3 epsilon_1.
    Returns the law of the number of runs and the guarantee. Source: Liu, Talwar 2019, Theorem 3.5 (whose delta_2 is
    not used).

    >>> from dpselect.privacy import pure_dp
    >>> law, total = theorem_3_5(pure_dp(epsilon=1.0), stop_probability=0.1, slack=0.1)
    >>> law.limit, round(total.epsilon(delta=0), 9)
    (99, 3.3)
    """
    gamma = number("stop_probability", stop_probability, at_least=1e-100, below=1.0)
    slack = number("slack", slack, above=0.0, below=0.5)
    base = _pure(base, "Theorem 3.5")
    epsilon = base.pure_epsilon
    x = 2.0 * (1.0 + gamma) ** 2 / (slack * gamma**2)
    law = capped(Geometric(gamma=gamma), math.ceil((math.log(x) + math.log(math.log(x))) / gamma))
    return law, pure_dp(epsilon=3.0 * (epsilon + slack) * ROUND_UP, adjacency=base.adjacency)
