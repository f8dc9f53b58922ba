"""The price of a private threshold and how many rows it needs, from public parameters.

Write X for the domain, xi for the error on the distribution, b for the failure probability. All sizes are rounded up.

Realisable, by errors. Some cut makes no error and has weight 1. The at most |X| others with a or more errors weigh at
most exp(-rate a) each. So the drawn cut makes fewer than a = ceil(log(|X|/b')/rate) errors except with probability b'
(McSherry, Talwar 2007, Theorem 6). Take a cut above the true one with error more than xi. It misclassifies a fixed
interval of mass more than xi (the shortest one of that kind that starts at the true cut). Fewer than a of N rows are in
it with probability at most P(Bin(N, xi) < a). The same holds below. Hence P(error > xi) <= b' + 2 P(Bin(N, xi) < a),
with b' = b/3.

Realisable, by an interior point. The mechanism needs 2m points to succeed except with probability b' (see
`ThresholdLearner.rows_per_side`). For the exponential one the best score is at least m and the at most |X| cuts that
are no interior points score 0. So m = ceil(log(|X|/b')/rate). An interior point misclassifies fewer than m rows on
either side. The rest is as before with m in the place of a.

Any labels, by errors. err(c) is P(y = 0, x < c) + P(y = 1, x >= c). Both terms are distribution functions (of x where
the label is that one, and of infinity elsewhere). Each deviates upwards by more than t with probability at most exp(-2
N t^2) (Massart 1990, one-sided). At the best cut, which is fixed, so does the sum. With b/4 for each of these three and
for the mechanism, err exceeds the least one by at most a/N + 3 t, t = sqrt(log(4/b)/(2N)).

With the direction learnt as well there are 2|X| + 1 other rules, four intervals instead of two, and the deviations
downwards count too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal, SupportsFloat, get_args

from scipy.special import betainc

from dpselect.cures import write_one_of
from dpselect.errors import ArgumentError, number
from dpselect.numerics.search import first_true
from dpselect.privacy import Adjacency
from dpselect.privacy.adjacency import parse_adjacency

__all__ = ["ThresholdMethod", "binomial_below", "score_margin", "smallest_count", "threshold_rate", "threshold_size"]

ThresholdMethod = Literal["errors", "interior-point"]

_UP = 1.0 + 2.0**-40


def threshold_rate(
    *,
    epsilon: Fraction,
    method: ThresholdMethod = "errors",
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
) -> Fraction:
    """The largest rate at which the exponential mechanism of `learn_threshold` has range epsilon.

    "errors": a row that is added adds 0 or 1 to the errors of every cut, so log-weights span at most rate: epsilon.
    A replaced row moves them by at most 1 either way: epsilon/2.

    "interior-point": the score is min(#{p <= c}, #{p >= c}) over the 2m points p. A positive row that is added moves
    one of the m largest up, a negative one moves one of the m smallest down. Either way one point is swapped and every
    score moves by at most 1, some up and some down: epsilon/2. A replaced row may swap two points, one in each half and
    both in the same direction (a positive that becomes a negative). So scores move by at most 2: epsilon/4.

    >>> threshold_rate(epsilon=Fraction(1), method="interior-point", adjacency="replace_one")
    Fraction(1, 4)
    """
    replaced = parse_adjacency(adjacency) is Adjacency.REPLACE_ONE
    if method not in get_args(ThresholdMethod):
        said = f"method must be one of {get_args(ThresholdMethod)}, got {method!r}"
        raise ArgumentError(said + write_one_of("method", method, get_args(ThresholdMethod)))
    return epsilon / ((1 if method == "errors" else 2) * (2 if replaced else 1))


def binomial_below(count: int, probability: float, limit: int) -> float:
    """P(Bin(count, probability) < limit), rounded up.

    >>> round(binomial_below(10, 0.5, 3), 6)
    0.054688
    """
    if limit <= 0:
        return 0.0
    if limit > count:
        return 1.0
    return min(1.0, float(betainc(count - limit + 1.0, limit, 1.0 - probability)) * (1.0 + 1e-9))


def smallest_count(enough: Callable[[int], bool], start: int = 1) -> int:
    """The least count from `start` on that is enough, for a condition that stays true once it is."""
    return first_true(enough, max(start, 0), None, start=max(start, 1), step=max(start, 1))


def score_margin(candidates: int, rate: float, failure_probability: float) -> int:
    """ceil(log(candidates/failure_probability)/rate): the score that bad candidates fall behind, and still lose."""
    return max(1, math.ceil((math.log(candidates) - math.log(failure_probability)) / rate * _UP))


def threshold_size(
    size: int, error: SupportsFloat, failure: float, rate: float, side: int | None, *, realisable: bool, either: bool
) -> int:
    """Rows from which a threshold on `size` values has error at most `error` except with probability `failure`.

    Proved above, for the exponential mechanism of this rate on the errors, or for interior points with `side` rows on
    either side. `either`: the direction is learnt as well.
    """
    xi = number("error", error, at_least=1e-12, below=1.0)
    rules = 2 * size + 1 if either else size
    if realisable:
        part = failure / (5 if either else 3)
        margin = score_margin(rules, rate, part) if side is None else side
        return smallest_count(lambda rows: binomial_below(rows, xi, margin) <= part, margin)
    part = failure / (6 if either else 4)
    margin = score_margin(rules, rate, part)
    deviation = -math.log(part) / 2.0
    return smallest_count(lambda rows: margin / rows + 3.0 * math.sqrt(deviation / rows) * _UP <= xi, margin)
