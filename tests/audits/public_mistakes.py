"""Mistakes found in public programs that select or account, each with the exact laws that show it.

Those in the number of repetitions are in the tests of the accounting, those of the sparse vector in
`broken_sparse_vectors`; these are the rest. The table in docs/evidence/zoo.md lists all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpselect.testing.exact import FinitePair, finite_pair
from tests.audits.defects import Defect, two
from tests.audits.score_laws import exponential_law, permute_and_flip_law

__all__ = [
    "MISTAKES",
    "argmax_without_noise",
    "crash_on_underflow",
    "delta_of_an_odometer",
    "range_claimed_for_exponential_noise",
    "threshold_counts_its_own_value",
]


def argmax_without_noise(epsilon: float = 1.0) -> Defect:
    """The largest score wins, under a name that says private: one row decides. Corrected: exponential mechanism."""
    scores, neighbour = np.array([10.0, 9.5]), np.array([9.5, 10.0])
    return Defect(
        broken=two(1.0, 0.0),
        corrected=finite_pair(exponential_law(scores, epsilon / 2.0), exponential_law(neighbour, epsilon / 2.0)),
        epsilon=epsilon,
        seen="DP-HyperparamTuning; optirs-core before 0.3.2",
    )


def crash_on_underflow(epsilon: float = 1.0, gap: int = 1491) -> Defect:
    """Weights exp(rate * (score - best)), where the best candidate then drops out: those left may underflow to 0.

    The program raises, and whether it raises is the output. The best rank falls into a run of ties, an interval without
    a point; the scores on both sides are `gap` below it, or one of them by one less on the neighbour. At rate 1/2
    exp(-1491/2) is 0 in double precision and exp(-1490/2) is not. Corrected: the best of those that are left is
    subtracted. Releases, in order: crash, one side, the other.
    """

    def law(scores: np.ndarray, best: float) -> tuple[float, ...]:
        weights = np.exp(epsilon / 2.0 * (scores - best))
        total = float(weights.sum())
        return (1.0, 0.0, 0.0) if total == 0.0 else (0.0, *(weights / total).tolist())

    ours, theirs = np.array([-gap, -gap]), np.array([1.0 - gap, -gap])
    return Defect(
        broken=FinitePair(law(ours, 0.0), law(theirs, 0.0)),
        corrected=FinitePair(law(ours, float(ours.max())), law(theirs, float(theirs.max()))),
        epsilon=epsilon,
        seen="diffprivlib issue 107, smartnoise-sdk issue 572 (quantiles of data with many ties)",
    )


def delta_of_an_odometer(delta: float = 0.01, steps: int = 200) -> Defect:
    """Composition of `steps` mechanisms that fail with probability delta, reported as d (1 - d) + delta/2.

    d = 1 - (1 - delta)^steps; Kairouz, Oh, Viswanath (2015), Theorem 3.4, give 1 - (1 - d)(1 - delta/2), which is
    above d. The event is that any of the mechanisms failed, which only one data set allows. Corrected: the same
    composition stopped where the reported delta is right.
    """
    failed = -math.expm1(steps * math.log1p(-delta))
    reported = failed * (1.0 - failed) + delta / 2.0
    affordable = int(math.log1p(-reported) / math.log1p(-delta))
    fewer = -math.expm1(affordable * math.log1p(-delta))
    return Defect(
        broken=two(failed, 0.0),
        corrected=two(fewer, 0.0),
        epsilon=steps * 0.005,
        delta=reported,
        seen="smartnoise-sdk, OdometerHomogeneous.spent",
    )


def threshold_counts_its_own_value(scale: float = 1.0, threshold: int = 5) -> Defect:
    """A noisy count is released when it is at least the threshold, with the delta of "above the threshold".

    A key that one person alone holds has count 1 or is not there at all. Noise is discrete Laplace; the event is that
    the key is released. Corrected: released when the noisy count is above the threshold.
    """
    ratio = math.exp(-1.0 / scale)

    def tail(least: int) -> float:
        """P(1 + noise >= least) for least >= 1."""
        return ratio ** (least - 1) / (1.0 + ratio)

    at_least, above = tail(threshold), tail(threshold + 1)
    return Defect(
        broken=two(at_least, 0.0),
        corrected=two(above, 0.0),
        epsilon=1.0 / scale,
        delta=above,
        seen="OpenDP issue 2922",
    )


def range_claimed_for_exponential_noise(epsilon: float = 2.0) -> Defect:
    """Noisy max with exponential noise, charged as range epsilon, which is a property of Gumbel noise.

    Range epsilon means that the log-ratios of all outcomes are within epsilon of each other, so that where one
    outcome's is positive all stay below epsilon minus it; two outcomes then have log-ratios t and t - epsilon, and the
    delta at epsilon 0 is at most tanh(epsilon/4). Corrected: Gumbel noise, the exponential mechanism.
    """
    scores, neighbour = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 1.0])
    rate = epsilon / 2.0
    return Defect(
        broken=finite_pair(permute_and_flip_law(scores, rate), permute_and_flip_law(neighbour, rate)),
        corrected=finite_pair(exponential_law(scores, rate), exponential_law(neighbour, rate)),
        epsilon=0.0,
        delta=math.tanh(epsilon / 4.0),
        seen="OpenDP issue 2911 (a divergence paired with another sampler)",
    )


MISTAKES: tuple[Callable[[], Defect], ...] = (
    argmax_without_noise,
    crash_on_underflow,
    delta_of_an_odometer,
    threshold_counts_its_own_value,
    range_claimed_for_exponential_noise,
)
