"""Public numbers that no double holds are rounded to the safe side: every one of a price says to which."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from dpselect import mechanisms
from dpselect.mechanisms import bounded_range_price
from dpselect.privacy import approximate_dp, dp_sgd, from_profile, gaussian, laplace, pure_dp, renyi_dp, zcdp
from dpselect.privacy.output import calculus
from dpselect.privacy.output.guarantee import OutputGuarantee
from tests.documentation import ROOT

SRC = ROOT / "src" / "dpselect"

EXACT = [
    Fraction(1, 3),
    Fraction(2, 7),
    Fraction(1, 10),
    Decimal("0.1"),
    Decimal("0.3"),
    Fraction(10**20 + 1, 3 * 10**20),
]


def _of_all(value: Any) -> OutputGuarantee:
    return calculus.from_dp(epsilon=value, delta=value, cell=bool, cells=[True])


STATED: dict[str, Callable[[Any], float]] = {
    "pure_dp": lambda x: pure_dp(epsilon=x).pure_epsilon,
    "approximate_dp, epsilon": lambda x: approximate_dp(epsilon=x, delta=0.0).pure_epsilon,
    "approximate_dp, delta": lambda x: approximate_dp(epsilon=1.0, delta=x).failure,
    "zcdp": lambda x: zcdp(rho=x).terms["rho"],
    "renyi_dp": lambda x: renyi_dp(orders=[2.0], epsilons=[x]).renyi(2.0),
    "from_profile": lambda x: from_profile(epsilons=[0.0], deltas=[x]).delta(0.0),
    "from_dp, epsilon": lambda x: max(_of_all(x).epsilons.values()),
    "from_dp, delta": lambda x: _of_all(x).delta,
    "from_subsets, epsilon": lambda x: calculus.from_subsets({1: (x, 0.0)}, cell=int).epsilons[1],
    "from_subsets, delta": lambda x: calculus.from_subsets({1: (1.0, x)}, cell=int).delta,
    "bounded_range": lambda x: bounded_range_price.bounded_range(epsilon=x).pure_epsilon,
    "1 / gaussian": lambda x: 1.0 / gaussian(noise_multiplier=1 / Fraction(x)).terms["noise_multiplier"],
    "1 / laplace": lambda x: 1.0 / laplace(scale=1 / Fraction(x)).terms["scale"],
    "sampling rate": lambda x: dp_sgd(noise_multiplier=1.0, sampling_rate=x, steps=1).terms["sampling_rate"],
    "PermuteAndFlip, sensitivity": lambda x: mechanisms.PermuteAndFlip(sensitivity=x, epsilon=1.0).sensitivity,
    "ReportNoisyMax, sensitivity": lambda x: mechanisms.ReportNoisyMax(sensitivity=x, epsilon=1.0).sensitivity,
    "SparseRelease, sensitivity": lambda x: (
        mechanisms.SparseRelease(
            epsilon_threshold=0.5, epsilon_queries=0.5, epsilon_release=0.5, max_positives=1, sensitivity=x
        ).sensitivity
    ),
    "LaplaceReduction, sensitivity": lambda x: (
        mechanisms.LaplaceReduction(epsilons=[0.1, 0.5], sensitivity=x, granularity=2.0**-10).sensitivity
    ),
}


@pytest.mark.parametrize("name", STATED)
def test_what_is_stated_is_never_below_what_was_given(name: str) -> None:
    for value in EXACT:
        # a reciprocal is rounded once more
        slack = Fraction(1, 2**52) if name.startswith("1 /") else 0
        stated = Fraction(STATED[name](value))
        assert stated >= Fraction(value) * (1 - slack)
        assert stated <= Fraction(value) * (1 + Fraction(1, 2**40))


RUN: dict[str, Callable[[Any], float]] = {
    "PermuteAndFlip": lambda x: mechanisms.PermuteAndFlip(sensitivity=1.0, epsilon=x).guarantee.pure_epsilon,
    "SparseVector": lambda x: (
        mechanisms.SparseVector(epsilon_threshold=x, epsilon_queries=1.0, max_positives=1).guarantee.epsilons[1] - 1.0
    ),
}


@pytest.mark.parametrize("name", RUN)
def test_a_mechanism_runs_with_no_more_than_was_asked_for(name: str) -> None:
    """What runs and what is charged are one number, so that a budget of that exact number pays for it."""
    for value in EXACT:
        assert Fraction(RUN[name](value)) <= Fraction(value) * (1 + Fraction(1, 2**50))
