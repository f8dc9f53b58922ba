"""Exact laws of propose-test-release on small integer data, right and wrong.

Outputs of the trimmed mean are the noisy sum of the middle, those of the interquantile range (stage, noisy level);
None is none. `reach` = (low, high) must enclose every centre of both data sets that are compared: what is beyond is
put together as low - 1 and high + 1, where the ratio of two such laws is constant, so that nothing is lost. The wrong
variants claim what the right one does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

import numpy as np
from scipy.stats import laplace

from dpselect.audit import FiniteSubject
from dpselect.mechanisms import InterquantileRange, ProposeTestRelease, TrimmedMean
from dpselect.mechanisms.instability import Units, sensitivity_of_middle

__all__ = [
    "BROKEN",
    "audit_subject",
    "discrete_laplace_law",
    "interquantile_range_law",
    "pass_probability",
    "stages_law",
    "trimmed_mean_law",
]

Law = dict[Hashable, float]
Reach = tuple[int, int]
TrimmedMeanLaw = Callable[[TrimmedMean, Units, Reach], Law]


def discrete_laplace_law(centre: int, scale: float, reach: Reach) -> dict[int, float]:
    """centre + X with P(X = x) proportional to exp(-|x|/scale), see the module for `reach`.

    >>> round(sum(discrete_laplace_law(2, 0.7, (0, 3)).values()), 12)
    1.0
    """
    low, high = reach
    decay = math.exp(-1.0 / scale)
    inside = {y: (1.0 - decay) / (1.0 + decay) * decay ** abs(y - centre) for y in range(low, high + 1)}
    below, above = (decay**k / (1.0 + decay) for k in (centre - low + 1, high - centre + 1))
    return {low - 1: below, **inside, high + 1: above}


def pass_probability(test: ProposeTestRelease, distance: int) -> float:
    """P(distance + Laplace(1/epsilon_test) >= margin)."""
    return float(laplace.sf(test.epsilon_test * (test.margin - distance)))


def _answers(
    mechanism: TrimmedMean, rows: Units, reach: Reach, *, passing: float, sensitivity: float | None = None
) -> Law:
    """The sum of the middle with noise for a sensitivity, the proposal by default, if the test is passed."""
    scale = (mechanism.steps if sensitivity is None else sensitivity) / mechanism.epsilon_answer
    trimmed = mechanism.trimmed(len(rows))
    centre = int(rows[trimmed : len(rows) - trimmed].sum())
    law: Law = {y: passing * p for y, p in discrete_laplace_law(centre, scale, reach).items()}
    return {**law, None: 1.0 - passing}


def trimmed_mean_law(mechanism: TrimmedMean, rows: Units, reach: Reach) -> Law:
    """What `TrimmedMean` does."""
    return _answers(mechanism, rows, reach, passing=pass_probability(mechanism.test, mechanism.distance(rows)))


def noiseless_test(mechanism: TrimmedMean, rows: Units, reach: Reach) -> Law:
    """An answer exactly when the distance is at least one."""
    return _answers(mechanism, rows, reach, passing=1.0 if mechanism.distance(rows) >= 1 else 0.0)


def distance_one_too_large(mechanism: TrimmedMean, rows: Units, reach: Reach) -> Law:
    """The changes that leave the stable set are counted from one, and tested as if they were the distance."""
    return _answers(mechanism, rows, reach, passing=pass_probability(mechanism.test, mechanism.distance(rows) + 1))


def noise_for_the_data(mechanism: TrimmedMean, rows: Units, reach: Reach) -> Law:
    """The proposal is tested, but the noise is for the data's own local sensitivity."""
    passing = pass_probability(mechanism.test, mechanism.distance(rows))
    local = sensitivity_of_middle(rows, mechanism.trimmed(len(rows)), 0)
    return _answers(mechanism, rows, reach, passing=passing, sensitivity=max(local, 0.25))


def local_sensitivity_tested(mechanism: TrimmedMean, rows: Units, reach: Reach) -> Law:
    """The local sensitivity with noise of its own size is compared with the proposal: it has no small sensitivity."""
    local = sensitivity_of_middle(rows, mechanism.trimmed(len(rows)), 0)
    passing = float(laplace.sf(mechanism.epsilon_test * (local - mechanism.steps)))
    return _answers(mechanism, rows, reach, passing=passing)


def flat_data_refused(mechanism: TrimmedMean, rows: Units, reach: Reach) -> Law:
    """Data whose middle is one value are refused in advance, as "nothing to estimate"."""
    trimmed = mechanism.trimmed(len(rows))
    if rows[trimmed - 1] == rows[len(rows) - trimmed]:
        return {None: 1.0}
    return trimmed_mean_law(mechanism, rows, reach)


BROKEN: tuple[TrimmedMeanLaw, ...] = (
    noiseless_test,
    distance_one_too_large,
    noise_for_the_data,
    local_sensitivity_tested,
    flat_data_refused,
)


def audit_subject(law: TrimmedMeanLaw, rows: tuple[int, ...], other: tuple[int, ...]) -> FiniteSubject:
    """A law of these on two data sets of integers from 0 to 60; the claim is the largest epsilon of all outputs."""
    mechanism = TrimmedMean(width=1, granularity=1, epsilon_test=0.6, epsilon_answer=0.5, delta=0.15)
    laws = [law(mechanism, np.array(data), (0, 60 * len(data))) for data in (rows, other)]
    name = law.__name__.replace("_", " ")
    return FiniteSubject(name=name, data=laws[0], neighbour=laws[1], claim=mechanism.guarantee.worst())


def stages_law(
    mechanism: InterquantileRange, stages: Sequence[tuple[int, int | None]], reach: Reach, weight: float = 1.0
) -> Law:
    """The two stages one after the other, from (distance, level) of each; `weight` times the law."""
    law: Law = {}
    left, scale = weight, (mechanism.steps - 1) / mechanism.epsilon_answer
    for stage, (test, (distance, level)) in enumerate(zip(mechanism.cascade.stages, stages, strict=True), start=1):
        passing = pass_probability(test, distance)
        noisy: Law = {None: 1.0}
        if level is not None:
            noisy = {y: p for y, p in discrete_laplace_law(level, scale, reach).items()}  # noqa: C416 - the keys' type
        law.update({(stage, y): left * passing * p for y, p in noisy.items()})
        left *= 1.0 - passing
    return {**law, None: left}


def interquantile_range_law(mechanism: InterquantileRange, rows: Units, reach: Reach) -> Law:
    """What `InterquantileRange` does, over both orders of its stages. Width 0 is the level None."""
    plain, moved = (mechanism.examined(rows, shifted=shifted) for shifted in (False, True))
    one, other = (stages_law(mechanism, order, reach, 0.5) for order in ((plain, moved), (moved, plain)))
    return {y: one.get(y, 0.0) + other.get(y, 0.0) for y in {**one, **other}}
