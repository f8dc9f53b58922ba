"""The mechanisms that choose by scores, on pairs of score vectors, for `tests.audits.shipped_mechanisms`.

One score rises and all others fall, which moves the best one's probability the furthest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dpselect.audit import Subject
from dpselect.mechanisms import (
    ChoosingMechanism,
    ExponentialMechanism,
    GeneralisedExponentialMechanism,
    LargeMarginMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
    SmoothSensitivityMechanism,
    TopK,
    exponential_mechanism,
    permute_and_flip,
    report_noisy_max,
)
from tests.audits.shipped import audited, label, looped, number_or_nan

__all__: list[str] = []

SWING = ([1.0, *[0.0] * 7], [0.0, *[1.0] * 7])
RISE = ([1.0, *[0.0] * 7], [0.0] * 8)
"""Monotonic scores: one row raises one of them."""
EPSILON = 1.0
Drawing = ExponentialMechanism | PermuteAndFlip | ReportNoisyMax


def chosen(name: str, choose: Callable[..., int], mechanism: Callable[..., Drawing], **options: Any) -> Subject:
    """What `choose` returns of scores of sensitivity 1, at the price of the mechanism with the same options."""
    fixed = {"sensitivity": 1.0, "epsilon": EPSILON, **options}
    pair = RISE if options.get("monotonic") else SWING
    return looped(name, partial(choose, **fixed), pair, mechanism(**fixed).guarantee)


@audited("mechanisms.exponential_mechanism", "mechanisms.ExponentialMechanism", draws=1500, planted=0.6)
def exponential() -> Subject:
    """`exponential_mechanism`."""
    return chosen("exponential mechanism", exponential_mechanism, ExponentialMechanism)


@audited("mechanisms.exponential_mechanism", draws=1500, planted=0.6)
def exponential_of_counts() -> Subject:
    """`exponential_mechanism` with monotonic scores and half the noise."""
    return chosen("exponential mechanism, monotonic", exponential_mechanism, ExponentialMechanism, monotonic=True)


@audited("mechanisms.permute_and_flip", "mechanisms.PermuteAndFlip", draws=1500, planted=0.8)
def permute_and_flip_() -> Subject:
    """`permute_and_flip`."""
    return chosen("permute-and-flip", permute_and_flip, PermuteAndFlip)


@audited("mechanisms.report_noisy_max", "mechanisms.ReportNoisyMax", draws=1500, planted=0.7)
def noisy_max() -> Subject:
    """`report_noisy_max` with Laplace noise."""
    return chosen("report noisy max", report_noisy_max, ReportNoisyMax)


@audited("mechanisms.report_noisy_max", draws=1500, planted=0.8)
def noisy_max_exponential() -> Subject:
    """`report_noisy_max` with exponential noise."""
    return chosen("report noisy max, exponential noise", report_noisy_max, ReportNoisyMax, noise="exponential")


@audited("mechanisms.TopK", draws=300, many=8_000, planted=0.5)
def best_two() -> Subject:
    """`TopK` of five."""
    best = TopK(count=2, sensitivity=1.0, epsilon=4.0)
    pair = ([1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0, 1.0])
    return looped("top k", best.draw, pair, best.guarantee, lambda found: label(sorted(found)))


@audited("mechanisms.ChoosingMechanism", draws=1500, planted=0.3, of_delta=True)
def choosing() -> Subject:
    """`ChoosingMechanism`: one row makes a candidate that was not there."""
    mechanism = ChoosingMechanism(growth=1, epsilon=EPSILON, delta=0.05)
    return looped("choosing mechanism", mechanism.draw, ([1.0, 0.0], [0.0, 0.0]), mechanism.guarantee, number_or_nan)


@audited("mechanisms.ChoosingMechanism", draws=1500, planted=0.5)
def choosing_at_the_threshold() -> Subject:
    """`ChoosingMechanism` where stopping is an even bet."""
    mechanism = ChoosingMechanism(growth=1, epsilon=EPSILON, delta=0.001)
    level = round(mechanism.threshold)
    pair = ([level, *[level - 1.0] * 7], [level - 1.0] * 8)
    return looped("choosing mechanism at the threshold", mechanism.draw, pair, mechanism.guarantee, number_or_nan)


@audited("mechanisms.LargeMarginMechanism", draws=300, many=10_000, planted=0.4)
def large_margin() -> Subject:
    """`LargeMarginMechanism` where no margin is found: with one, both data sets choose the same.

    Then only the second half of epsilon shows: the search for a margin costs the first.
    """
    swing = ([1.0, *[0.0] * 15], [0.0, *[1.0] * 15])
    mechanism = LargeMarginMechanism(candidates=16, sensitivity=1.0, epsilon=6.0, delta=0.001)
    return looped("large margin mechanism", mechanism.draw, swing, mechanism.guarantee)


@audited("mechanisms.GeneralisedExponentialMechanism", draws=1500, planted=0.6)
def generalised_exponential() -> Subject:
    """`GeneralisedExponentialMechanism` with one candidate of small sensitivity, against which all others move.

    The first one's normalised score falls from 0 to nearly -1 and those of the others rise from -1 to 0.
    """
    moves = [1.0] * 7 + [0.01]
    mechanism = GeneralisedExponentialMechanism(sensitivities=moves, epsilon=EPSILON)
    steady = mechanism.penalty * (moves[-1] - moves[0])  # as good as a score of 0 of the others, once penalised
    pair = ([0.0, *[-1.01] * 6, steady], [-1.0, *[-0.01] * 6, steady - 0.01])
    return looped("generalised exponential mechanism", mechanism.draw, pair, mechanism.guarantee)


@audited("mechanisms.SmoothSensitivityMechanism", draws=100, many=2_000)
def smooth_sensitivity() -> Subject:
    """`SmoothSensitivityMechanism`: both the scores and their bounds move."""
    mechanism = SmoothSensitivityMechanism(
        candidates=3, smoothness=0.03, base_epsilon=1.0, base_delta=1e-6, failure_probability=0.5
    )
    grown = 1.03  # below exp(smoothness)
    return looped(
        "smooth sensitivity mechanism",
        lambda data, random: mechanism.draw(*data, random=random),
        (([2.0, 0.0, 0.0], [1.0, 1.0, 1.0]), ([1.0, 1.0, 1.0], [grown, grown, grown])),
        mechanism.guarantee,
    )
